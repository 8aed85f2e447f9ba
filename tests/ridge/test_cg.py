"""Newton steps by conjugate gradients against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fgfm.ridge._cg import Hessians, conjugate_gradients
from fgfm.ridge._objective import Objectives, ProblemRows


def problems(*, form=np.asarray, n_logits=1, reference=True, spread=0.0, damping=0.0, extra=False):
    """Two problems at random weights; return objectives, Hessians and the dense rows."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, (80, 12)) * 10.0 ** rng.uniform(-spread, spread, 12)
    Z = np.column_stack([np.ones(80), X])
    weight = rng.random(80) + 0.5
    column = rng.normal(size=(80, 2)) if extra else None
    prob = rng.dirichlet(np.ones(n_logits + reference), (80, 2))[:, :, reference:]  # (G, B, C)
    counts = weight[:, None, None] * rng.random((80, 2, n_logits)) / n_logits
    objectives = Objectives(ProblemRows(form(Z), weight, column), counts, 1, reference)
    penalty = np.array([0.1, 2.0])
    hessians = Hessians(
        objectives, prob, penalty, np.full(2, damping), np.zeros(2, dtype=bool), {}
    )
    dense = [Z if column is None else np.column_stack([Z, column[:, b]]) for b in range(2)]
    return objectives, hessians, dense


def formed_hessian(objectives, hessians, dense, b):
    """Form the Hessian of problem b, (C q, C q)."""
    p = hessians.prob[:, b]  # (G, C)
    C = p.shape[1]
    curvature = objectives.weight[:, :, None] * (
        np.eye(C) * p[:, :, None] - p[:, :, None] * p[:, None, :]
    )
    H = np.einsum("gi,gkl,gj->kilj", dense[b], curvature, dense[b])
    q = dense[b].shape[1]
    diagonal = np.where(np.arange(q) < 1, 0.0, hessians.ridge[b]) + (
        hessians.damping[b] * objectives.bound[:, b, 0]
    )
    return H.reshape(C * q, C * q) + np.kron(np.eye(C), np.diag(diagonal))


CASES = [
    {},
    {"form": sparse.csr_array},
    {"form": sparse.csr_array, "extra": True},
    {"n_logits": 3},
    {"n_logits": 3, "form": sparse.csr_array, "extra": True},
    {"damping": 1e-3},
    {"spread": 3.0},
]


@pytest.mark.parametrize("case", CASES)
def test_product_agrees_with_the_formed_hessian(case):
    objectives, hessians, dense = problems(**case)
    q, C = objectives.bound.shape[0], hessians.prob.shape[2]
    V = np.random.default_rng(1).normal(size=(q, 2, C))
    product = hessians.product(V)
    for b in range(2):
        expected = formed_hessian(objectives, hessians, dense, b) @ V[:, b].T.ravel()
        np.testing.assert_allclose(product[:, b].T.ravel(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_steps_agree_with_a_dense_solver(case):
    objectives, hessians, dense = problems(**case)
    q, C = objectives.bound.shape[0], hessians.prob.shape[2]
    gradient = np.random.default_rng(1).normal(size=(q, 2, C))
    step, products, inverses = conjugate_gradients(hessians, gradient, np.full(2, 1e-9))
    assert (products < 100).all()
    assert len(inverses) == 2  # more products than break even
    for b in range(2):
        H = formed_hessian(objectives, hessians, dense, b)
        expected = np.linalg.solve(H, gradient[:, b].T.ravel())
        error = step[:, b].T.ravel() - expected
        assert error @ H @ error <= 1e-12 * (expected @ H @ expected)


def test_inverses_are_used_in_later_steps():
    _, hessians, _ = problems(spread=3.0)
    gradient = np.random.default_rng(1).normal(size=(13, 2, 1))
    first = conjugate_gradients(hessians, gradient, np.full(2, 1e-6))
    hessians.inverses = first[2]
    _, products, inverses = conjugate_gradients(hessians, gradient, np.full(2, 1e-6))
    assert (products <= 2).all()
    assert inverses == first[2]


def test_problems_end_separately():
    _, hessians, _ = problems()
    gradient = np.random.default_rng(1).normal(size=(13, 2, 1))
    _, products, _ = conjugate_gradients(hessians, gradient, np.array([1.0, 1e-9]))
    assert products[0] < products[1]
