"""Displays of decisions.

- `DecisionDisplay`: the probabilities of a row's labels, with the chosen ones marked;
- `CalibrationDisplay`: obtained against expected F-measure;
- `ReportDisplay`: what a decider changes against thresholds, label by label.

As in scikit-learn, a display keeps its data and draws them by ``plot``; ``from_estimator`` does
both for a fitted estimator of fgfm, and further class methods (``from_decision``,
``from_predictions``) for other data. Matplotlib is imported by the first plot.
"""

from __future__ import annotations

from fgfm.plotting._calibration import CalibrationDisplay
from fgfm.plotting._decision import DecisionDisplay
from fgfm.plotting._report import ReportDisplay

__all__ = ["CalibrationDisplay", "DecisionDisplay", "ReportDisplay"]


def __dir__() -> list[str]:
    return __all__
