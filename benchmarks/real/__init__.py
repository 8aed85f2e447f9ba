"""Compare decision rules, base learners and other packages on real data sets.

``python -m benchmarks.real`` runs it; `benchmark` is the same as a function.
"""

from __future__ import annotations

from benchmarks.real.report import write_benchmark_report
from benchmarks.real.run import BenchmarkResults, benchmark

__all__ = ["BenchmarkResults", "benchmark", "write_benchmark_report"]
