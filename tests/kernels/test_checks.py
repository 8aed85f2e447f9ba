"""Kernels called with arrays of wrong sizes and with wrong indices, as a damaged model has them.

Nothing may be read or written outside of the arrays: make test-sanitized shows that.
"""

from __future__ import annotations

import numpy as np
import pytest

from fgfm._kernels import native
from fgfm.decision._quadrature import rules

N, M, S = 3, 4, 2
NONE = np.empty(0, dtype=np.int64)
OBJECTIVE = native.Objective(1.0, 1.0, False)


def integers(*values):
    return np.array(values, dtype=np.int64)


def labels():
    return np.zeros((N, M), dtype=np.int8)


def floats(*shape):
    return np.full(shape, 0.25)


def constraints():
    return native.Constraints(1, 2, np.zeros(M, np.int8), np.empty(0), NONE, NONE)


CSR = (floats(5), integers(0, 1, 2, 0, 3), integers(0, 2, 3, 5))
NODES = [np.array(x, np.int32) for x in ([1, -1, -1], [2, -1, -1], [0, -1, -1])]
FACTORS = (integers(2, 1, 1), integers(2, 1, 1))
CALLS = {
    "Constraints": lambda: [1, 2, np.zeros(M, np.int8), floats(M), NONE, integers(-1, 0, 0, 1)],
    "Constraints with groups": lambda: [
        *(1, 2, np.zeros(M, np.int8), np.empty(0), integers(-1, 0, 0, 3), NONE)
    ],
    "decide_dense_rows": lambda: [floats(N, M), OBJECTIVE, rules(1.0), labels(), floats(N)],
    "decide_jaccard_dense_rows": lambda: CALLS["decide_dense_rows"](),
    "decide_dense_columns": lambda: [
        *(floats(N, M), OBJECTIVE, rules(1.0), labels(), floats(M), np.zeros(M, np.uint8))
    ],
    "decide_csr_rows": lambda: [
        *(CSR[0], CSR[2], OBJECTIVE, rules(1.0), np.zeros(5, np.int8), floats(N))
    ],
    "decide_jaccard_csr_rows": lambda: CALLS["decide_csr_rows"](),
    "decide_floor_rows": lambda: [
        *(CSR[0], CSR[2], OBJECTIVE, rules(1.0), 0.5, 0.2, 1.0, floats(N, 4), 1),
        *(np.zeros(5, np.int8), floats(N), floats(N, 2)),
    ],
    "decide_cardinality_rows": lambda: [
        *(floats(N, M, S) / M, np.full((2, N), np.nan), np.arange(M), 1e-9, OBJECTIVE),
        *(labels(), floats(N), constraints()),
    ],
    "count_draws": lambda: [np.ones((N, 2, M), np.uint8), floats(N, M, M)],
    "decide_factor_rows": lambda: [
        *(floats(N, 6) / 2.0, floats(N, 3), False, *FACTORS, np.arange(M), 1, 1e-9, OBJECTIVE),
        *(rules(1.0), labels(), floats(N), constraints()),
    ],
    "decide_sparse_factor_rows": lambda: [
        *(floats(N * 4 + 5) / 2.0, integers(2, 3, 2, 2, 3), CSR[2], floats(3), 4),
        *(integers(2), integers(2), integers(0, 1), 1, 1e-9, OBJECTIVE, rules(1.0)),
        *(np.zeros(6, np.int64), np.zeros(N, np.int64), floats(N), constraints()),
    ],
    "constrain_dense_rows": lambda: [*CALLS["decide_dense_rows"](), constraints()],
    "constrain_csr_rows": lambda: [
        *(*CSR, OBJECTIVE, rules(1.0), np.zeros(5, np.int8), np.zeros(6, np.int64)),
        *(np.zeros(N, np.int64), floats(N), constraints()),
    ],
    "transpose": lambda: [floats(N, M), floats(M, N)],
    "tilt": lambda: [floats(N, M, S), floats(N, S + 1), floats(N, M, S), False],
    "tilt, conditioned": lambda: [floats(N, M, 1), floats(N, S + 1), floats(N, M, S), True],
    "decide_reweighted_rows": lambda: [
        *(floats(N, M), floats(N, S + 1), 1.0, 1.0, floats(2), floats(S + 1, 2)),
        *(OBJECTIVE, 0, M, labels(), floats(N)),
    ],
    "reweight_marginals": lambda: [floats(N, M), floats(N, S + 1), 1.0, 1.0, floats(N, M)],
    "apply_trees": lambda: [
        *(np.zeros((N, 1), np.float32), integers(0), *NODES, floats(3)),
        *(np.zeros(3, np.uint8), np.zeros((N, 1), np.int32)),
    ],
    "grow_tree": lambda: [
        *(
            np.zeros((0, N), np.uint8),
            np.ones(5, np.uint8),
            integers(0, 1, 2, 0, 3).astype(np.int32),
        ),
        *(CSR[2], np.zeros(M, np.uint8), floats(N, 8).astype(np.float32)),
        *(np.ones(N, np.float32), np.arange(N), 2, 1, 0),
        *(np.zeros((3, 6), np.int32), np.zeros((2, 6), np.uint8)),
    ],
}


def call(name, arguments):
    return getattr(native, name.split()[0].strip(","))(*arguments)


def hostile(name):
    """Return arguments with one wrong number, or with an array that is one entry too short."""
    valid = CALLS[name]()
    for at, value in enumerate(valid):
        if type(value) is int:
            wrong = [-1, -(2**62), 2**62]
        elif isinstance(value, np.ndarray) and value.size:
            wrong = [np.delete(value, -1, axis=axis) for axis in range(value.ndim)]
            if value.dtype.kind in "iu":
                limits = np.iinfo(value.dtype)
                for number in {-1, 200, limits.min, limits.max} - ({-1} & {limits.max}):
                    if limits.min <= number <= limits.max:
                        wrong += [
                            np.where(np.arange(value.size) == i, number, value.ravel())
                            .astype(value.dtype)
                            .reshape(value.shape)
                            for i in (0, value.size - 1)
                        ]
        else:
            continue
        for one in wrong:
            arguments = CALLS[name]()
            arguments[at] = one
            yield at, one, arguments


@pytest.mark.parametrize("name", CALLS)
def test_wrong_sizes_and_indices_raise_or_do_no_harm(name):
    call(name, CALLS[name]())
    refused = 0
    for _, _, arguments in hostile(name):
        try:
            call(name, arguments)
        except (ValueError, TypeError):
            refused += 1
    assert refused


@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_other_shapes_are_refused(name):
    free = {  # arguments with an axis of any length
        "decide_cardinality_rows": (0,),
        "count_draws": (0, 1),  # any number of draws, and of cardinalities
        "tilt": (0,),
        "tilt, conditioned": (0,),
        "decide_reweighted_rows": (1,),
        "reweight_marginals": (1,),
        "apply_trees": (0,),  # returns False
        "grow_tree": (7,),
        "decide_floor_rows": (7,),  # missed items of a row, or of all rows
        "decide_factor_rows": (3, 4),  # only the factors of several labels are read
    }
    for at, value, arguments in hostile(name):
        is_shorter = isinstance(value, np.ndarray) and value.shape != CALLS[name]()[at].shape
        if is_shorter and at not in free.get(name, ()):
            with pytest.raises(ValueError, match="must"):
                call(name, arguments)


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [
        ("Constraints", 0, -1, "min_labels must be from 0"),
        ("Constraints", 0, 2**40, "min_labels must be from 0"),
        ("Constraints", 5, integers(-1, 2, 1, -1), "parent must have no cycle"),
        ("Constraints", 5, integers(-1, 7, 1, -1), "parent must be -1 or a label"),
        ("Constraints with groups", 4, integers(0, 2**40, -1, -1), "group must be -1 or less"),
        ("decide_csr_rows", 1, integers(0, 9, 3, 5), "indptr must rise from 0"),
        ("decide_csr_rows", 1, integers(0, 2, 3, 50), "indptr must rise from 0"),
        ("constrain_csr_rows", 1, integers(0, 1, 2, 0, 4), "indices must be labels"),
        ("constrain_csr_rows", 6, np.zeros(2, np.int64), "found must have room"),
        ("decide_cardinality_rows", 2, integers(0, 1, 2, 4), "names must be columns of labels"),
        ("count_draws", 0, np.full((N, 2, M), 255, np.uint8), "draws must have at most S labels"),
        ("decide_factor_rows", 6, 4, "multiple must be a number of factors"),
        ("decide_factor_rows", 3, integers(-1, 1, 1), "sizes must be numbers of labels"),
        ("decide_factor_rows", 4, integers(2**40, 1, 1), "depths must be the cardinalities of d"),
        ("reweight_marginals", 2, np.nan, "t and u must be from -1e6 to 1e6"),
        ("grow_tree", 1, np.full(5, 64, np.uint8), "bins must be less than 64"),
        ("grow_tree", 2, np.zeros(5, np.int32), "indices of a row must increase"),
        ("grow_tree", 9, 0, "leaf must be 1 or more"),
    ],
)
def test_messages(name, at, value, message):
    arguments = CALLS[name]()
    arguments[at] = value
    with pytest.raises(ValueError, match=message):
        call(name, arguments)


def test_outputs_of_the_wrong_type_are_refused():
    """A converted output array would lose the result."""
    for at, wrong in (
        (3, labels().astype(np.int64)),
        (3, labels().T),
        (4, floats(N).astype("f4")),
    ):
        arguments = CALLS["decide_dense_rows"]()
        arguments[at] = wrong
        with pytest.raises(TypeError, match="incompatible function arguments"):
            native.decide_dense_rows(*arguments)


def test_a_distribution_without_columns_is_refused():
    """A model with max_cardinality -1, or cardinalities [-1], asks for it."""
    with pytest.raises(ValueError, match="d must have one row for each row of p, and a column"):
        native.poisson_binomial(floats(N, M), np.empty((N, 0)))
