"""Cross-validation of a decider beside thresholds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import logit

import fgfm
from fgfm.evaluation import evaluate_decider
from fgfm.metrics import best_threshold


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    truth = rng.random((120, 3)) ** 2
    return truth**1.5, (rng.random((120, 3)) < truth).astype(np.int8)


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
def test_rows_are_decided_by_rules_of_other_rows(rows, average):
    proba, Y = rows
    decider = fgfm.FDecider(average=average, beta=2.0)
    counts = []
    found = evaluate_decider(
        decider, proba, Y, folds=4, progress=lambda k, n: counts.append((k, n))
    )
    assert counts == [(k, 4) for k in range(1, 5)]
    assert (found.folds, found.n_rows) == (4, 120)
    assert len(found.thresholds) in (4, 12)  # one of each fold, or of each label in it

    def f(labels):
        return fgfm.f_measure(Y, labels, 2.0, average=average)

    assert_allclose(found.f["half"], f(proba > 0.5))
    of_label = [best_threshold(proba[:, j], Y[:, j] == 1, 2.0) for j in range(3)]
    in_sample = [best_threshold(proba, Y == 1, 2.0, average=average), of_label]
    assert found.f["half"] < found.f["threshold"] < max(f(proba > t) for t in in_sample) + 1e-9
    own = decider.fit(proba, Y).score(proba, Y)
    assert abs(found.f["decider"] - own) < 0.05
    same = evaluate_decider(decider, proba, pd.DataFrame(Y), folds=4)
    assert same == found


def test_scores_and_sparse_rows_agree_with_probabilities(rows):
    proba, Y = rows
    proba = np.clip(proba, 0.01, 0.99)
    expected = evaluate_decider(fgfm.FDecider(average="macro"), proba, Y)
    by_scores = evaluate_decider(fgfm.FDecider(average="macro", scores=True), logit(proba), Y)
    assert by_scores.f["half"] == expected.f["half"]
    assert by_scores.f == pytest.approx(expected.f, abs=0.02)
    stored = evaluate_decider(
        fgfm.FDecider(average="macro"), sparse.csr_array(proba), sparse.csr_array(Y)
    )
    assert stored.f == pytest.approx(expected.f)
    assert stored.thresholds == pytest.approx(expected.thresholds)


@pytest.mark.filterwarnings("ignore:n_samples=.* so few validation rows")
def test_rows_with_labels_are_spread_over_the_folds():
    Y = np.zeros((40, 2), dtype=int)
    Y[:2, 0] = 1
    found = evaluate_decider(fgfm.FDecider(), np.full((40, 2), 0.1) + 0.5 * Y, Y, folds=10)
    assert found.folds == 10


@pytest.mark.filterwarnings("ignore:n_samples=2")
def test_no_more_folds_than_rows():
    assert evaluate_decider(fgfm.FDecider(), np.full((3, 2), 0.3), np.eye(3)[:, :2]).folds == 3


@pytest.mark.parametrize(
    ("n", "folds", "message"),
    [(2, 5, "Y has 2 rows, 2 of them with labels: cross-val"), (9, 1, "folds is 1: it must be 2")],
)
def test_too_few_rows_or_folds_raise(n, folds, message):
    with pytest.raises(ValueError, match=message):
        evaluate_decider(fgfm.FDecider(), np.full((n, 2), 0.5), np.ones((n, 2)), folds=folds)


@pytest.mark.parametrize("average", ["samples", "macro", "weighted", "micro"])
@pytest.mark.parametrize("stored", [False, True])
def test_best_threshold_of_each_average(rows, average, stored):
    proba, Y = rows
    proba = np.where(proba > 0.03, proba, 0.0).round(2)
    given = (sparse.csr_array(proba), sparse.csr_array(Y)) if stored else (proba, Y == 1)
    t = best_threshold(*given, average=average)
    scores = [fgfm.f_measure(Y, proba > c, average=average) for c in np.linspace(0.0, 1.0, 201)]
    assert_allclose(fgfm.f_measure(Y, proba > t, average=average), max(scores))
    with pytest.raises(ValueError, match="average is 'binary'"):
        best_threshold(*given, average="binary")
