"""Logistic regressions as a part of the stack."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import fgfm
import fgfm.learner._logistic as module
import fgfm.learner._parts as parts
from fgfm import StackClassifier
from fgfm.learner._features import CountFeatures
from fgfm.learner._logistic import LabelLogistic


def texts(n: int = 1200, p: int = 200) -> tuple[Any, npt.NDArray[np.int64]]:
    """Return counts of words in CSR, and three labels by a logistic model of them."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.05, (n, p)).astype(float)
    length = np.linalg.norm(counts, axis=1, keepdims=True)
    logits = counts / np.maximum(length, 1.0) @ (6.0 * rng.standard_normal((p, 3))) - 1.0
    Y = (rng.random((n, 3)) < expit(logits)).astype(np.int64)
    return sparse.csr_array(counts), Y


def fit(X: Any, labels: Any, weight: Any = None) -> tuple[LabelLogistic, Any]:
    ones = np.ones(X.shape[0])
    part = LabelLogistic(CountFeatures(idf=False))
    return part, part.fit(X, labels.astype(np.float32), ones if weight is None else weight, seed=0)


def test_the_models_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PENALTIES", (0.1,))
    monkeypatch.setattr(module, "_TOLERANCE", 1e-6)
    X, Y = texts()
    part, held_out = fit(X, Y)
    Z = part.features.transform(X)
    for label in range(3):
        # A penalty l is C = 1 / (2 l).
        other = LogisticRegression(C=5.0, tol=1e-8, max_iter=1000).fit(Z, Y[:, label])
        logits = other.decision_function(Z)
        np.testing.assert_allclose(part.predict(X)[:, label], logits, atol=2e-4)
    # The rows of a fold did not shape the model that they are predicted by.
    assert np.abs(held_out - part.predict(X)).min() > 0.0
    assert ((held_out > 0.0) == Y).mean() < ((part.predict(X) > 0.0) == Y).mean()


def test_scale_of_weights_does_not_matter() -> None:
    X, Y = texts(400)
    part, held_out = fit(X, Y)
    other, scaled = fit(X, Y, np.full(400, 7.0))
    np.testing.assert_allclose(part.coef, other.coef, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(held_out, scaled, rtol=1e-5, atol=1e-5)


def test_unknown_labels_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = texts(400)
    labels = Y.astype(np.float32)
    labels[::5, 0] = np.nan
    complete, _ = fit(X, Y)
    part, held_out = fit(X, labels)
    changed = X.tolil()
    changed[::5] = X[1]
    features = CountFeatures(idf=False).fit(X, np.ones(400))
    monkeypatch.setattr(CountFeatures, "fit", lambda *_: features)
    other = LabelLogistic(features)
    other.fit(changed.tocsr(), labels, np.ones(400), seed=0)
    np.testing.assert_array_equal(part.predict(X)[:, 0], other.predict(X)[:, 0])
    np.testing.assert_array_equal(held_out[::5, 0], part.predict(X[::5])[:, 0])
    np.testing.assert_array_equal(part.predict(X)[:, 1:], complete.predict(X)[:, 1:])


def test_a_label_that_is_hardly_known_has_its_frequency() -> None:
    X, Y = texts(400)
    labels = Y.astype(np.float32)
    labels[5:, 0] = np.nan
    labels[:5, 0] = [0, 1, 0, 0, 0]
    labels[::3, 1:] = np.nan  # no label is known in all rows
    part, held_out = fit(X, labels)
    np.testing.assert_allclose(held_out[:, 0], np.log(0.25), rtol=1e-6)
    np.testing.assert_allclose(part.predict(X)[:, 0], np.log(0.25), rtol=1e-6)
    model = StackClassifier(random_state=0).fit(
        sparse.vstack([X] * 3).tocsr(), np.tile(labels, (3, 1))
    )
    assert np.isfinite(model.predict_proba(X)).all()


def test_work_is_bounded() -> None:
    def counts(n: int, p: int, nnz: int) -> Any:
        at = np.arange(nnz)
        return sparse.csr_array((np.ones(nnz), (at // p, at % p)), shape=(n, p))

    assert LabelLogistic.most(counts(1000, 5000, 9000), 20) == 2
    assert LabelLogistic.most(counts(1000, 1000, 90_000), 2000) == 1
    assert LabelLogistic.most(counts(999, 5000, 9000), 20) == 0
    assert LabelLogistic.most(counts(1000, 5000, 9000), 0) == 0
    assert LabelLogistic.most(counts(1000, 5000, 9000), 400_000) == 0
    assert LabelLogistic.most(counts(1000, 6_000_000, 9000), 10) == 0


def test_part_of_the_classifier(tmp_path: Any) -> None:
    X, Y = texts()
    rng = np.random.default_rng(1)
    model = StackClassifier(random_state=0).fit(X[:1000], Y[:1000])
    assert len(model.parts_) == 5
    p = model.predict_proba(X[1000:])
    np.testing.assert_array_equal(model.predict_proba(X[1000:1003]), p[:3])
    fgfm.save(model, tmp_path / "model.fgfm")
    np.testing.assert_array_equal(fgfm.load(tmp_path / "model.fgfm").predict_proba(X[1000:]), p)
    same = StackClassifier(random_state=0, n_jobs=2).fit(X[:1000], Y[:1000])
    np.testing.assert_array_equal(same.predict_proba(X[1000:]), p)
    # Where they do not lower the held-out log-loss, they are not kept.
    noise = (rng.random(Y.shape) < expit(-1.0)).astype(np.int64)
    without = StackClassifier(random_state=0).fit(X[:1000], noise[:1000])
    assert len(without.parts_) == 3


@pytest.mark.parametrize("signal", [True, False])
def test_of_many_rows_logistic_regressions_replace_one_of_the_linear_ones(
    signal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_MANY", 1000)
    X, Y = texts(1000)
    if not signal:
        Y = np.random.default_rng(1).permutation(Y)
    names = list(StackClassifier(random_state=0).fit(X, Y).parts_)
    assert any(name.startswith("logistic") for name in names) == signal
    assert ("linear ridge on log counts" in names) != signal
