"""Forms of data, weights and their routing, messages of errors, scikit-learn's checks, files."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import fgfm
from fgfm import FGFMClassifier
from fgfm.ridge import RidgeLogistic
from multilabel import X, Y, close

PARTITION = [[0, 1], [2, 3]]


def fitted(learner=None, X=X, Y=Y, **how):
    how = {"factors": PARTITION, "random_state": 0} | how
    return FGFMClassifier(learner, **how).fit(X, Y)


@parametrize_with_checks(
    [
        FGFMClassifier(),
        FGFMClassifier(LogisticRegression(max_iter=300)),
        FGFMClassifier(GaussianNB(), factors="single", method="direct"),
    ]
)
def test_common_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some checks pass data that raise a warning
        check(estimator)


def test_attributes_are_those_of_the_last_fit():
    pd = pytest.importorskip("pandas")
    frames = pd.DataFrame(X, columns=list("xyz")), pd.DataFrame(Y, columns=list("abcd"))
    model = FGFMClassifier(factors="single", random_state=0)
    assert model.fit(*frames) is model
    assert {name for name in vars(model) if name.endswith("_")} == {
        "classes_",
        "factors_",
        "feature_names_in_",
        "label_names_in_",
        "multilabel_",
        "n_features_in_",
        "n_parameters_",
        "nonempty_",
    }
    assert model.classes_.tolist() == list("abcd")
    model.fit(X[:, :2], Y[:, :3])
    assert not hasattr(model, "label_names_in_")
    assert not hasattr(model, "feature_names_in_")
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.fit(X, Y[:, 0]).predict(X).ndim == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("learner", [None, LogisticRegression()])
def test_data_frames(library, learner):
    frames = pytest.importorskip(library)
    rows = frames.DataFrame({f"x{j}": X[:, j] for j in range(3)})
    labels = frames.DataFrame({name: Y[:, i] for i, name in enumerate("abcd")})
    model, plain = fitted(learner, rows, labels), fitted(learner)
    close(model.predict_proba(rows), plain.predict_proba(X), atol=1e-9)
    assert (model.predict(rows) == plain.predict(X)).all()
    decided = model.decide(rows)
    assert type(decided.labels) is type(rows)
    assert list(decided.labels.columns) == list("abcd")
    assert (model.predict_frame(rows).to_numpy() == plain.predict(X)).all()
    assert model.score(rows, labels) == plain.score(X, Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(rows[["x1", "x0", "x2"]])
    with pytest.raises(ValueError, match="column 0 of y is 'b' and that of fit is 'a': both must"):
        model.score(rows, labels[["b", "a", "c", "d"]])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_matrix])
@pytest.mark.parametrize("learner", [None, LogisticRegression()])
def test_sparse_rows_and_labels(kind, learner):
    model, plain = fitted(learner, kind(X), kind(Y)), fitted(learner)
    close(model.predict_proba(kind(X)), plain.predict_proba(X), atol=2e-3)
    assert sparse.issparse(model.predict(kind(X)))
    assert (fitted(None, X, kind(Y)).predict(X).toarray() == fitted().predict(X)).all()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32])
def test_predictions_have_the_dtype_of_y(dtype):
    predicted = fitted(Y=Y.astype(dtype)).predict(X)
    assert predicted.dtype == dtype
    assert (predicted == fitted().predict(X)).all()


def test_frames_with_categories_and_missing_values():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": X[:, 0], "word": np.where(X[:, 1] > 0.0, "left", "right")})
    frame.loc[::7, "x"] = np.nan
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["word"]), remainder="passthrough"
    )
    learner = make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=5))
    with threadpool_limits(1):  # OpenMP threads wait for each other on busy machines
        model = fitted(learner, frame, factors="ilf")
    assert model.predict(frame).shape == Y.shape
    words = ColumnTransformer([("w", OneHotEncoder(), ["word"])])
    dropping = make_pipeline(words, LogisticRegression())
    with pytest.warns(UserWarning, match="ColumnTransformer that drops other columns"):
        fitted(dropping, frame)
    assert fitted(dropping, frame, method="direct").predict(frame).shape == Y.shape


@pytest.mark.parametrize("learner", [None, GaussianNB()])
def test_arguments_are_not_modified(learner):
    rows, labels, weight = X.copy(), Y.copy(), np.linspace(0.0, 2.0, 60)
    for array in (rows, labels, weight):
        array.setflags(write=False)
    FGFMClassifier(learner, factors=PARTITION).fit(rows, labels, weight).predict(rows)
    assert PARTITION == [[0, 1], [2, 3]]


@pytest.mark.parametrize("learner", [None, GaussianNB()])
@pytest.mark.parametrize("method", ["two-step", "direct"])
def test_pickled_and_saved_models_decide_the_same(learner, method, tmp_path):
    pytest.importorskip("skops")
    model = fitted(learner, method=method, factors="ilf")
    fgfm.save(model, tmp_path / "model.fgfm")
    for copy in (pickle.loads(pickle.dumps(model)), fgfm.load(tmp_path / "model.fgfm")):
        assert type(copy) is FGFMClassifier
        assert (copy.expected_f(X) == model.expected_f(X)).all()
        assert (copy.predict(X) == model.predict(X)).all()


def test_searches_and_cross_validation():
    model = FGFMClassifier(LogisticRegression(), factors=PARTITION, random_state=0)
    grid = {"beta": [0.25, 4.0], "estimator__C": [1.0]}
    search = GridSearchCV(model, grid, scoring=fgfm.f_scorer, cv=3).fit(X, Y)
    assert len(set(search.cv_results_["mean_test_score"])) == 2
    assert cross_val_predict(model, X, Y, cv=KFold(3), method="predict_proba").shape == (60, 4)


# weights


def test_weights_as_a_series():
    pd = pytest.importorskip("pandas")
    weight = pd.Series(np.linspace(0.5, 1.5, 60), index=range(60, 120))
    with pytest.raises(ValueError, match="index"):
        FGFMClassifier().fit(pd.DataFrame(X), Y, sample_weight=weight)


def test_routed_weights():
    weight = np.linspace(0.0, 2.0, 60)
    models = {
        name: FGFMClassifier(learner, factors=PARTITION, random_state=0)
        for name, learner in [("ridge", None), ("bayes", GaussianNB())]
    }
    p = {k: one.fit(X, Y, sample_weight=weight).predict_proba(X) for k, one in models.items()}
    with sklearn.config_context(enable_metadata_routing=True):
        close(models["ridge"].fit(X, Y, sample_weight=weight).predict_proba(X), p["ridge"])
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            models["bayes"].fit(X, Y, sample_weight=weight)
        asked = GaussianNB().set_fit_request(sample_weight=True)
        model = models["bayes"].set_params(estimator=asked)
        close(model.fit(X, Y, sample_weight=weight).predict_proba(X), p["bayes"])
        with pytest.raises(TypeError, match="colour"):
            FGFMClassifier().fit(X, Y, colour="red")


@pytest.mark.parametrize("kind", [RidgeLogistic, GaussianNB])
def test_learner_that_declines_weights_gets_no_row_of_weight_0(kind):
    labels = np.where(Y.sum(axis=1, keepdims=True) == 4, [1, 1, 1, 0], Y)
    labels[9] = 1  # the only row with four labels
    weight = np.where(np.arange(60) == 9, 0.0, 1.5)
    kept = np.flatnonzero(weight)
    with sklearn.config_context(enable_metadata_routing=True):
        learner = kind().set_fit_request(sample_weight=False)
        model = FGFMClassifier(learner, factors="single", random_state=0)
        p = model.fit(X, labels, sample_weight=weight).predict_proba(X)
        close(p, model.fit(X[kept], labels[kept]).predict_proba(X), atol=1e-7)


# errors


class Wrong(DummyClassifier):
    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), np.nan)


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"method": "gfm"}, ValueError, "method is 'gfm': it must be one of 'two-step', 'direct'"),
        ({"method": None}, ValueError, "method is None: it must be one of"),
        ({"factors": "ilff"}, ValueError, "factors is 'ilff': it must be one of 'ilf', 'single'"),
        ({"factors": None}, TypeError, "factors is None: it must be"),
        ({"factors": fgfm.ILFCompo}, TypeError, "factors is .*ILFCompo.*, a class: it must be"),
        ({"factors": [0, 1, 2, 3]}, TypeError, r"factors\[0\] is 0: a factor must be a list"),
        ({"factors": [[0, 1], [3]]}, ValueError, "factors leaves out label 2: every label must"),
        ({"factors": [[0, 1, 2, 3], []]}, ValueError, r"factors\[1\] is empty: a factor must"),
        (
            {"factors": [[0, 1], [1, 3]]},
            ValueError,
            r"factors\[0\] and factors\[1\] both hold label 1 .*: every label must be in exactly",
        ),
        (
            {"factors": [[0, 1], [2, 9]]},
            ValueError,
            r"factors\[1\] holds label 9: with 4 labels in all, indices must run from 0 to 3",
        ),
        (
            {"factors": [["a", "b"], [2, 3]]},
            ValueError,
            r"factors\[0\] holds label 'a': the",
        ),
        ({"estimator": GaussianNB}, TypeError, r"estimator is .*GaussianNB.*\(an instance\)"),
        ({"estimator": "ridge"}, TypeError, "estimator is 'ridge': it must be a scikit-learn"),
        ({"estimator": LinearSVC()}, TypeError, r"estimator is LinearSVC\(\): .*predict_proba"),
        ({"coherent": 1}, TypeError, "coherent is 1: it must be True or False"),
        ({"beta": 0.0}, ValueError, r"beta is 0\.0: it must be a number greater than 0"),
        ({"zero_division": 1.5}, ValueError, r"zero_division is 1\.5: it must be a number in"),
        ({"nonempty": "no"}, TypeError, "nonempty is 'no': it must be 'auto', True or False"),
        ({"cv": 1}, ValueError, "cv is 1: it must be 2 folds or more"),
        ({"cv": "three"}, TypeError, "cv is 'three': it must be a number of folds"),
        ({"n_jobs": 0}, ValueError, "n_jobs is 0: it must be None or an integer other than 0"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_invalid_parameters_raise(settings, error, sentence):
    with pytest.raises(error, match=sentence):
        FGFMClassifier(**settings).fit(X, Y)


def test_invalid_decision_parameters_raise_in_predict():
    model = fitted()
    with pytest.raises(ValueError, match=r"beta is -1\.0: it must be a number greater than 0"):
        model.set_params(beta=-1).predict(X)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (2 * Y - 1, r"y\[0, \d\] is -1: labels must be 0 or 1"),
        (np.where(Y == 1, np.nan, 0.0), r"y\[\d, \d\] is nan: labels must be 0 or 1"),
        (
            [["a"], ["b", "c"]] * 30,
            r"y\[0\] is \['a'\]: labels must be a matrix \(n, m\) of 0 and",
        ),
        (Y[:59], "y has 59 rows and X has 60"),
    ],
    ids=["minus one", "missing", "lists", "rows"],
)
def test_invalid_labels_raise(labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        FGFMClassifier().fit(X, labels)


def test_learners_that_cannot_be_used_raise():
    with pytest.raises(ValueError, match="fit of estimator KNeighborsClassifier does not take it"):
        FGFMClassifier(KNeighborsClassifier()).fit(X, Y, sample_weight=np.ones(60))
    with pytest.raises(TypeError, match="fit got colour: RidgeLogistic takes no argument but"):
        FGFMClassifier().fit(X, Y, colour="red")
    with pytest.raises(
        ValueError, match=r"estimator Wrong returned probabilities of shape .* that"
    ):
        fitted(Wrong()).predict(X)

    class BinaryOnly(GaussianNB):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.classifier_tags.multi_class = False
            return tags

    with pytest.raises(ValueError, match="no target of more than two classes"):
        fitted(BinaryOnly())
    assert fitted(BinaryOnly(), factors="independent").score(X, Y) > 0.5
