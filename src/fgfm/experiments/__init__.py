"""Experiments that anyone can run again: the paper's synthetic one, and a user's own.

`reproduce` runs the paper's experiment. `evaluate` fits a model to given data and says what the
F-optimal rule gains over thresholds; `evaluate_fitted` does so for a model that is there.
"""

from __future__ import annotations

from fgfm.experiments._evaluation import Evaluation, evaluate, evaluate_fitted
from fgfm.experiments._report import write_report
from fgfm.experiments.paper import PaperResults, reproduce

__all__ = [
    "Evaluation",
    "PaperResults",
    "evaluate",
    "evaluate_fitted",
    "reproduce",
    "write_report",
]
