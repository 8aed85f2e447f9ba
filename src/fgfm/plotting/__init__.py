"""Displays of decisions and of label factors.

- `ExpectedFDisplay`: the expected F-measure of the best set of each size, for one row;
- `DecisionDisplay`: the probabilities of a row's labels, with the chosen ones marked;
- `CalibrationDisplay`: obtained against expected F-measure;
- `ReportDisplay`: what a decider changes against thresholds, label by label;
- `LabelGraphDisplay`: the label factors as a graph.

As in scikit-learn, a display keeps its data and draws them by ``plot``; ``from_estimator`` does
both for a fitted `fgfm.FGFMClassifier`, and further class methods (``from_marginals``,
``from_predictions``, ``from_p_values``, ...) for other data. Matplotlib is imported by the first
plot.
"""

from __future__ import annotations

from fgfm.plotting._calibration import CalibrationDisplay
from fgfm.plotting._decision import DecisionDisplay
from fgfm.plotting._expected_f import ExpectedFDisplay
from fgfm.plotting._label_graph import LabelGraphDisplay
from fgfm.plotting._report import ReportDisplay

__all__ = [
    "CalibrationDisplay",
    "DecisionDisplay",
    "ExpectedFDisplay",
    "LabelGraphDisplay",
    "ReportDisplay",
]


def __dir__() -> list[str]:
    return __all__
