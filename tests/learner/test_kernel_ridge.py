"""Kernel ridge regression: closed forms against refits and against scikit-learn."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge as Reference
from sklearn.preprocessing import KernelCenterer

import fgfm.learner._kernel_ridge as module
from fgfm.learner._features import CountFeatures, StandardFeatures
from fgfm.learner._kernel_ridge import KernelRidge

Floats = npt.NDArray[np.float64]


@pytest.fixture(autouse=True)
def values_as_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SCALE", 1.0)


def data(n: int = 40, p: int = 5, T: int = 3, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    Y = (X[:, :T] + rng.standard_normal((n, T)) > 0.3).astype(np.float64)
    return X, Y


def one_penalty(monkeypatch: pytest.MonkeyPatch, value: float) -> None:
    monkeypatch.setattr(module, "_PENALTIES", np.array([value]))
    monkeypatch.setattr(module, "_WIDTHS", (1.0,))


@pytest.mark.parametrize("kernel", ["laplacian", "linear"])
@pytest.mark.parametrize("p", [5, 60])
def test_predictions_are_those_of_scikit_learn(
    kernel: str, p: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_penalty(monkeypatch, 0.5)
    X, Y = data(p=p)
    model = KernelRidge(StandardFeatures(), kernel)
    model.fit(X, Y, np.ones(len(X)), seed=0)
    Z = model.features.transform(X)
    K = KernelCenterer().fit_transform(model._kernel(Z, Z, 1.0))
    alpha = 0.5 * np.trace(K) / len(X)
    reference = Reference(alpha=alpha, kernel="precomputed").fit(K, Y - Y.mean(axis=0))
    np.testing.assert_allclose(model.predict(X), reference.predict(K) + Y.mean(axis=0), atol=1e-8)


@pytest.mark.parametrize("penalty", [1e-3, 0.2])
@pytest.mark.parametrize(("kernel", "p"), [("laplacian", 5), ("linear", 5), ("linear", 60)])
def test_held_out_predictions_are_those_of_refits(
    kernel: str, p: int, penalty: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_penalty(monkeypatch, penalty)
    X, Y = data(p=p)
    n = len(X)
    model = KernelRidge(StandardFeatures(), kernel)
    held_out = model.fit(X, Y, np.ones(n), seed=0)
    Z = model.features.transform(X)
    K = model._kernel(Z, Z, 1.0)
    alpha = penalty * np.trace(KernelCenterer().fit_transform(K)) / n
    for row in range(n):
        others = np.flatnonzero(np.arange(n) != row)
        of_others = KernelCenterer().fit(K[np.ix_(others, others)])
        reference = Reference(alpha=alpha, kernel="precomputed")
        mean = Y[others].mean(axis=0)  # the left-out row is in no mean
        reference.fit(of_others.transform(K[np.ix_(others, others)]), Y[others] - mean)
        expected = reference.predict(of_others.transform(K[[row]][:, others]))[0] + mean
        np.testing.assert_allclose(held_out[row], expected, atol=1e-6)


def test_the_penalty_of_each_target_has_the_least_held_out_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, Y = data(n=60)
    fitted, held_out = [], []
    for penalty in module._PENALTIES:
        with monkeypatch.context() as patch:
            patch.setattr(module, "_PENALTIES", np.array([penalty]))
            model = KernelRidge(StandardFeatures(), "linear")
            held_out.append(model.fit(X, Y, np.ones(60), 0))
            fitted.append(model.predict(X))
    errors = (np.array(held_out) - Y) ** 2  # (penalties, n, T)
    monkeypatch.setattr(module, "_BLOCK", 7)  # folds do not depend on blocks
    monkeypatch.setattr(module, "_VALUES", 50)
    model = KernelRidge(StandardFeatures(), "linear")
    chosen = model.fit(X, Y, np.ones(60), 0)
    targets = np.arange(Y.shape[1])
    best = errors.sum(axis=1).argmin(axis=0)  # (T,)
    np.testing.assert_allclose(model.predict(X), np.array(fitted)[best, :, targets].T, atol=1e-6)
    for fold in range(5):
        rows = np.arange(fold, 60, 5)
        best = np.delete(errors, rows, axis=1).sum(axis=1).argmin(axis=0)
        expected = np.array(held_out)[best[None, :], rows[:, None], targets]
        np.testing.assert_allclose(chosen[rows], expected, atol=1e-6)


@pytest.mark.parametrize("kernel", ["laplacian", "linear"])
def test_weight_two_is_a_row_twice(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one_penalty(monkeypatch, 0.3)
    X, Y = data(n=30)
    weight = np.where(np.arange(30) < 10, 2.0, 1.0)
    twice = np.r_[np.arange(30), np.arange(10)]
    monkeypatch.setattr(module, "_SAMPLE", 30)  # both take the median distance of the same rows
    models = []
    for rows, w in ((np.arange(30), weight), (twice, np.ones(40))):
        model = KernelRidge(StandardFeatures(), kernel)
        model.fit(X[rows], Y[rows], w, seed=0)
        models.append(model)
    np.testing.assert_allclose(models[0].predict(X), models[1].predict(X), atol=1e-8)


def test_landmarks_approximate_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = data(n=300)
    exact = KernelRidge(StandardFeatures(), "laplacian")
    exact.fit(X, Y, np.ones(300), seed=0)
    monkeypatch.setattr(module, "_EXACT", 200)
    landmarks = KernelRidge(StandardFeatures(), "laplacian", landmarks=250)
    held_out = landmarks.fit(X, Y, np.ones(300), seed=0)
    assert landmarks.points is not None
    assert len(landmarks.points) == 250
    assert np.abs(landmarks.predict(X) - exact.predict(X)).mean() < 0.05
    assert ((held_out - Y) ** 2).mean() < Y.var()


def test_missing_targets_count_as_their_mean() -> None:
    X, Y = data()
    Y[::7, 1] = np.nan
    model = KernelRidge(StandardFeatures(), "linear")
    held_out = model.fit(X, Y, np.ones(len(X)), seed=0)
    assert np.isfinite(held_out).all()
    known = ~np.isnan(Y[:, 1])
    filled = np.where(known, Y[:, 1], Y[known, 1].mean())[:, None]
    other = KernelRidge(StandardFeatures(), "linear")
    np.testing.assert_allclose(other.fit(X, filled, np.ones(len(X)), seed=0)[:, 0], held_out[:, 1])


def test_columns_that_are_no_counts_are_standardised() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 30)) < 0.1, 3.0, 0.0)
    X[:, [4, 7]] = rng.normal(2000.0, 5.0, size=(50, 2))
    features = CountFeatures(False).fit(sparse.csr_array(X), np.ones(50))
    np.testing.assert_array_equal(features.others, [4, 7])
    Z: Any = features.transform(sparse.csr_array(X)).toarray()
    assert Z.shape == (50, 32)
    assert not Z[:, [4, 7]].any()
    np.testing.assert_allclose((Z[:, 30:] ** 2).mean(axis=0), 0.5)
    words = np.delete(X, [4, 7], axis=1).any(axis=1)
    np.testing.assert_allclose((Z[words, :30] ** 2).sum(axis=1), 1.0)


@pytest.mark.parametrize("idf", [False, True])
def test_counts_become_rows_of_unit_length(idf: bool) -> None:
    counts = sparse.random_array((20, 8), density=0.2, rng=0, format="csr")
    counts.data = np.ceil(counts.data * 5)
    features = CountFeatures(idf).fit(counts, np.ones(20))
    Z: Any = features.transform(counts)
    norms = np.sqrt((Z.toarray() ** 2).sum(axis=1))
    np.testing.assert_allclose(norms[np.diff(counts.indptr) > 0], 1.0)
    if not idf:
        row = counts.toarray()[0]
        np.testing.assert_allclose(Z.toarray()[0], np.log1p(row) / np.linalg.norm(np.log1p(row)))


def test_missing_features_become_the_mean() -> None:
    X = np.array([[1.0, np.nan], [3.0, 5.0], [2.0, 7.0]])
    Z = StandardFeatures().fit(X, np.ones(3)).transform(X)
    assert Z[0, 1] == 0.0
    assert Z[2, 0] == 0.0


def test_features_of_many_rows_are_kept_once_in_single_precision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_PRODUCTS", 2.5e8)  # blocks of 1000 rows
    X, Y = data(n=20_000)
    tracemalloc.start()
    try:
        model = KernelRidge(StandardFeatures(), "laplacian", landmarks=500)
        model.fit(X, Y, np.ones(len(X)), seed=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.0 * len(X) * 500 * np.dtype(np.float32).itemsize
