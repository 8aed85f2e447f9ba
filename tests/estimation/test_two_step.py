"""TwoStep against the product of its models."""

from __future__ import annotations

import numpy as np
from sklearn.dummy import DummyClassifier

from fgfm.cardinality import (
    is_coherent,
    of_conditionals,
)
from fgfm.ridge import fit_ridge_logistic
from multilabel import close, interleaved_folds, make_data, one_factor


def by_hand(X, Y, cv):
    """Return d and q of the models of the paper, fitted one by one."""
    s = Y.sum(axis=1).astype(float)
    d_model, *models = fit_ridge_logistic(
        X, [s.astype(int), *Y.T], extra=[None] + [s] * Y.shape[1], cv=cv
    )
    S = int(s.max())
    d = np.zeros((len(X), S + 1))
    d[:, d_model.classes] = d_model.predict_proba(X)
    q = np.zeros((len(X), Y.shape[1], S))
    for i, model in enumerate(models):
        for k in d_model.classes[d_model.classes > 0]:
            q[:, i, k - 1] = model.predict_proba(X, extra=float(k))[:, 1]
    return d, q


def test_two_step_is_the_product_of_its_models():
    X, Y = make_data(80)
    d, q = by_hand(X, Y, interleaved_folds(80))
    raw = one_factor("two-step", coherent=False, cv=interleaved_folds(80)).fit(X, Y).estimate(X)
    close(raw.d, d)
    close(raw.P, d[:, None, 1:] * q)
    assert not is_coherent(raw.P, raw.d).any()
    coherent = one_factor("two-step", cv=interleaved_folds(80)).fit(X, Y).estimate(X)
    close(coherent.d, d)
    close(coherent.P, of_conditionals(q, d))


def test_models_use_the_cardinality_as_a_feature():
    X, Y = make_data(400)
    P, d = one_factor("two-step", cv=interleaved_folds(400), coherent=False).fit(X, Y).estimate(X)
    q = P / d[:, None, 1:]
    assert (np.diff(q, axis=2) > 0.0).all()  # each label is more probable among more labels


def test_base_learners_get_the_cardinality_as_last_column():
    seen = []

    class Recorder(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(np.array(X))
            return super().fit(X, y)

    X, Y = make_data(20, 3)
    one_factor("two-step", Recorder(), calibration=None).fit(X, Y)
    assert [x.shape[1] for x in seen] == [3, 4, 4, 4]
    for x in seen[1:]:
        assert (x[:, :3] == X).all()
        assert (x[:, 3] == Y.sum(axis=1)).all()
