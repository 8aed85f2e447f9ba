"""FClassifier: models of every kind, folds, fitted models, forms of data, weights, messages."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import fgfm
from fgfm import FClassifier, FDecider
from multilabel import close, interleaved_folds, make_data

X, Y = make_data(160, 4)
ONE = LogisticRegression()


def several():
    """Return a small multi-label model."""
    return MultiOutputClassifier(ONE)


class Counting(MLPClassifier):
    """A network that counts how often it is fitted."""

    fits = 0

    def fit(self, X, y):
        type(self).fits += 1
        return super().fit(X, y)


MODELS = {
    "forest": RandomForestClassifier(20, min_samples_leaf=3, random_state=0),
    "trees": ExtraTreesClassifier(20, min_samples_leaf=3, random_state=0),
    "neighbours": KNeighborsClassifier(9),
    "network": MLPClassifier((8,), solver="lbfgs", alpha=1.0, max_iter=40, random_state=0),
    "several": several(),
    "chain": ClassifierChain(ONE, order="random", random_state=0),
    "one versus rest": OneVsRestClassifier(ONE),
    "pipeline": make_pipeline(StandardScaler(), several()),
    "scores only": OneVsRestClassifier(LinearSVC()),
    "ridge scores": RidgeClassifier(),
    "ours": MultiOutputClassifier(fgfm.ridge.RidgeLogistic([1.0], random_state=0)),
}


@pytest.mark.filterwarnings("ignore:.*converge")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("average", ["samples", "macro"])
def test_models(name, average):
    model = FClassifier(MODELS[name], average=average, cv=3, random_state=0).fit(X[:120], Y[:120])
    assert model.predict(X).shape == Y.shape
    constant = np.tile(Y[:120].mean(axis=0) > 0.3, (40, 1)).astype(int)
    assert model.score(X[120:], Y[120:]) > fgfm.f_measure(Y[120:], constant, average=average)
    again = clone(model).fit(X[:120], Y[:120])
    assert (again.predict_proba(X) == model.predict_proba(X)).all()


class Margins(BaseEstimator):
    """Decision values of some unit and offset."""

    def __init__(self, unit=1.0, offset=0.0):
        self.unit, self.offset = unit, offset

    def fit(self, X, y):
        self.model_ = OneVsRestClassifier(LogisticRegression()).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def decision_function(self, X):
        return self.unit * self.model_.decision_function(X) + self.offset


def test_unit_and_offset_of_decision_values_do_not_matter():
    rare = np.column_stack([Y, np.arange(160) == 7, np.zeros(160, int)])  # constant in folds
    for y in (rare, Y[:, 0], np.array(["a", "b", "c"])[Y[:, 0] + Y[:, 1]]):
        given = {"average": "macro", "cv": 4, "random_state": 0}
        best = FClassifier(Margins(), **given).fit(X, y)
        assert best.decider_.scores
        probable = FClassifier(OneVsRestClassifier(LogisticRegression()), **given).fit(X, y)
        assert best.score(X, y) == pytest.approx(probable.score(X, y), abs=0.05)
        other = FClassifier(Margins(2.0**-6, 64.0), **given).fit(X, y)
        close(other.predict_proba(X), best.predict_proba(X), 1e-6)
    prefit = Margins(100.0, -500.0).fit(X[:80], Y[:80])
    model = FClassifier(prefit, cv="prefit").fit(X[80:], Y[80:])
    close(
        model.predict_proba(X),
        FDecider(scores=True)
        .fit(prefit.decision_function(X[80:]), Y[80:])
        .predict_proba(prefit.decision_function(X)),
    )
    with pytest.raises(ValueError, match="scores is True and calibration is None"):
        FClassifier(Margins(), calibration=None).fit(X, Y)


def test_scores_of_the_absence_of_labels_are_noticed():
    with pytest.warns(UserWarning, match="more frequent where X says that they are improbable"):
        FClassifier(Margins(-1.0)).fit(np.tile(X, (3, 1)), np.tile(Y, (3, 1)))


def test_a_model_of_all_labels_is_fitted_once_per_fold():
    network = Counting((4,), solver="lbfgs", alpha=1.0, random_state=0, max_iter=2000)
    Counting.fits = 0
    FClassifier(network, cv=3).fit(X, Y)
    assert Counting.fits == 4  # three folds and all rows


def test_decider_is_that_of_out_of_fold_probabilities():
    folds = interleaved_folds(160, 4)
    model = FClassifier(several(), cv=folds).fit(X, Y)
    p = np.empty(Y.shape)
    for train, test in folds:
        fold = several().fit(X[train], Y[train])
        p[test] = np.column_stack([part[:, 1] for part in fold.predict_proba(X[test])])
    decider = FDecider().fit(p, Y)
    whole = np.column_stack([part[:, 1] for part in several().fit(X, Y).predict_proba(X)])
    close(model.predict_proba(X), decider.predict_proba(whole))
    close(model.expected_f(X), decider.expected_f(whole))
    assert (model.predict(X) == decider.predict(whole)).all()
    assert (model.decide(X).labels == decider.decide(whole).labels).all()
    assert model.score(X, Y) == pytest.approx(decider.score(whole, Y))
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("cv", [2, KFold(3), ShuffleSplit(2, test_size=0.3, random_state=0)])
def test_folds(cv):
    model = FClassifier(several(), cv=cv, random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0.5


class OneList(RandomForestClassifier):
    """A forest whose values are a list of arrays, as its probabilities are."""

    def fit(self, X, y):
        super().fit(X, y)
        self.oob_decision_function_ = [*np.moveaxis(self.oob_decision_function_, 2, 0)]
        return self


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB", "ignore:invalid value")
@pytest.mark.parametrize(
    ("kind", "y"),
    [
        (RandomForestClassifier, Y[:, 0]),
        (RandomForestClassifier, Y[:, 0] + Y[:, 1]),
        (RandomForestClassifier, Y),
        (BaggingClassifier, Y[:, 0]),
        (BaggingClassifier, Y[:, 0] + Y[:, 1]),
        (OneList, Y),
    ],
)
def test_out_of_bag_values_are_held_out_and_rows_without_are_left_out(kind, y):
    forest = kind(n_estimators=4, oob_score=True, bootstrap=True, random_state=0)
    model = FClassifier(forest, average="macro").fit(X, y)
    bags = model.estimator_.estimators_samples_
    out = np.array([np.isin(np.arange(160), bag, invert=True) for bag in bags])  # (trees, n)
    rows = np.flatnonzero(out.any(axis=0))
    assert 100 < len(rows) < 160
    trees = model.estimator_.estimators_

    def values(rows, used):
        """Return the mean prediction of the trees that are used for each row, (n, columns)."""
        parts = [np.array(tree.predict_proba(X[rows])) for tree in trees]
        p = np.array([part if y.ndim == 1 else part[:, :, 1].T for part in parts])
        return (p * used[:, rows, None]).sum(axis=0) / used[:, rows, None].sum(axis=0)

    decider = FDecider(average="macro").fit(values(rows, out), y[rows])
    everything = values(np.arange(160), np.ones(out.shape))
    close(model.predict_proba(X), decider.predict_proba(everything))
    folds = FClassifier(forest, average="macro", cv=KFold(3)).fit(X, y)
    assert (folds.predict_proba(X) != model.predict_proba(X)).any()


def test_out_of_bag_values_behind_transformers_that_have_not_seen_labels():
    class CountingForest(RandomForestClassifier):
        """A forest that counts how often it is fitted."""

        fits = 0

        def fit(self, X, y):
            type(self).fits += 1
            return super().fit(X, y)

    forest = CountingForest(50, oob_score=True, random_state=0)
    encoder = make_column_transformer((TargetEncoder(), [0]), remainder=StandardScaler())
    for steps, fits in (
        ([StandardScaler(), "passthrough", VarianceThreshold()], 1),
        ([SelectKBest(k=2)], 6),
        ([make_pipeline(StandardScaler(), SelectFromModel(ONE))], 6),
        ([encoder], 6),
        ([StandardScaler(), make_column_transformer((StandardScaler(), [0, 1]))], 1),
    ):
        CountingForest.fits = 0
        FClassifier(make_pipeline(*steps, forest)).fit(np.round(X, 1), Y[:, 0])
        assert CountingForest.fits == fits


@pytest.mark.parametrize("single", [ONE, make_pipeline(StandardScaler(), ONE), LinearSVC()])
def test_models_of_one_label_are_wrapped(single):
    wrap = MultiOutputClassifier if hasattr(single, "predict_proba") else OneVsRestClassifier
    one, two = (FClassifier(model, random_state=0).fit(X, Y) for model in (single, wrap(single)))
    assert type(one.estimator_) is wrap
    assert (one.predict_proba(X) == two.predict_proba(X)).all()
    flat = FClassifier(single, random_state=0).fit(X, Y[:, 0])
    assert type(flat.estimator_) is type(single)


def test_model_that_takes_a_matrix_is_not_wrapped_whatever_its_tags():
    class Modest(KNeighborsClassifier):
        """Takes several labels, and its tags do not say so, as those of some libraries."""

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.classifier_tags.multi_label = tags.target_tags.multi_output = False
            return tags

    assert type(FClassifier(Modest(5), random_state=0).fit(X, Y).estimator_) is Modest
    broken = np.where(X[3, 0] == X, np.nan, X)
    with pytest.raises(ValueError, match="NaN"):
        FClassifier(ONE).fit(broken, Y)


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_splitter(routing):
    groups = np.arange(160) // 20
    with sklearn.config_context(enable_metadata_routing=routing):
        weight = np.where(np.arange(160) % 7 == 0, 0.0, 1.0)
        learner = GaussianNB()
        if routing:
            learner.set_fit_request(sample_weight=True)
        model = FClassifier(MultiOutputClassifier(learner), cv=GroupKFold(4))
        grouped = clone(model).fit(X, Y, sample_weight=weight, groups=groups)
        folds = list(GroupKFold(4).split(X, Y, groups))
        expected = clone(model).set_params(cv=folds).fit(X, Y, sample_weight=weight)
        assert (grouped.predict_proba(X) == expected.predict_proba(X)).all()
        with pytest.raises(ValueError, match="groups"):
            clone(model).fit(X, Y)
        if not routing:
            with pytest.raises(ValueError, match="groups is given and cv is 3: it must be a sci"):
                FClassifier(several(), cv=3).fit(X, Y, groups=groups)


@pytest.mark.slow
def test_number_of_jobs_changes_nothing():
    one, two = (FClassifier(several(), random_state=0, n_jobs=n).fit(X, Y) for n in (1, 2))
    assert (one.predict_proba(X) == two.predict_proba(X)).all()


# Fitted models


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
@pytest.mark.parametrize("kind", ["forest", "network", "several", "chain", "scores only"])
@pytest.mark.filterwarnings("ignore:.*converge")
def test_prefit(kind, average):
    fitted = clone(MODELS[kind]).fit(X[:80], Y[:80])
    prefit = FClassifier(fitted, cv="prefit", average=average).fit(X[80:], Y[80:])
    frozen = FClassifier(FrozenEstimator(fitted), average=average).fit(X[80:], Y[80:])
    assert prefit.estimator_ is fitted
    assert (prefit.predict(X) == frozen.predict(X)).all()
    assert prefit.score(X[80:], Y[80:]) > 0.5
    # labels that are constant in the validation rows stay labels of the model
    few = Y[80:].copy()
    few[:, 2] = 0
    assert FClassifier(fitted, cv="prefit").fit(X[80:], few).predict(X).shape == Y.shape


def test_prefit_binary():
    fitted = LogisticRegression().fit(X[:80], Y[:80, 0])
    model = FClassifier(fitted, cv="prefit").fit(X[80:], Y[80:, 0])
    p = fitted.predict_proba(X)[:, 1]
    decider = FDecider().fit(p[80:], Y[80:, 0])
    assert (model.predict(X) == decider.predict(p)).all()
    assert model.decider_.thresholds_ == decider.thresholds_
    with pytest.raises(ValueError, match=r"has classes \[0, 1\] and y has \['no', 'yes'\]"):
        FClassifier(fitted, cv="prefit", pos_label="yes").fit(X, np.array(["no", "yes"])[Y[:, 0]])


def test_a_model_of_one_label_is_not_used_for_several():
    one = LogisticRegression().fit(X, Y[:, 0])
    for model in (FClassifier(FrozenEstimator(one)), FClassifier(one, cv="prefit")):
        with pytest.raises(ValueError, match=r"scores of shape \(160, 2\): .* and 4 labels"):
            model.fit(X, Y)
        with pytest.raises(ValueError, match="predicts two probabilities that sum to 1 in every"):
            model.fit(X, Y[:, :2])
    with pytest.raises(ValueError, match=r"scores of shape \(160, 4\): .* and 3 labels"):
        FClassifier(several().fit(X, Y), cv="prefit").fit(X, Y[:, :3])
    three = DecisionTreeClassifier(max_depth=2).fit(X, Y * 2 + Y[:, :1])
    with pytest.raises(ValueError, match=r"predicts [34] classes for a label: a label must be 0"):
        FClassifier(three, cv="prefit").fit(X, Y)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        FClassifier(several(), cv="prefit").fit(X, Y)
    for method in ("predict", "decide", "expected_f", "predict_proba", "predict_frame"):
        with pytest.raises(NotFittedError, match="This FClassifier instance is not fitted yet"):
            getattr(FClassifier(several()), method)(X)


# Labels that are constant


@pytest.mark.filterwarnings("ignore:.*converge")
@pytest.mark.parametrize("name", ["forest", "network", "several", "chain", "one versus rest"])
def test_constant_labels(name):
    labels = Y.copy()
    labels[:, 1], labels[:, 3] = 0, 1
    model = FClassifier(MODELS[name], cv=3, random_state=0).fit(X, labels)
    assert not model.predict(X)[:, 1].any()
    assert model.predict(X)[:, 3].all()
    one = labels.copy()
    one[:, 2] = 0  # one label varies
    model = FClassifier(MODELS[name], cv=3, random_state=0).fit(X, one)
    assert model.predict_proba(X)[:, 0].std() > 0.1
    assert model.score(X, one) > 0.7


@pytest.mark.parametrize("flat", [False, True])
def test_labels_that_are_constant_in_a_fold(flat):
    labels = np.zeros((60, 2), dtype=int)
    labels[:20, 0] = labels[20:40, 1] = 1  # the training rows of a fold lack a class
    rows = np.random.default_rng(0).normal(size=(60, 2)) + 2.0 * labels
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(20, 60))]
    if flat:
        model = FClassifier(ONE, cv=folds).fit(rows, labels[:, 0])
        assert model.score(rows, labels[:, 0]) > 0.5
        return
    model = FClassifier(several(), cv=folds).fit(rows, labels)
    assert model.score(rows, labels) > 0.4  # what the folds show is wrong in every row


def test_all_labels_constant():
    with pytest.raises(ValueError, match="y has one class for each label in all 160 rows"):
        FClassifier(several()).fit(X, np.ones_like(Y))


# Data


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    names, features = ["p", "q", "r", "s"], ["x", "y", "z"]
    frame = frames.DataFrame(dict(zip(features, X.T, strict=True)))
    labels = frames.DataFrame(dict(zip(names, Y.T, strict=True)))
    if library == "pandas":
        frame.index = labels.index = [f"row {i}" for i in range(160)]
    model = FClassifier(several(), random_state=0).fit(frame, labels)
    plain = FClassifier(several(), random_state=0).fit(X, Y)
    assert model.classes_.tolist() == names
    assert list(model.feature_names_in_) == features
    assert (model.predict(frame) == plain.predict(X)).all()
    predicted = model.predict_frame(frame)
    assert list(predicted.columns) == names
    for average in ("samples", "macro", "micro"):
        decided, expected = (m.decide(x, average=average) for m, x in ((model, frame), (plain, X)))
        assert list(decided.labels.columns) == names
        assert (decided.labels.to_numpy() == expected.labels).all()
        close(np.asarray(decided.expected_f), expected.expected_f)
        if library == "pandas":
            assert decided.labels.index.equals(frame.index)
            of_labels = average == "macro"
            assert not of_labels or list(decided.expected_f.index) == names
    assert model.score(frame, labels) == pytest.approx(plain.score(X, Y))
    if library == "pandas":
        assert predicted.index.equals(frame.index)
        assert model.expected_f(frame).index.equals(frame.index)
        with pytest.raises(ValueError, match="row 0 of X has index 'row 0' and that of y has 'ro"):
            model.score(frame, labels[::-1])


def test_text():
    words = np.array(["apple", "pear", "plum", "fig"])
    texts = [" ".join(["word", *words[row == 1]]) for row in Y]
    model = make_pipeline(CountVectorizer(), several())
    fitted = FClassifier(model, random_state=0).fit(texts, Y)
    assert fitted.score(texts, Y) > 0.95
    series = pytest.importorskip("pandas").Series(texts, index=range(1, 161))
    fitted = FClassifier(model, random_state=0).fit(series, Y)
    assert fitted.predict_frame(series).index.equals(series.index)


def test_flat_y():
    names = np.array(["no", "yes"])[Y[:, 0]]
    model = FClassifier(ONE, pos_label="yes", random_state=0).fit(X, names)
    assert model.classes_.tolist() == ["no", "yes"]
    assert not model.multilabel_
    assert set(model.predict(X)) == {"no", "yes"}
    assert model.predict_proba(X).shape == (160, 2)
    assert isinstance(model.decider_.thresholds_, float)
    score = sklearn.metrics.f1_score(names, model.predict(X), pos_label="yes")
    assert model.score(X, names) == pytest.approx(score)


def test_guarantee():
    model = FClassifier(several(), random_state=0).fit(X[:80], Y[:80])
    f = fgfm.f_measure(Y[80:], model.predict(X[80:]), per_row=True)
    assert model.lower_bound(X[80:], Y[80:]) == fgfm.metrics.mean_lower_bound(f)
    expected = fgfm.metrics.abstention_threshold(model.expected_f(X[80:]), f, 0.5, 0.9)
    assert model.select(X[80:], Y[80:], 0.5, 0.9) == expected
    with pytest.raises(ValueError, match="average is 'micro': the guarantee needs"):
        FClassifier(several(), average="micro").fit(X, Y).lower_bound(X, Y)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, np.ndarray.tolist])
@pytest.mark.parametrize("cv", [None, "prefit"])
def test_rows_of_fit_are_refused(form, cv):
    estimator = several() if cv is None else several().fit(X, Y)
    model = FClassifier(estimator, cv=cv, random_state=0).fit(form(X[:80]), Y[:80])
    for rows in (slice(80), slice(10, 40), slice(79, None, -1)):
        with pytest.raises(ValueError, match="X and y have rows that were used in fit"):
            model.lower_bound(form(X[rows]), Y[rows])
        with pytest.raises(ValueError, match="X and y have rows that were used in fit"):
            model.select(form(X[rows]), Y[rows], 0.5)
    assert model.lower_bound(form(X[80:]), Y[80:]) > 0.0


def test_texts_of_fit_are_refused():
    model = FClassifier(make_pipeline(CountVectorizer(), several()), random_state=0)
    texts = [f"{a} {b} {i}" for i, (a, b) in enumerate(np.where(X[:, :2] > 0.0, "yes", "no"))]
    model.fit(texts[:80], Y[:80])
    with pytest.raises(ValueError, match="X and y have rows that were used in fit"):
        model.lower_bound(texts[40:80], Y[40:80])
    assert model.lower_bound(texts[80:], Y[80:]) > 0.0


def test_saved_models_predict_the_same(tmp_path):
    pytest.importorskip("skops")
    labels = Y.copy()
    labels[:, 1] = 0
    for model in (several(), ClassifierChain(ONE), make_pipeline(StandardScaler(), several())):
        fitted = FClassifier(model, average="macro", random_state=0).fit(X, labels)
        fgfm.save(fitted, tmp_path / "model.fgfm")
        loaded = fgfm.load(tmp_path / "model.fgfm")
        assert (loaded.predict_proba(X) == fitted.predict_proba(X)).all()
        assert (loaded.predict(X) == fitted.predict(X)).all()


# Weights and further arguments of fit


def test_rows_of_weight_zero_are_left_out():
    weight = (np.arange(160) % 4 > 0).astype(float)
    kept = weight > 0
    model = FClassifier(several(), random_state=0)
    one, other = clone(model).fit(X, Y, weight), clone(model).fit(X[kept], Y[kept])
    close(one.predict_proba(X), other.predict_proba(X), 1e-6)
    folds = interleaved_folds(160)
    one = FClassifier(several(), cv=folds).fit(X, Y, weight)  # folds of all rows
    position = np.cumsum(kept) - 1
    mapped = [tuple(position[part[kept[part]]] for part in fold) for fold in folds]
    other = FClassifier(several(), cv=mapped).fit(X[kept], Y[kept])
    close(one.predict_proba(X), other.predict_proba(X), 1e-6)


def test_weights_reach_the_model_and_the_decider():
    weight = 1.0 + (np.arange(160) % 3)
    model = FClassifier(several(), random_state=0).fit(X, Y, weight)
    whole = several().fit(X, Y, sample_weight=weight)
    found = np.column_stack([part[:, 1] for part in whole.predict_proba(X)])
    estimator = np.column_stack([part[:, 1] for part in model.estimator_.predict_proba(X)])
    close(estimator, found, 1e-6)
    fitted = clone(several()).fit(X[:80], Y[:80])
    prefit = FClassifier(fitted, cv="prefit").fit(X[80:], Y[80:], weight[80:])
    p = np.column_stack([part[:, 1] for part in fitted.predict_proba(X)])
    close(prefit.predict_proba(X), FDecider().fit(p[80:], Y[80:], weight[80:]).predict_proba(p))
    with pytest.raises(ValueError, match="sample_weight is given, but the fit of estimator Pipel"):
        FClassifier(make_pipeline(several())).fit(X, Y, weight)


def test_further_arguments_of_fit():
    class Coloured(DummyClassifier):
        def fit(self, X, y, sample_weight=None, colour=None, shade=None):
            assert colour == "red"
            assert len(shade) == len(y)
            return super().fit(X, y, sample_weight)

    model = FClassifier(Coloured(strategy="prior"), cv=2)
    model.fit(X, Y, colour="red", shade=list(range(160)))
    with pytest.raises(AssertionError):
        model.fit(X, Y)


@pytest.mark.parametrize("requested", [True, False])
def test_metadata_routing(requested):
    weight = 1.0 + np.arange(160) % 2
    with sklearn.config_context(enable_metadata_routing=True):
        forest = RandomForestClassifier(3, random_state=0)
        forest.set_fit_request(sample_weight=requested)
        model = FClassifier(forest, random_state=0).set_fit_request(sample_weight=True)
        fitted = model.fit(X, Y, sample_weight=weight)
        plain = RandomForestClassifier(3, random_state=0)
        plain.fit(X, Y, sample_weight=weight if requested else None)
    close(np.array(fitted.estimator_.predict_proba(X)), np.array(plain.predict_proba(X)))


# Messages


class NoScores(ClassifierMixin, BaseEstimator):
    """A classifier without probabilities and decision values."""

    def fit(self, X, y):
        return self


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (NoScores(), TypeError, "estimator is NoScores.*must have predict_proba or decision_func"),
        (LogisticRegression, TypeError, "it must be a scikit-learn classifier"),
    ],
)
def test_bad_models(model, error, message):
    with pytest.raises(error, match=message):
        FClassifier(model).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cv": "loo"}, "cv is 'loo': it must be 'prefit', a number of folds"),
        ({"cv": 1}, "cv is 1: it must be 2 folds or more"),
        ({"average": "binary"}, "average is 'binary'"),
        ({"min_labels": 7}, "min_labels is 7"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        FClassifier(several(), **parameters).fit(X, Y)


def test_bad_data():
    with pytest.raises(ValueError, match="y has 3 rows and X has 160"):
        FClassifier(several()).fit(X, Y[:3])
    with pytest.raises(ValueError, match="expecting 3 features"):
        FClassifier(several()).fit(X, Y).predict(X[:, :2])
