"""Inverses of the blocks of a Hessian."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fgfm.ridge._design import Design
from fgfm.ridge._preconditioner import BlockInverses, break_even
from ridge_cases import sparse_rows


@pytest.mark.parametrize("form", ["dense", "sparse", "sparse with an extra column"])
def test_solution_agrees_with_the_formed_block(form):
    rng = np.random.default_rng(0)
    X, _, _ = sparse_rows()
    Z = Design(sparse.csr_matrix(X), np.ones(X.shape[0]), centred=False).sparse_rows().Z
    extra = rng.normal(size=X.shape[0]) if "extra" in form else None
    curvature = rng.random((X.shape[0], 2))
    dense = Z.toarray() if extra is None else np.column_stack([Z.toarray(), extra])
    q = dense.shape[1]
    rows = Z.toarray() if form == "dense" else Z
    inverses = BlockInverses(rows, extra, curvature, 0.5, np.full(q, 0.25), 1)
    R = rng.normal(size=(q, 2))
    ridge = np.diag(np.where(np.arange(q) < 1, 0.25, 0.75))
    for k, solved in enumerate(inverses.solve(R).T):
        block = dense.T @ (curvature[:, [k]] * dense) + ridge
        np.testing.assert_allclose(block @ solved, R[:, k], atol=1e-10)


def test_indefinite_block_is_replaced_by_its_diagonal():
    Z = np.array([[2.0, 1.0]])
    inverses = BlockInverses(Z, None, np.ones((1, 1)), 0.0, np.array([0.0, -3.0]), 1)
    # the block is [[4, 2], [2, 1 - 3]]
    np.testing.assert_allclose(inverses.solve(np.array([[1.0], [1.0]]))[:, 0], [0.25, -0.5])


def test_too_large_blocks_are_never_inverted():
    narrow, wide = (sparse.csr_matrix(np.ones((20, q))) for q in (1000, 1100))
    assert np.isfinite(break_even(narrow, 30, False))
    assert np.isinf(break_even(narrow, 40, False))  # the inverses of all folds
    assert np.isinf(break_even(wide, 1, False))


def test_larger_blocks_pay_later():
    limits = [break_even(np.ones((500, q)), 3, False) for q in (10, 100, 1000)]
    assert limits[0] == 3.0  # at least
    assert limits == sorted(limits)
    assert limits[2] > 3.0
