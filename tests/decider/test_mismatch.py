"""Warnings about probabilities that do not belong to the labels, and about training rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold

from decider_data import exclusive, independent
from fgfm import FClassifier, FDecider

P, Y = independent(600, 5)
REVERSED = "more frequent where X says that they are improbable"


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
def test_reversed_probabilities(average, kind):
    with pytest.warns(UserWarning, match=f"^labels are {REVERSED}"):
        FDecider(average=average).fit(kind(1.0 - P), Y)
    some = P.copy()
    some[:, 2] = 1.0 - P[:, 2]
    with pytest.warns(UserWarning, match=f"1 of 5 labels are {REVERSED}: 2: do the columns"):
        FDecider(average=average).fit(kind(some), Y)


def test_swapped_columns_of_one_label():
    both = np.column_stack([P[:, 0], 1.0 - P[:, 0]])
    with pytest.warns(UserWarning, match=REVERSED):
        FDecider().fit(both, Y[:, 0])


def test_permuted_columns():
    with pytest.warns(UserWarning, match="columns of X explain the labels of other columns"):
        FDecider().fit(P[:, ::-1], Y)
    p, one_hot = exclusive(600, 5)
    for order in ([4, 0, 1, 2, 3], [1, 0, 2, 3, 4]):
        with pytest.warns(UserWarning, match="columns of X explain"):
            FDecider(average="macro").fit(p[:, order], one_hot.argmax(axis=1))


@pytest.mark.parametrize("order", [[4, 3, 2, 1, 0], [1, 0, 2, 3, 4]])
def test_permuted_columns_in_other_forms(order):
    some = np.where(P > 0.1, P, 0.0)[:, order]
    gaps = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, -1, Y)
    for p, y in [(P[:, order], Y), (sparse.csr_array(some), Y), (P[:, order], gaps)]:
        with pytest.warns(UserWarning, match="columns of X explain the labels of other columns"):
            FDecider().fit(p, y)


def test_probabilities_of_classes_for_several_labels():
    p = P / P.sum(axis=1, keepdims=True)
    with pytest.warns(UserWarning, match="all rows of X sum to 1"):
        FDecider().fit(p, Y)
    p, one_hot = exclusive(600, 5)
    FDecider().fit(p, one_hot)  # one label in each row


@pytest.mark.parametrize("seed", range(4))
def test_probabilities_that_say_nothing_are_no_mismatch(seed):
    rng = np.random.default_rng(seed)
    for n, m in [(40, 30), (300, 4), (900, 12)]:
        labels = (rng.random((n, m)) < rng.random(m)).astype(int)
        noise = rng.random((n, m))
        left_out = (labels.sum(axis=0) - labels) / (n - 1)  # of a model that knows no feature
        weak = np.clip(0.5 + 0.02 * (labels - 0.5) + 0.1 * (noise - 0.5), 0, 1)
        for p in (noise, left_out, weak):
            FDecider().fit(p, labels)


@pytest.mark.parametrize("n", [60, 400])
def test_models_of_correlated_labels_are_no_mismatch(n):
    for seed in range(5):
        X, labels = make_multilabel_classification(
            3 * n, 6, n_classes=12, n_labels=3, random_state=seed
        )
        forest = RandomForestClassifier(20, random_state=0).fit(X[:n], labels[:n])
        FClassifier(forest, cv="prefit").fit(X[n:], labels[n:])
        rng = np.random.default_rng(seed)
        common = rng.normal(size=(n, 1))
        logits = common + 0.3 * rng.normal(size=(n, 8))
        p = 1.0 / (1.0 + np.exp(-logits))
        FDecider().fit(p, (rng.random((n, 8)) < p).astype(int))


@pytest.mark.parametrize("average", ["samples", "macro", "weighted", "micro", "binary"])
def test_training_rows_as_validation_rows(average):
    X, labels = make_multilabel_classification(1200, 20, n_classes=6, random_state=0)
    labels = np.where(np.random.default_rng(0).random(labels.shape) < 0.15, 1 - labels, labels)
    labels = labels[:, 0] if average == "binary" else labels
    forest = RandomForestClassifier(50, random_state=0).fit(X[:400], labels[:400])
    decider = FDecider(average=average).fit(forest.predict_proba(X[:400]), labels[:400])
    p = forest.predict_proba(X[400:])
    with pytest.warns(UserWarning, match=r"is expected: they differ from the rows of fit by more"):
        decider.score(p, labels[400:])
    with pytest.warns(UserWarning, match=r"is expected: they differ from the rows of fit by more"):
        decider.report(p, labels[400:])


@pytest.mark.parametrize("average", ["samples", "macro", "weighted", "micro", "binary"])
def test_validation_rows_kept_apart_are_as_expected(average):
    for seed in range(5):
        p, labels = independent(900, 4, seed=seed)
        labels = labels[:, 0] if average == "binary" else labels
        p = p[:, 0] if average == "binary" else p
        FDecider(average=average).fit(p[:300], labels[:300]).score(p[300:], labels[300:])


def test_few_rows():
    with pytest.warns(UserWarning, match="n_samples=19: FDecider learns little"):
        FDecider().fit(P[:19], Y[:19])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FDecider().fit(P[:20], Y[:20])


def test_an_own_model_has_its_own_columns():
    """A label whose positives are all in one fold is not predicted there."""
    y = np.zeros((100, 2), dtype=int)
    y[:20, 0] = 1
    y[::3, 1] = 1
    X = np.random.default_rng(0).random((100, 3))
    FClassifier(RandomForestClassifier(5, random_state=0), cv=KFold(5)).fit(X, y)
