"""Paths of large models: the minimum at each penalty, problem by problem."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm.ridge._newton_cg import RidgePath
from fgfm.ridge._objective import ProblemRows
from ridge_cases import reference, sparse_rows


@pytest.fixture
def path():
    X, Y, _ = sparse_rows()
    Z = np.column_stack([np.ones(len(Y)), X.toarray()])
    counts = np.stack([1.0 - Y[:, :3], Y[:, :3]], axis=2)  # (G, B, K)
    rows = ProblemRows(Z, np.ones(len(Y)), None)
    return RidgePath(rows, counts, 1, np.zeros((Z.shape[1], 3, 1))), X.toarray(), Y


def test_every_penalty_has_its_minimum(path):
    path, X, Y = path
    # each problem has penalties of its own; the third step starts from an extrapolation
    for penalty in ([100.0, 10.0, 1.0], [10.0, 10.0, 0.1], [1.0, 1.0, 0.01]):
        steps = path.follow(np.array(penalty), 1e-6, 0.0, 100)
        assert (steps > 0).all()
        for b in range(3):
            model = reference(X, Y[:, b], penalty[b])
            np.testing.assert_allclose(path.theta[1:, b, 0], model.coef_[0], atol=1e-7)
            np.testing.assert_allclose(path.theta[0, b, 0], model.intercept_[0], atol=1e-7)


def test_path_continues_with_some_of_the_problems(path):
    path, X, Y = path
    for penalty in (10.0, 3.0):
        path.follow(np.full(3, penalty), 1e-6, 0.0, 100)
    path.keep(np.array([2]))
    path.follow(np.array([1.0]), 1e-6, 0.0, 100)
    model = reference(X, Y[:, 2], 1.0)
    np.testing.assert_allclose(path.theta[1:, 0, 0], model.coef_[0], atol=1e-7)


def test_too_few_steps_are_negative(path):
    assert (path[0].follow(np.full(3, 1.0), 1e-6, 0.0, 1) == -1).all()


def test_loose_gap_ends_early(path):
    steps = path[0].follow(np.full(3, 1.0), 1e-6, 1.0, 100)
    assert (steps == 1).all()
