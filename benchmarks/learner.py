"""Compare parts of the default learner with those of a library: ``python -m benchmarks.learner``.

The parts are fitted to the training rows of real data sets, on one core, and their predictions for
test rows are scored by the loss of a row: the log-loss of all labels, or, for the kernels, the
squared error. Rivals get the features that the part makes. The last table is a fit of
`StackClassifier` to 4000 texts, without columns and with 2^20 columns most of which are empty.
Times are processor times.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.environment import THREAD_VARIABLES, show_progress
from benchmarks.report import Table, print_tables

Floats = npt.NDArray[np.float64]


def log_loss(p: Floats, Y: Floats) -> float:
    """Return the log-loss of a row, the sum over labels; probabilities are at least 1e-3."""
    p = np.clip(p, 1e-3, 1.0 - 1e-3)
    return float(-np.where(Y > 0, np.log(p), np.log1p(-p)).sum(axis=1).mean())


def squared_error(p: Floats, Y: Floats) -> float:
    """Return the squared error of a row, the sum over labels."""
    return float(((p - Y) ** 2).sum(axis=1).mean())


def forests(X: Any, Y: Any, X_test: Any) -> dict[str, Callable[[], Floats]]:
    """Return our forest and scikit-learn's with out-of-bag predictions; numbers are of trees."""
    from scipy.special import expit
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

    from fgfm.learner._forest import LabelForest

    def ours() -> Floats:
        forest = LabelForest()
        forest.fit(X, Y.astype(np.float32), np.ones(len(Y)), 0)
        return expit(forest.predict(X_test).astype(np.float64))

    def of(kind: Any) -> Callable[[], Floats]:
        share = max(X.shape[1] ** 0.5, X.shape[1] / 10) / X.shape[1]
        model = kind(50, max_features=share, min_samples_leaf=2, bootstrap=True, oob_score=True)
        return lambda: _shrunk(model.set_params(random_state=0).fit(X, Y).predict(X_test), Y)

    return {
        "ours, 200": ours,
        "RandomForestRegressor, 50": of(RandomForestRegressor),
        "ExtraTreesRegressor, 50": of(ExtraTreesRegressor),
    }


def _shrunk(p: Floats, Y: Any) -> Floats:
    """Mix in the frequencies of labels, as our forest does."""
    return np.asarray(0.98 * p + 0.02 * Y.mean(axis=0))


def kernels(X: Any, Y: Any, X_test: Any) -> dict[str, Callable[[], Floats]]:
    """Return our Laplacian kernel ridge and `Nystroem` with some landmarks and `RidgeCV`."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline

    from fgfm.learner._features import StandardFeatures
    from fgfm.learner._kernel_ridge import KernelRidge

    def ours() -> Floats:
        part = KernelRidge(StandardFeatures(), "laplacian")
        part.fit(X, Y.astype(np.float32), np.ones(len(Y)), 0)
        return part.predict(X_test).astype(np.float64) / 4.0  # its logits are values times 4

    def of(landmarks: int) -> Callable[[], Floats]:
        def fitted() -> Floats:
            scale = StandardFeatures().fit(X, np.ones(len(X)))
            Z, Z_test = scale.transform(X), scale.transform(X_test)
            gamma = 2.0 / np.median(np.abs(Z[:200, None] - Z[None, 200:400]).sum(axis=2))
            mapping = Nystroem("laplacian", gamma=gamma, n_components=landmarks, random_state=0)
            ridge = RidgeCV(np.logspace(-3, 3, 13), alpha_per_target=True)
            return np.asarray(make_pipeline(mapping, ridge).fit(Z, Y).predict(Z_test))

        return fitted

    return {
        "ours": ours,
        "Nystroem, RidgeCV, 500": of(500),
        "Nystroem, RidgeCV, all rows": of(len(X)),
    }


def logistic(X: Any, Y: Any, X_test: Any) -> dict[str, Callable[[], Floats]]:
    """Return our logistic regressions of four labels and those of scikit-learn, three folds."""
    from scipy.special import expit
    from sklearn.linear_model import LogisticRegressionCV

    from fgfm.learner._features import CountFeatures
    from fgfm.learner._logistic import LabelLogistic

    weight = np.ones(len(Y))

    def ours() -> Floats:
        part = LabelLogistic(CountFeatures(True))
        part.fit(X, Y.astype(np.float32), weight, 0)
        return expit(part.predict(X_test).astype(np.float64))

    def of(solver: str) -> Callable[[], Floats]:
        def fitted() -> Floats:
            features = CountFeatures(True).fit(X, weight)
            Z, Z_test = features.transform(X), features.transform(X_test)
            model = LogisticRegressionCV(
                Cs=[0.3, 3.0, 12.0],
                cv=3,
                solver=solver,
                scoring="neg_log_loss",
                l1_ratios=(0.0,),
                use_legacy_attributes=False,
                max_iter=1000,
                random_state=0,
            )
            return np.column_stack([model.fit(Z, y).predict_proba(Z_test)[:, 1] for y in Y.T])

        return fitted

    return {
        "ours": ours,
        "LogisticRegressionCV, lbfgs": of("lbfgs"),
        "LogisticRegressionCV, liblinear": of("liblinear"),
    }


PARTS = (
    ("forest", forests, log_loss, ("enron", "reutersk500", "scene", "yeast"), None),
    ("kernel ridge", kernels, squared_error, ("yeast", "scene"), None),
    ("logistic", logistic, log_loss, ("ohsumed",), slice(4)),
)


def parts() -> Table:
    """Fit all parts and their rivals, and return the times and losses."""
    from benchmarks.datasets import load

    table = Table(
        "parts of the default learner",
        "part: left; data: left; model: left; time: duration; loss of a row: .4f",
    )
    for part, models, loss, names, labels in PARTS:
        for name in names:
            X, Y, X_test, Y_test = load(name)
            Y, Y_test = Y[:, labels or slice(None)], Y_test[:, labels or slice(None)]
            for model, fitted in models(X, Y, X_test).items():
                show_progress(f"{part}, {name}: {model}")
                start = time.process_time()
                predictions = fitted()
                row = (part, name, model, time.process_time() - start, loss(predictions, Y_test))
                table.rows.append(row)
    return table


def empty_columns() -> Table:
    """Fit the default learner to texts, with and without columns that are empty."""
    from scipy import sparse

    from benchmarks.large import texts
    from fgfm import StackClassifier

    X, Y = texts(n=4000)
    wide = sparse.csr_array((X.data, X.indices, X.indptr), (X.shape[0], 2**20))
    table = Table("sparse X, most columns empty", "columns: count; fit: duration; ratio: number")
    seconds = []
    for features in (X[:, np.flatnonzero(np.bincount(X.indices))], X, wide):
        show_progress(f"{features.shape[1]} columns")
        start = time.process_time()
        StackClassifier(random_state=0).fit(features, Y)
        seconds.append(time.process_time() - start)
        table.add(features.shape[1], seconds[-1], seconds[-1] / seconds[0])
    return table


def main() -> None:
    """Print both tables."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        print_tables([parts(), empty_columns()])
    finally:
        show_progress("")


if __name__ == "__main__":
    main()
