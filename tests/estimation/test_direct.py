"""Direct against its models, and the repair of incoherent estimates."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from fgfm.cardinality import (
    distribution,
    is_coherent,
    make_coherent,
)
from fgfm.ridge import fit_ridge_logistic
from multilabel import close, interleaved_folds, make_data, one_factor


def test_direct_is_one_multinomial_model_per_label():
    X, Y = make_data(80)
    s = Y.sum(axis=1)
    raw = np.zeros((80, 4, int(s.max())))
    for i, model in enumerate(
        fit_ridge_logistic(X, [y * s for y in Y.T], cv=interleaved_folds(80))
    ):
        for k, name in enumerate(model.classes):
            if name > 0:
                raw[:, i, name - 1] = model.predict_proba(X)[:, k]
    P, d = one_factor("direct", cv=interleaved_folds(80), coherent=False).fit(X, Y).estimate(X)
    close(P, raw)
    model = one_factor("direct", cv=interleaved_folds(80)).fit(X, Y)
    P, d = model.estimate(X)
    close(P, make_coherent(raw))
    close(d, distribution(P))
    d_0, moved = model.repair(X)[0]
    sizes = np.arange(1, raw.shape[2] + 1)
    close(d_0, 1.0 - (raw.sum(axis=1) / sizes).sum(axis=1))
    close(moved, np.abs(P - raw).sum(axis=(1, 2)))
    assert (moved > 1e-3).any()


@pytest.mark.parametrize(
    "model", [one_factor("direct", coherent=False), one_factor("direct"), one_factor("powerset")]
)
def test_label_that_never_occurs_with_a_cardinality_gets_probability_0(model):
    X, _ = make_data(40)
    Y = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 1, 0]] * 10)  # label 2 is never alone
    P, _ = model.fit(X, Y).estimate(X)
    assert not P[:, 2, 0].any()
    assert P[:, 2, 1].all()


class ColumnProba(ClassifierMixin, BaseEstimator):
    """Finds the feature that equals its target, and predicts this feature as the probability."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        equal = ((y > 0)[:, None] == X).all(axis=0)
        self.column_ = int(np.flatnonzero(equal)[0])
        return self

    def predict_proba(self, X):
        p = X[:, self.column_]
        return np.column_stack([1.0 - p, p])


def direct_of(sets, coherent=True):
    """Return a Direct that predicts P = X, for label sets of cardinality 0 or one other."""
    Y = np.array(sets)
    model = one_factor("direct", ColumnProba(), calibration=None, coherent=coherent)
    return model.fit(Y.astype(float), Y)


def test_repair_of_too_much_probability():
    sets = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    X = np.array([[0.5, 0.5, 0.5], [0.2, 0.2, 0.2], [0.6, 0.3, 0.3], [0.0, 0.0, 0.0]])
    model = direct_of(sets)
    d_0, moved = model.repair(X)[0]
    close(d_0, [-0.5, 0.4, -0.2, 1.0])
    close(moved, [0.5, 0.0, 0.2, 0.0])
    assert moved[1] == moved[3] == 0.0  # coherent already
    P, d = model.estimate(X)
    close(P[:, :, 0], [[1 / 3] * 3, [0.2] * 3, [0.5, 0.25, 0.25], [0.0] * 3])
    close(d, [[0.0, 1.0], [0.4, 0.6], [0.0, 1.0], [1.0, 0.0]])
    assert is_coherent(P, d).all()


def test_repair_of_labels_that_disagree():
    sets = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]]
    model = direct_of(sets)
    X = np.array([[0.6, 0.1, 0.1]])  # d_2 = 0.4, less than p of label 0
    P, d = model.estimate(X)
    close(d, [[0.6, 0.0, 0.4]])
    close(P[0, :, 1], [0.4, 0.2, 0.2], atol=1e-6)
    close(model.repair(X)[0].d_0, [0.6])
    close(model.repair(X)[0].moved, [0.4], atol=1e-6)


def test_incoherent_estimates_are_returned_unchanged():
    model = direct_of([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], coherent=False)
    X = np.array([[0.5, 0.6, 0.7], [0.1, 0.2, 0.3]])
    P, d = model.estimate(X)
    assert (P[:, :, 0] == X).all()
    close(d, [[0.0, 1.0], [0.4, 0.6]])  # clipped at 0 and 1
    close(model.repair(X)[0].d_0, [-0.8, 0.4])
