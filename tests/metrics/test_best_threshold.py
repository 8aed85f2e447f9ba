"""The best single threshold, against all thresholds."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import fgfm
from fgfm.metrics import best_threshold


def test_many_probabilities_are_thinned_out():
    rng = np.random.default_rng(0)
    proba = rng.random((500, 5))
    Y = rng.random((500, 5)) < proba
    t = best_threshold(proba, Y)
    scores = [fgfm.f_measure(Y, proba > c) for c in np.linspace(0.0, 1.0, 501)]
    assert_allclose(fgfm.f_measure(Y, proba > t), max(scores), atol=1e-3)


def test_zero_division_counts_for_rows_without_labels():
    proba = np.array([[0.4], [0.3]])
    Y = np.array([[False], [False]])
    assert best_threshold(proba, Y, zero_division=1.0) == 0.4  # decide for nothing


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("average", ["samples", "macro", "weighted", "micro"])
@pytest.mark.parametrize(("beta", "empty"), [(0.5, 1.0), (1.0, np.nan), (2.0, 0.0)])
def test_best_threshold_is_the_best_of_all(form, average, beta, empty):
    rng = np.random.default_rng(3)
    proba = rng.random((30, 4)).round(2) * [1.0, 1.0, 1.0, 0.2]
    Y = rng.random((30, 4)) < 0.6 * proba
    options = {"average": average, "zero_division": empty}
    t = best_threshold(form(proba), form(Y.astype(int)), beta, **options)
    scores = [fgfm.f_measure(Y, proba > c, beta, **options) for c in np.linspace(0.0, 1.0, 201)]
    assert_allclose(fgfm.f_measure(Y, proba > t, beta, **options), np.nanmax(scores))
    with pytest.raises(ValueError, match="average is 'binary' and labels is not flat"):
        best_threshold(form(proba), form(Y.astype(int)), average="binary")


def test_flat_labels_are_one_problem():
    rng = np.random.default_rng(3)
    p = rng.random(50)
    y = (rng.random(50) < p).astype(int)
    t = best_threshold(p, y, average="binary")
    assert t == best_threshold(p, y) == best_threshold(p[:, None], y[:, None], average="macro")


P, Y = np.array([[0.2, 0.7], [0.4, 0.1]]), np.array([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((Y, P), {}, ValueError, "labels[0, 0] is 0.2: labels must be 0 or 1; are proba and"),
        ((Y[:, 1], P[:, 1]), {}, ValueError, "labels[0] is 0.7: labels must be 0 or 1; are"),
        (
            (Y, sparse.csr_array(P)),
            {},
            ValueError,
            "labels[0, 0] is 0.2: labels must be 0 or 1",
        ),
        ((P, Y[:, :1]), {}, ValueError, "labels has shape (2, 1) and proba has (2, 2): they"),
        ((P, 2 * Y), {}, ValueError, "labels[0, 1] is 2: labels must be 0 or 1"),
        ((P + np.inf, Y), {}, ValueError, "proba[0, 0] is inf: probabilities and scores must be"),
        ((P[:0], Y[:0]), {}, ValueError, "proba has no rows: a threshold needs at least one"),
        ((P, Y), {"average": None}, ValueError, "average is None: it must be one of 'samples'"),
        ((P, Y), {"beta": 0}, ValueError, "beta is 0.0: it must be a number greater than 0"),
        ((P, Y), {"zero_division": 2}, ValueError, "zero_division is 2.0: it must be a number in"),
    ],
)
def test_invalid_arguments_raise(arguments, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        best_threshold(*arguments, **options)
