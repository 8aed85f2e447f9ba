"""Expected and obtained F-measures in bins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from fgfm.metrics import calibration_bins

EXPECTED, OBTAINED = np.repeat([0.25, 0.75], 5), np.linspace(0.0, 1.0, 10)


@pytest.mark.parametrize(
    "kind", [list, pd.Series, lambda x: x.astype(">f8"), lambda x: x.astype(np.longdouble)]
)
def test_every_form(kind):
    bins = calibration_bins(kind(EXPECTED), kind(OBTAINED))
    assert_array_equal(bins.expected, [0.25, 0.75])
    assert_array_equal(bins.obtained, OBTAINED.reshape(2, 5).mean(axis=1))


def test_wrong_values():
    rows = pd.Series(EXPECTED, index=range(10))
    with pytest.raises(ValueError, match="row 0 of expected has index 0 and that of obtained has"):
        calibration_bins(rows, pd.Series(OBTAINED, index=range(10)[::-1]))
    with pytest.raises(ValueError, match=r"expected\[3\] is nan: it must be finite"):
        calibration_bins(np.where(np.arange(10) == 3, np.nan, EXPECTED), OBTAINED)
    with pytest.raises(ValueError, match="obtained has 9 rows and expected has 10"):
        calibration_bins(EXPECTED, OBTAINED[1:])
