"""FDecider with floors on precision and recall."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score

from decider_data import exclusive, independent
from fgfm import FDecider, FDeciderCV
from multilabel import close

P, Y = independent(6000, 3)
AVERAGES = ["macro", "weighted", "micro"]


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize(
    ("floor", "score"), [("min_precision", precision_score), ("min_recall", recall_score)]
)
def test_floors_are_reached(average, floor, score, stored):
    kind = sparse.csr_array if stored else np.asarray
    validation, new = kind(P[:3000]), kind(P[3000:])
    decider = FDecider(average=average, **{floor: 0.85}).fit(validation, Y[:3000])
    plain = FDecider(average=average).fit(validation, Y[:3000])
    q, labels = decider.predict_proba(validation), decider.predict(validation)
    q = q.toarray() if stored else q
    axis = None if average == "micro" else 0
    chosen = (q * labels).sum(axis=axis)
    expected = chosen / (labels if floor == "min_precision" else q).sum(axis=axis)
    close(expected, 0.85, 0.005)  # a larger value would cost F
    of = "micro" if average == "micro" else None
    found, before = (score(Y[3000:], d.predict(new), average=of) for d in (decider, plain))
    assert np.all(np.abs(found - 0.85) < 0.06)
    assert np.all(before < 0.8)
    decided = decider.decide(new).labels
    decided = decided.toarray() if stored else decided
    assert (decided == decider.predict(new)).mean() > 0.97
    assert decider.score(new, Y[3000:]) < plain.score(new, Y[3000:])


def test_floors_of_one_label_and_of_a_model():
    y = np.array(["no", "yes"])[Y[:, 0]]
    decider = FDecider(min_precision=0.8).fit(P[:3000, 0], y[:3000])
    true = P[3000:, 0]  # whose mean is the precision but for the labels that are drawn
    assert abs(true[decider.predict(true) == "yes"].mean() - 0.8) < 0.03
    model = FDeciderCV(LogisticRegression(), min_precision=0.8).fit(P[:3000], y[:3000])
    assert abs(true[model.predict(P[3000:]) == "yes"].mean() - 0.8) < 0.03


@pytest.mark.parametrize("average", AVERAGES)
def test_a_floor_that_is_reached_anyway_changes_nothing(average):
    one = FDecider(average=average).fit(P, Y)
    other = FDecider(average=average, min_precision=0.1, min_recall=0.1).fit(P, Y)
    close(one.thresholds_, other.thresholds_, 1e-3)


def test_weights_repeat_rows():
    weight = np.arange(600) % 3
    rows = np.repeat(np.arange(600), weight)
    decider = FDecider(average="macro", min_precision=0.8)
    one = decider.fit(P[:600], Y[:600], weight).thresholds_
    close(one, decider.fit(P[rows], Y[rows]).thresholds_, 1e-6)


def test_a_floor_that_cannot_be_reached():
    p = 0.4 * P
    y = (np.random.default_rng(0).random(p.shape) < p).astype(int)
    decider = FDecider(average="micro", calibration=None, min_precision=0.99)
    with pytest.warns(UserWarning, match=r"no set satisfies min_precision=0.99: the largest"):
        decider.fit(p, y)
    assert decider.thresholds_ == 1.0
    assert not decider.predict(p).any()


def test_floors_need_thresholds():
    with pytest.raises(ValueError, match="min_recall cannot be combined with average='samples'"):
        FDecider(min_recall=0.5).fit(P, Y)
    p, one_hot = exclusive(300, 3)
    with pytest.raises(ValueError, match="min_precision cannot be combined with classes"):
        FDecider(average="macro", min_precision=0.5).fit(p, one_hot.argmax(axis=1))
    with pytest.raises(ValueError, match=r"min_precision is 1\.5: it must be a number in"):
        FDecider(average="macro", min_precision=1.5).fit(P, Y)
