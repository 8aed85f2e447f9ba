"""FDecider and FClassifier with a flat y of more than two classes, and average "weighted"."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_softmax
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.svm import LinearSVC

import fgfm
from decider_data import exclusive, independent
from fgfm import FClassifier, FDecider
from fgfm.decider._large_batches import shifted
from fgfm.decider._log_linear_pool import LogLinearPool
from fgfm.decision import from_classes
from multilabel import close

NAMES = np.array(["ant", "bee", "cow", "dog", "eel"])
P, ONE_HOT = exclusive(2000, 5)
P = P**0.7 * [1.0, 0.3, 0.2, 0.1, 0.05]
P /= P.sum(axis=1, keepdims=True)
CLASSES = NAMES[(np.random.default_rng(1).random((2000, 1)) > P.cumsum(axis=1)).sum(axis=1)]


def imbalanced():
    X, y = make_classification(
        6000,
        n_features=10,
        n_informative=5,
        n_classes=5,
        n_clusters_per_class=1,
        weights=[0.7, 0.15, 0.08, 0.05, 0.02],
        class_sep=0.6,
        random_state=0,
    )
    return X, NAMES[y]


@pytest.mark.parametrize(
    "model", [LogisticRegression(), RandomForestClassifier(50, random_state=0)]
)
def test_macro_f1_is_above_that_of_the_most_probable_class(model):
    X, y = imbalanced()
    model.fit(X[:2000], y[:2000])
    validation, test = model.predict_proba(X[2000:4000]), model.predict_proba(X[4000:])
    decider = FDecider(average="macro").fit(validation, y[2000:4000])
    argmax = f1_score(y[4000:], model.predict(X[4000:]), average="macro")
    labels = decider.predict(test)
    found = f1_score(y[4000:], labels, average="macro")
    assert found > argmax + 0.04
    close(decider.score(test, y[4000:]), found, 1e-12)
    decision = decider.decide(test)
    assert (decision.labels == labels).mean() > 0.97
    assert 0.0 <= decision.gap < 1e-3


def test_decide_is_from_classes_on_calibrated_probabilities():
    decider = FDecider(average="macro", beta=2.0, zero_division=0.0).fit(P[:1000], CLASSES[:1000])
    q = decider.predict_proba(P[1000:])
    close(q.sum(axis=1), 1.0, 1e-12)
    labels, expected_f = decider.decide(P[1000:])
    expected = from_classes(q, beta=2.0, zero_division=0.0)
    assert (labels == NAMES[expected.labels]).all()
    close(shifted(expected_f, -decider._expectation_shift), expected.expected_f, 1e-12)
    assert decider.classes_.tolist() == NAMES.tolist()
    assert not decider.multilabel_


def test_zeros_of_a_forest_are_raised_as_far_as_the_validation_rows_show():
    rng = np.random.default_rng(0)
    votes = P**3 / (P**3).sum(axis=1, keepdims=True)
    trees = rng.multinomial(50, votes) / 50.0
    truth = np.maximum(votes, 0.08)  # small votes say nothing
    truth /= truth.sum(axis=1, keepdims=True)
    code = (rng.random((2000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    decider = FDecider(average="macro").fit(trees[:1000], NAMES[code[:1000]])
    assert decider._rule.model.least in (0.02, 0.04, 0.08)  # 0.01 is half a step

    def loss(raised):
        pool = LogLinearPool().fit([np.maximum(trees[:1000], raised)], code[:1000])
        q = pool.predict_proba([np.maximum(trees[1000:], raised)])
        return -np.log(q[np.arange(1000), code[1000:]]).mean()

    q = decider.predict_proba(trees[1000:])
    own = -np.log(q[np.arange(1000), code[1000:]]).mean()
    assert own == pytest.approx(loss(decider._rule.model.least), abs=1e-9)
    assert own < loss(0.01) - 0.005
    labels, expected_f = decider.decide(trees[1000:])
    obtained = f1_score(NAMES[code[1000:]], labels, average="macro")
    assert abs(expected_f.mean() - obtained) < 0.03


@pytest.mark.parametrize("calibration", ["auto", "isotonic", None])
def test_rows_are_predicted_by_the_rule_of_the_attributes(calibration):
    decider = FDecider(average="macro", calibration=calibration).fit(P, CLASSES)
    value = decider.class_weights_ * (decider.predict_proba(P) - decider.thresholds_)
    labels = decider.predict(P)
    assert (labels == NAMES[value.argmax(axis=1)]).all()
    assert (decider.predict(P[7:8]) == labels[7:8]).all()
    assert decider.predict_frame(P)["labels"].tolist() == labels.tolist()


def test_calibration_undoes_a_temperature_and_shifts():
    shift = np.array([0.0, 1.0, 0.5, -0.5, -1.0])
    distorted = np.exp(log_softmax(2.0 * np.log(P) + shift, axis=1))
    decider = FDecider(average="macro").fit(distorted, CLASSES)
    assert np.abs(decider.predict_proba(distorted) - P).mean() < 0.02
    assert np.abs(distorted - P).mean() > 0.05


def test_weights_may_have_any_unit():
    weight = np.arange(2000) % 3
    one = FDecider(average="macro").fit(P, CLASSES, weight)
    halves = FDecider(average="macro").fit(P, CLASSES, weight / 4.0)
    close(halves.thresholds_, one.thresholds_, 0.02)
    close(halves.class_weights_, one.class_weights_, 0.05)


def test_frames_of_classes():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(P, columns=NAMES, index=np.arange(2000) + 5)
    y = pd.Series(CLASSES, index=frame.index)
    decider = FDecider(average="macro").fit(frame, y)
    labels, expected_f = decider.decide(frame)
    assert labels.index.equals(frame.index)
    assert (labels == y).mean() > 0.4
    assert expected_f.index.tolist() == NAMES.tolist()
    with pytest.raises(ValueError, match="column 0 of X is 'bee', and class 0 of y is 'ant'"):
        FDecider(average="macro").fit(frame[["bee", "ant", "cow", "dog", "eel"]], y)


@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC()])
def test_cross_validated_models_of_classes(model):
    X, y = imbalanced()
    X, X_test, y, y_test = X[:1500], X[1500:], y[:1500], y[1500:]
    estimator = FClassifier(model, average="macro", random_state=0).fit(X, y)
    argmax = f1_score(y_test, estimator.estimator_.predict(X_test), average="macro")
    assert estimator.score(X_test, y_test) > argmax + 0.03
    assert estimator.predict_proba(X_test[:3]).shape == (3, 5)
    prefit = FClassifier(estimator.estimator_, cv="prefit", average="macro").fit(X_test, y_test)
    assert prefit.predict(X[:50]).shape == (50,)
    assert prefit.classes_.tolist() == NAMES.tolist()


def test_a_class_that_is_missing_in_folds():
    X, y = imbalanced()
    X, y = X[:400], y[:400].copy()
    y[y == "eel"] = "ant"
    y[3] = "eel"  # one row: missing in the training rows of a fold
    estimator = FClassifier(LogisticRegression(), average="macro", random_state=0).fit(X, y)
    assert estimator.predict_proba(X).shape == (400, 5)


BACKGROUND = {"average": "micro", "labels": ["bee", "eel", "dog"]}


@pytest.mark.parametrize("calibration", ["auto", "isotonic"])
def test_micro_f_of_the_classes_that_count(calibration):
    distorted = P**1.5 / (P**1.5).sum(axis=1, keepdims=True)
    decider = FDecider(calibration=calibration, **BACKGROUND).fit(distorted[:1000], CLASSES[:1000])
    test, y = distorted[1000:], CLASSES[1000:]
    labels, expected = decider.decide(test)
    direct = from_classes(decider.predict_proba(test), average="micro", labels=[1, 3, 4])
    assert (labels == NAMES[direct.labels]).all()
    close(expected, direct.expected_f, 1e-12)
    predicted = decider.predict(test)
    assert (predicted == labels).mean() > 0.98
    f1 = {"average": "micro", "labels": BACKGROUND["labels"]}
    obtained = f1_score(y, predicted, **f1)
    close(decider.score(test, y), obtained, 1e-12)
    assert abs(expected - obtained) < 0.03
    assert obtained > f1_score(y, NAMES[test.argmax(axis=1)], **f1) + 0.05
    value = decider.class_weights_ * (decider.predict_proba(test) - decider.thresholds_)
    assert (predicted == NAMES[value.argmax(axis=1)]).all()
    report = decider.report(test, y)
    assert report.index.unique("label").tolist() == ["bee", "dog", "eel", "overall"]
    close(report.loc[("overall", "decider"), "f"], obtained, 1e-12)


def test_a_classifier_of_classes_that_count(tmp_path):
    X, y = imbalanced()
    f1 = {"average": "micro", "labels": ["dog", "eel"]}
    model = FClassifier(LogisticRegression(), **f1, random_state=0).fit(X[:2000], y[:2000])
    found = f1_score(y[2000:], model.predict(X[2000:]), **f1)
    assert found > f1_score(y[2000:], model.estimator_.predict(X[2000:]), **f1) + 0.03
    close(model.score(X[2000:], y[2000:]), found, 1e-12)
    fgfm.save(model, tmp_path / "model.fgfm")
    assert (fgfm.load(tmp_path / "model.fgfm").predict(X[:50]) == model.predict(X[:50])).all()


def test_weighted_f_of_classes():
    decider = FDecider(average="weighted").fit(P[:1000], CLASSES[:1000])
    predicted, y = decider.predict(P[1000:]), CLASSES[1000:]
    obtained = f1_score(y, predicted, average="weighted")
    close(decider.score(P[1000:], y), obtained, 1e-12)
    macro = FDecider(average="macro").fit(P[:1000], CLASSES[:1000]).predict(P[1000:])
    assert obtained > f1_score(y, macro, average="weighted")
    labels, expected = decider.decide(P[1000:])
    assert (labels == predicted).mean() > 0.97
    share = decider.predict_proba(P[1000:]).mean(axis=0)
    assert abs(share @ expected - obtained) < 0.05


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        (
            {"average": "macro", "labels": ["ant"]},
            CLASSES,
            "labels is given and average is 'macro'",
        ),
        ({"average": "micro", "labels": ["fox"]}, CLASSES, "is 'fox': it is no class of y: 'ant'"),
        (BACKGROUND, CLASSES == "bee", "and y is flat with two classes: it lists the classes"),
        (BACKGROUND, ONE_HOT, "and y is a matrix: it lists the classes that count"),
    ],
)
def test_labels_that_are_no_classes(parameters, y, message):
    X = P if y is CLASSES or y is ONE_HOT else P[:, 1]
    with pytest.raises(ValueError, match=message):
        FDecider(**parameters).fit(X, y)


@pytest.mark.parametrize("average", ["samples", "micro"])
def test_classes_need_an_average_of_classes(average):
    for estimator, rows in [
        (FDecider(average=average), P),
        (FClassifier(LogisticRegression(), average=average), P),
    ]:
        with pytest.raises(ValueError, match="y is flat and has 5 classes, which need average="):
            estimator.fit(rows, CLASSES)


def test_probabilities_that_are_not_those_of_classes():
    decider = FDecider(average="macro")
    with pytest.raises(ValueError, match=r"X\[0\] sums to 0.5: the probabilities of the classes"):
        decider.fit(0.5 * P, CLASSES)
    with pytest.raises(ValueError, match="X has 4 columns and y has 5 classes"):
        decider.fit(P[:, :4] / P[:, :4].sum(axis=1, keepdims=True), CLASSES)
    with pytest.raises(TypeError, match="class probabilities must be dense"):
        decider.fit(sparse.csr_array(P), CLASSES)
    with pytest.raises(ValueError, match="the classes in fit were 'ant'"):
        decider.fit(P, CLASSES).score(P, np.where(CLASSES == "ant", "fox", CLASSES))


def test_weighted_decides_as_macro_and_is_scored_with_weights():
    p, Y = independent(800, 5)
    p[:, 0] *= 0.05
    macro, weighted = (FDecider(average=a).fit(p[:400], Y[:400]) for a in ("macro", "weighted"))
    assert (macro.thresholds_ == weighted.thresholds_).all()
    labels = weighted.predict(p[400:])
    assert (labels == macro.predict(p[400:])).all()
    f = f1_score(Y[400:], labels, average="weighted")
    close(weighted.score(p[400:], Y[400:]), f, 1e-12)
    mass = weighted.predict_proba(p[400:]).sum(axis=0)
    assert abs(np.average(weighted.expected_f(p[400:]), weights=mass) - f) < 0.03
    assert FClassifier(LogisticRegression(), average="weighted").fit(p, Y).score(p, Y) > 0.5
