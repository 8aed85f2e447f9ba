"""Calibration of many labels from few rows: recovery, shrinkage, isotonic, weights."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, logit

from decider_data import distorted, independent
from fgfm.estimation._calibration import IsotonicCalibrator, NoCalibrator, ShrunkCalibrator
from fgfm.estimation._entries import dense_entries, sparse_entries
from multilabel import close

WithMargin = partial(IsotonicCalibrator, with_margin=True)


def fitted(p, Y, weight=None):
    """Fit the shrunk calibrator; return it with its slopes and shifts about logit 0."""
    weight = np.ones(len(p)) if weight is None else weight
    calibrator = ShrunkCalibrator().fit(dense_entries(p), Y.astype(float), weight)
    shifts = calibrator.shifts_ - calibrator.slopes_ * calibrator.center_
    return calibrator, calibrator.slopes_, shifts


def test_calibrated_probabilities_stay():
    p, Y = independent(20_000, 5)
    calibrator, _, _ = fitted(p, Y)
    q = calibrator.predict(dense_entries(p)).p
    assert np.abs(q - p).max() < 0.03
    p, Y = independent(60, 5)  # few rows are not overfitted
    q = fitted(p, Y)[0].predict(dense_entries(p)).p
    assert np.abs(q - p).mean() < 0.05


@pytest.mark.parametrize(("slope", "shift"), [(0.5, 0.0), (1.6, 0.7), (1.0, -1.5)])
def test_a_common_slope_and_shift_are_recovered(slope, shift):
    p, Y = independent(8000, 6, seed=1)
    _, slopes, shifts = fitted(distorted(p, slope, shift), Y)
    np.testing.assert_allclose(slopes, slope, atol=0.1)
    np.testing.assert_allclose(shifts, shift, atol=0.15)


def test_each_label_is_followed_where_there_are_many_rows():
    p, Y = independent(20_000, 4, seed=2)
    slope, shift = np.array([0.5, 1.0, 1.5, 1.0]), np.array([0.0, -1.0, 0.5, 1.0])
    _, slopes, shifts = fitted(distorted(p, slope, shift), Y)
    np.testing.assert_allclose(slopes, slope, atol=0.12)
    np.testing.assert_allclose(shifts, shift, atol=0.15)


def test_few_rows_stay_near_the_common_values():
    p, Y = independent(40, 30, seed=3)
    _, slopes, shifts = fitted(distorted(p, 1.0, 1.0), Y)
    assert np.std(slopes) < 0.1
    assert np.std(shifts) < 0.4
    np.testing.assert_allclose(shifts.mean(), 1.0, atol=0.3)
    # by maximum likelihood each label would be off by the noise of 40 rows
    noise = np.sqrt(1.0 / (40 * (p * (1.0 - p)).mean()))
    assert np.std(shifts) < 0.7 * noise


def test_labels_with_one_class_follow_the_others():
    p, Y = independent(300, 6, seed=4)
    Y[:, 0], Y[:, 1] = 0, 1
    calibrator, slopes, shifts = fitted(p, Y)
    q = calibrator.predict(dense_entries(p)).p
    assert np.isfinite(slopes).all()
    assert np.isfinite(shifts).all()
    assert q[:, 0].mean() < 0.6 * p[:, 0].mean()
    assert q[:, 1].mean() > 1.5 * p[:, 1].mean()
    assert ((q > 0.0) & (q < 1.0)).all()


def test_order_of_labels_within_a_row_is_kept_by_a_common_calibration():
    p, Y = independent(500, 5, seed=5)
    extreme = np.array([[0.0, 1e-9, 0.5, 1.0 - 1e-9, 1.0]])
    q = fitted(p, Y)[0].predict(dense_entries(extreme)).p
    assert (np.diff(q[0]) > 0.0)[1:3].all()
    assert (fitted(p, 1 - Y)[1] > 0.0).all()  # slopes stay positive for reversed labels


@pytest.mark.parametrize("trees", [10, 50, 200])
def test_votes_of_few_trees(trees):
    rng = np.random.default_rng(9)
    level = np.linspace(-5.0, 0.0, 10)
    truth = expit(level + 2.0 * rng.normal(size=(4000, 10)))
    Y = (rng.random(truth.shape) < truth).astype(int)
    votes = rng.binomial(trees, truth)
    p = votes / trees
    q = fitted(p[:2000], Y[:2000])[0].predict(dense_entries(p[2000:])).p
    p, Y = p[2000:], Y[2000:]
    for low, high in [(0.0, 0.0), (0.05, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 1.0), (1.0, 1.0)]:
        inside = (p >= low) & (p <= high)
        noise = np.sqrt(Y[inside].mean() * (1.0 - Y[inside].mean()) / inside.sum())
        assert abs(q[inside].mean() - Y[inside].mean()) < 3.0 * noise + 0.02


def test_slopes_of_small_and_of_large_probabilities_differ():
    rng = np.random.default_rng(10)
    p = expit(2.0 * rng.normal(size=(8000, 6)))
    truth = expit(0.6 * np.log(p) - 1.2 * np.log1p(-p))
    Y = (rng.random(p.shape) < truth).astype(int)
    calibrator, slopes, _ = fitted(p, Y)
    close(calibrator.bend_, -0.3, 0.1)
    np.testing.assert_allclose(slopes, 0.9, atol=0.1)
    assert np.abs(calibrator.predict(dense_entries(p)).p - truth).mean() < 0.01


@pytest.mark.parametrize("n", [200, 2000, 10_000])
def test_certain_predictions_that_are_often_wrong(n):
    for seed in range(5):
        _, Y = independent(n, 4, seed)
        wrong = np.random.default_rng(seed + 5).random(Y.shape) < 0.2
        p = np.where(wrong, 1.0 - Y, Y)
        q = fitted(p, Y)[0].predict(dense_entries(p)).p
        for j in range(4):  # two values of p: the calibrated ones are near the frequencies
            present = p[:, j] == 1.0
            close(q[present, j].mean(), Y[present, j].mean(), 0.1 if n < 1000 else 0.05)
            close(q[~present, j].mean(), Y[~present, j].mean(), 0.1 if n < 1000 else 0.05)


def test_weights_are_numbers_of_rows():
    p, Y = independent(150, 4, seed=6)
    p = np.round(p, 1)  # has zeros and ones
    weight = np.arange(150) % 3
    rows = np.repeat(np.arange(150), weight)
    _, slopes, shifts = fitted(p, Y, weight.astype(float))
    _, again, shifts_again = fitted(p[rows], Y[rows])
    np.testing.assert_allclose(slopes, again, atol=1e-9)
    np.testing.assert_allclose(shifts, shifts_again, atol=1e-9)


@pytest.mark.parametrize("kind", [ShrunkCalibrator, WithMargin, NoCalibrator])
def test_sparse_entries_are_calibrated_as_dense_ones(kind):
    p, Y = independent(200, 5, seed=7)
    entries, every = dense_entries(p), sparse_entries(sparse.csr_array(p))
    weight = np.ones(200)
    dense = kind().fit(entries, Y.astype(float), weight).predict(entries)
    stored = kind().fit(every, every.choose(Y), weight).predict(every)
    np.testing.assert_allclose(stored.p, dense.p, atol=1e-12)
    kept = p > 0.3
    few = sparse_entries(sparse.csr_array(np.where(kept, p, 0.0)))
    q = kind().fit(few, few.choose(Y), weight).predict(few)
    assert (q.p[few.labels == 5] == 0.0).all()
    assert (q.p[few.labels < 5] > 0.0).all()


def test_isotonic_follows_a_curve_that_is_not_a_sigmoid():
    rng = np.random.default_rng(0)
    p = rng.random((20_000, 2))
    truth = np.where(p < 0.5, 0.1, 0.7)
    Y = (rng.random(p.shape) < truth).astype(float)
    entries = dense_entries(p)
    q = WithMargin().fit(entries, Y, np.ones(len(p))).predict(entries).p
    assert np.abs(q - truth).mean() < 0.02
    assert ((q > 0.0) & (q < 1.0)).all()
    sigmoid = ShrunkCalibrator().fit(entries, Y, np.ones(len(p))).predict(entries).p
    assert np.abs(q - truth).mean() < 0.5 * np.abs(sigmoid - truth).mean()


def test_no_calibration_keeps_the_probabilities():
    p = np.array([[0.0, 0.25, 1.0]])
    q = NoCalibrator().fit(None, None, None).predict(dense_entries(p)).p
    np.testing.assert_allclose(q, p, atol=1e-11)


def test_rare_labels_may_be_wrong_in_another_direction_than_frequent_ones():
    rng = np.random.default_rng(1)
    level = np.linspace(-3.0, 1.0, 40)
    true_logit = level + rng.normal(size=(400, 40))
    Y = (rng.random((400, 40)) < expit(true_logit)).astype(int)
    p = expit(true_logit - 0.5 * level)  # rare labels are predicted too often
    q = fitted(p, Y)[0].predict(dense_entries(p)).p
    error = np.abs(logit(q.mean(axis=0)) - logit(expit(true_logit).mean(axis=0)))
    before = np.abs(logit(p.mean(axis=0)) - logit(expit(true_logit).mean(axis=0)))
    assert error.mean() < 0.35 * before.mean()
