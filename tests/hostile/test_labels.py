"""Labels y that are none, in forms that users have."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from fgfm import FClassifier, FDecider

P = np.random.default_rng(0).random((60, 3))
Y = (np.random.default_rng(1).random((60, 3)) < P).astype(int)
NAMES = np.array(["ant", "bee", "cat"])
LISTS = [NAMES[row == 1].tolist() for row in Y]


def joined(separator):
    return [separator.join(row) for row in LISTS]


def with_row_two(value):
    return [*LISTS[:2], value, *LISTS[3:]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            joined(";"),
            "y has texts with several labels (y[1] is 'bee;cat'",
        ),
        (np.array(joined("|"), object), "[text.split('|') for text in y]; fgfm.io reads tables"),
        (
            [*["ant,bee"] * 30, *["cat"] * 30],
            "y has 1: there must be one probability for each",
        ),
        (
            with_row_two(None),
            "y[2] is None: it must be a list of the names of labels, an empty",
        ),
        (with_row_two(np.nan), "y[2] is nan: it must be a list of the names of labels, an empty"),
        (with_row_two("bee"), "y[2] is 'bee': it must be a list of the names of labels"),
        (with_row_two(["bee", None]), "y[2] is ['bee', None]: it must be a list of the names of"),
    ],
)
def test_labels_in_other_forms_raise(y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        FDecider().fit(P, y)


@pytest.mark.parametrize("estimator", [FDecider(), FClassifier(GaussianNB())])
def test_texts_of_different_labels_raise(estimator):
    message = "; y has texts with several labels (y[0] is 'a;b'"
    with pytest.raises(ValueError, match=re.escape(message)):
        estimator.fit(P, ["a;b", "c", "d;e"] * 20)


def test_classes_with_separators_are_classes():
    towns = np.array(["Albany, NY", "Boston, MA", "Salem, MA"])
    p = P / P.sum(axis=1, keepdims=True)
    decider = FDecider(average="macro").fit(p, towns[p.argmax(axis=1)])
    assert decider.classes_.tolist() == towns.tolist()


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("ids", [list(range(60)), [f"r{i}" for i in range(60)]])
def test_columns_that_are_not_labels_are_named(library, ids):
    frames = pytest.importorskip(library)
    table = frames.DataFrame({"id": ids, **dict(zip(NAMES.tolist(), Y.T, strict=True))})
    message = f"column 'id' of y holds {ids[2]!r}: labels must be 0 or 1; drop the columns"
    if ids[0] != 0:
        message = message.replace("r2", "r0")
    with pytest.raises(ValueError, match=message):
        FDecider().fit(np.c_[P, P[:, 0]], table)
