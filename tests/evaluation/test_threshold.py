"""The best single threshold, against all thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fgfm
from fgfm.evaluation import best_threshold


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_best_threshold_is_the_best_of_all(beta):
    rng = np.random.default_rng(1)
    proba = rng.random((30, 4)).round(2)
    Y = rng.random((30, 4)) < proba
    t = best_threshold(proba, Y, beta)
    scores = [fgfm.f_measure(Y, proba > c, beta) for c in np.linspace(0.0, 1.0, 201)]
    assert_allclose(fgfm.f_measure(Y, proba > t, beta), max(scores))


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
