"""Pictures of decisions and of what they rest on.

- `ExpectedFDisplay`: what the best set of each size is worth, for one row;
- `DecisionDisplay`: the probabilities of a row's labels, and which of them were chosen;
- `CalibrationDisplay`: expected against obtained F-measure;
- `LabelGraphDisplay`: the label factors as a graph;
- `PValueDisplay`: the p-values behind it.

Each display keeps its data, and draws them by ``plot``; ``from_estimator`` does both at once for a
fitted `fgfm.FGFMClassifier`, and others (``from_marginals``, ``from_predictions``,
``from_p_values``, ...) for what comes from elsewhere. Matplotlib is imported by the first picture.
"""

from __future__ import annotations

from fgfm.plotting.calibration import CalibrationBins, CalibrationDisplay
from fgfm.plotting.decision import DecisionDisplay
from fgfm.plotting.expected_f import ExpectedFDisplay
from fgfm.plotting.label_graph import LabelGraphDisplay
from fgfm.plotting.p_values import PValueDisplay

__all__ = [
    "CalibrationBins",
    "CalibrationDisplay",
    "DecisionDisplay",
    "ExpectedFDisplay",
    "LabelGraphDisplay",
    "PValueDisplay",
]
