"""Pictures of label factors: the graph of the labels, and the p-values behind it.

Each display keeps its data, and draws them by ``plot``; ``from_estimator`` does both at once for a
fitted `fgfm.ILFCompo` or a `fgfm.FGFMClassifier` that has one, ``from_p_values`` for the p-values
of any test. Matplotlib is imported by the first picture.
"""

from __future__ import annotations

from fgfm.plotting.label_graph import LabelGraphDisplay
from fgfm.plotting.p_values import PValueDisplay

__all__ = ["LabelGraphDisplay", "PValueDisplay"]
