"""Expected and obtained F-measures, compared in bins of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.names import check_same_index
from fgfm._utils.validation import check_same_rows, first_index, place, real_array

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class CalibrationBins(NamedTuple):
    """Rows binned by their expected F-measure.

    Attributes
    ----------
    expected : ndarray of shape (bins,)
        Mean of the expected F-measure.
    obtained : ndarray of shape (bins,)
        Mean of the obtained F-measure.
    standard_error : ndarray of shape (bins,)
        Standard error of the mean of the obtained F-measure; NaN for a bin of one row.
    n_rows : ndarray of shape (bins,)
        Number of rows.
    """

    expected: Floats
    obtained: Floats
    standard_error: Floats
    n_rows: Integers


def calibration_bins(expected: Any, obtained: Any, n_bins: int = 10) -> CalibrationBins:
    """Compare expected with obtained F-measures in bins of about equal size.

    Parameters
    ----------
    expected : array-like of shape (n,)
        The expected F-measure of each row; finite.
    obtained : array-like of shape (n,)
        The F-measure that each row obtained.
    n_bins : int, default=10
        Number of bins, which are quantiles of `expected`; fewer if bins would have less than five
        rows. Rows with the same expectation are in the same bin.

    Returns
    -------
    CalibrationBins
        Means, standard errors and numbers of rows.

    Examples
    --------
    >>> expected = np.repeat([0.25, 0.75], 5)
    >>> obtained = np.array([0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0])
    >>> bins = calibration_bins(expected, obtained)
    >>> bins.expected, bins.obtained, bins.n_rows
    (array([0.25, 0.75]), array([0.3, 0.8]), array([5, 5]))
    """
    check_same_index(expected=expected, obtained=obtained)
    expected, obtained = (
        real_array(values, name, ("row",)).astype(np.float64)
        for name, values in (("expected", expected), ("obtained", obtained))
    )
    check_same_rows([len(expected), len(obtained)], ["expected", "obtained"])
    if not np.isfinite(expected).all():
        index = first_index(~np.isfinite(expected))
        raise ValueError(f"{place('expected', index)} is {expected[index]!s}: it must be finite")
    n_bins = max(1, min(n_bins, len(expected) // 5))
    cuts = np.quantile(expected, np.arange(1, n_bins) / n_bins)
    which = np.searchsorted(np.unique(cuts), expected, side="right")  # (n,)
    count = np.bincount(which)
    filled = np.flatnonzero(count)
    count = count[filled]  # (bins,)
    means = [np.bincount(which, f)[filled] / count for f in (expected, obtained)]
    errors = np.full(len(filled), np.nan)
    for b in np.flatnonzero(count > 1):
        errors[b] = obtained[which == filled[b]].std(ddof=1) / np.sqrt(count[b])
    return CalibrationBins(means[0], means[1], errors, count)
