"""Constants shared by the decision kernels: ties and status codes."""

from __future__ import annotations

__all__ = ["NOT_PROBABILITY", "TIE", "TOO_MUCH_MASS"]

TIE = 1e-12  # values that differ by less than this, relatively, are equal ("The problem")

# Status codes, returned in place of an expected F-measure, which is never negative.
NOT_PROBABILITY = -1.0  # a value is NaN or outside [0, 1]
TOO_MUCH_MASS = -2.0  # the probabilities of a row sum to more than 1
