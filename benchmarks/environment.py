"""The machine and the process: threads, processor, memory, progress on a terminal.

Imports the standard library only, since thread variables must be set before NumPy is loaded.
"""

from __future__ import annotations

import os
import sys

THREAD_VARIABLES = (
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def on_one_core(module: str) -> None:
    """Start the module again with one thread, unless it runs so: libraries read that at import."""
    alone = dict.fromkeys(THREAD_VARIABLES, "1")
    if not alone.items() <= os.environ.items():
        command = [sys.executable, "-m", module, *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **alone})


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


def peak_bytes() -> float:
    """Return the peak resident memory of this process, in bytes; NaN if it is unknown.

    On Linux it is read from ``/proc``: getrusage reports the peak of the parent process if that
    is higher.
    """
    try:
        return _read_status("VmHWM")
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # on Windows
        return float("nan")
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def reset_peak() -> float:
    """Reset the peak to the memory in use, where the system supports it; return it in bytes."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        return _read_status("VmRSS")
    except OSError:
        return peak_bytes()


def _read_status(field: str) -> float:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return 1024.0 * int(line.split()[1])
    raise OSError(f"/proc/self/status has no {field}")
