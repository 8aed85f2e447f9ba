"""The stack of predictions of binary labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

import fgfm.learner._stack as module
from fgfm.learner._stack import MarginalStack, _fit_logistic


def test_a_useless_part_gets_no_weight_and_a_good_one_its_slope() -> None:
    rng = np.random.default_rng(0)
    good = rng.standard_normal((3000, 4))
    Y = (rng.random((3000, 4)) < expit(2.0 * good - 1.0)).astype(float)
    F = np.stack([good, -good + 0.1 * rng.standard_normal(good.shape)])
    stack = MarginalStack().fit(F, Y, np.ones(3000))
    assert stack.shared[0] == pytest.approx(2.0, abs=0.2)
    assert stack.shared[1] == pytest.approx(0.0, abs=1e-6)
    assert (stack.weights >= 0.0).all()
    np.testing.assert_allclose(stack.predict(F).mean(axis=0), Y.mean(axis=0), atol=0.01)


@pytest.mark.parametrize("slope", [0.5, -2.0])
def test_a_label_is_fitted_as_a_general_optimiser_does(slope: float) -> None:
    rng = np.random.default_rng(1)
    F = rng.standard_normal((2, 200))
    y = (rng.random(200) < expit(F[0] + slope * F[1])).astype(float)
    w = rng.random(200)
    prior, shift = np.array([0.5, 0.5]), -0.2

    def loss(theta: np.ndarray) -> float:
        eta = theta[:2] @ F + theta[2]
        fit = float((w * (np.logaddexp(0.0, eta) - y * eta)).sum())
        penalty = 5.0 * ((theta[:2] - prior) ** 2).sum() + 0.15 * (theta[2] - shift) ** 2
        return fit + float(penalty)

    X, precision = np.vstack([F, np.ones(200)]), np.array([10.0, 10.0, 0.3])
    found = minimize(loss, np.zeros(3), bounds=[(0, None), (0, None), (None, None)], tol=1e-12)
    theta = _fit_logistic(X, y, w, np.append(prior, shift), precision)
    np.testing.assert_allclose(theta, found.x, atol=1e-4)


def test_unknown_labels_and_predictions_are_left_out() -> None:
    rng = np.random.default_rng(2)
    F = rng.standard_normal((2, 300, 3))
    Y = (rng.random((300, 3)) < expit(F[0])).astype(float)
    some, other = Y.copy(), Y.copy()
    some[:40, 1] = np.nan
    held = F.copy()
    held[:, :40, 1] = 1e6
    other[:40, 1] = np.nan
    one = MarginalStack().fit(F, some, np.ones(300))
    two = MarginalStack().fit(held, other, np.ones(300))
    np.testing.assert_allclose(one.weights, two.weights)
    held[:, 0, :] = np.nan
    three = MarginalStack().fit(held, other, np.ones(300))
    four = MarginalStack().fit(F[:, 1:], some[1:], np.ones(299))
    np.testing.assert_allclose(three.weights, four.weights)


def test_many_labels_are_fitted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    F = rng.standard_normal((2, 200, 7))
    Y = (rng.random((200, 7)) < expit(F[0])).astype(float)
    whole = MarginalStack().fit(F, Y, np.ones(200))
    monkeypatch.setattr(module, "_LABELS", 3)
    blocks = MarginalStack().fit(F, Y, np.ones(200))
    np.testing.assert_array_equal(blocks.weights, whole.weights)
    monkeypatch.setattr(module, "_CELLS", 700)  # every second row
    some = MarginalStack().fit(F, Y, np.ones(200))
    np.testing.assert_array_equal(
        some.shared, MarginalStack().fit(F[:, ::2], Y[::2], np.ones(100)).shared
    )


def test_labels_that_features_prove_but_never_exclude_are_calibrated_at_both_ends() -> None:
    rng = np.random.default_rng(3)
    z = 3.0 * rng.standard_normal((8000, 3))
    Y = (rng.random(z.shape) < 0.12 + 0.88 * expit(z - 1.0)).astype(float)
    stack = MarginalStack().fit(z[None], Y, np.ones(8000))
    low, high = z < np.quantile(z, 0.2), z > np.quantile(z, 0.8)

    def bias(part: np.ndarray) -> float:
        return float(stack.predict(z[None])[part].mean() - Y[part].mean())

    assert abs(bias(low)) < 0.015
    assert abs(bias(high)) < 0.015
    stack.link = np.array([1.0, 1.0, 0.0])  # a sigmoid: too low where labels cannot be excluded
    assert max(abs(bias(low)), abs(bias(high))) > 0.04


@pytest.mark.parametrize("centre", [-6.0, -3.0, 0.0])
def test_calibration_of_logits_that_are_far_too_wide(centre: float) -> None:
    """Full Newton steps from the identity diverge here."""
    rng = np.random.default_rng(0)
    z = rng.normal(centre, 1.5, (300, 40))
    truth = expit(0.2 * log_expit(z) - 0.1 * log_expit(-z) - 1.0)
    Y = (rng.random(z.shape) < truth).astype(float)
    X = np.stack([log_expit(z).ravel(), -log_expit(-z).ravel(), np.ones(z.size)])
    identity, precision = np.array([1.0, 1.0, 0.0]), np.full(3, 5.0)
    a, b, c = _fit_logistic(X, Y.ravel(), np.ones(z.size), identity, precision)
    found = expit(a * log_expit(z) - b * log_expit(-z) + c)
    assert np.abs(found - truth).mean() < 0.02
