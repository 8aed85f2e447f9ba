"""The interface of decision rules: a problem in, an outcome per rule out; and base learners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from benchmarks.real.splits import Split
from fgfm import FGFMClassifier

__all__ = [
    "BETAS",
    "LEARNERS",
    "Family",
    "Learner",
    "Outcome",
    "Problem",
    "make_problem",
]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]

BETAS = (1.0, 2.0, 0.5)
_MAX_DENSE_BYTES = 1 << 30  # of sparse features that are densified for a learner


class Learner(NamedTuple):
    """A base learner."""

    make: Callable[[], Any]
    dense: bool = False
    features: str = "scaled"


def _make_ridge() -> str:
    return "ridge"


def _make_forest() -> RandomForestClassifier:
    return RandomForestClassifier(100, min_samples_leaf=2, n_jobs=1)


def _make_boosting() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(early_stopping=False)


def _make_auto() -> str:
    return "auto"


LEARNERS = {
    "auto": Learner(_make_auto, features="raw"),
    "ridge": Learner(_make_ridge),
    "ridge-log": Learner(_make_ridge, features="log counts"),
    "forest": Learner(_make_forest),
    "boosting": Learner(_make_boosting, dense=True),
}


class Problem(NamedTuple):
    """Training rows, test rows, and the base learner."""

    X_train: Any
    Y_train: Labels
    X_test: Any
    learner: Any
    seed: int

    def classifier(self, **parameters: Any) -> FGFMClassifier:
        """Return an unfitted classifier with the base learner."""
        return FGFMClassifier(self.learner, random_state=self.seed, **parameters)


class Outcome(NamedTuple):
    """The decisions of a rule for the test rows."""

    rule: str
    labels: dict[float, Labels]
    expected_f: Floats | None
    fit_s: float
    predict_s: float
    peak_mib: float | None = None


class Family(NamedTuple):
    """Rules that share models."""

    rules: tuple[str, ...]
    run: Callable[[Problem], Iterator[Outcome]]


def make_problem(split: Split, learner: Learner, seed: int) -> Problem:
    """Combine a split and a base learner; densify the features if the learner needs it."""
    X_train, X_test = split.X_train, split.X_test
    if learner.dense and sparse.issparse(X_train):
        size = 8 * X_train.shape[1] * (X_train.shape[0] + X_test.shape[0])
        if size > _MAX_DENSE_BYTES:
            raise ValueError(
                f"the learner needs dense features of {size / 2**20:.0f} MiB: the limit is "
                f"{_MAX_DENSE_BYTES / 2**20:.0f} MiB"
            )
        X_train, X_test = X_train.toarray(), X_test.toarray()
    return Problem(X_train, split.Y_train, X_test, learner.make(), seed)
