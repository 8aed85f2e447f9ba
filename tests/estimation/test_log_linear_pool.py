"""LogLinearPool: recovers known weights, handles weights and missing rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from fgfm._utils.log_linear_pool import LogLinearPool
from multilabel import close


def draw(n=400, K=4, seed=0):
    """Draw two distributions, and classes from the first."""
    rng = np.random.default_rng(seed)
    first, second = rng.dirichlet(np.ones(K), size=(2, n))
    code = (rng.random((n, 1)) > first.cumsum(axis=1)).sum(axis=1)
    return [first, second], code


def log_loss(proba, code, weight=None):
    log_p = np.log(proba[np.arange(len(code)), code])
    return -np.average(log_p, weights=weight)


def test_first_distribution_is_recovered():
    proba, code = draw(20_000)
    pool = LogLinearPool().fit(proba, code)
    close(pool.weights_, [1.0, 0.0], atol=0.05)
    close(pool.shifts_ - pool.shifts_.mean(), 0.0, atol=0.05)
    close(pool.predict_proba(proba), proba[0], atol=0.03)


def test_weighted_product_is_recovered():
    rng = np.random.default_rng(1)
    first, second = rng.dirichlet(np.ones(3), size=(2, 40_000))
    shifts = np.array([0.5, -0.5, 0.0])
    truth = softmax(0.6 * np.log(first) + 0.3 * np.log(second) + shifts, axis=1)
    code = (rng.random((len(truth), 1)) > truth.cumsum(axis=1)).sum(axis=1)
    pool = LogLinearPool().fit([first, second], code)
    close(pool.weights_, [0.6, 0.3], atol=0.05)
    close(pool.shifts_ - pool.shifts_.mean(), shifts, atol=0.05)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("swapped", [False, True])
def test_pool_is_no_worse_than_its_distributions(seed, swapped):
    proba, code = draw(seed=seed)
    if swapped:
        proba = proba[::-1]
    pool = LogLinearPool().fit(proba, code)
    found = log_loss(pool.predict_proba(proba), code)
    assert found <= log_loss(proba[0], code)
    assert found <= log_loss(proba[1], code) + 2.0 / len(code)  # the penalty for leaving the first
    assert (pool.weights_ >= 0.0).all()
    close(pool.predict_proba(proba).sum(axis=1), 1.0)


def test_pool_without_rows_is_the_first_distribution():
    proba, code = draw(6)
    nothing = [np.full((6, 4), np.nan), proba[1]]
    for fitted in (
        LogLinearPool().fit(nothing, code),
        LogLinearPool().fit(proba, code, np.zeros(6)),
    ):
        assert fitted.weights_.tolist() == [1.0, 0.0]
        assert not fitted.shifts_.any()
        close(fitted.predict_proba(proba), proba[0])


def test_rows_with_nan_are_ignored():
    proba, code = draw()
    kept = np.arange(400) % 3 > 0
    for j in range(2):
        holes = [p.copy() for p in proba]
        holes[j][~kept, 0] = np.nan
        with_holes = LogLinearPool().fit(holes, code)
        without = LogLinearPool().fit([p[kept] for p in proba], code[kept])
        assert (with_holes.weights_ == without.weights_).all()
        assert (with_holes.shifts_ == without.shifts_).all()


def test_weights():
    proba, code = draw()
    weight = np.arange(400) % 3.0  # 0, 1 and 2
    rows = np.repeat(np.arange(400), weight.astype(int))
    weighted = LogLinearPool().fit(proba, code, weight)
    repeated = LogLinearPool().fit([p[rows] for p in proba], code[rows])
    close(weighted.weights_, repeated.weights_, atol=1e-5)
    close(weighted.shifts_, repeated.shifts_, atol=1e-5)
    kept = weight > 0.0
    removed = LogLinearPool().fit([p[kept] for p in proba], code[kept], weight[kept])
    assert (removed.weights_ == weighted.weights_).all()
    assert np.abs(LogLinearPool().fit(proba, code).shifts_ - weighted.shifts_).max() > 1e-3


def test_one_class_gets_probability_1():
    pool = LogLinearPool().fit([np.ones((5, 1))] * 2, np.zeros(5, dtype=int))
    close(pool.predict_proba([np.ones((3, 1))] * 2), 1.0, atol=0.0)


def test_probabilities_of_0():
    proba = [np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])] * 2
    code = np.array([0, 1, 0])  # the last row has a class of probability 0
    pool = LogLinearPool().fit(proba, code)
    assert np.isfinite(pool.predict_proba(proba)).all()
    assert (pool.predict_proba(proba) > 0.0).all()
