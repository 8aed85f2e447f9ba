"""Learners of marginal probabilities, and the files that hold them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.deciders import learners
from benchmarks.deciders.learners import LEARNERS, TooMuchWorkError
from benchmarks.deciders.probabilities import (
    Probabilities,
    cache_probabilities,
    path_of,
    read_failures,
)
from benchmarks.real.splits import find_sources


@pytest.fixture(autouse=True)
def small_learners(monkeypatch):
    monkeypatch.setattr(learners, "_TREES", 40)
    monkeypatch.setattr(learners, "_MAX_EPOCHS", 50)
    with threadpool_limits(1):
        yield


def make_rows(n=80):
    """Return features that determine label 0, and labels 1 and 2 that are constant."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.column_stack([X[:, 0] > 0.0, np.zeros(n), np.ones(n)]).astype(np.int64)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", LEARNERS)
def test_learners_separate_and_handle_constant_labels(name, convert):
    X, Y = make_rows()
    first, second = LEARNERS[name](convert(X), Y, [convert(X), convert(X[:5])], 0)
    np.testing.assert_allclose(second, first[:5], rtol=1e-12)
    assert first[Y[:, 0] == 1, 0].min() > first[Y[:, 0] == 0, 0].max() - 0.3
    assert ((first[:, 0] > 0.5) == Y[:, 0]).mean() > 0.9
    if name == "mlp":
        assert first[:, 1].max() < 0.5 < first[:, 2].min()
    else:
        np.testing.assert_array_equal(first[:, 1:], Y[:, 1:])


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_are_deterministic(name):
    X, Y = make_rows()
    (first,), (second,) = (LEARNERS[name](X, Y, [X], 3) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_boosting_refuses_much_work():
    X = sparse.csr_matrix((10_000, 10_000))
    with pytest.raises(TooMuchWorkError, match=r"10000 rows, 10000 features and 100 labels"):
        LEARNERS["boosting"](X, np.zeros((10_000, 100)), [X], 0)


def cache(folder, sources, names, **changes):
    lines = []
    options = {"limit": 60.0, "seed": 0, "n_jobs": 1, "retry": False} | changes
    cache_probabilities(folder, sources, names, progress=lines.append, **options)
    return lines


def test_cached_probabilities_are_of_held_out_rows_and_computed_once(tmp_path):
    X, Y = make_rows(60)
    np.savez(tmp_path / "toy.npz", X=X, Y=Y)
    sources = find_sources(tmp_path, None)
    assert cache(tmp_path, sources, ["ridge"]) == ["toy-ridge: ok"]
    found = Probabilities.read(path_of(tmp_path, "toy", "ridge"))
    assert found.proba_val.shape == found.Y_val.shape == (14, 3)  # 30 % of four fifths of 60
    assert found.proba_test.shape == found.Y_test.shape == (12, 3)
    assert ((found.proba_test[:, 0] > 0.5) == found.Y_test[:, 0]).mean() > 0.7
    assert cache(tmp_path, sources, ["ridge"]) == []


def test_failures_are_stored_and_retried_on_demand(tmp_path):
    X, Y = make_rows(60)
    np.savez(tmp_path / "toy.npz", X=X, Y=Y)
    sources = find_sources(tmp_path, None)
    assert cache(tmp_path, sources, ["ridge"], limit=0.0) == ["toy-ridge: limit"]
    assert read_failures(tmp_path) == {"toy-ridge": "limit"}
    assert cache(tmp_path, sources, ["ridge"]) == []
    assert cache(tmp_path, sources, ["ridge"], retry=True) == ["toy-ridge: ok"]
