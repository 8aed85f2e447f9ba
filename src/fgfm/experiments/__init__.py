"""Experiments that anyone can run again: the paper's synthetic one, real data, and a user's own.

`reproduce` runs the paper's experiment. `benchmark` compares rules, base learners and other
packages on many data sets. `evaluate` fits a model to given data and says what the
F-optimal rule gains over thresholds; `evaluate_fitted` does so for a model that is there.
"""

from __future__ import annotations

from fgfm.experiments._evaluation import Evaluation, evaluate, evaluate_fitted
from fgfm.experiments._report import write_report
from fgfm.experiments._standings_report import write_benchmark_report
from fgfm.experiments.paper import PaperResults, reproduce
from fgfm.experiments.real import BenchmarkResults, benchmark

__all__ = [
    "BenchmarkResults",
    "Evaluation",
    "PaperResults",
    "benchmark",
    "evaluate",
    "evaluate_fitted",
    "reproduce",
    "write_benchmark_report",
    "write_report",
]
