"""What no function of fgfm.cardinality depends on: other rows, the order of labels, layouts."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from cardinality_checks import close
from fgfm import cardinality as c
from oracle import random_joint

RNG = np.random.default_rng(13)
N = 30
MARGINALS, DRAWS = RNG.random((N, 5)), RNG.integers(0, 2, size=(N, 9, 5))
DRAWS[:, 0] = 1  # P has the same shape for each row
Q, D = RNG.uniform(0.01, 0.99, (N, 5, 4)), RNG.dirichlet(np.ones(5), size=N)
SETS, WEIGHTS = random_joint(RNG, N, 5)
P = c.of_joint(SETS, WEIGHTS)[:, :, :4]
PS = [c.of_joint(*random_joint(RNG, N, m)) for m in (2, 3)]
DS = [c.distribution(part) for part in PS]
CALLS = {
    "of_joint": (partial(c.of_joint, SETS), [WEIGHTS]),
    "of_samples": (c.of_samples, [DRAWS]),
    "of_marginals": (c.of_marginals, [MARGINALS]),
    "tilt": (c.of_marginals, [MARGINALS, D]),
    "condition": (partial(c.of_marginals, method="condition"), [MARGINALS, D]),
    "of_conditionals": (c.of_conditionals, [Q, D]),
    "distribution": (c.distribution, [P]),
    "is_coherent": (c.is_coherent, [P]),
    "is_coherent, d": (c.is_coherent, [P, D]),
    "make_coherent": (c.make_coherent, [P]),
    "make_coherent, d": (c.make_coherent, [P / 2, D]),
    "merge_factors, P": (lambda *Ps: c.merge_factors(Ps, [[0, 4], [1, 2, 3]]).P, PS),
    "merge_factors, d": (lambda *Ps: c.merge_factors(Ps, [[0, 4], [1, 2, 3]]).d, PS),
    "merge_factors, ds": (
        lambda *arrays: c.merge_factors(arrays[:2], [[0, 4], [1, 2, 3]], arrays[2:]).P,
        [*PS, *DS],
    ),
    "merge_distributions": (lambda *ds: c.merge_distributions(ds), DS),
}
every_call = pytest.mark.parametrize("name", CALLS)


@every_call
def test_blocks_and_other_rows_change_no_bit(name, monkeypatch):
    function, arrays = CALLS[name]
    whole = function(*arrays)
    alone = [function(*(array[[row]] for array in arrays)) for row in range(N)]
    np.testing.assert_array_equal(np.concatenate(alone), whole)
    monkeypatch.setattr("fgfm._utils.blocks.BLOCK_BYTES", 1)
    np.testing.assert_array_equal(function(*arrays), whole)


@every_call
def test_no_rows(name):
    function, arrays = CALLS[name]
    whole, none = function(*arrays), function(*(array[:0] for array in arrays))
    shape = (0, 5, 1) if name == "of_samples" else (0, *whole.shape[1:])
    assert none.shape == shape
    assert none.dtype == whole.dtype


@every_call
def test_read_only_arrays_of_any_layout(name):
    function, arrays = CALLS[name]
    for layout in (np.copy, np.asfortranarray, lambda array: array[::-1].copy()[::-1]):
        given = [layout(array) for array in arrays]
        for array in given:
            array.setflags(write=False)
        np.testing.assert_array_equal(function(*given), function(*arrays))


@pytest.mark.parametrize(
    "name", [name for name in CALLS if name not in ("of_joint", "of_samples")]
)
def test_single_precision(name):
    function, arrays = CALLS[name]
    single = function(*(array.astype(np.float32) for array in arrays))
    assert single.dtype in (np.float64, np.bool_)
    if single.dtype == np.float64:
        close(single, function(*arrays), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["of_marginals", "tilt", "condition", "of_conditionals"])
def test_permuted_labels_have_a_permuted_P(name):
    function, (proba, *d) = CALLS[name]
    order = RNG.permutation(5)
    close(function(proba[:, order], *d), function(proba, *d)[:, order], rtol=1e-12)
