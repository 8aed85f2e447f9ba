"""The forest for all targets, its trees against those of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.tree import DecisionTreeRegressor

import fgfm.learner._forest as module
from fgfm._kernels import grow_tree
from fgfm.learner._features import BinnedFeatures
from fgfm.learner._forest import LabelForest

Floats = npt.NDArray[np.float64]


def data(m: int = 4, n: int = 120) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 6)).astype(np.float32).astype(np.float64)
    Y = (X @ rng.standard_normal((6, m)) + rng.standard_normal((n, m)) > 0.5).astype(np.float64)
    return X, Y


def fit(X: object, Y: Floats, n_jobs: int | None = None, **how: Any) -> tuple[LabelForest, Floats]:
    """Return a forest and its out-of-bag means."""
    forest = LabelForest(n_jobs, **how)
    out_of_bag = forest.fit(X, Y.astype(np.float32), np.ones(len(Y)), 0)
    return forest, means(forest, out_of_bag)


def means(forest: LabelForest, logits: Any) -> Floats:
    """Return means over leaves from logits, which have a share of the frequencies."""
    return np.asarray((expit(logits) - 0.02 * forest.frequency) / 0.98)


@pytest.fixture(autouse=True)
def fewer_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TREES", 30)


def test_predictions_are_means_over_the_rows_of_the_leaves() -> None:
    X, Y = data()
    forest, out_of_bag = fit(X, Y)
    leaves = forest._leaves(X)  # (n, trees)
    seeds = np.random.default_rng(0).integers(np.iinfo(np.int32).max, size=30)
    drawn = np.stack([module._bootstrap(len(X), int(seed)) for seed in seeds], axis=1)
    each = np.empty((30, *Y.shape))
    for t in range(30):
        for leaf in np.unique(leaves[:, t]):
            inside = leaves[:, t] == leaf
            assert np.count_nonzero(drawn[inside, t]) >= 2
            each[t, inside] = np.average(Y[inside], axis=0, weights=drawn[inside, t])
    np.testing.assert_allclose(means(forest, forest.predict(X)), each.mean(axis=0), atol=1e-5)
    unseen = (drawn.T == 0.0)[:, :, None]
    expected = (each * unseen).sum(axis=0) / unseen.sum(axis=0)
    np.testing.assert_allclose(out_of_bag, expected, atol=1e-5)


def grow(X: Any, Y: Floats, weight: Floats, most: int, seed: int = 0) -> Any:
    """Return the leaves (n, 1) of one tree that is grown on rows of positive weight."""
    features = BinnedFeatures(X.astype(np.float32))
    values = np.zeros((len(Y), -(-Y.shape[1] // 8) * 8), np.float32)
    values[:, : Y.shape[1]] = Y * weight[:, None]
    links, small = np.empty((3, 999), np.int32), np.empty((2, 999), np.uint8)
    rows = np.flatnonzero(weight)
    w = weight.astype(np.float32)
    size = grow_tree(*features.arrays, values, w, rows, most, 2, seed, links, small)
    forest = LabelForest()
    forest.columns = None
    forest._store(features, [module._Tree(links[:, :size], small[:, :size])])
    return forest._leaves(X)


def assert_same_groups(a: Any, b: Any) -> None:
    """Assert that rows with the same number in a are those with the same number in b."""
    n_pairs = len(np.unique(np.column_stack([a, b]), axis=0))
    assert len(np.unique(a)) == len(np.unique(b)) == n_pairs


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_trees_are_those_of_scikit_learn(seed: int, missing: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 4)).astype(np.float32).astype(np.float64)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    Y = rng.standard_normal((60, 3))
    weight = rng.integers(0, 3, size=60).astype(np.float64)
    own = grow(X, Y, weight, most=4)[:, 0]
    kept = weight > 0.0
    tree = DecisionTreeRegressor(min_samples_leaf=2, random_state=0).fit(
        X[kept], Y[kept], weight[kept]
    )
    leaves = tree.apply(X)
    nodes, sizes = np.unique(leaves[kept], return_counts=True)
    if missing and (tree.tree_.n_node_samples[nodes] != sizes).any():
        pytest.skip("scikit-learn 1.7 moves rows with missing values after the fit")
    assert_same_groups(own[kept], leaves[kept])


def test_sparse_and_dense_features_give_the_same_trees() -> None:
    rng = np.random.default_rng(1)
    X = np.where(rng.random((80, 5)) < 0.4, rng.standard_normal((80, 5)), 0.0)
    Y, weight = rng.standard_normal((80, 9)), rng.integers(1, 4, size=80).astype(np.float64)
    dense = grow(X, Y, weight, most=5)
    assert_same_groups(dense, grow(sparse.csr_array(X), Y, weight, most=5))
    assert len(np.unique(dense)) > 10


def test_bins_separate_zero_and_put_missing_values_last() -> None:
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.random(500), [0.0, np.nan, -1e-9]])[:, None].astype(np.float32)
    columns, *_ = BinnedFeatures(X).arrays
    assert columns[0, -2] == 63
    assert len({*columns[0, -3:]}) == 3
    assert not np.isin(columns[0, [-3, -1]], columns[0, :500]).any()
    assert len(np.unique(columns)) > 55


def test_many_labels_are_projected_and_still_predicted() -> None:
    X, Y = data(m=30)
    forest, out_of_bag = fit(X, Y)
    assert forest.predict(X).shape == Y.shape
    assert ((out_of_bag - Y) ** 2).mean() < ((Y - Y.mean(axis=0)) ** 2).mean()


def test_number_of_jobs_does_not_matter() -> None:
    X, Y = data()
    one, two = fit(X, Y, 1)[0], fit(X, Y, 2)[0]
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_unknown_labels_are_left_out() -> None:
    X, Y = data()
    Y[::3, 0] = np.nan
    forest, _ = fit(X, Y)
    leaves = forest._leaves(X)
    p = means(forest, forest.predict(X))
    assert np.isfinite(p).all()
    assert (p > -1e-6).all()
    assert (p < 1.0 + 1e-6).all()
    W = np.stack([forest.members[leaves[:, t]].toarray() for t in range(30)]).sum(axis=0)  # (n, n)
    known = ~np.isnan(Y[:, 0])
    expected = W[:, known] @ Y[known, 0] / W[:, known].sum(axis=1)
    np.testing.assert_allclose(p[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize(("answer", "trees"), [(True, 50), (False, 80)])
def test_few_trees_if_they_are_enough(
    answer: bool, trees: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TREES", 80)
    X, Y = data()
    seen, shares = [], []

    def enough(half: Any, whole: Any) -> bool:
        seen.append((half, whole))
        return answer

    forest, out_of_bag = fit(X, Y, enough=enough, tick=shares.append)
    assert len(forest.root) == trees
    assert shares == sorted(shares)
    ((half, whole),) = seen
    if answer:
        np.testing.assert_array_equal(means(forest, whole), out_of_bag)
    monkeypatch.setattr(module, "_TREES", 25)
    monkeypatch.setattr(module, "_FEW", 100)
    np.testing.assert_array_equal(half, LabelForest().fit(X, Y.astype("f4"), np.ones(len(Y)), 0))


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


def leaf_sizes(forest: LabelForest) -> Any:
    """Return the numbers of rows that the leaves were grown on."""
    return np.diff(forest.members.indptr)[forest.left < 0]


def test_leaves_have_one_row_where_rows_are_repeated() -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((100, 6)), (rng.random((100, 4)) < 0.4).astype(np.float64)
    assert leaf_sizes(fit(X, Y)[0]).min() == 2  # noise: small leaves do not pay
    twice = np.tile(X, (2, 1)) + 1e-3 * rng.standard_normal((200, 6))
    assert leaf_sizes(fit(twice, np.tile(Y, (2, 1)))[0]).min() == 1


def test_errors_of_few_trees_are_those_of_many() -> None:
    rng = np.random.default_rng(4)
    Y = (rng.random((50, 3)) < 0.5).astype(np.float32)
    many = rng.random(Y.shape)  # what the means of more and more trees tend to
    forest = LabelForest()
    forest.labels, forest.observed = sparse.csr_array(Y), None
    few = (many + rng.normal(0.0, 0.3, size=(2, 2000, *Y.shape))).astype(np.float32)
    errors = [forest._squared_errors(one, other) for one, other in zip(*few, strict=True)]
    np.testing.assert_allclose(np.mean(errors, axis=0), ((Y - many) ** 2).sum(axis=1), atol=0.05)
