"""Invalid input: errors name the argument, the offending value with its position, and the rule."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from fgfm import cardinality, decision

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
    wide = np.full((3, 500), 0.5)
    calls = {
        "proba[1, 2]": lambda: decision.from_marginals(with_value(HALF, (1, 2), value)),
        "proba[1, 3]": lambda: decision.from_marginals(
            with_value(HALF, (1, 3), value), measure="jaccard"
        ),
        "proba[2, 2]": lambda: decision.from_marginals(
            with_value(wide, (2, 2), value), measure="jaccard"
        ),
        "proba[1, 1]": lambda: decision.from_marginals(
            sparse.csr_array(with_value(wide, (1, 1), value)), measure="jaccard"
        ),
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


marginals, cardinalities, factors, samples, joint = (
    getattr(decision, f"from_{name}")
    for name in ("marginals", "cardinalities", "factors", "samples", "joint")
)
MACRO, MICRO, LOGIT = {"average": "macro"}, {"average": "micro"}, {"logits": True}
UNIT = "probabilities must lie in [0, 1]"
LOGITS = f"{UNIT}; these look like logits: apply a sigmoid, or pass"
PAIR, SETS = np.full((4, 2), 0.5), [[0, 1], [1, 1]]
STORED = sparse.csr_array((3, 2))
PAIRS = [ONE, P], [[0], [1, 2]]
TOO_MUCH = with_value(P, (1, slice(None), 0), 0.7)
OVER_ONE = np.zeros((2, 10, 10))
OVER_ONE[1, 3, 4:] = 0.3
MASS = "[1] implies d_0 = -0.5: the probabilities of 1 to 2 labels, d_s = sum_i p_is / s, must not"
OVER = "[1, 3] sums to 1.8 over cardinalities: the probability of a label must not exceed 1"
VALUE_ERRORS = [
    # shapes
    (marginals, (0.5,), {}, "proba has shape (): it must have 2 dimensions (row, label)"),
    (marginals, (np.empty((3, 0)),), {}, "proba has shape (3, 0): it must have at least one labe"),
    (marginals, (sparse.csr_array((3, 0)),), {}, "proba has shape (3, 0): it must have at least"),
    (marginals, ([[0.5, 0.2], [0.1]],), {}, "proba is ragged: its rows must have the same length"),
    (marginals, (np.zeros((3, 9, 2)),), {}, "(label, row, class), as in np.array(predict_proba(X"),
    (cardinalities, (HALF,), {}, "P has shape (3, 4): it must have 3 dimensions (row, label, car"),
    (cardinalities, (np.zeros((3, 2, 3)),), {}, "P has shape (3, 2, 3): 2 labels cannot have a c"),
    (cardinalities, (np.zeros((3, 2, 3)),), {}, "the last axis starts at s = 1 (there is no colu"),
    (cardinalities, (np.empty((3, 2, 0)),), {}, "P has shape (3, 2, 0): it must have at least on"),
    (factors, ([], []), {}, "Ps is empty: there must be at least one factor"),
    (factors, ([ONE, P], [[0]]), {}, "factors has 1 entries and Ps has 2: there must be one P fo"),
    (factors, ([ONE, P[:2]], [[0], [1, 2]]), {}, "Ps[1] has 2 rows and Ps[0] has 3: they must ha"),
    (samples, (np.zeros((2, 0, 4)),), {}, "samples has shape (2, 0, 4): it must have at least on"),
    (joint, (SETS, [[1.0]]), {}, "proba has 1 columns and labelsets has 2 rows: there must be on"),
    (joint, (np.empty((0, 3)), np.empty((2, 0))), {}, "must have at least one label set"),
    # partitions
    (factors, ([ONE, P], [[0], [1, 2, 3]]), {}, "factors[1] has 3 labels and Ps[1] has 2: the si"),
    (factors, ([ONE, P], [[0], [0, 1]]), {}, "factors[0] and factors[1] both hold label 0 and no"),
    (factors, ([ONE, P], [[0], [1, 1]]), {}, "factors[1] holds label 1 twice and no factor holds"),
    (factors, ([ONE, P], [[0], [1, 3]]), {}, "factors[1] holds label 3: with 3 labels in all, in"),
    (factors, ([ONE, P], [[-1], [0, 1]]), {}, "factors[0] holds label -1: with 3 labels in all,"),
    (factors, ([ONE, P], [["a"], [0, 1]]), {}, "factors[0] holds label 'a': the labels have no n"),
    # sparse factors
    (
        factors,
        ([P, sparse.csr_array((2, 2))], [[0, 1], [2, 3]]),
        {},
        r"Ps[1] has 2 rows and Ps[0] h",
    ),
    (factors, ([sparse.csr_array((3, 2))], [[0]]), {}, "factors[0] has 1 labels and Ps[0] has 2"),
    (factors, ([ONE, STORED], [[0], [0, 1]]), {}, "factors[0] and factors[1] both hold label 0"),
    (
        factors,
        ([sparse.csr_array((2, 0))], [[]]),
        {},
        "Ps[0] has shape (2, 0): it must have at lea",
    ),
    (
        factors,
        ([ONE, STORED], PAIRS[1]),
        {"distributions": [ONE] * 2},
        "Ps[1] is a sparse matrix:",
    ),
    # values
    (marginals, ([[0.5, 0.5], [0.5, 1.5]],), MACRO, f"proba[1, 1] is 1.5: {UNIT}"),
    (marginals, (np.full((3, 3), np.nan),), {}, f"proba[0, 0] is nan: {UNIT}"),  # and no warning
    (marginals, ([0.5] * 20 + [1.5],), {}, f"proba[20] is 1.5: {UNIT}"),
    (marginals, (np.c_[HALF, [-3.0] * 3],), MACRO, f"proba[0, 4] is -3.0: {LOGITS}"),
    (marginals, (sparse.csr_array([[0.5, 0], [0, 2]]),), MICRO, f"proba[1, 1] is 2.0: {UNIT}"),
    (marginals, ([[0.0, 1.0], [np.nan, 2.0]],), LOGIT, "proba[1, 0] is nan: logits must be numbe"),
    (samples, (np.full((2, 3, 4), 0.5),), {}, "samples[0, 0, 0] is 0.5: labels must be 0 or 1"),
    (samples, ([[[0, 1]], [[2, 0]]],), MICRO, "samples[1, 0, 0] is 2: labels must be 0 or 1"),
    (joint, ([[0, 2]], [[1.0]]), {}, "labelsets[0, 1] is 2: labels must be 0 or 1"),
    # lists of the probabilities of both classes
    (marginals, ([PAIR, np.ones((4, 1))],), {}, "proba[1] has shape (4, 1): label 1 had one clas"),
    (marginals, ([PAIR, PAIR[:3]],), {}, "proba[1] has shape (3, 2): in a list with the class pr"),
    (marginals, ([0.8 * PAIR],), {}, "proba[0][0] sums to 0.8: the probabilities of a row must s"),
    (marginals, ([PAIR, PAIR],), LOGIT, "logits is True and proba is a list of arrays, the class"),
    (marginals, (sparse.csr_array(HALF),), LOGIT, "proba is a sparse matrix and logits is True:"),
    # sums
    (cardinalities, (TOO_MUCH,), {}, f"P{MASS}"),
    (cardinalities, (TOO_MUCH,), MACRO, f"P{MASS}"),
    (cardinalities, (TOO_MUCH,), MICRO, f"P{MASS}"),
    (factors, ([ONE, TOO_MUCH], [[2], [0, 1]]), {}, f"Ps[1]{MASS}"),
    (factors, ([ONE, TOO_MUCH], [[2], [0, 1]]), MICRO, f"Ps[1]{MASS}"),
    (factors, ([TOO_MUCH], [[0, 1]]), {}, f"Ps[0]{MASS}"),
    (factors, ([sparse.csr_array(HALF), TOO_MUCH], [range(4), [4, 5]]), MICRO, f"Ps[1]{MASS}"),
    (cardinalities, (OVER_ONE,), {}, f"P{OVER}"),
    (cardinalities, (OVER_ONE,), {"distribution": np.full((2, 11), 1 / 11)}, f"P{OVER}"),
    (factors, ([ONE[:2], OVER_ONE], [[10], range(10)]), {}, f"Ps[1]{OVER}"),
    (joint, (SETS, [[0.5, 0.5], [0.5, 0.4]]), {}, "proba[1] sums to 0.9: the probabilities of a"),
    (joint, (SETS, [[0.5, 0.5], [0.7, 0.7]]), MICRO, "proba[1] sums to 1.4: the probabilities of"),
    # distributions
    (cardinalities, (P,), {"distribution": [[1, 0]] * 3}, "distribution has shape (3, 2): with a"),
    (cardinalities, (P,), {"distribution": [[0.5, 0, 0]] * 3}, "distribution[0] sums to 0.5: the"),
    (factors, PAIRS, {"distributions": [[[0.5, 0.5]] * 3]}, "distributions has 1 entries and Ps"),
    # averages and measures
    (marginals, (HALF,), {"average": "binary"}, "average is 'binary': it must be one of 'samples"),
    (marginals, (HALF,), {"measure": "iou"}, "measure is 'iou': it must be one of 'f', 'jaccard'"),
    (marginals, (HALF,), {"measure": "jaccard", "beta": 2.0}, "beta is 2.0: it must be 1 if meas"),
]
REAL = "it must hold real numbers (float32 or float64)"
TYPE_ERRORS = [
    (marginals, ([["a", "b"]],), f"proba has dtype <U1: {REAL}"),
    (marginals, (np.array([[0.5, None]], dtype=object),), f"proba has dtype object: {REAL}"),
    (marginals, (np.array([[0.5j]]),), f"proba has dtype complex128: {REAL}"),
    (marginals, (sparse.csr_array([[0.5j]]),), f"proba has dtype complex128: {REAL}"),
    (marginals, (np.ma.masked_array(HALF, HALF > 0),), "proba is a masked array: fill the masked"),
    (marginals, ([["0.5", "0.2"]],), f"{REAL}, and proba[0, 0] is the text '0.5'; convert it wit"),
    (marginals, (np.array([[0.5, "0.2"]], dtype=object),), "proba[0, 1] is the text '0.2'"),
    (marginals, (pd.DataFrame({"a": [0.5], "b": ["0.5"]}),), "proba[0, 1] is the text '0.5'"),
    (marginals, (pl.DataFrame({"a": ["0.5", "x"]}),), "proba[0, 0] is the text '0.5'"),
    (marginals, (["0.5", "0.2"],), "proba[0] is the text '0.5'"),
    (marginals, ("0.5",), "proba is the text '0.5'"),
    (factors, (P, [[0, 1]]), "Ps is an array of shape (3, 2, 2): it must be a list with the P of"),
    (factors, ([ONE, P], 3), "factors is 3: it must be a partition of the labels (a list of list"),
    (
        cardinality.merge_factors,
        ([STORED], [[0, 1]]),
        "Ps[0] is a sparse matrix: it must be a den",
    ),
    (cardinalities, (sparse.csr_array(HALF),), "P is a sparse matrix: it must be a dense array"),
    (joint, ([[0, 1]], sparse.csr_array([[1.0]])), "proba is a sparse matrix: it must be a dense"),
]


@pytest.mark.parametrize(("function", "arguments", "options", "message"), VALUE_ERRORS)
def test_values_and_shapes(function, arguments, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        function(*arguments, **options)


@pytest.mark.parametrize(("function", "arguments", "message"), TYPE_ERRORS)
def test_types(function, arguments, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        function(*arguments)


def test_nullable_columns_without_a_value_raise():
    frame = pd.DataFrame(HALF).astype("Float64")
    frame.iloc[1, 2] = pd.NA
    with pytest.raises(ValueError, match=r"^proba\[1, 2\] is nan: probabilities must lie in"):
        marginals(frame)


def test_percentages_are_not_taken_for_logits():
    with pytest.raises(ValueError, match=re.escape(UNIT)) as caught:
        marginals(HALF * 100.0)
    assert "logits" not in str(caught.value)


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
