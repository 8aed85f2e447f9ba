"""The machine and the process: threads, processor, progress on a terminal.

Imports the standard library only, since thread variables must be set before NumPy is loaded.
"""

from __future__ import annotations

import sys

__all__ = [
    "THREAD_VARIABLES",
    "processor_name",
    "show_progress",
]

THREAD_VARIABLES = (
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def show_progress(message: str) -> None:
    """Print what is being measured, on a terminal only; an empty message clears the line."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{message}", end="", file=sys.stderr, flush=True)


def processor_name() -> str:
    """Return the name of the processor, as far as the system provides it."""
    import platform

    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
