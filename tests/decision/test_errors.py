"""Invalid input: errors name the argument, the offending value with its position, and the rule."""

from __future__ import annotations

import re

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


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: decision.from_marginals(0.5),
            ValueError,
            "proba has shape (): it must have 2 dimensions (row, label)",
        ),
        (
            lambda: decision.from_marginals(np.empty((3, 0))),
            ValueError,
            "proba has shape (3, 0): it must have at least one label",
        ),
        (
            lambda: decision.from_marginals(sparse.csr_array((3, 0))),
            ValueError,
            "proba has shape (3, 0): it must have at least one label",
        ),
        (
            lambda: decision.from_marginals([["a", "b"]]),
            TypeError,
            "proba has dtype <U1: it must hold real numbers (float32 or float64)",
        ),
        (
            lambda: decision.from_marginals(np.array([[0.5, None]], dtype=object)),
            TypeError,
            "proba has dtype object: it must hold real numbers",
        ),
        (
            lambda: decision.from_marginals(np.array([[0.5j]])),
            TypeError,
            "proba has dtype complex128: it must hold real numbers",
        ),
        (
            lambda: decision.from_marginals(sparse.csr_array([[0.5j]])),
            TypeError,
            "proba has dtype complex128: it must hold real numbers",
        ),
        (
            lambda: decision.from_cardinalities(HALF),
            ValueError,
            "P has shape (3, 4): it must have 3 dimensions (row, label, cardinality)",
        ),
        (
            lambda: decision.from_cardinalities(np.full((3, 2, 3), 0.01)),
            ValueError,
            "P has shape (3, 2, 3): 2 labels cannot have a cardinality of 3",
        ),
        (
            lambda: decision.from_cardinalities(np.empty((3, 2, 0))),
            ValueError,
            "P has shape (3, 2, 0): it must have at least one cardinality",
        ),
        (
            lambda: decision.from_cardinalities(P, distribution=[[1.0, 0.0]] * 3),
            ValueError,
            "distribution has shape (3, 2): with a P of 3 rows and 2 cardinalities",
        ),
        (
            lambda: decision.from_cardinalities(P, distribution=[[0.5, 0.0, 0.0]] * 3),
            ValueError,
            "distribution[0] sums to 0.5: the probabilities of a row must sum to 1",
        ),
        (
            lambda: decision.from_factors(
                [ONE, P], [[0], [1, 2]], distributions=[[[0.5, 0.5]] * 3]
            ),
            ValueError,
            "distributions has 1 entries and Ps has 2",
        ),
        (
            lambda: decision.from_factors([], []),
            ValueError,
            "Ps is empty: there must be at least one factor",
        ),
        (
            lambda: decision.from_factors(P, [[0, 1]]),
            TypeError,
            "Ps is an array of shape (3, 2, 2): it must be a list with the P of each factor",
        ),
        (
            lambda: decision.from_factors([ONE, P], [[0]]),
            ValueError,
            "factors has 1 entries and Ps has 2: there must be one P for each factor",
        ),
        (
            lambda: decision.from_factors([ONE, P], [[0], [1, 2, 3]]),
            ValueError,
            "factors[1] has 3 labels and Ps[1] has 2: the sizes must match",
        ),
        (
            lambda: decision.from_factors([ONE, P], [[0], [0, 1]]),
            ValueError,
            "factors[0] and factors[1] both hold label 0 and no factor holds label 2",
        ),
        (
            lambda: decision.from_factors([ONE, P], [[0], [1, 1]]),
            ValueError,
            "factors[1] holds label 1 twice and no factor holds label 2: every label must be in",
        ),
        (
            lambda: decision.from_factors([ONE, P], [[0], [1, 3]]),
            ValueError,
            "factors[1] holds label 3: with 3 labels in all, indices must run from 0 to 2",
        ),
        (
            lambda: decision.from_factors([ONE, P], [[-1], [0, 1]]),
            ValueError,
            "factors[0] holds label -1: with 3 labels in all, indices must run from 0 to 2",
        ),
        (
            lambda: decision.from_factors([ONE, P], [["a"], [0, 1]]),
            ValueError,
            "factors[0] holds label 'a': the labels have no names",
        ),
        (
            lambda: decision.from_factors([ONE, P], 3),
            TypeError,
            "factors is 3: it must be a partition of the labels (a list of lists)",
        ),
        (
            lambda: decision.from_factors([ONE, P[:2]], [[0], [1, 2]]),
            ValueError,
            "Ps[1] has 2 rows and Ps[0] has 3: they must have the same number of rows",
        ),
        (
            lambda: decision.from_samples(np.full((2, 3, 4), 0.5)),
            ValueError,
            "samples[0, 0, 0] is 0.5: labels must be 0 or 1",
        ),
        (
            lambda: decision.from_samples(np.zeros((2, 0, 4))),
            ValueError,
            "samples has shape (2, 0, 4): it must have at least one draw",
        ),
        (
            lambda: decision.from_joint([[0, 2]], [[1.0]]),
            ValueError,
            "labelsets[0, 1] is 2: labels must be 0 or 1",
        ),
        (
            lambda: decision.from_joint([[0, 1], [1, 1]], [[1.0]]),
            ValueError,
            "proba has 1 columns and labelsets has 2 rows: there must be one probability for each",
        ),
        (
            lambda: decision.from_joint(np.empty((0, 3)), np.empty((2, 0))),
            ValueError,
            "must have at least one label set",
        ),
    ],
)
def test_invalid_shape_or_dtype_raises(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


@pytest.mark.parametrize(
    ("argument", "error", "message"),
    [
        (
            {"beta": 0.0},
            ValueError,
            "beta is 0.0: it must be a number greater than 0 (from 1e-50 to 1e50)",
        ),
        (
            {"beta": -1},
            ValueError,
            "beta is -1.0: it must be a number greater than 0 (from 1e-50 to 1e50)",
        ),
        (
            {"beta": np.nan},
            ValueError,
            "beta is nan: it must be a number greater than 0 (from 1e-50 to 1e50)",
        ),
        (
            {"beta": np.inf},
            ValueError,
            "beta is inf: it must be a number greater than 0 (from 1e-50 to 1e50)",
        ),
        (
            {"beta": "1"},
            TypeError,
            "beta is '1': it must be a number greater than 0 (from 1e-50 to 1e50)",
        ),
        ({"beta": True}, TypeError, "beta is True: it must be a number greater than 0"),
        ({"beta": [1.0]}, TypeError, "beta is [1.0]: it must be a number greater than 0"),
        (
            {"zero_division": 1.5},
            ValueError,
            "zero_division is 1.5: it must be a number in [0, 1]",
        ),
        ({"zero_division": np.nan}, ValueError, "zero_division is nan: it must be a number in"),
        ({"zero_division": "warn"}, TypeError, "zero_division is 'warn': it must be a number in"),
        ({"nonempty": "auto"}, TypeError, "nonempty is 'auto': it must be True or False"),
        ({"nonempty": 1}, TypeError, "nonempty is 1: it must be True or False"),
        ({"n_jobs": 0}, ValueError, "n_jobs is 0: it must be None or an integer other than 0"),
        ({"n_jobs": 1.5}, ValueError, "n_jobs is 1.5: it must be None or an integer other than 0"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda **kwargs: decision.from_marginals(HALF, **kwargs),
        lambda **kwargs: decision.from_cardinalities(P, **kwargs),
        lambda **kwargs: decision.from_factors([ONE, P], [[0], [1, 2]], **kwargs),
        lambda **kwargs: decision.from_samples(np.zeros((2, 3, 4)), **kwargs),
        lambda **kwargs: decision.from_joint([[0, 1]], [[1.0]], **kwargs),
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


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: decision.from_cardinalities(sparse.csr_array(HALF)),
            TypeError,
            "P is a sparse matrix: it must be a dense array",
        ),
        (
            lambda: decision.from_joint([[0, 1]], sparse.csr_array([[1.0]])),
            TypeError,
            "proba is a sparse matrix: it must be a dense array",
        ),
        (
            lambda: decision.from_marginals(np.ma.masked_array(HALF, mask=HALF > 0)),
            TypeError,
            "proba is a masked array: fill the masked values first",
        ),
        (
            lambda: decision.from_marginals([[0.5, 0.2], [0.1]]),
            ValueError,
            "proba is ragged: its rows must have the same length",
        ),
    ],
)
def test_unsupported_container_raises(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_rows_of_nan_raise_without_a_warning() -> None:
    with pytest.raises(ValueError, match=r"^proba\[0, 0\] is nan: probabilities must lie in"):
        decision.from_marginals(np.full((2, 3), np.nan))
