"""The forest for all targets, against scikit-learn's own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

import fgfm.stack._forest as module
from fgfm.stack._forest import LabelForest

Floats = npt.NDArray[np.float64]


def data(m: int = 4, n: int = 120) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 6)).astype(np.float32).astype(np.float64)
    Y = (X @ rng.standard_normal((6, m)) + rng.standard_normal((n, m)) > 0.5).astype(np.float64)
    return X, Y


def fit(X: object, Y: Floats, n_jobs: int | None = None) -> tuple[LabelForest, Floats]:
    forest = LabelForest()
    out_of_bag = forest.fit(
        X, Y, sparse.csr_array(Y.astype(np.float32)), None, np.ones(len(Y)), 0, n_jobs
    )
    return forest, out_of_bag


@pytest.fixture(autouse=True)
def fewer_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TREES", 30)


def test_predictions_are_means_over_the_trees_of_scikit_learn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, Y = data()
    counts, trees = [], []

    def grow(dense: Floats, outputs: Floats, drawn: Floats, weight: Floats, seed: int) -> object:
        tree = DecisionTreeRegressor(min_samples_leaf=2, max_features=2, random_state=seed)
        trees.append(tree.fit(dense, outputs, sample_weight=drawn * weight))
        counts.append(drawn)
        return tree.tree_

    monkeypatch.setattr(module, "_grow", grow)
    forest, out_of_bag = fit(X, Y)
    each = np.stack([tree.predict(X) for tree in trees]) + Y.mean(axis=0)  # (trees, n, m)
    np.testing.assert_allclose(forest.predict(X), each.mean(axis=0), atol=1e-5)
    unseen = (np.stack(counts) == 0.0)[:, :, None]
    expected = (each * unseen).sum(axis=0) / unseen.sum(axis=0)
    np.testing.assert_allclose(out_of_bag, expected, atol=1e-5)


def test_many_labels_are_projected_and_still_predicted() -> None:
    X, Y = data(m=30)
    forest, out_of_bag = fit(X, Y)
    assert forest.predict(X).shape == Y.shape
    assert ((out_of_bag - Y) ** 2).mean() < ((Y - Y.mean(axis=0)) ** 2).mean()


def test_number_of_jobs_does_not_matter() -> None:
    X, Y = data()
    one, two = fit(X, Y, 1)[0], fit(X, Y, 2)[0]
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_unknown_targets_are_left_out() -> None:
    X, Y = data()
    known = np.ones(Y.shape)
    known[::3, 0] = 0.0
    forest = LabelForest()
    forest.fit(
        X, Y, sparse.csr_array(Y * known), sparse.csr_array(known), np.ones(len(Y)), 0, None
    )
    p = forest.predict(X)
    changed = Y.copy()
    changed[::3, 0] = 1.0 - changed[::3, 0]
    again = LabelForest()
    again.fit(
        X, Y, sparse.csr_array(changed * known), sparse.csr_array(known), np.ones(len(Y)), 0, None
    )
    np.testing.assert_array_equal(p, again.predict(X))
    assert (p >= 0.0).all()
    assert (p <= 1.0 + 1e-6).all()


def test_wide_sparse_features_use_the_most_frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COLUMNS", 3)
    X, Y = data()
    counts = sparse.csr_array(np.where(np.array([0.0, 0, 0, 9, 9, 9]) < X, X, 0.0))
    forest, _ = fit(counts, Y)
    np.testing.assert_array_equal(forest.columns, [0, 1, 2])
    assert forest.predict(counts).shape == Y.shape


def test_missing_features_are_accepted() -> None:
    X, Y = data()
    X[::5, 2] = np.nan
    forest, _ = fit(X, Y)
    assert np.isfinite(forest.predict(X)).all()


def test_damaged_trees_raise() -> None:
    X, Y = data()
    forest, _ = fit(X, Y)
    inner = int(np.flatnonzero(forest.left >= 0)[0])
    for name, value in (("left", 0), ("left", 10**6), ("feature", 99), ("feature", -3)):
        forest, _ = fit(X, Y)
        getattr(forest, name)[inner] = value
        getattr(forest, "right" if name == "left" else name)[inner] = value
        with pytest.raises(ValueError, match="damaged"):
            forest.predict(X)
    for name in ("left", "right", "feature", "threshold", "missing_left"):
        forest, _ = fit(X, Y)
        setattr(forest, name, getattr(forest, name)[:-1])
        with pytest.raises(ValueError, match="damaged"):
            forest.predict(X)
