"""Invalid input: errors name the argument, the offending value with its position, and the rule."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from fgfm import decision

P = np.full((3, 2, 2), 0.1)
HALF = np.full((3, 4), 0.5)
ONE = np.full((3, 1, 1), 0.5)


def with_value(array, index, value):
    changed = np.array(array, dtype=np.float64)
    changed[index] = value
    return changed


VALUES = [
    (np.nan, "nan"),
    (np.inf, "inf"),
    (-np.inf, "-inf"),
    (1.2, "1.2"),
    (-0.01, "-0.01"),
    (1.00001, "1.00001"),
]


@pytest.mark.parametrize(("value", "shown"), VALUES)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_value_that_is_not_a_probability_raises(value, shown, n_jobs):
    rule = f" is {shown}: probabilities must lie in [0, 1]"
    calls = {
        "proba[1, 2]": lambda: decision.from_marginals(with_value(HALF, (1, 2), value)),
        "proba[2, 3]": lambda: decision.from_marginals(
            sparse.csr_array(with_value(HALF, (2, 3), value)), n_jobs=n_jobs
        ),
        "P[1, 0, 1]": lambda: decision.from_cardinalities(
            with_value(P, (1, 0, 1), value), n_jobs=n_jobs
        ),
        "Ps[1][2, 1, 0]": lambda: decision.from_factors(
            [ONE, with_value(P, (2, 1, 0), value)], [[0], [1, 2]], n_jobs=n_jobs
        ),
        "Ps[0][0, 0, 0]": lambda: decision.from_factors(
            [with_value(ONE, (0, 0, 0), value), ONE], [[1], [0]], n_jobs=n_jobs
        ),
    }
    for where, call in calls.items():
        with pytest.raises(ValueError, match=re.escape(where + rule)):
            call()


def test_first_wrong_value_is_named_for_any_number_of_threads():
    proba = np.full((2000, 40), 0.2)
    proba[1500:, 7] = 2.0
    proba[1203, 31] = -1.0
    for n_jobs in (None, 1, 2, 4):
        with pytest.raises(ValueError, match=r"proba\[1203, 31\] is -1.0: "):
            decision.from_marginals(proba, n_jobs=n_jobs)


def test_probabilities_that_sum_to_more_than_one_raise():
    too_much = with_value(P, (1, slice(None), 0), 0.7)
    rule = "implies d_0 = -0.5: the probabilities of 1 to 2 labels, d_s = sum_i p_is / s, must not"
    with pytest.raises(ValueError, match=re.escape("P[1] " + rule)):
        decision.from_cardinalities(too_much)
    with pytest.raises(ValueError, match=re.escape("Ps[1][1] " + rule)):
        decision.from_factors([ONE, too_much], [[2], [0, 1]])
    with pytest.raises(ValueError, match=re.escape("Ps[0][1] " + rule)):
        decision.from_factors([too_much], [[0, 1]])
    sets = [[1, 0], [0, 1]]
    for wrong, shown in (([0.5, 0.4], "0.9"), ([0.7, 0.7], "1.4")):
        with pytest.raises(
            ValueError,
            match=re.escape(f"proba[1] sums to {shown}: the probabilities of a row must sum to 1"),
        ):
            decision.from_joint(sets, [[0.5, 0.5], wrong])


marginals, cardinalities, factors = (
    decision.from_marginals,
    decision.from_cardinalities,
    decision.from_factors,
)
samples, joint = decision.from_samples, decision.from_joint
VALUE_ERRORS = [
    (marginals, (0.5,), "proba has shape (): it must have 2 dimensions (row, label)"),
    (marginals, (np.empty((3, 0)),), "proba has shape (3, 0): it must have at least one label"),
    (marginals, (sparse.csr_array((3, 0)),), "proba has shape (3, 0): it must have at least one"),
    (cardinalities, (HALF,), "P has shape (3, 4): it must have 3 dimensions (row, label, cardina"),
    (
        cardinalities,
        (np.full((3, 2, 3), 0.01),),
        "P has shape (3, 2, 3): 2 labels cannot have a c",
    ),
    (cardinalities, (np.empty((3, 2, 0)),), "P has shape (3, 2, 0): it must have at least one ca"),
    (
        lambda: cardinalities(P, distribution=[[1.0, 0.0]] * 3),
        (),
        "distribution has shape (3, 2): with a P of 3 rows and 2 cardinalities",
    ),
    (
        lambda: cardinalities(P, distribution=[[0.5, 0.0, 0.0]] * 3),
        (),
        "distribution[0] sums to 0.5: the probabilities of a row must sum to 1",
    ),
    (
        lambda: factors([ONE, P], [[0], [1, 2]], distributions=[[[0.5, 0.5]] * 3]),
        (),
        "distributions has 1 entries and Ps has 2",
    ),
    (factors, ([], []), "Ps is empty: there must be at least one factor"),
    (factors, ([ONE, P], [[0]]), "factors has 1 entries and Ps has 2: there must be one P for ea"),
    (factors, ([ONE, P], [[0], [1, 2, 3]]), "factors[1] has 3 labels and Ps[1] has 2: the sizes"),
    (factors, ([ONE, P], [[0], [0, 1]]), "factors[0] and factors[1] both hold label 0 and no fac"),
    (factors, ([ONE, P], [[0], [1, 1]]), "factors[1] holds label 1 twice and no factor holds lab"),
    (factors, ([ONE, P], [[0], [1, 3]]), "factors[1] holds label 3: with 3 labels in all, indice"),
    (factors, ([ONE, P], [[-1], [0, 1]]), "factors[0] holds label -1: with 3 labels in all, indi"),
    (factors, ([ONE, P], [["a"], [0, 1]]), "factors[0] holds label 'a': the labels have no names"),
    (factors, ([ONE, P[:2]], [[0], [1, 2]]), "Ps[1] has 2 rows and Ps[0] has 3: they must have t"),
    (samples, (np.full((2, 3, 4), 0.5),), "samples[0, 0, 0] is 0.5: labels must be 0 or 1"),
    (samples, (np.zeros((2, 0, 4)),), "samples has shape (2, 0, 4): it must have at least one dr"),
    (joint, ([[0, 2]], [[1.0]]), "labelsets[0, 1] is 2: labels must be 0 or 1"),
    (joint, ([[0, 1], [1, 1]], [[1.0]]), "proba has 1 columns and labelsets has 2 rows: there mu"),
    (joint, (np.empty((0, 3)), np.empty((2, 0))), "must have at least one label set"),
    (marginals, ([[0.5, 0.2], [0.1]],), "proba is ragged: its rows must have the same length"),
]
TYPE_ERRORS = [
    (marginals, ([["a", "b"]],), "proba has dtype <U1: it must hold real numbers (float32 or flo"),
    (
        marginals,
        (np.array([[0.5, None]], dtype=object),),
        "proba has dtype object: it must hold real numbers",
    ),
    (marginals, (np.array([[0.5j]]),), "proba has dtype complex128: it must hold real numbers"),
    (marginals, (sparse.csr_array([[0.5j]]),), "proba has dtype complex128: it must hold real nu"),
    (factors, (P, [[0, 1]]), "Ps is an array of shape (3, 2, 2): it must be a list with the P o"),
    (factors, ([ONE, P], 3), "factors is 3: it must be a partition of the labels (a list of lis"),
    (cardinalities, (sparse.csr_array(HALF),), "P is a sparse matrix: it must be a dense array"),
    (joint, ([[0, 1]], sparse.csr_array([[1.0]])), "proba is a sparse matrix: it must be a dens"),
    (
        marginals,
        (np.ma.masked_array(HALF, mask=HALF > 0),),
        "proba is a masked array: fill the masked values first",
    ),
]


@pytest.mark.parametrize(("function", "arguments", "message"), VALUE_ERRORS)
def test_values_and_shapes(function, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        function(*arguments)


@pytest.mark.parametrize(("function", "arguments", "message"), TYPE_ERRORS)
def test_types(function, arguments, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        function(*arguments)


BETA = "it must be a number greater than 0 (from 1e-50 to 1e50)"
PARAMETERS = [
    *(
        ({"beta": beta}, ValueError, f"beta is {float(beta)!r}: {BETA}")
        for beta in (0.0, -1, np.nan, np.inf)
    ),
    *(({"beta": beta}, TypeError, f"beta is {beta!r}: {BETA}") for beta in ("1", True, [1.0])),
    ({"zero_division": 1.5}, ValueError, "zero_division is 1.5: it must be a number in [0, 1]"),
    ({"zero_division": np.nan}, ValueError, "zero_division is nan: it must be a number in"),
    ({"zero_division": "warn"}, TypeError, "zero_division is 'warn': it must be a number in"),
    *(
        ({"nonempty": flag}, TypeError, f"nonempty is {flag!r}: it must be True or False")
        for flag in ("auto", 1)
    ),
    *(
        ({"n_jobs": n}, ValueError, f"n_jobs is {n!r}: it must be None or an integer other than 0")
        for n in (0, 1.5)
    ),
]


@pytest.mark.parametrize(("argument", "error", "message"), PARAMETERS)
@pytest.mark.parametrize(
    "call",
    [
        partial(decision.from_marginals, HALF),
        partial(decision.from_cardinalities, P),
        partial(decision.from_factors, [ONE, P], [[0], [1, 2]]),
        partial(decision.from_samples, np.zeros((2, 3, 4))),
        partial(decision.from_joint, [[0, 1]], [[1.0]]),
    ],
)
def test_invalid_parameter_raises(call, argument, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call(**argument)


def test_label_of_probability_over_one_raises():
    P_over = np.zeros((2, 10, 10))
    P_over[1, 3, 4:] = 0.3
    rule = "sums to 1.8 over cardinalities: the probability of a label must not exceed 1"
    with pytest.raises(ValueError, match=re.escape("P[1, 3] " + rule)):
        decision.from_cardinalities(P_over)
    with pytest.raises(ValueError, match=re.escape("P[1, 3] " + rule)):
        decision.from_cardinalities(P_over, distribution=np.full((2, 11), 1 / 11))
    with pytest.raises(ValueError, match=re.escape("Ps[1][1, 3] " + rule)):
        decision.from_factors([ONE[:2], P_over], [[10], list(range(10))])


def test_rows_of_nan_raise_without_a_warning() -> None:
    with pytest.raises(ValueError, match=r"^proba\[0, 0\] is nan: probabilities must lie in"):
        decision.from_marginals(np.full((2, 3), np.nan))
