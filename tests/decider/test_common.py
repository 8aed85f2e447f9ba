"""What all deciders have in common, whatever their rule and the form of X and y."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logit
from sklearn.base import clone

import fgfm
from decider_data import exclusive, independent
from fgfm import FDecider
from fgfm.decision import Constraints

P, Y = independent(300, 4)
CLASSES, ONE_HOT = exclusive(300, 4)
CODE = ONE_HOT.argmax(axis=1)
STORED = sparse.csr_array(np.where(P > 0.1, P, 0.0))
LISTS = [row[row > 0.1] for row in P], [y[p > 0.1] for p, y in zip(P, Y, strict=True)]
NAMED = (
    [{f"label {j}": p for j, p in enumerate(row) if p > 0.1} for row in P.tolist()],
    [[f"label {j}" for j in np.flatnonzero(row)] for row in Y],
)
CASES = {
    "rows": ({}, P, Y),
    "rows, isotonic": ({"calibration": "isotonic"}, P, Y),
    "rows, uncalibrated": ({"calibration": None, "beta": 2.0}, P, Y),
    "macro": ({"average": "macro"}, P, Y),
    "macro, isotonic": ({"average": "macro", "calibration": "isotonic"}, P, Y),
    "weighted": ({"average": "weighted"}, P, sparse.csr_matrix(Y)),
    "micro": ({"average": "micro"}, P, Y),
    "binary": ({"average": "binary"}, P[:, 0], Y[:, 0]),
    "limits of rows": ({"max_labels": 3, "constraints": Constraints(required=[1])}, P, Y),
    "limits of a batch": ({"average": "macro", "min_labels": 1, "max_labels": 2}, P, Y),
    "floors of rows": ({"min_precision": 0.6, "min_recall": 0.4}, P, Y),
    "floors of labels": ({"average": "macro", "min_precision": 0.7}, P, Y),
    "certified rows": ({"min_recall": 0.5, "confidence": 0.8}, P, Y),
    "certified": ({"average": "micro", "min_precision": 0.6, "confidence": 0.8}, P, Y),
    "scores": ({"scores": True, "average": "macro"}, 7.0 * logit(P) - 20.0, Y),
    "sparse": ({}, STORED, Y),
    "sparse macro": ({"average": "macro"}, STORED, sparse.csr_array(Y)),
    "classes": ({"average": "macro"}, CLASSES, CODE),
    "classes that count": ({"average": "micro", "labels": [1, 2]}, CLASSES, CODE),
    "lists": ({}, *LISTS),
    "lists, micro": ({"average": "micro"}, *LISTS),
    "names": ({"average": "macro"}, *NAMED),
}
# Scores are standardised by interpolated quantiles; thresholds of classes are found by a search.
TOLERANCE = {"scores": 1e-2, "classes": 1e-4, "classes that count": 1e-4}
pytestmark = pytest.mark.filterwarnings("ignore:.*is not certified")


@pytest.fixture(params=CASES)
def case(request):
    """Return the name of a case, a decider to be fitted, X and y."""
    parameters, X, y = CASES[request.param]
    return request.param, FDecider(**parameters), X, y


def take(table, rows):
    """Return some of the rows of a list, an array or a matrix."""
    return [table[row] for row in rows] if isinstance(table, list) else table[rows]


def flat(values):
    """Return values of any form as one array."""
    if isinstance(values, list):
        return np.concatenate(values)
    return np.ravel(values.toarray() if sparse.issparse(values) else values)


def assert_same(one, other, X, atol=0.0):
    """Assert that two fitted deciders predict the same."""
    for method in ("predict_proba", "expected_f"):
        values = (flat(getattr(decider, method)(X)) for decider in (one, other))
        np.testing.assert_allclose(*values, rtol=0.0, atol=atol)
    assert (flat(one.predict(X)) == flat(other.predict(X))).mean() >= (
        1.0 if atol < 1e-5 else 0.98
    )
    for name in ("thresholds_", "class_weights_", "certified_", "max_labels_", "nonempty_"):
        assert hasattr(one, name) == hasattr(other, name)
        values = [np.asarray(getattr(decider, name, 0.0), float) for decider in (one, other)]
        np.testing.assert_allclose(*values, rtol=0.0, atol=10.0 * atol)


def test_copies_and_files_predict_the_same(case, tmp_path):
    pytest.importorskip("skops")
    _, decider, X, y = case
    decider.fit(X, y)
    fgfm.save(decider, tmp_path / "decider.fgfm")
    loaded = fgfm.load(tmp_path / "decider.fgfm")
    for copy in (pickle.loads(pickle.dumps(decider)), loaded, clone(decider).fit(X, y)):
        assert_same(copy, decider, X)
    assert repr(loaded.get_params()) == repr(decider.get_params())


def test_a_row_is_predicted_by_itself(case):
    _, decider, X, y = case
    labels = decider.fit(X, y).predict(X)
    order = np.random.default_rng(0).permutation(300)
    assert (flat(decider.predict(take(X, order))) == flat(take(labels, order))).all()
    for i in range(10):
        row = decider.predict(take(X, [i]))
        assert (flat(row) == flat(take(labels, [i]))).all()
    proba = decider.predict_proba(X)
    assert (flat(decider.predict_proba(take(X, order))) == flat(take(proba, order))).all()


def test_threads_change_nothing(case):
    _, decider, X, y = case
    assert_same(clone(decider).set_params(n_jobs=3).fit(X, y), decider.fit(X, y), X)
    before = flat(decider.predict(X))
    assert (flat(decider.set_params(n_jobs=2).predict(X)) == before).all()


def test_the_order_of_validation_rows_changes_nothing(case):
    name, decider, X, y = case
    if decider.confidence is not None:
        return  # which rows certify depends on it
    order = np.random.default_rng(0).permutation(300)
    other = clone(decider).fit(take(X, order), take(y, order))
    assert_same(other, decider.fit(X, y), X, TOLERANCE.get(name, 1e-6))


def test_weights_are_numbers_of_rows(case):
    name, decider, X, y = case
    weight = np.arange(300) % 3
    kept = np.flatnonzero(weight)
    left_out = clone(decider).fit(X, y, weight > 0)
    if decider.confidence is not None:
        with pytest.raises(
            ValueError, match="sample_weight has a 2: floors are certified by rows"
        ):
            decider.fit(X, y, weight)
        return
    assert_same(clone(decider).fit(take(X, kept), take(y, kept)), left_out, X)
    rows = np.repeat(np.arange(300), weight)
    repeated = clone(decider).fit(take(X, rows), take(y, rows))
    assert_same(repeated, decider.fit(X, y, weight), X, TOLERANCE.get(name, 1e-6))
