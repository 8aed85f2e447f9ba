"""Imported once, by the process that the tasks of the benchmark are forked from.

A few small fits load the compiled kernels, so that the times of tasks do not include that.
"""

from __future__ import annotations

import warnings

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.real.problem import LEARNERS, make_problem
from benchmarks.real.rules import FAMILIES
from benchmarks.real.splits import Split

__all__: list[str] = []


def _apply_every_rule() -> None:
    """Apply every rule to a few rows."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    Y = (X @ random.normal(size=(2, 3)) + random.normal(size=(60, 3)) > 0.0).astype(np.int64)
    problem = make_problem(Split(X, Y, X, Y), LEARNERS["ridge"], 0)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family in FAMILIES:
            list(family.run(problem))
        problem.classifier(factors=[[0, 1], [2]]).fit(X, Y).decide(X)


_apply_every_rule()
