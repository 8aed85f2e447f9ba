"""fit_ridge_logistic against a loop over LogisticRegression: ``python -m benchmarks.ridge``.

Both use the same folds and the same penalties. The last column is the largest difference between
their probabilities.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["run"]

Floats = npt.NDArray[np.float64]

PENALTIES = 10.0 ** np.arange(-4, 4)
FOLDS = 3


class Task(NamedTuple):
    """Targets on the same features, each with or without an extra column."""

    name: str
    X: Any  # dense or CSR
    targets: list[npt.NDArray[Any]]
    extra: list[Any]


class Row(NamedTuple):
    """Seconds of both, and the largest difference between their probabilities."""

    name: str
    solver: str
    ours: float
    sklearn: float
    difference: float

    @property
    def ratio(self) -> float:
        """The time of scikit-learn's loop as a multiple of ours."""
        return self.sklearn / self.ours


def _two_step(name: str, X: Floats, Y: npt.NDArray[np.int64]) -> Task:
    s = Y.sum(axis=1)
    return Task(name, X, [*Y.T, s], [s] * Y.shape[1] + [None])


def _toy(rng: np.random.Generator, n: int = 1000) -> Task:
    """Draw data like the paper's: 6 binary features, 8 dependent labels."""
    X = rng.integers(0, 2, (n, 6)).astype(float)
    shared = rng.normal(size=(n, 1))
    logits = (2.0 * X - 1.0) @ rng.normal(scale=0.7, size=(6, 8)) + shared
    Y = (rng.random((n, 8)) < 1.0 / (1.0 + np.exp(-logits))).astype(int)
    return _two_step("toy 1000x6, 8 labels + card.", X, Y)


def _dense(
    rng: np.random.Generator, n: int = 1500, p: int = 103, m: int = 14
) -> tuple[Task, Task]:
    """Draw data of the size of yeast; the labels and their number are separate tasks."""
    X = rng.normal(scale=0.1, size=(n, p))
    logits = X @ rng.normal(scale=1.2, size=(p, m)) - 1.0
    Y = (rng.random((n, m)) < 1.0 / (1.0 + np.exp(-logits))).astype(int)
    task = _two_step("", X, Y)
    return (
        task._replace(name="dense 1500x103, 14 labels", targets=task.targets[:-1]),
        task._replace(name="dense 1500x103, cardinality", targets=task.targets[-1:], extra=[None]),
    )


def _text(name: str, n_labels: int, cardinality: bool) -> list[Task]:
    """Read labels of a real data set, with their number as extra column or as a second task."""
    from benchmarks.datasets import load

    try:
        X, Y, _, _ = load(name)
    except FileNotFoundError:
        return []
    s = Y.sum(axis=1)
    some = np.linspace(0, Y.shape[1] - 1, n_labels).astype(int)
    some = some[Y[:, some].sum(axis=0) > 9]  # scikit-learn does not fit folds of one class
    size = f"{X.shape[0]}x{X.shape[1]}"
    tasks = [Task(f"{name} {size}, {len(some)} labels", X, [*Y[:, some].T], [s] * len(some))]
    if cardinality:
        tasks.append(Task(f"{name}, 5 classes", X, [np.minimum(s, 5)], [None]))
    return tasks


def _append(X: Any, column: Any) -> Any:
    from scipy import sparse

    if column is None:
        return X
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_array(column[:, None].astype(float))], format="csr")
    return np.column_stack([X, column])


def _ours(task: Task) -> list[Floats]:
    from fgfm.ridge import fit_ridge_logistic

    extra = task.extra[: len(task.targets)]
    models = fit_ridge_logistic(task.X, task.targets, extra=extra, cv=FOLDS, random_state=0)
    return [
        model.predict_proba(task.X, column) for model, column in zip(models, extra, strict=True)
    ]


def _loop(task: Task, **options: Any) -> list[Floats]:
    """Fit every fold and penalty separately, then the best penalty."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold

    folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(task.X))
    probabilities = []
    for y, column in zip(task.targets, task.extra, strict=False):
        X = _append(task.X, column)
        losses = np.zeros(len(PENALTIES))
        for train, test in folds:
            for at, penalty in enumerate(PENALTIES):
                model = LogisticRegression(C=0.5 / penalty, **options).fit(X[train], y[train])
                index = np.searchsorted(model.classes_, y[test])
                index = np.minimum(index, len(model.classes_) - 1)
                proba = model.predict_proba(X[test])[np.arange(len(test)), index]
                proba = np.where(model.classes_[index] == y[test], proba, 0.0)
                losses[at] -= np.log(np.clip(proba, 1e-15, 1.0 - 1e-15)).mean()
        best = PENALTIES[np.argmin(losses)]
        model = LogisticRegression(C=0.5 / best, **options).fit(X, y)
        probabilities.append(model.predict_proba(X))
    return probabilities


def _least(task: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """Return the least seconds of several rounds, and the result."""
    least, result = float("inf"), None
    for _ in range(rounds):
        start = time.perf_counter()
        result = task()
        least = min(least, time.perf_counter() - start)
    return least, result


def _compare(
    task: Task, solvers: dict[str, dict[str, Any]], rounds: int, ours_rounds: int = 5
) -> list[Row]:
    found = _ours(task)  # compiles the kernels
    ours = float("inf")
    theirs = {}
    for name, options in solvers.items():
        ours = min(ours, _least(lambda: _ours(task), ours_rounds)[0])  # in turns with the others
        theirs[name] = _least(lambda options=options: _loop(task, **options), rounds)
    ours = min(ours, _least(lambda: _ours(task), ours_rounds)[0])
    rows = []
    for name, (seconds, expected) in theirs.items():
        difference = max(float(abs(a - b).max()) for a, b in zip(found, expected, strict=True))
        rows.append(Row(task.name, name, ours, seconds, difference))
    return rows


def run(*, quick: bool = False) -> list[Row]:
    """Measure, print a table, and return its rows.

    Parameters
    ----------
    quick : bool, default=False
        Leave out the larger data.

    Returns
    -------
    list of Row
        Least seconds of several runs.
    """
    from sklearn.exceptions import ConvergenceWarning

    default = {"max_iter": 10_000}
    solvers = {
        "lbfgs, tol 1e-4": default,
        "newton-cholesky, tol 1e-4": {**default, "solver": "newton-cholesky"},
        "lbfgs, tol 1e-8": {**default, "tol": 1e-8},
    }
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rows = _compare(_toy(rng), solvers, 1 if quick else 3)
        if not quick:
            labels, cardinality = _dense(rng)
            rows += _compare(labels, solvers, 1)
            del solvers["newton-cholesky, tol 1e-4"]  # minutes: a Hessian of 1352 x 1352
            solvers["newton-cg, tol 1e-8"] = {**default, "solver": "newton-cg", "tol": 1e-8}
            rows += _compare(cardinality, solvers, 1)
            closest = {"newton-cg, tol 1e-8": solvers["newton-cg, tol 1e-8"]}
            for name, n_labels in (("medical", 45), ("enron", 53), ("bibtex", 20)):
                for task in _text(name, n_labels, name != "medical"):
                    rows += _compare(task, closest, 1, 1)
    print(f"{'data':28s} {'scikit-learn':25s} {'ours s':>7s} {'theirs':>7s} {'ratio':>6s} differ")
    for row in rows:
        print(
            f"{row.name:28.28s} {row.solver:25s} {row.ours:7.3f} {row.sklearn:7.2f} "
            f"{row.ratio:5.1f}x {row.difference:.0e}"
        )
    return rows


if __name__ == "__main__":
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if single.items() <= os.environ.items():
        run()
    else:  # one core for both; the libraries read these variables when they are loaded
        command = [sys.executable, "-m", "benchmarks.ridge"]
        os.execve(sys.executable, command, {**os.environ, **single})
