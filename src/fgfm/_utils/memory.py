"""Memory of the current process."""

from __future__ import annotations

import math
import sys

__all__ = ["peak_memory"]


def peak_memory() -> float:
    """Return the peak resident memory of this process in MiB; NaN where it is not available."""
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10  # bytes on macOS, else KiB
