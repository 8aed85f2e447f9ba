"""Floors behind models whose probabilities tie: neighbours, trees, isotonic calibration."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from fgfm import FDecider

MODELS = {
    "neighbours": KNeighborsClassifier(7),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
}


@cache
def probabilities(name, flat, seed=0):
    """Return tied probabilities of validation and of new rows, with their labels."""
    model = MODELS[name]
    if flat:
        X, y = make_classification(3000, 10, weights=[0.7], flip_y=0.1, random_state=seed)
        p = model.fit(X[:1000], y[:1000]).predict_proba(X[1000:])[:, 1]
    else:
        X, y = make_multilabel_classification(3000, 10, n_classes=4, random_state=seed)
        parts = model.fit(X[:1000], y[:1000]).predict_proba(X[1000:])
        p = np.stack([part[:, 1] for part in parts], axis=1)
    return p[:1000], y[1000:2000], p[1000:], y[2000:]


@pytest.mark.parametrize("calibration", ["auto", "isotonic", None])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("average", ["binary", "macro", "weighted", "micro"])
@pytest.mark.parametrize("floor", [0.6, 0.9])
@pytest.mark.filterwarnings("ignore:.*no.*satisfies")
def test_the_model_has_the_floors(floor, average, model, calibration):
    p, y, _, _ = probabilities(model, average == "binary")
    axis = None if average in ("binary", "micro") else 0
    for name in ("min_recall", "min_precision"):
        decider = FDecider(average=average, calibration=calibration, **{name: floor}).fit(p, y)
        q, h = decider.predict_proba(p), decider.predict(p)
        q = q[:, 1] if average == "binary" else q
        hits, of = (q * h).sum(axis=axis), (q if name == "min_recall" else h).sum(axis=axis)
        possible = np.ravel(np.asarray(decider.thresholds_) < 1.0)
        reached = np.ravel(hits / np.maximum(of, 1e-300))
        assert (reached[possible] >= floor - 1e-9).all()
        if name == "min_recall":  # everything has a recall of 1
            assert possible.all()
        levels = np.unique(q)
        assert not np.isin(np.ravel(decider.thresholds_), levels).any()


@pytest.mark.parametrize("model", MODELS)
def test_the_threshold_is_the_best_one_that_has_the_floor(model):
    p, y, _, _ = probabilities(model, True)
    decider = FDecider(min_recall=0.8, calibration=None).fit(p, y)
    best = -1.0
    for cut in np.unique(np.clip(p, 1e-12, 1 - 1e-12)):
        h = p >= cut
        if p[h].sum() >= 0.8 * p.sum():
            best = max(best, 2 * p[h].sum() / (p.sum() + h.sum()))
    h = decider.predict(p)
    assert 2 * (p * h).sum() / (p.sum() + h.sum()) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_new_rows_have_the_recall(model):
    p, y, new, truth = probabilities(model, True)
    decider = FDecider(min_recall=0.9).fit(p, y)
    assert decider.predict(new)[truth == 1].mean() > 0.87
