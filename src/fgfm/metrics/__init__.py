"""The F-measure of label sets, averaged, and a scikit-learn scorer for it."""

from __future__ import annotations

from typing import Any

from fgfm.metrics._calibration_bins import CalibrationBins, calibration_bins
from fgfm.metrics._f_measure import f_measure

__all__ = ["CalibrationBins", "calibration_bins", "f_measure", "f_scorer"]

f_scorer: Any  # created by __getattr__ below, so that importing fgfm does not import scikit-learn


def __getattr__(name: str) -> Any:
    if name != "f_scorer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fgfm.metrics._f_scorer import f_scorer as scorer

    globals()["f_scorer"] = scorer
    return scorer
