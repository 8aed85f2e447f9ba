"""Objectives of many problems: gradients, sums and independence of the problems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fgfm.ridge._objective import Objectives, ProblemRows, column_sums, dots, logits


def objectives(form, n_logits, reference, seed=0):
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones(40), rng.poisson(0.5, (40, 5))])
    counts = rng.integers(0, 3, (40, 2, n_logits + reference)).astype(float)
    counts[:, 1] = counts[:, 0, ::-1]  # the weights of a row are the same in all problems
    extra = rng.normal(size=(40, 2)) if form is sparse.csr_array else None
    rows = ProblemRows(form(Z), counts[:, 0].sum(axis=1), extra)
    theta = rng.normal(size=(6 + (extra is not None), 2, n_logits))
    return Objectives(rows, counts[:, :, int(reference) :].copy(), 1, reference), theta


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("n_logits", "reference"), [(1, True), (2, True), (3, False)])
def test_gradient_agrees_with_differences(form, n_logits, reference):
    problem, theta = objectives(form, n_logits, reference)
    penalty = np.array([0.3, 2.0])

    def value(theta):
        return problem.evaluate(logits(problem.Z, problem.extra, theta), theta, penalty)

    gradient = problem.gradient(value(theta)[1], theta, penalty)
    for j, k in np.ndindex(theta.shape[0], n_logits):
        step = np.zeros_like(theta)
        step[j, :, k] = 1e-6
        slope = (value(theta + step)[0] - value(theta - step)[0]) / 2e-6
        np.testing.assert_allclose(slope, gradient[j, :, k], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_taken_problems_have_the_same_values(form):
    problem, theta = objectives(form, 1, True)
    penalty = np.array([0.3, 2.0])
    eta = logits(problem.Z, problem.extra, theta)
    value, prob = problem.evaluate(eta, theta, penalty)
    gradient = problem.gradient(prob, theta, penalty)
    some = np.array([1])
    part = problem.take(some)
    one, _ = part.evaluate(eta[:, some], theta[:, some], penalty[some])
    assert (one == value[some]).all()
    np.testing.assert_allclose(
        part.gradient(prob[:, some], theta[:, some], penalty[some]), gradient[:, some], rtol=1e-12
    )


def test_sums_of_a_column_do_not_depend_on_the_others():
    A = np.random.default_rng(0).normal(size=(1000, 7, 2))
    for b in range(7):
        assert (column_sums(A)[b] == column_sums(A[:, [b]])[0]).all()
        assert dots(A, A)[b] == dots(A[:, [b]], A[:, [b]])[0]
