"""Conjugate gradients on sparse rows: the compiled solver against dense linear algebra."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy import sparse

import fgfm._kernels
from fgfm.ridge import _cg
from fgfm.ridge._cg import MAX_PRODUCTS, Hessians, conjugate_gradients
from fgfm.ridge._objective import Csr, Objectives, ProblemRows
from fgfm.ridge._sparse_cg import SparseSystems

G, P = 60, 9


def problems(B, n_logits, penalty, *, reference=True, extra=False, form=sparse.csr_array):
    """Hessians of B problems at random probabilities, and gradients."""
    rng = np.random.default_rng([B, n_logits])
    Z = np.column_stack([np.ones(G), rng.poisson(0.4, (G, P))])
    weight = rng.random(G) + 0.5
    column = rng.normal(size=(G, B)) if extra else None
    prob = rng.dirichlet(np.ones(n_logits + reference), (G, B))[:, :, reference:]
    objectives = Objectives(ProblemRows(form(Z), weight, column), prob, 1, reference)
    damping = np.where(np.arange(B) % 5 == 4, 1e-3, 0.0)
    hessians = Hessians(objectives, prob, np.full(B, penalty), damping, np.arange(B) % 3 == 2, {})
    gradient = rng.normal(size=(P + 1 + extra, B, n_logits))
    if not reference:
        gradient -= gradient.mean(axis=2, keepdims=True)
    return hessians, gradient


CASES = [
    (1, 1, {}),
    (70, 1, {}),  # more than are solved at a time, not a multiple of the vectors' length
    (70, 1, {"extra": True}),
    (25, 3, {}),
    (25, 3, {"reference": False, "extra": True}),
    (2, 45, {"reference": False}),  # more than four vectors of logits
]


@pytest.mark.parametrize("penalty", [0.5, 1e-9])  # in single and in double precision
@pytest.mark.parametrize(("B", "n_logits", "case"), CASES)
def test_steps_agree_with_the_solver_of_dense_rows(B, n_logits, case, penalty):
    hessians, gradient = problems(B, n_logits, penalty, **case)
    step, products, _ = conjugate_gradients(hessians, gradient, np.full(B, 1e-6))
    assert (products < MAX_PRODUCTS).all()
    residual = gradient - hessians.product(step)
    scale = np.abs(gradient).max(axis=(0, 2))
    assert (np.abs(residual).max(axis=(0, 2)) <= 3e-4 * scale).all()


def test_precision_depends_on_the_penalty_and_the_size_of_values():
    for penalty, factor, single in ((0.5, 1.0, True), (1e-9, 1.0, False), (0.5, 1e20, False)):
        hessians, gradient = problems(3, 1, penalty)
        hessians.objectives.Z.data *= factor
        systems = SparseSystems(hessians, gradient, np.full(3, 0.1))
        assert (systems.single == single).all()


@pytest.mark.parametrize("n_logits", [1, 3])
@pytest.mark.parametrize("penalty", [0.5, 1e-9])
def test_bits_do_not_depend_on_other_problems(n_logits, penalty):
    hessians, gradient = problems(70, n_logits, penalty, extra=True)
    accuracy = np.logspace(-6, -1, 70)
    step, products, _ = conjugate_gradients(hessians, gradient, accuracy)
    hessians, _ = problems(70, n_logits, penalty, extra=True)  # without inverses
    some = np.array([3, 17, 50])
    part = hessians.take(some)
    part.prob = hessians.prob[:, some]
    alone = conjugate_gradients(part, gradient[:, some], accuracy[some])
    assert alone[0].tobytes() == np.ascontiguousarray(step[:, some]).tobytes()
    np.testing.assert_array_equal(alone[1], products[some])


def test_slow_problems_get_inverses_of_their_precision():
    hessians, gradient = problems(6, 3, 0.5, extra=True)
    hessians.objectives.break_even = (3.0, 3.0)
    step, products, inverses = conjugate_gradients(hessians, gradient, np.full(6, 1e-6))
    assert list(inverses) == list(range(6))
    assert all(inverse.matrices.dtype == np.float32 for inverse in inverses.values())
    residual = gradient - hessians.product(step)
    assert np.abs(residual).max() <= 1e-3 * np.abs(gradient).max()
    assert (products > 3).all()
    # inverses in single precision do not serve a problem in double precision
    small, _ = problems(6, 3, 1e-9, extra=True)
    small.inverses = inverses
    assert SparseSystems(small, gradient, np.full(6, 0.1)).usable(inverses) == {}
    # an inverse that is used again takes fewer products
    hessians.inverses = inverses
    hessians.objectives.break_even = (np.inf, np.inf)
    assert (conjugate_gradients(hessians, gradient, np.full(6, 1e-6))[1] < products).all()


def test_too_many_products_end_a_step(monkeypatch):
    monkeypatch.setattr(_cg, "MAX_PRODUCTS", 2)
    hessians, gradient = problems(40, 1, 0.5)
    _, products, inverses = conjugate_gradients(hessians, gradient, np.full(40, 1e-6))
    assert (products == 2).all()
    assert not inverses


@pytest.mark.parametrize("width", [1, 3, 4, 16, 17, 40])
def test_products_with_columns(width):
    rng = np.random.default_rng(width)
    Z = sparse.random(30, 20, 0.2, format="csr", random_state=0)
    V = rng.normal(size=(20, width))
    product = Csr.of(Z).multiply(V)
    np.testing.assert_allclose(product, Z.toarray() @ V, rtol=1e-12, atol=1e-12)
    for j in range(width):
        assert Csr.of(Z).multiply(V[:, [j]]).tobytes() == product[:, j].tobytes()


def test_instruction_sets_give_the_same_bits(monkeypatch):
    baseline = import_module("fgfm._kernels._native")
    found = []
    for module in (fgfm._kernels.native, baseline):
        monkeypatch.setattr(fgfm._kernels, "conjugate_gradients", module.conjugate_gradients)
        for penalty in (0.5, 1e-9):
            hessians, gradient = problems(25, 3, penalty, extra=True)
            hessians.objectives.break_even = (4.0, 4.0)
            found.append(conjugate_gradients(hessians, gradient, np.full(25, 1e-6))[0])
    assert found[0].tobytes() == found[2].tobytes()
    assert found[1].tobytes() == found[3].tobytes()
