"""Benchmark of decision rules, base learners and other packages on real data sets.

``python -m benchmarks.real`` runs it; `benchmark` is the same as a function.

- `splits`: data sets, their training and test rows;
- `problem`, `rules`: what is compared, and base learners;
- `peers`: other packages, each in an environment of its own;
- `run`, `subprocesses`: tasks with a time limit, whose results survive a kill;
- `records`, `statistics`, `summary`: scores, ranks and intervals;
- `tables`, `figures`, `report`: the output.
"""

from __future__ import annotations

from benchmarks.real.report import write_report
from benchmarks.real.run import BenchmarkResults, benchmark

__all__ = ["BenchmarkResults", "benchmark", "write_report"]
