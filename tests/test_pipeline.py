"""Pipelines have the methods of their last step, on the rows that their first step takes."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.pipeline
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import fgfm
from fgfm import FClassifier, FDecider, FGFMClassifier, evaluation, plotting
from multilabel import X, Y, close

RNG = np.random.default_rng(0)
WORDS = np.array(["love", "war", "space", "ship"])
TEXTS = [" ".join(WORDS[(row[:4] > 0) | (RNG.random(4) < 0.1)]) or "end" for row in Y]
SCALER = StandardScaler().fit(X)


def ridge(**params):
    """Return a classifier that is fitted quickly."""
    return FGFMClassifier("ridge", random_state=0, **params)


@pytest.fixture(scope="module")
def model():
    return fgfm.make_pipeline(StandardScaler(), ridge()).fit(X, Y)


def test_methods_are_those_of_the_last_step(model):
    rows, last = SCALER.transform(X), model[-1]
    assert isinstance(model, sklearn.pipeline.Pipeline)
    assert list(model.named_steps) == ["standardscaler", "fgfmclassifier"]
    np.testing.assert_array_equal(model.expected_f(X), last.expected_f(rows))
    for average in ("samples", "macro", "micro"):
        decision = model.decide(X, average=average)
        for found, expected in zip(decision, last.decide(rows, average=average), strict=True):
            np.testing.assert_array_equal(found, expected)
    proba = model.predict_cardinality_proba(X)
    np.testing.assert_array_equal(proba, last.predict_cardinality_proba(rows))
    for found, expected in zip(model.estimate(X), last.estimate(rows), strict=True):
        np.testing.assert_array_equal(found.P, expected.P)
    assert model.score(X, Y) == last.score(rows, Y)


def test_method_of_one_estimate(model):
    special = fgfm.make_pipeline(StandardScaler(), ridge(method="powerset")).fit(X, Y)
    found = special.predict_mode(X)
    np.testing.assert_array_equal(found, special[-1].predict_mode(SCALER.transform(X)))
    with pytest.raises(AttributeError, match="has no attribute 'predict_mode'"):
        _ = model.predict_mode


def test_methods_of_deciders():
    proba = MultiOutputClassifier(GaussianNB()).fit(X, Y)
    proba = np.column_stack([p[:, 1] for p in proba.predict_proba(X)])
    model = fgfm.make_pipeline(FunctionTransformer(), FDecider()).fit(proba[:40], Y[:40])
    assert not hasattr(model, "predict_cardinality_proba")
    last = model[-1]
    np.testing.assert_array_equal(model.expected_f(proba), last.expected_f(proba))
    new = proba[40:], Y[40:]
    assert model.lower_bound(*new) == last.lower_bound(*new)
    assert model.select(*new, 0.5, confidence=0.6) == last.select(*new, 0.5, 0.6)
    learner = MultiOutputClassifier(LogisticRegression())
    crossed = fgfm.make_pipeline(
        StandardScaler(), FClassifier(learner, average="macro", random_state=0)
    ).fit(X, Y)
    found = crossed.decide(X)
    expected = crossed[-1].decide(SCALER.transform(X))
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.expected_f, expected.expected_f)
    pd = pytest.importorskip("pandas")
    found = crossed.decide(pd.DataFrame(X))
    assert list(found.expected_f.index) == [0, 1, 2, 3]  # one for each label
    y = np.array(["a", "b", "c"])[np.minimum(Y.sum(axis=1), 2)]
    several = fgfm.make_pipeline(
        StandardScaler(), FClassifier(LogisticRegression(), average="macro", random_state=0)
    ).fit(X, y)
    labels, expected_f = several.decide(pd.DataFrame(X))
    assert set(labels) <= {"a", "b", "c"}
    assert list(expected_f.index) == ["a", "b", "c"]
    assert several.predict_frame(X)["labels"].tolist() == several.predict(X).tolist()
    assert several.report(X, y).equals(several[-1].report(SCALER.transform(X), y))


def test_other_last_steps_have_no_such_methods():
    model = fgfm.make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y[:, 0])
    for name in ("decide", "expected_f", "predict_frame", "lower_bound"):
        assert not hasattr(model, name)
    assert not hasattr(fgfm.Pipeline([("nothing", "passthrough")]), "decide")


def test_fitted_pipelines_of_scikit_learn_need_no_new_fit():
    fitted = sklearn.pipeline.make_pipeline(StandardScaler(), ridge())
    fitted.fit(X, Y)
    model = fgfm.Pipeline(fitted.steps)
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
    assert model.expected_f(X).shape == (len(X),)


def test_unfitted_pipeline_raises():
    model = fgfm.make_pipeline(StandardScaler(), FGFMClassifier())
    with pytest.raises(NotFittedError, match="FGFMClassifier instance is not fitted yet"):
        model.expected_f(X)


def test_pipeline_of_one_step():
    model = fgfm.make_pipeline(ridge()).fit(X, Y)
    np.testing.assert_array_equal(model.expected_f(X), model[-1].expected_f(X))


def test_clone_and_parameters():
    model = fgfm.make_pipeline(StandardScaler(), FGFMClassifier(beta=2.0), verbose=False)
    again = clone(model).set_params(fgfmclassifier__beta=0.5)
    assert type(again) is fgfm.Pipeline
    assert (model[-1].beta, again[-1].beta) == (2.0, 0.5)
    assert type(model[:-1]) is fgfm.Pipeline


@pytest.mark.parametrize("kind", [fgfm.make_pipeline, sklearn.pipeline.make_pipeline])
def test_search_over_a_pipeline(kind):
    model = kind(TfidfVectorizer(), ridge())
    grid = {"tfidfvectorizer__binary": [False, True], "fgfmclassifier__beta": [1.0, 2.0]}
    search = GridSearchCV(model, grid, scoring=fgfm.f_scorer(beta=2), cv=2)
    search.fit(TEXTS, Y)
    assert 0.5 < search.best_score_ <= 1.0
    assert search.predict(TEXTS[:3]).shape == (3, 4)
    scores = cross_val_score(model, TEXTS, Y, scoring=fgfm.f_scorer, cv=2)
    assert scores.shape == (2,)


# Data frames


def frames_of(library):
    """Return texts with an index as a series, and labels with names."""
    frames = pytest.importorskip(library)
    if library == "pandas":
        index = [f"row {i}" for i in range(len(TEXTS))]
        return frames.Series(TEXTS, index=index), frames.DataFrame(Y, index, list("abcd"))
    return frames.Series("plot", TEXTS), frames.DataFrame(Y, schema=list("abcd"))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_have_the_rows_of_the_first_step(library):
    texts, labels = frames_of(library)
    model = fgfm.make_pipeline(TfidfVectorizer(), ridge())
    model.fit(texts, labels)
    plain = model.decide(TEXTS)
    decision = model.decide(texts)
    for frame in (decision.labels, model.predict_frame(texts)):
        assert list(frame.columns) == list("abcd")
        np.testing.assert_array_equal(frame.to_numpy(), plain.labels)
    for series in (decision.expected_f, model.expected_f(texts)):
        assert series.name == "expected_f"
        np.testing.assert_array_equal(series.to_numpy(), plain.expected_f)
    if library == "pandas":
        assert (decision.labels.index == texts.index).all()
        assert (decision.expected_f.index == texts.index).all()
        assert (model.predict_frame(texts).index == texts.index).all()
        macro = model.decide(texts, average="macro")
        assert list(macro.expected_f.index) == list("abcd")


def test_frames_of_a_step_are_kept():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, index=np.arange(len(X)) + 7, columns=list("xyz"))
    model = fgfm.make_pipeline(StandardScaler(), ridge())
    model.set_output(transform="pandas").fit(frame, Y)
    assert model.decide(frame).labels.index.equals(frame.index)
    assert model[-1].feature_names_in_.tolist() == list("xyz")


def test_labels_of_any_form():
    flat = fgfm.make_pipeline(StandardScaler(), ridge())
    flat.fit(X, np.array(["no", "yes"])[Y[:, 0]])
    assert flat.decide(X).labels.shape == (len(X),)
    pytest.importorskip("pandas")
    frame = flat.predict_frame(X)
    assert list(frame.columns) == ["labels"]
    assert (frame["labels"].to_numpy() == flat.predict(X)).all()
    model = fgfm.make_pipeline(StandardScaler(), ridge())
    model.fit(X, sparse.csr_array(Y))
    np.testing.assert_array_equal(model.predict_frame(X).to_numpy(), model.predict(X).toarray())


# Files, displays and evaluation


@pytest.mark.parametrize("kind", [fgfm.make_pipeline, sklearn.pipeline.make_pipeline])
def test_loaded_pipelines_have_the_methods(kind, tmp_path):
    pytest.importorskip("skops")
    model = kind(TfidfVectorizer(), ridge()).fit(TEXTS, Y)
    fgfm.save(model, tmp_path / "films.fgfm")
    again = fgfm.load(tmp_path / "films.fgfm")
    assert type(again) is fgfm.Pipeline
    assert str(again.get_params()) == str(model.get_params())
    expected = fgfm.Pipeline(model.steps)
    np.testing.assert_array_equal(again.expected_f(TEXTS), expected.expected_f(TEXTS))
    np.testing.assert_array_equal(again.predict(TEXTS), model.predict(TEXTS))
    proba = again.predict_cardinality_proba(TEXTS)
    np.testing.assert_array_equal(proba, expected.predict_cardinality_proba(TEXTS))


def test_other_loaded_pipelines_stay_what_they_are(tmp_path):
    pytest.importorskip("skops")
    model = sklearn.pipeline.make_pipeline(StandardScaler(), LogisticRegression())
    fgfm.save(model.fit(X, Y[:, 0]), tmp_path / "model")
    assert type(fgfm.load(tmp_path / "model")) is sklearn.pipeline.Pipeline


@pytest.mark.parametrize("kind", [fgfm.make_pipeline, sklearn.pipeline.make_pipeline])
@pytest.mark.parametrize(
    "display",
    [plotting.DecisionDisplay, plotting.CalibrationDisplay],
)
def test_displays_take_pipelines_and_labels(display, kind):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    model = kind(TfidfVectorizer(), ridge()).fit(TEXTS, Y)
    labels = [Y] if display is plotting.CalibrationDisplay else []
    assert display.from_estimator(model, TEXTS, *labels).figure_ is not None
    pyplot.close("all")


def test_calibration_of_deciders_is_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    draw = plotting.CalibrationDisplay.from_estimator
    learner = MultiOutputClassifier(LogisticRegression())
    model = fgfm.make_pipeline(StandardScaler(), FClassifier(learner, random_state=0)).fit(X, Y)
    expected = draw(model[-1], SCALER.transform(X), Y)
    found = draw(model, X, Y)
    np.testing.assert_array_equal(found.expected_f, expected.expected_f)
    proba = model[-1].predict_proba(SCALER.transform(X))
    decider = fgfm.make_pipeline(FunctionTransformer(), FDecider()).fit(proba, Y)
    assert draw(decider, sparse.csr_array(proba), Y).figure_ is not None
    pyplot.close("all")
    for wrong in (FDecider(average="macro").fit(proba, Y), FDecider().fit(proba[:, 0], Y[:, 0])):
        rows = proba if wrong.multilabel_ else proba[:, 0]
        with pytest.raises(ValueError, match="FDecider that decides batches: the expected"):
            draw(wrong, rows, Y if wrong.multilabel_ else Y[:, 0])


@pytest.mark.parametrize("kind", [fgfm.make_pipeline, sklearn.pipeline.make_pipeline])
def test_evaluation_takes_pipelines_and_texts(kind):
    model = kind(TfidfVectorizer(), ridge())
    found = evaluation.evaluate(model, TEXTS, Y, folds=2, inner_folds=0)
    assert found.measures["instance_f"]["f_optimal"].value > 0.5
    model.fit(TEXTS[:40], Y[:40])
    found = evaluation.evaluate_fitted(model, TEXTS[40:], Y[40:])
    assert found.measures["instance_f"]["f_optimal"].value > 0.5


def test_scorer_takes_pipelines(model):
    close(fgfm.f_scorer(model, X, Y), model.score(X, Y))
