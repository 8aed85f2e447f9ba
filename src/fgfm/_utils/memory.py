"""Memory of the current process."""

from __future__ import annotations

import math
import sys

__all__ = ["peak_bytes"]


def peak_bytes() -> float:
    """Return the peak resident memory of this process in bytes; NaN if it is unknown."""
    try:  # getrusage reports the peak of the parent process on Linux if that is higher
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return 1024.0 * int(line.split()[1])
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else 1024 * peak)
