"""Tilted against the tilt of its models."""

from __future__ import annotations

import numpy as np

from fgfm.cardinality import (
    of_marginals,
)
from fgfm.ridge import fit_ridge_logistic
from multilabel import close, interleaved_folds, make_data, one_factor


def test_tilted_is_the_tilt_of_its_models():
    X, Y = make_data(80)
    d_model, *models = fit_ridge_logistic(X, [Y.sum(axis=1), *Y.T], cv=interleaved_folds(80))
    p = np.column_stack([model.predict_proba(X)[:, 1] for model in models])
    P, d = one_factor("tilted", cv=interleaved_folds(80)).fit(X, Y).estimate(X)
    close(d, d_model.predict_proba(X))
    close(P, of_marginals(p, d))
