"""Powerset against the sum over label sets."""

from __future__ import annotations

import numpy as np
from sklearn.dummy import DummyClassifier

from fgfm.cardinality import (
    of_joint,
)
from fgfm.ridge import fit_ridge_logistic
from multilabel import close, interleaved_folds, make_data, one_factor
from oracle import (
    cardinality_distribution,
)


def test_powerset_is_the_sum_over_label_sets():
    X, Y = make_data(80)
    sets, code = np.unique(Y, axis=0, return_inverse=True)
    (by_hand,) = fit_ridge_logistic(X, [code.ravel()], cv=interleaved_folds(80))
    proba = by_hand.predict_proba(X)
    model = one_factor("powerset", cv=interleaved_folds(80)).fit(X, Y)
    assert (model.fitted_method().labelsets == sets).all()
    P, d = model.estimate(X)
    close(P, of_joint(sets, proba))
    close(d, cardinality_distribution(sets, proba)[:, : d.shape[1]])
    assert (model.predict_mode(X) == sets[proba.argmax(axis=1)]).all()
    assert model.predict_mode(X).dtype == np.int8


def test_row_without_any_probable_class_gets_the_frequencies():
    class Silent(DummyClassifier):
        def predict_proba(self, X):
            return np.zeros((len(X), len(self.classes_)))

    X, Y = make_data(40, 2)
    d = one_factor("powerset", Silent(), calibration=None).fit(X, Y).estimate(X[:2]).d
    close(d[0], np.bincount(Y.sum(axis=1), minlength=3) / 40)
