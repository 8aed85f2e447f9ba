"""Names of rows and columns: one rule in every function that takes two tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from decider_data import independent
from fgfm import FClassifier, FDecider, FGFMClassifier, decision, f_measure
from fgfm._utils.names import check_same_names, column_names
from fgfm.evaluation import evaluate, evaluate_fitted
from fgfm.factors import ILFCompo
from fgfm.metrics import abstention_threshold
from fgfm.plotting import CalibrationDisplay, DecisionDisplay
from fgfm.ridge import RidgeLogistic

P, Y = independent(60, 3)
ORDER = np.random.default_rng(0).permutation(60)
FRAME, LABELS = pd.DataFrame(P), pd.DataFrame(Y)
WEIGHT = pd.Series(np.arange(1.0, 61.0))


def classifier():
    """Return a classifier that is fitted quickly."""
    return FGFMClassifier(factors="independent", random_state=0)


def names(*values):
    """Return the names of a data frame."""
    return column_names(pd.DataFrame(np.empty((0, len(values))), columns=pd.Index(values)))


# Columns


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["a", "b", "c"], ["a", "b", "c"]),
        ([7, 3, 5], [7, 3, 5]),
        ([7, 3, 5], ["7", "3", "5"]),  # polars has text only
        ([0, 1, 2], ["a", "b", "c"]),
        (["column_0", "column_1", "column_2"], ["a", "b", "c"]),
        (["column_0", "column_1", "column_2"], [0, 1, 2]),
        ([0, 1, 2], [7, 3, 5]),
        ([1, "1", 2], [1, "1", 2]),
        (["a", "a", "b"], ["a", "a", "b"]),
        ([("a", 1), ("a", 2)], [("a", 1), ("a", 2)]),
        ([1.0, np.nan], [1.0, float("nan")]),
        (["a", "b"], ["a", "b", "c"]),  # the number is checked elsewhere
    ],
)
def test_names_that_are_the_same_or_made_up(one, other):
    check_same_names(names(*one), names(*other), "X", "y")
    check_same_names(names(*other), names(*one), "y", "X")
    check_same_names(names(*one), None, "X", "y")


@pytest.mark.parametrize(
    ("one", "other", "at"),
    [
        (["a", "b", "c"], ["a", "c", "b"], 1),
        (["a", "b", "c"], ["a", "b", "d"], 2),
        ([7, 3, 5], [3, 5, 7], 0),
        ([7, 3, 5], ["3", "5", "7"], 0),
        ([0, 1, 2], [0, 2, 1], 1),
        ([0, 1, 2], ["0", "2", "1"], 1),
        (["column_0", "column_1", "column_2"], [0, 2, 1], 1),
        ([1, "1", 2], ["1", 1, 2], 0),
        (["a", "a", "b"], ["a", "b", "a"], 1),
        ([("a", 1), ("a", 2)], [("a", 2), ("a", 1)], 0),
    ],
)
def test_other_names_or_another_order(one, other, at):
    message = f"column {at} of .* is .* and that of .* is .*: both must have the same names, in"
    for pair in ((one, other), (other, one)):
        with pytest.raises(ValueError, match=message):
            check_same_names(names(*pair[0]), names(*pair[1]), "X", "y")


def test_columns_of_test_rows():
    Y_named = pd.DataFrame(Y, columns=list("abc"))
    model = FClassifier(KNeighborsClassifier()).fit(P, Y_named)
    with pytest.raises(ValueError, match="column 0 of Y is 'c' and that of fit is 'a'"):
        evaluate_fitted(model, P, Y_named[list("cba")])
    with pytest.raises(ValueError, match="column 0 of Y_test is 'c' and that of Y is 'a'"):
        evaluate(model, P, Y_named, P, Y_named[list("cba")])
    decided = decision.from_marginals(pd.DataFrame(P, columns=list("abc")))
    with pytest.raises(ValueError, match=r"column 0 of decision.labels is 'a' and that of proba"):
        DecisionDisplay.from_decision(pd.DataFrame(P, columns=list("cba")), decided)


# Rows

SCALED = make_pipeline(StandardScaler(), FClassifier(KNeighborsClassifier()))
CALLS = {
    "f_measure": f_measure,
    "f_measure of a label": lambda x, y: f_measure(y[0], y[0].loc[x.index]),
    "weight of f_measure": lambda x, y: f_measure(y, y, sample_weight=WEIGHT.loc[x.index]),
    "FDecider": lambda x, y: FDecider().fit(x, y),
    "FDecider, flat": lambda x, y: FDecider().fit(x[0], y[0]),
    "score of FDecider": lambda x, y: FDecider().fit(P, Y).score(x, y),
    "weight of FDecider": lambda x, y: FDecider().fit(FRAME, Y, WEIGHT.loc[x.index]),
    "FClassifier": lambda x, y: FClassifier(KNeighborsClassifier()).fit(x, y),
    "FGFMClassifier": lambda x, y: classifier().fit(x, y),
    "weight of FGFMClassifier": lambda x, y: classifier().fit(FRAME, Y, WEIGHT.loc[x.index]),
    "score of FGFMClassifier": lambda x, y: classifier().fit(P, Y).score(x, y),
    "ILFCompo": lambda x, y: ILFCompo(random_state=0).fit(x, y),
    "RidgeLogistic": lambda x, y: RidgeLogistic().fit(x, y[0]),
    "evaluate": lambda x, y: evaluate(SCALED, x, y, folds=2),
    "rows of evaluate": lambda x, y: evaluate(SCALED, P, Y, x, y),
    "evaluate_fitted": lambda x, y: evaluate_fitted(SCALED.fit(P, Y), x, y),
    "abstention_threshold": lambda x, y: abstention_threshold(x[0], y[0], 0.5),
    "CalibrationDisplay": lambda x, y: CalibrationDisplay.from_estimator(SCALED.fit(P, Y), x, y),
    "DecisionDisplay": lambda x, y: DecisionDisplay.from_decision(
        x, decision.from_marginals(FRAME)
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_rows_in_another_order(name):
    call = CALLS[name]
    call(FRAME if name != "f_measure" else LABELS, LABELS)
    shuffled = FRAME if name != "f_measure" else LABELS
    with pytest.raises(ValueError, match=r"row 0 of \w+ has index \d+ and that of \w+ has \d+"):
        call(shuffled.iloc[ORDER], LABELS)


@pytest.mark.parametrize(
    "index",
    [
        pd.MultiIndex.from_arrays([np.arange(60) // 10, np.arange(60)]),
        pd.Index(np.arange(60), dtype="int64[pyarrow]"),
        pd.Index([*range(59), pd.NA], dtype="Int64"),
        pd.Index([*range(58), np.nan, np.nan]),
        pd.CategoricalIndex([f"row {i}" for i in range(60)]),
        pd.date_range("2026-01-01", periods=60, tz="UTC"),
        pd.Index([0, *range(59)]),  # a row twice
    ],
    ids=["multi", "arrow", "nullable", "nan", "categories", "dates", "duplicates"],
)
def test_index_of_any_type(index):
    one, other = LABELS.set_axis(index), LABELS.set_axis(index.copy())
    assert f_measure(one, other) == 1.0
    assert f_measure(one, Y) == 1.0
    assert f_measure(one, pl.DataFrame(Y)) == 1.0
    with pytest.raises(ValueError, match=r"row 0 of Y_true has index .* and that of Y_pred has"):
        f_measure(one, other[::-1])


def test_index_of_equal_values_and_another_dtype():
    assert f_measure(LABELS, LABELS.set_axis(pd.Index(range(60), dtype="int64[pyarrow]"))) == 1.0
    assert f_measure(LABELS, LABELS.set_axis([str(i) for i in range(60)])) == 1.0
