"""Shift the expected F-measures of labels towards those that validation rows obtain."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

__all__ = ["expectation_shift", "shifted"]

Floats = npt.NDArray[np.float64]

_ERROR = 0.03  # standard deviation of the mean error of macro expectations, over data sets
_MOST_SHIFT = 3.0  # of their logits


def expectation_shift(expected: Floats, obtained: Floats) -> float:
    r"""Return the shift of the logits of expected F-measures that obtained ones call for.

    With the mean difference :math:`\bar\delta` over m labels, whose standard error is at
    most s, :math:`s^2 = \sum_j \delta_j^2 / m^2`, the shifted mean is lower by
    :math:`\bar\delta \, \tau^2 / (\tau^2 + s^2)`, the posterior mean of an error that has
    standard deviation tau over data sets.
    """
    difference = expected - obtained
    error = float(difference @ difference) / len(difference) ** 2
    share = _ERROR**2 / (_ERROR**2 + error)
    target = float(expected.mean() - share * difference.mean())

    def excess(shift: float) -> float:
        return float(shifted(expected, shift).mean()) - target

    # Expectations of 0 and 1 do not change: the target may be out of reach.
    if excess(-_MOST_SHIFT) >= 0.0 or excess(_MOST_SHIFT) <= 0.0:
        return 0.0
    return float(brentq(excess, -_MOST_SHIFT, _MOST_SHIFT))


def shifted(f: Floats, shift: float) -> Floats:
    """Return the values in [0, 1] whose odds are exp(shift) times as large."""
    odds = np.exp(shift) * f
    return np.asarray(odds / (1.0 - f + odds))
