"""FClassifier and FGFMClassifier: forms of X and y, averages, messages, progress of a fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fgfm
from fgfm import FClassifier, FGFMClassifier
from fgfm._utils.progress import report_progress
from multilabel import X, Y

CLASSIFIERS = {
    "FClassifier": FClassifier(LogisticRegression(), cv=3, random_state=0),
    "FGFMClassifier": FGFMClassifier(factors="independent", random_state=0),
}


@pytest.fixture(scope="module", params=CLASSIFIERS)
def classifier(request):
    return CLASSIFIERS[request.param]


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint8, np.float32, "Int64", "boolean", object]
)
def test_predictions_have_the_dtype_of_y(classifier, dtype):
    plain = classifier.fit(X, Y).predict(X)
    if isinstance(dtype, str) or dtype is object:
        frame = pytest.importorskip("pandas").DataFrame(Y, columns=list("abcd")).astype(dtype)
        predicted = classifier.fit(X, frame).predict(X)
        assert predicted.dtype.kind in "bif"
    else:
        predicted = classifier.fit(X, Y.astype(dtype)).predict(X)
        assert predicted.dtype == dtype
        assert classifier.fit(X, sparse.csr_array(Y.astype(dtype))).predict(X).dtype == dtype
    np.testing.assert_array_equal(predicted.astype(int), plain)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_features_and_labels(classifier, form, kind):
    plain = classifier.fit(X, Y)
    expected, score = plain.predict(X), plain.score(X, Y)
    model = classifier.fit(X, kind(Y).asformat(form))
    predicted = model.predict(X)
    assert isinstance(predicted, sparse.sparray) == (kind is sparse.csr_array)
    np.testing.assert_array_equal(predicted.toarray(), expected)
    assert model.score(X, kind(Y)) == model.score(X, Y) == score
    rows = kind(X).asformat(form)
    assert classifier.fit(rows, Y).score(rows, Y) == pytest.approx(score, abs=0.03)


@pytest.mark.parametrize("rows", [X[:4], X[:4].tolist(), sparse.csr_array(X[:4])], ids=type)
def test_predict_frame_of_arrays_and_lists(classifier, rows):
    pytest.importorskip("pandas")
    frame = classifier.fit(X.tolist(), Y.tolist()).predict_frame(rows)
    assert list(frame.index) == list(frame.columns) == [0, 1, 2, 3]
    np.testing.assert_array_equal(frame.to_numpy(), classifier.predict(X[:4]))


def test_predict_frame_without_pandas_raises(classifier, monkeypatch):
    classifier.fit(X, Y)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas is not installed: pip install pandas, or call"):
        classifier.predict_frame(X)


def test_score_takes_weights(classifier):
    weight = np.linspace(0.0, 1.0, 60)
    model = classifier.fit(X, Y)
    expected = fgfm.f_measure(Y, model.predict(X), sample_weight=weight)
    assert model.score(X, Y, sample_weight=weight) == expected


def spoiled(index, value):
    labels = Y.astype(float)
    labels[index] = value
    return labels


BAD_LABELS = {
    "one and two": (Y + 1, ValueError, r"y\[0, \d\] is 2: labels must be 0 or 1"),
    "half": (spoiled((7, 2), 0.5), ValueError, r"y\[7, 2\] is 0.5: labels must be 0 or 1"),
    "infinite": (spoiled((5, 3), np.inf), ValueError, r"y\[5, 3\] is inf: labels must be 0 or 1"),
    "sparse": (sparse.csr_array(3 * Y), ValueError, r"y\[0, \d\] is 3: labels must be 0 or 1"),
    "text": (Y.astype(str), TypeError, "y has dtype <U21: it must hold real numbers"),
    "too few rows": (Y[:-1], ValueError, "y has 59 rows and X has 60: they must have the same"),
    "too many rows": (np.vstack([Y, Y]), ValueError, "y has 120 rows and X has 60: they must"),
    "flat, too few": (Y[:-1, 0], ValueError, "y has 59 rows and X has 60: they must have the"),
    "no columns": (Y[:, :0], ValueError, r"y has shape \(60, 0\): it must have at least one lab"),
    "three axes": (Y[:, :, None], ValueError, r"y has shape \(60, 4, 1\): it must have 2 dim"),
    "nothing": (None, ValueError, "requires y to be passed, but the target y is None"),
    "masked": (np.ma.array(Y, mask=Y == 1), TypeError, "y is a masked array: fill its masked"),
}


@pytest.mark.parametrize("name", BAD_LABELS)
def test_invalid_labels_raise(classifier, name):
    labels, error, sentence = BAD_LABELS[name]
    with pytest.raises(error, match=sentence):
        classifier.fit(X, labels)


def test_invalid_weights_raise(classifier):
    negative = np.where(np.arange(60) == 4, -1.0, 1.0)
    for weight, sentence in [
        (np.ones(3), "sample_weight has 3 rows and X has 60: they must have"),
        (negative, r"sample_weight\[4\] is -1.0: weights must be finite and"),
        (np.zeros(60), "sample_weight is zero in every row: one weight must be"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            classifier.fit(X, Y, sample_weight=weight)
    for learner in (KNeighborsClassifier(), make_pipeline(StandardScaler(), GaussianNB())):
        name = type(learner).__name__
        with pytest.raises(ValueError, match=f"the fit of estimator {name} does not take it: le"):
            type(classifier)(learner).fit(X, Y, sample_weight=np.ones(60))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("classifier", [FClassifier(), FGFMClassifier()], ids=str)
def test_columns_of_texts_are_named(library, classifier):
    frames = pytest.importorskip(library)
    rows = frames.DataFrame({"x": [1.0, 2.0] * 10, "plot": ["a b", "c"] * 10})
    rule = r"X has a column without numbers, 'plot': encode texts, .*fgfm\.io\.FeatureEncoder\(\)"
    with pytest.raises(ValueError, match=rule):
        classifier.fit(rows, [[0, 1], [1, 0], [0, 1], [1, 1]] * 5)


# The progress of a fit.


def test_verbose(capsys):
    model = FClassifier(GaussianNB(), cv=3, random_state=0)
    model.fit(X, Y)
    assert capsys.readouterr().out == ""
    model.set_params(verbose=2).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    shown = [f"[FClassifier] {count} of 4 models" for count in (1, 2, 3, 4)]
    assert [line.split(" (")[0] for line in lines] == shown
    model.set_params(verbose=1).fit(X, Y)
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_progress_reaches_a_function():
    seen = []
    with report_progress(lambda *step: seen.append(step)):
        FClassifier(GaussianNB(), cv=3, random_state=0).fit(X, Y)
    assert seen == [("models", k, 4) for k in (0, 1, 2, 3, 4)]


class Recording:
    """A callback of scikit-learn 1.9 that records its calls."""

    def __init__(self):
        self.record = []

    def setup(self, estimator, context):
        self.record.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.record.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context, **_):
        self.record.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, **_):
        self.record.append(("end", context.task_name))


@pytest.mark.parametrize(
    ("settings", "models"), [({"estimator": GaussianNB(), "cv": 3}, 4), ({}, 1)]
)
def test_callbacks_receive_every_model(settings, models):
    pytest.importorskip("sklearn.callback")
    recorder = Recording()
    FClassifier(random_state=0, **settings).set_callbacks(recorder).fit(X, Y)
    names = [name for kind, name in recorder.record if kind == "begin"]
    assert sorted(names) == sorted(name for kind, name in recorder.record if kind == "end")
    assert names == ["fit", "models", *["model"] * models]
    assert [recorder.record[i][0] for i in (0, -1)] == ["setup", "teardown"]


def test_callbacks_of_a_failing_fit_are_torn_down():
    pytest.importorskip("sklearn.callback")
    recorder = Recording()
    with pytest.raises(ValueError, match="labels must be 0 or 1"):
        FClassifier(GaussianNB()).set_callbacks(recorder).fit(X, Y + 1)
    kinds = [kind for kind, _ in recorder.record]
    assert kinds.count("setup") == kinds.count("teardown")


def test_progress_bar(capsys):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    model = FClassifier(GaussianNB(), random_state=0)
    search = GridSearchCV(model, {"beta": [1.0, 2.0]}, cv=2)
    search.set_callbacks(callback.ProgressBar()).fit(X, Y)
    model.set_callbacks(callback.ProgressBar()).fit(X, Y)
    assert "FClassifier" in capsys.readouterr().out
