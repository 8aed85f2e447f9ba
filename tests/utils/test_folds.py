"""Folds from integers, splitters and iterables, with rows that have been removed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

from fgfm._utils.folds import make_folds

ALL = np.arange(10)


def folds(cv, rows=ALL, y=None, random_state=0):
    X = np.zeros((len(rows), 1))
    return make_folds(cv, random_state, X, rows, 10)(np.arange(len(rows)) % 2 if y is None else y)


def as_lists(found):
    return [(train.tolist(), test.tolist()) for train, test in found]


def test_integer_makes_shuffled_folds():
    expected = KFold(3, shuffle=True, random_state=0).split(ALL)
    assert as_lists(folds(3)) == as_lists(expected)
    assert as_lists(folds(3)) == as_lists(folds(3))
    assert as_lists(folds(3)) != as_lists(folds(3, random_state=1))


def test_integer_makes_the_same_folds_for_all_targets():
    folds_of = make_folds(3, 0, np.zeros((10, 1)), ALL, 10)
    assert folds_of(np.zeros(10)) is folds_of(np.ones(10))


@pytest.mark.parametrize(("rows", "expected"), [(3, 3), (1, 0)])
def test_there_are_at_most_as_many_folds_as_rows(rows, expected):
    assert len(folds(5, np.arange(rows))) == expected


def test_splitter_is_passed_the_remaining_rows():
    rows = np.array([1, 2, 5, 8])
    y = np.array([0, 0, 1, 1])
    found = folds(StratifiedKFold(2), rows, y)
    assert as_lists(found) == [([1, 3], [0, 2]), ([0, 2], [1, 3])]


def test_iterable_refers_to_all_rows():
    rows = np.array([1, 2, 5, 8])
    mask = np.isin(ALL, [2, 3])
    found = folds([([0, 1, 5, -2], mask)], rows)
    assert as_lists(found) == [([0, 2, 3], [1])]


@pytest.mark.parametrize(
    ("cv", "error", "message"),
    [
        (1, ValueError, "cv is 1: it must be 2 folds or more"),
        (2.5, TypeError, "cv is 2.5: it must be a number of folds, a scikit-learn splitter, or"),
        (True, TypeError, "cv is True: it must be a number of folds"),
        ("three", TypeError, "cv is 'three': it must be a number of folds"),
        ([], ValueError, "cv is empty: it must yield at least one fold"),
        (
            [([0, 1], [10])],
            ValueError,
            "cv: the test rows of fold 0 run from 10 to 10; with 10 rows, indices must run from 0",
        ),
        ([([0], [1]), ([0, 1], [])], ValueError, "cv: fold 1 has no test row of positive weight"),
        ([([3], [1])], ValueError, "cv: fold 0 has no train row of positive weight"),
        (
            [([0.5], [1])],
            TypeError,
            r"cv: the train rows of fold 0 have shape \(1,\) and dtype float64: they must be a",
        ),
        ([([[0]], [1])], TypeError, r"cv: the train rows of fold 0 have shape \(1, 1\)"),
    ],
)
def test_invalid_folds_raise(cv, error, message):
    with pytest.raises(error, match=message):
        folds(cv, np.delete(ALL, 3))
