"""Scores: real numbers of any unit, in place of probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logit
from scipy.stats import norm
from scipy.stats import t as student

import fgfm
from fgfm import FDecider, f_measure
from fgfm.metrics import best_threshold
from tests.decider_data import independent

P, Y = independent(3000, 5, seed=1)
LATENT = logit(P)
VAL, NEW = slice(0, 1000), slice(1000, None)
SHAPES = {
    "logits": LATENT,
    "small": 0.01 * LATENT + 100.0,
    "large": 100.0 * LATENT - 50.0,
    "heavy tails": student.ppf(norm.cdf((LATENT + 0.8) / 1.5), 1),
    "one-sided": np.exp(LATENT),
    "own units": LATENT * [0.01, 0.3, 1.0, 20.0, 100.0] + [50.0, -3.0, 0.0, 7.0, 100.0],
    "own shapes": np.column_stack([LATENT[:, :2], np.exp(LATENT[:, 2:4]), LATENT[:, 4] ** 3]),
}
AVERAGES = ["samples", "macro", "weighted", "micro"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("average", AVERAGES)
def test_units_and_monotone_changes_hardly_matter(average, shape):
    X = SHAPES[shape]
    decider = FDecider(average=average, scores=True).fit(X[VAL], Y[VAL])
    best = FDecider(average=average).fit(P[VAL], Y[VAL]).score(P[NEW], Y[NEW])
    assert decider.score(X[NEW], Y[NEW]) > best - 0.01
    assert np.mean(decider.expected_f(X[NEW])) == pytest.approx(best, abs=0.03)
    assert np.abs(decider.predict_proba(X[NEW]) - P[NEW]).mean() < 0.03


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_unit_and_offset_change_nothing(calibration):
    one = FDecider(scores=True, calibration=calibration).fit(LATENT[VAL], Y[VAL])
    other = FDecider(scores=True, calibration=calibration).fit(2.0**-7 * LATENT[VAL] - 5, Y[VAL])
    X = LATENT[NEW]
    assert_allclose(other.predict_proba(2.0**-7 * X - 5), one.predict_proba(X), atol=1e-6)


def test_probabilities_rise_with_scores_and_stay_flat_beyond_them():
    for x in (np.sinh(LATENT[:, 0]), np.floor(LATENT[:, 0])):
        decider = FDecider(scores=True).fit(x[VAL], Y[VAL, 0])
        q = decider.predict_proba(np.linspace(x.min() - 1.0, x.max() + 1.0, 500))[:, 1]
        assert (np.diff(q) > -1e-12).all()
        far = decider.predict_proba(np.array([-1e300, x.min() - 1e6, x.max() + 1e6, 1e300]))[:, 1]
        assert_allclose(far, q[[0, 0, -1, -1]], rtol=0.8)
        assert_array_equal(far[[0, 2]], far[[1, 3]])
        assert ((far > 1e-5) & (far < 0.999)).all()


def test_a_few_rows_with_units_of_their_own():
    gains = []
    for seed in range(8):
        p, labels = independent(2050, 8, seed)
        X = logit(p) * np.exp(np.linspace(-3, 3, 8)) + np.linspace(-30, 50, 8)
        cuts = [best_threshold(X[:50, j], labels[:50, j]) for j in range(8)]
        decider = FDecider(average="macro", scores=True).fit(X[:50], labels[:50])
        tuned = f_measure(labels[50:], (X[50:] > cuts).astype(int), average="macro")
        gains.append(decider.score(X[50:], labels[50:]) - tuned)
    assert np.mean(gains) > 0.01


@pytest.mark.parametrize("X", [LATENT[:, 0], np.column_stack([-LATENT[:, 0], LATENT[:, 0]])])
def test_flat_y(X):
    y = np.array(["no", "yes"])[Y[:, 0]]
    for positive, reference in (("yes", P[:, 0]), ("no", 1.0 - P[:, 0])):
        scores = X if X.ndim == 2 or positive == "yes" else -X
        decider = FDecider(scores=True, pos_label=positive).fit(scores[VAL], y[VAL])
        best = FDecider(pos_label=positive).fit(reference[VAL], y[VAL])
        assert decider.score(scores[NEW], y[NEW]) > best.score(reference[NEW], y[NEW]) - 0.01


@pytest.mark.parametrize("calibration", ["auto", "isotonic"])
@pytest.mark.parametrize("kind", ["logits", "shifted rows", "own units", "own shapes"])
def test_classes(kind, calibration):
    rng = np.random.default_rng(0)
    latent = 1.5 * rng.normal(size=(3000, 4)) + [0.0, 1.0, -1.0, 0.5]
    p = np.exp(latent) / np.exp(latent).sum(axis=1, keepdims=True)
    y = np.array(list("abcd"))[(rng.random((3000, 1)) > p.cumsum(axis=1)).sum(axis=1)]
    X = {
        "logits": latent / 3.0,
        "shifted rows": latent + 10.0 * rng.normal(size=(3000, 1)),
        "own units": latent * [0.1, 1.0, 5.0, 20.0] + [3.0, 0.0, -50.0, 8.0],
        "own shapes": np.column_stack([latent[:, :2], np.exp(latent[:, 2:])]),
    }[kind]
    decider = FDecider(average="macro", scores=True, calibration=calibration)
    decider.fit(X[VAL], y[VAL])
    best = FDecider(average="macro").fit(p[VAL], y[VAL]).score(p[NEW], y[NEW])
    if calibration == "auto" or kind != "shifted rows":  # each class is calibrated by itself
        assert decider.score(X[NEW], y[NEW]) > best - 0.03
    assert_allclose(decider.predict_proba(X[NEW]).sum(axis=1), 1.0)


def test_sparse_scores_are_candidates():
    rng = np.random.default_rng(0)
    stored = rng.random(P.shape) < 0.7
    labels = Y * stored
    X = sparse.csr_array(np.where(stored, LATENT * 3.0 - 20.0, 0.0))
    dense = np.where(stored, P, 0.0)
    for average in ("samples", "macro", "micro"):
        decider = FDecider(average=average, scores=True).fit(X[VAL], labels[VAL])
        predicted = decider.predict(X[NEW])
        assert not (np.asarray(predicted) * ~stored[NEW]).any()
        best = FDecider(average=average).fit(sparse.csr_array(dense[VAL]), labels[VAL])
        expected = best.score(sparse.csr_array(dense[NEW]), labels[NEW])
        assert decider.score(X[NEW], labels[NEW]) > expected - 0.01


@pytest.mark.parametrize("calibration", ["auto", "isotonic"])
def test_weights_missing_labels_and_constant_columns(calibration):
    X = np.hstack([np.sinh(LATENT), np.full((3000, 1), 3.0)])
    labels = np.hstack([Y, np.zeros((3000, 1), int)])
    weight = np.arange(1000) % 3
    rows = np.repeat(np.arange(1000), weight)
    decider = FDecider(scores=True, calibration=calibration, average="macro")
    one = decider.fit(X[VAL], labels[VAL], weight).predict_proba(X[NEW])
    other = decider.fit(X[rows], labels[rows]).predict_proba(X[NEW])
    assert_allclose(one, other, atol=1e-3)
    unknown = np.where(np.random.default_rng(0).random(labels.shape) < 0.2, -1, labels)
    partial = decider.fit(X[VAL], unknown[VAL]).predict_proba(X[NEW])
    assert np.abs(partial - one).mean() < 0.03
    assert (partial[:, 5] < 0.05).all()


def test_report_guarantees_certificates_and_files(tmp_path):
    X = 30.0 * LATENT + 500.0
    decider = FDecider(scores=True).fit(X[VAL], Y[VAL])
    fgfm.save(decider, tmp_path / "decider.fgfm")
    loaded = fgfm.load(tmp_path / "decider.fgfm")
    assert_array_equal(loaded.predict(X), decider.predict(X))
    score = decider.score(X[NEW], Y[NEW])
    assert score - 0.1 < loaded.lower_bound(X[NEW], Y[NEW]) < score
    assert loaded.select(X[NEW], Y[NEW], target=score + 0.02).answered > 0.2
    with pytest.raises(ValueError, match="rows that were used in fit"):
        loaded.lower_bound(X[VAL], Y[VAL])
    certified = FDecider(scores=True, average="micro", min_precision=0.6, confidence=0.9)
    assert certified.fit(X, Y).certified_
    pytest.importorskip("pandas")
    macro = FDecider(scores=True, average="macro").fit(X[VAL], Y[VAL])
    report = macro.report(X[NEW], Y[NEW])
    assert list(report.loc["overall"].index) == ["decider", "score > 0", "tuned"]
    cuts = report.xs("tuned", level="decision")["threshold"][:5]
    assert ((cuts > X.min(axis=0)) & (cuts < X.max(axis=0))).all()
    flat = FDecider(scores=True).fit(X[VAL, 0], Y[VAL, 0]).report(X[NEW, 0], Y[NEW, 0])
    assert flat["threshold"].iloc[2] == pytest.approx(
        best_threshold(X[NEW, 0], Y[NEW, 0]), rel=0.01
    )


def test_thresholds_on_negative_scores():
    assert best_threshold([[-3.0, -1.0], [-2.5, -2.0]], [[0, 1], [1, 1]], average="micro") == -2.75
    assert best_threshold([-3.0, -2.0], [1, 1]) < -3.0


def test_warnings_about_reversed_and_mixed_columns():
    with pytest.warns(UserWarning, match="more frequent where X says that they are improbable"):
        FDecider(scores=True).fit(-100.0 * LATENT[VAL], Y[VAL])
    with pytest.warns(UserWarning, match="explain the labels of other columns better"):
        FDecider(scores=True).fit(LATENT[VAL][:, [1, 0, 2, 4, 3]] + 50.0, Y[VAL])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.where(np.arange(5) == 2, np.nan, LATENT), r"X\[0, 2\] is nan: scores must be finite"),
        (np.where(np.arange(5) == 2, np.inf, LATENT), r"X\[0, 2\] is inf: scores must be finite"),
        (sparse.csr_array(LATENT * np.inf), r"X\[0, 0\] is -?inf: scores must be finite"),
        ([P[:, :2]] * 5, "scores is True and X is a list of arrays, the class probabilities"),
    ],
)
def test_scores_that_cannot_be(X, message):
    with pytest.raises(ValueError, match=message):
        FDecider(scores=True).fit(X, Y)


def test_sparse_scores_of_classes_are_refused():
    with pytest.raises(TypeError, match="X is sparse and y has classes"):
        FDecider(scores=True, average="macro").fit(sparse.csr_array(LATENT), np.arange(3000) % 5)
