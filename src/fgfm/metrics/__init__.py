"""The F-measure and its confidence interval, a scikit-learn scorer, bounds."""

from __future__ import annotations

from typing import Any

from fgfm.metrics._best_threshold import best_threshold
from fgfm.metrics._bounds import (
    AbstentionRange,
    AbstentionThreshold,
    abstention_threshold,
    f_abstention_threshold,
    f_lower_bound,
    mean_lower_bound,
)
from fgfm.metrics._f_measure import f_measure
from fgfm.metrics._intervals import FDifference, FInterval, f_difference, f_interval

__all__ = [
    "AbstentionRange",
    "AbstentionThreshold",
    "FDifference",
    "FInterval",
    "abstention_threshold",
    "best_threshold",
    "f_abstention_threshold",
    "f_difference",
    "f_interval",
    "f_lower_bound",
    "f_measure",
    "f_scorer",
    "mean_lower_bound",
]

f_scorer: Any  # created by __getattr__ below, so that importing fgfm does not import scikit-learn


def __getattr__(name: str) -> Any:
    if name != "f_scorer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fgfm.metrics._f_scorer import f_scorer as scorer

    globals()["f_scorer"] = scorer
    return scorer


def __dir__() -> list[str]:
    return __all__
