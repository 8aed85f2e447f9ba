"""Invalid parameters, labels, features and weights, and the messages that they raise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fgfm import FGFMClassifier
from multilabel import OneFactor, X, Y


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"beta": 0}, ValueError, "beta is 0.0: it must be a number greater than 0"),
        ({"beta": "1"}, TypeError, "beta is '1': it must be a number greater than 0"),
        ({"zero_division": 2}, ValueError, r"zero_division is 2.0: it must be a number in \[0, 1"),
        ({"coherent": "yes"}, TypeError, "coherent is 'yes': it must be True or False"),
        ({"nonempty": "yes"}, TypeError, "nonempty is 'yes': it must be 'auto', True or False"),
        ({"nonempty": 1}, TypeError, "nonempty is 1: it must be 'auto', True or False"),
        ({"nonempty": None}, TypeError, "nonempty is None: it must be 'auto', True or False"),
        (
            {"method": "gfm"},
            ValueError,
            "method is 'gfm': it must be one of 'reweighted', 'two-step', 'tilted', ",
        ),
        ({"method": None}, TypeError, "method is None: it must be one of 'reweighted'"),
        ({"method": OneFactor}, TypeError, "method is .*OneFactor.*: it must be .*instance"),
        (
            {"factors": "ilff"},
            ValueError,
            "factors is 'ilff': it must be 'single', 'independent', 'ilf'",
        ),
        (
            {"factors": None},
            TypeError,
            "factors is None: it must be 'single', 'independent', 'ilf'",
        ),
        ({"factors": 3}, TypeError, "factors is 3: it must be 'single', 'independent', 'ilf'"),
        ({"factors": [0, 1, 2, 3]}, TypeError, r"factors\[0\] is 0: a factor must be a list"),
        ({"factors": ["ab", "cd"]}, TypeError, r"factors\[0\] is 'ab': a factor must be a list"),
        ({"factors": [[0, 1], [3]]}, ValueError, "factors leaves out label 2: every label must"),
        ({"factors": []}, ValueError, "factors leaves out label 0: every label must be in"),
        ({"factors": [[0, 1, 2, 3], []]}, ValueError, r"factors\[1\] is empty: a factor must"),
        (
            {"factors": [[0, 1], [1, 3]]},
            ValueError,
            r"factors\[0\] and factors\[1\] both hold label 1 .*: every label must be in exactly",
        ),
        (
            {"factors": [[0, 1], [1, 2, 3]]},
            ValueError,
            r"label 1.*: every label must be in exactly one factor",
        ),
        (
            {"factors": [[0, 1], [2, 9]]},
            ValueError,
            r"factors\[1\] holds label 9: with 4 labels in all, indices must run from 0 to 3",
        ),
        ({"factors": [["a", "b"], [2, 3]]}, ValueError, r"factors\[0\] holds label 'a': y has no"),
        ({"factors": [[0.0, 1.0], [2, 3]]}, TypeError, r"factors\[0\] is \[0.0, 1.0\]: a factor"),
        ({"calibration": "platt"}, ValueError, "calibration is 'platt': it must be 'auto', 'sig"),
        ({"calibration": 5}, ValueError, "calibration is 5: it must be 'auto', 'sigmoid'"),
        (
            {"estimator": GaussianNB(), "calibration": "platt"},
            ValueError,
            "calibration is 'platt': it must be 'auto', 'sigmoid', 'isotonic', None, or a",
        ),
        ({"estimator": GaussianNB}, TypeError, r"estimator is .*GaussianNB.*\(an instance\)"),
        (
            {"estimator": "forest"},
            ValueError,
            "estimator is 'forest': it must be 'auto', 'ridge', or",
        ),
        (
            {"estimator": StandardScaler()},
            TypeError,
            r"estimator is StandardScaler\(\): it must have predict_proba or decision_function",
        ),
        (
            {"estimator": LinearSVC(), "calibration": None},
            TypeError,
            r"estimator is LinearSVC\(\), which has no predict_proba, and calibration is None: ",
        ),
        ({"average": "rows"}, ValueError, "average is 'rows': it must be one of 'samples', 'mac"),
        (
            {"average": "macro", "max_labels": 2},
            ValueError,
            "average is 'macro': min_labels, max_labels and constraints are about the label set",
        ),
        (
            {"average": "micro", "method": "two-step"},
            ValueError,
            "average is 'micro' and method is 'two-step', which has no held-out probabilities",
        ),
        ({"cv": 1}, ValueError, "cv is 1: it must be 2 folds or more"),
        ({"cv": "three"}, TypeError, "cv is 'three': it must be a number of folds"),
        ({"estimator": GaussianNB(), "cv": 1}, ValueError, "cv is 1: it must be 2 folds or more"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_invalid_parameters_raise(settings, error, sentence):
    with pytest.raises(error, match=sentence):
        FGFMClassifier(**settings).fit(X, Y)


def spoiled(index, value):
    labels = Y.astype(float)
    labels[index] = value
    return labels


BAD_LABELS = {
    "minus one": (2 * Y - 1, ValueError, r"y\[0, \d\] is -1, and no label is 0: -1 marks a lab"),
    "one and two": (Y + 1, ValueError, r"y\[0, \d\] is 2: labels must be 0 or 1"),
    "two": (spoiled((7, 2), 2), ValueError, r"y\[7, 2\] is 2.0: labels must be 0 or 1"),
    "half": (spoiled((7, 2), 0.5), ValueError, r"y\[7, 2\] is 0.5: labels must be 0 or 1"),
    "infinite": (spoiled((5, 3), np.inf), ValueError, r"y\[5, 3\] is inf: labels must be 0 or 1"),
    "sparse": (sparse.csr_array(3 * Y), ValueError, r"y\[0, \d\] is 3: labels must be 0 or 1"),
    "text": (Y.astype(str), TypeError, "y has dtype <U21: it must hold real numbers"),
    "tags": (
        [["a"], ["b", "c"]] * 30,
        ValueError,
        r"y\[0\] is \['a'\]: labels must be a matrix \(n, m\) of 0 and 1; .*MultiLabelBinarizer",
    ),
    "pairs of tags": ([["a", "b"]] * 60, ValueError, r"y\[0\] is \['a', 'b'\]: labels must be a"),
    "sets": ([{1}, {2, 3}] * 30, ValueError, r"y\[0\] is \{1\}: labels must be a matrix"),
    "numbers of labels": (
        [[0], [1, 2]] * 30,
        ValueError,
        r"y\[0\] is \[0\]: labels must be a mat",
    ),
    "an array of lists": (
        np.array([["a"], ["b", "c"]] * 30, dtype=object),
        ValueError,
        r"y\[0\] is \['a'\]: labels must be a matrix",
    ),
    "three classes": (np.arange(60) % 3, ValueError, "Only binary classification is supported"),
    "too few rows": (Y[:-1], ValueError, "y has 59 rows and X has 60: they must have the same"),
    "too many rows": (np.vstack([Y, Y]), ValueError, "y has 120 rows and X has 60: they must"),
    "flat, too few": (Y[:-1, 0], ValueError, "y has 59 rows and X has 60: they must have the"),
    "no columns": (Y[:, :0], ValueError, r"y has shape \(60, 0\): it must have at least one lab"),
    "three axes": (Y[:, :, None], ValueError, r"y has shape \(60, 4, 1\): it must have 2 dim"),
    "nothing": (None, ValueError, "requires y to be passed, but the target y is None"),
    "masked": (np.ma.array(Y, mask=Y == 1), TypeError, "y is a masked array: fill its masked"),
}


@pytest.mark.parametrize("name", BAD_LABELS)
@pytest.mark.parametrize("learner", [None, GaussianNB()])
def test_invalid_labels_raise(name, learner):
    labels, error, sentence = BAD_LABELS[name]
    with pytest.raises(error, match=sentence):
        FGFMClassifier(learner).fit(X, labels)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_invalid_frames_of_labels_raise(library):
    frames = pytest.importorskip(library)
    with pytest.raises(ValueError, match=r"y\[1, 1\] is 2: labels must be 0 or 1"):
        FGFMClassifier().fit(X, frames.DataFrame({"a": [0, 1] * 30, "b": [0, 2] * 30}))
    with pytest.raises(TypeError, match=r"y has dtype .*: it must hold real numbers"):
        FGFMClassifier().fit(X, frames.DataFrame({"a": ["x", "y"] * 30, "b": ["z", "z"] * 30}))
    with pytest.raises(ValueError, match=r"factors\[1\] holds label 'c': y has no such column"):
        FGFMClassifier(factors=[["a"], ["c"]]).fit(
            X, frames.DataFrame({"a": [0, 1] * 30, "b": [0, 1] * 30})
        )
    with pytest.raises(ValueError, match=r"factors leaves out label 1 \('b'\): every label must"):
        FGFMClassifier(factors=[["a"]]).fit(
            X, frames.DataFrame({"a": [0, 1] * 30, "b": [0, 1] * 30})
        )
    series = frames.DataFrame({"tags": [["a"], ["b", "c"]] * 30})["tags"]
    with pytest.raises(ValueError, match=r"y\[0\] is \['a'\]: labels must be a matrix"):
        FGFMClassifier().fit(X, series)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_text_in_a_frame_of_labels_raises(library):
    frames = pytest.importorskip(library)
    with pytest.raises(TypeError, match=r"y has dtype .*: it must hold real numbers"):
        FGFMClassifier().fit(X, frames.DataFrame({"a": ["0", "1"] * 30, "b": ["1", "1"] * 30}))


@pytest.mark.parametrize("learner", ["ridge", GaussianNB(), LogisticRegression()])
def test_invalid_features_raise(learner):
    model = FGFMClassifier(learner)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="y has 60 rows and X has 59: they must have the same"):
        model.fit(X[:-1], Y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X[3, 1] == X, np.nan, X), Y)
    model.fit(X, Y)
    for ask in (model.predict, model.predict_proba, model.expected_f, model.predict_frame):
        with pytest.raises(
            ValueError, match="X has 2 features, but FGFMClassifier is expecting 3"
        ):
            ask(X[:, :2])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        model.predict(X[0])
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(X[:0])


def test_invalid_weights_raise():
    with pytest.raises(ValueError, match="sample_weight has 3 rows and X has 60: they must have"):
        FGFMClassifier().fit(X, Y, sample_weight=np.ones(3))
    with pytest.raises(
        ValueError, match=r"sample_weight\[4\] is -1.0: weights must be finite and"
    ):
        FGFMClassifier().fit(X, Y, sample_weight=np.where(np.arange(60) == 4, -1.0, 1.0))
    with pytest.raises(ValueError, match="sample_weight is zero in every row: one weight must be"):
        FGFMClassifier().fit(X, Y, sample_weight=np.zeros(60))
    sentence = "but the fit of estimator KNeighborsClassifier does not take it: leave"
    with pytest.raises(ValueError, match=sentence):
        FGFMClassifier(KNeighborsClassifier()).fit(X, Y, sample_weight=np.ones(60))
    with pytest.raises(
        ValueError, match="sample_weight is given, but the fit of estimator Pipeline does"
    ):
        FGFMClassifier(make_pipeline(StandardScaler(), GaussianNB())).fit(
            X, Y, sample_weight=np.ones(60)
        )


def test_zero_jobs_raise():
    with pytest.raises(ValueError, match="n_jobs is 0: it must be None or an integer other than"):
        FGFMClassifier(n_jobs=0).fit(X, Y).predict(X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("learner", ["ridge", "auto"])
def test_columns_of_texts_are_named(library, learner):
    frames = pytest.importorskip(library)
    columns = {"x": [1.0, 2.0, 3.0, 4.0], "plot": ["a b", "c", "d", "e"]}
    Y = [[0, 1], [1, 0], [0, 1], [1, 1]]
    rule = r"X has a column without numbers, 'plot': encode texts, .*fgfm\.io\.FeatureEncoder\(\)"
    with pytest.raises(ValueError, match=rule):
        FGFMClassifier(learner).fit(frames.DataFrame(columns), Y)
    model = FGFMClassifier(learner).fit(frames.DataFrame({"x": columns["x"]}), Y)
    with pytest.raises(ValueError, match=r"X has a column without numbers, 'x'"):
        model.predict(frames.DataFrame({"x": columns["plot"]}))
