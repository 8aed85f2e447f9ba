"""Boosted trees as a part of the stack."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import fgfm
import fgfm.learner._boosting as module
from fgfm import StackClassifier
from fgfm.learner._boosting import LabelBoosting

Floats = npt.NDArray[np.float64]


def data(n: int = 400, signal: bool = True) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return labels that depend on thresholds of pairs of features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 12))
    above = X > 0.0
    Y = np.column_stack([above[:, 0] ^ above[:, 1], above[:, 2] ^ above[:, 3]])
    noise = rng.random(Y.shape) < (0.05 if signal else 0.5)
    return X, (Y ^ noise).astype(np.int64)


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS", 300)


def test_each_row_is_held_out_once() -> None:
    X, Y = data()
    part = LabelBoosting()
    held_out = part.fit(X, Y.astype(np.float32), np.ones(len(X)), seed=0)
    assert [len(models) for models in part.models] == [3, 3]
    logits = np.stack([model.decision_function(X) for model in part.models[0]])  # (folds, n)
    equal = np.isclose(logits, held_out[:, 0], atol=1e-5)
    assert (equal.sum(axis=0) == 1).all()
    np.testing.assert_allclose(part.predict(X)[:, 0], logits.mean(axis=0), atol=1e-4)
    for model, test in zip(part.models[0], equal, strict=True):
        again = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
        again.fit(X[~test], Y[~test, 0])
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_rare_labels_have_the_logit_of_their_frequency() -> None:
    X, Y = data()
    Y[:, 1] = np.arange(len(Y)) < 8
    part = LabelBoosting()
    held_out = part.fit(X, Y.astype(np.float32), np.ones(len(X)), seed=0)
    assert part.models[1] == []
    np.testing.assert_allclose(held_out[:, 1], np.log(8 / 392), rtol=1e-6)
    np.testing.assert_allclose(part.predict(X[:3])[:, 1], np.log(8 / 392), rtol=1e-6)


def test_unknown_labels_do_not_matter() -> None:
    X, Y = data()
    labels = Y.astype(np.float32)
    labels[::5, 0] = np.nan
    part, other = LabelBoosting(), LabelBoosting()
    part.fit(X, labels, np.ones(len(X)), seed=0)
    changed = X.copy()
    changed[::5] = 7.0
    other.fit(changed, labels, np.ones(len(X)), seed=0)
    np.testing.assert_array_equal(part.predict(X)[:, 0], other.predict(X)[:, 0])


def test_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LabelBoosting.most(np.empty((5000, 100)), 10) == 1
    assert LabelBoosting.most(np.empty((4999, 100)), 10) == 0
    assert LabelBoosting.most(np.empty((5000, 1000)), 100) == 0
    assert LabelBoosting.most(np.empty((5000, 100)), 0) == 0
    fitted = []
    fit = HistGradientBoostingClassifier.fit

    def count(self, X, y, weight):
        fitted.append(len(X))
        return fit(self, X, y, weight)

    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", count)
    monkeypatch.setattr(module, "_WORK", 12 * 2 * 100)
    X, Y = data()
    LabelBoosting().fit(X, Y.astype(np.float32), np.ones(len(X)), seed=0)
    assert max(fitted) <= 100


def test_boosting_is_kept_where_it_lowers_the_loss(few_rows: None, tmp_path) -> None:
    X, Y = data(600)
    model = StackClassifier(random_state=0).fit(X[:400], Y[:400])
    assert model.parts_["boosting"] > 0.0
    fgfm.save(model, tmp_path / "model.fgfm")
    loaded = fgfm.load(tmp_path / "model.fgfm")
    np.testing.assert_array_equal(loaded.predict_proba(X[400:]), model.predict_proba(X[400:]))


def test_boosting_is_dropped_where_it_does_not(few_rows: None) -> None:
    X, Y = data(signal=False)
    model = StackClassifier(random_state=0).fit(X, Y)
    assert "boosting" not in model.parts_


def test_beside_boosting_the_kernel_regression_is_kept_where_it_pays(few_rows: None) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 30))
    Y = (X @ rng.standard_normal((30, 2)) + 0.5 * rng.standard_normal((400, 2)) > 0.0).astype(int)
    kernel = "Laplacian kernel ridge"
    assert kernel not in StackClassifier(random_state=0).fit(X, Y).parts_
    radius = np.stack([(X[:, :8] ** 2).sum(axis=1), (X[:, 8:16] ** 2).sum(axis=1)], axis=1)
    model = StackClassifier(random_state=0).fit(X, (radius > 7.3).astype(int))
    assert kernel in model.parts_
