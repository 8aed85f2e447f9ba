"""Large models: the same minima and penalties as small ones and as scikit-learn's."""

from __future__ import annotations

import _thread
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import KFold

from fgfm.ridge import _solver, fit_ridge_logistic
from ridge_cases import (
    assert_minimum,
    assert_tried_losses,
    binary_rows,
    fit_as_large,
    large_rows,
    normal_rows,
    reference,
    reference_losses,
    sparse_rows,
)

PAPER = {"penalize_intercept": True, "reference_class": True}
MANY_FOLDS = {"cv": 12, "penalties": [10.0, 1.0, 0.1]}


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("options", [{}, {"penalize_intercept": True}, PAPER, MANY_FOLDS], ids=str)
@pytest.mark.parametrize(
    ("rows", "form"),
    [(binary_rows, np.asarray), (binary_rows, sparse.csr_array), (normal_rows, np.asarray)],
)
def test_both_solvers_agree(n_classes, options, rows, form):
    X, y = rows(110, 6, n_classes)
    y[:2] = n_classes  # missing in the training rows of some fold
    for extra in (None, np.arange(110.0) % 5):
        how = {"extra": extra, "random_state": 0, **options}
        (small,) = fit_ridge_logistic(form(X), [y], **how)
        (large,) = fit_as_large(form(X), [y], **how)
        assert small.penalty == large.penalty
        assert_tried_losses(large.cv_losses, small.cv_losses, atol=1e-5)
        np.testing.assert_allclose(
            small.predict_proba(X, extra), large.predict_proba(X, extra), atol=1e-8
        )


@pytest.mark.parametrize("form", [sparse.csr_matrix, np.asarray])
@pytest.mark.parametrize("shape", [(90, 60), (40, 60)])
def test_minima_and_penalties_agree_with_scikit_learn(form, shape):
    X, Y, s = sparse_rows(*shape)
    X = X.toarray()
    penalties = np.array([1e-2, 1.0, 30.0])
    folds = list(KFold(3, shuffle=True, random_state=7).split(X))
    options = {"penalties": penalties, "random_state": 7}
    for y, extra in ((Y[:, 0], s), (Y[:, 3], None), (np.minimum(s, 2), None)):
        (model,) = fit_as_large(form(X), [y], extra=extra, **options)
        wide = X if extra is None else np.column_stack([X, extra])
        final = reference(wide, y, model.penalty)
        np.testing.assert_allclose(
            model.predict_proba(X, extra), final.predict_proba(wide), atol=1e-6
        )
        losses = reference_losses(wide, y, folds, penalties)
        assert_tried_losses(model.cv_losses, losses, atol=1e-6)
        assert model.penalty == penalties[np.argmin(losses.mean(axis=0))]


@pytest.mark.parametrize("shape", [(330, 310), (305, 340)])
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_matrix.toarray])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_vanishes_at_the_minimum(shape, form, weighted):
    X, Y, s = large_rows(*shape)
    n = len(s)
    weight = np.random.default_rng(3).exponential(size=n) if weighted else None
    targets = [Y[:, 0], Y[:, 3], Y[:, 5], np.minimum(s, 2)]
    extra = [s, np.arange(n) % 7, None, None]
    models = fit_ridge_logistic(
        form(X),
        targets,
        extra=extra,
        penalties=[1e-2, 1.0, 30.0],
        sample_weight=weight,
        random_state=7,
    )
    for y, column, model in zip(targets, extra, models, strict=True):
        assert_minimum(model, X, y, weight, column)


@pytest.mark.parametrize("many", [False, True])
def test_other_targets_do_not_change_a_bit(many):
    X, Y, s = large_rows()
    targets, extra = [*Y.T, s, np.minimum(s, 2)], [s, None, s, None, s, None, None, s]
    if many:  # of very different numbers of steps
        rng = np.random.default_rng(1)
        scores = X @ rng.normal(size=(310, 80)) + rng.normal(size=(330, 80))
        targets, extra = [*(scores > rng.uniform(0.0, 3.0, 80)).astype(int).T], [None] * 80
    options = {"penalties": [10.0, 0.1], "random_state": 0}
    together = fit_ridge_logistic(X, targets, extra=extra, **options)
    reverse = fit_ridge_logistic(X, targets[::-1], extra=extra[::-1], **options, n_jobs=2)[::-1]
    for t in (0, 13, 63, 64, 79) if many else range(8):
        (alone,) = fit_ridge_logistic(X, [targets[t]], extra=[extra[t]], **options)
        for other in (reverse[t], alone):
            assert (together[t].coef == other.coef).all()
            assert (together[t].intercept == other.intercept).all()
            assert (together[t].cv_losses == other.cv_losses).all()


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [3, 1, 4, 0, 2]])
def test_smaller_penalties_are_skipped_where_they_are_clearly_worse(order):
    X, Y, s = large_rows()
    penalties = np.array([1e-3, 1e-2, 1.0, 5.0, 100.0])[order]
    targets = [*Y.T, np.minimum(s, 2)]
    options = {"random_state": 0}
    stopped = fit_ridge_logistic(X, targets, penalties=penalties, **options)
    single = [fit_ridge_logistic(X, targets, penalties=[c], **options) for c in penalties]
    n_skipped = 0
    for t, model in enumerate(stopped):
        losses = np.column_stack([fits[t].cv_losses for fits in single])  # (folds, L)
        assert_tried_losses(model.cv_losses, losses, atol=1e-4)
        best = losses.mean(axis=0).argmin()
        assert model.penalty == penalties[best]
        np.testing.assert_allclose(model.coef, single[best][t].coef, atol=1e-8)
        mean = model.cv_losses.mean(axis=0)
        tried = np.isfinite(mean)
        skipped = penalties[~tried]
        n_skipped += len(skipped)
        if len(skipped):
            # of the penalties below the best one, only the last that was tried is clearly worse
            worse = mean[tried] > 1.05 * mean.min() + 1e-6
            assert worse[penalties[tried].argmin()]
            assert skipped.max() < penalties[tried].min()
            assert (worse & (penalties[tried] < model.penalty)).sum() == 1
    assert n_skipped > 3


def test_skipping_penalties_keeps_held_out_probabilities():
    X, Y, _ = large_rows()
    options = {"random_state": 0, "held_out": True}
    model = fit_ridge_logistic(X, Y[:, :1], penalties=[1e-3, 1e-2, 1.0, 100.0], **options)[0]
    assert np.isinf(model.cv_losses).any()
    (alone,) = fit_ridge_logistic(X, Y[:, :1], penalties=[model.penalty], **options)
    np.testing.assert_allclose(model.held_out, alone.held_out, atol=1e-4)


def test_loss_may_rise_before_it_falls():
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    X = rng.normal(size=(300, 60))
    X[:, 0] = 0.03 * z  # all other columns are irrelevant
    y = (3.0 * z + 0.3 * rng.normal(size=300) > 0.0).astype(int)
    (model,) = fit_as_large(X, [y])
    mean = model.cv_losses.mean(axis=0)
    assert mean[-3:].max() > 1.05 * mean[-1]
    assert mean.min() < 0.9 * mean[-1]


def test_duplicate_entries_of_a_sparse_matrix_are_summed():
    X, Y, _ = sparse_rows()
    X.sort_indices()
    twice = sparse.csr_matrix(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    assert twice.nnz == 2 * X.nnz
    one, two = (fit_as_large(form, Y[:, :2]) for form in (X, twice))
    for first, second in zip(one, two, strict=True):
        np.testing.assert_allclose(first.coef, second.coef, atol=1e-12)
    assert twice.nnz == 2 * X.nnz  # the input is not modified


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("penalty", [1e-2, 1e-6])  # steps in single and in double precision
def test_nearly_dependent_columns_converge(form, n_classes, penalty):
    # Conjugate gradients need many products.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12)) @ rng.normal(size=(12, 40)) + 0.01 * rng.normal(size=(150, 40))
    y = np.argmax(X[:, :n_classes] + rng.gumbel(size=(150, n_classes)), axis=1)
    extra = X[:, 0] + 0.01 * rng.normal(size=150)
    (model,) = fit_as_large(form(X), [y], extra=extra, penalties=[1.0, penalty])
    (small,) = fit_ridge_logistic(X, [y], extra=extra, penalties=[1.0, penalty], random_state=0)
    assert model.penalty == small.penalty
    np.testing.assert_allclose(model.cv_losses, small.cv_losses, rtol=1e-3)
    assert_minimum(model, X, y, extra=extra, atol=1e-5)


@pytest.mark.usefixtures("sigint_raises")
def test_ctrl_c_ends_the_kernel(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(4000, 400))
    Y = (X @ random.normal(size=(400, 30)) + random.normal(size=(4000, 30)) > 0).astype(int)
    kernel, thetas = _solver.fit_ridge, []

    def interrupted(*args, theta, **results):
        thetas.append(theta)
        thetas[0][:] = np.nan
        threading.Timer(0.1, _thread.interrupt_main).start()
        kernel(*args, theta=theta, **results)

    monkeypatch.setattr(_solver, "fit_ridge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit_ridge_logistic(X, Y)
    assert np.isnan(thetas[0]).all()  # the kernel sets it at its end
