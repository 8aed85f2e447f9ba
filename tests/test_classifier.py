"""FGFMClassifier: scikit-learn's checks, exhaustive decisions, data of every kind, refusals."""

from __future__ import annotations

import functools
import pickle
import warnings

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import fgfm
from fgfm import classifier
from fgfm.cardinality import is_coherent, merge_factors
from fgfm.estimation import Direct, Powerset, Reweighted, Tilted, TwoStep
from fgfm.ridge import RidgeLogistic
from oracle import all_labelsets, f_table, gfm

NAMES = ["reweighted", "two-step", "tilted", "direct", "powerset"]
FACTORS = ["single", "independent", [[0, 2], [3, 1]], [[3], [0, 1, 2]]]


def some_data(n=60, m=4, seed=0):
    """Three features, and labels that depend on them and on each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    shared = 0.7 * rng.normal(size=(n, 1))
    Y = (X @ rng.normal(size=(3, m)) + shared + 0.7 * rng.normal(size=(n, m)) > 0.4).astype(int)
    return X, Y


X, Y = some_data()

# The factors are not what these tests are about, and finding them takes time.
FGFMClassifier = functools.partial(fgfm.FGFMClassifier, factors="single")


def same(one, other, rows=X):
    """Assert that two models answer with the same bits."""
    assert (one.predict(rows) == other.predict(rows)).all()
    assert (one.predict_proba(rows) == other.predict_proba(rows)).all()
    assert (one.predict_cardinality_proba(rows) == other.predict_cardinality_proba(rows)).all()
    assert (one.expected_f(rows) == other.expected_f(rows)).all()


def close(one, other, rows=X, atol=1e-9):
    """Assert that two models answer the same, up to rounding."""
    np.testing.assert_allclose(one.predict_proba(rows), other.predict_proba(rows), atol=atol)
    np.testing.assert_allclose(one.expected_f(rows), other.expected_f(rows), atol=atol)


# scikit-learn's own checks


@parametrize_with_checks(
    [
        fgfm.FGFMClassifier(),
        FGFMClassifier(factors="independent"),
        FGFMClassifier(method="two-step"),
        FGFMClassifier(method="tilted"),
        FGFMClassifier(method="powerset"),
        FGFMClassifier(method="direct"),
    ]
)
def test_common_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some checks pass what is to be warned of
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        FGFMClassifier(LogisticRegression(max_iter=300)),
        FGFMClassifier(GaussianNB(), cv=2, random_state=0),
    ]
)
def test_common_checks_with_other_learners(estimator, check):
    # their data make some base learners warn, e.g. of features that are no numbers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("learner", [None, LogisticRegression(), GaussianNB(), LinearSVC()])
def test_tags_are_those_of_the_learner(learner):
    tags = sklearn.utils.get_tags(FGFMClassifier(learner))
    assert tags.classifier_tags.multi_label
    assert not tags.classifier_tags.multi_class
    if learner is not None:
        assert tags.input_tags.sparse == sklearn.utils.get_tags(learner).input_tags.sparse


# Decisions


def estimates_by_hand(model, rows):
    """Give P and d of all labels, merged from the model's own factors by the published way."""
    estimates = model._estimates(rows)
    return merge_factors(
        [e.P for e in estimates],
        [factor.tolist() for factor in model.factors_],
        [e.d for e in estimates],
    )


def values_of_all_sets(P, d_0, beta, zero_division, nonempty):
    """Give the expected F of each of the 2^m label sets from P (n, m, S), by its definition."""
    sets = all_labelsets(P.shape[1])
    size = sets.sum(axis=1)
    s = np.arange(1, P.shape[2] + 1)
    weight = (1.0 + beta**2) / (beta**2 * s[None, :] + np.maximum(size, 1)[:, None])  # (2^m, S)
    values = np.einsum("hi,nis,hs->nh", sets, P, weight)
    if nonempty:
        values /= 1.0 - d_0[:, None]
        values[:, 0] = -1.0
    else:
        values[:, 0] = zero_division * d_0
    return sets, values


@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("coherent", [True, False])
def test_decisions_are_the_exhaustive_optimum(factors, method, coherent):
    model = FGFMClassifier(factors=factors, method=method, coherent=coherent, random_state=0).fit(
        X, Y
    )
    P, d = estimates_by_hand(model, X)
    if coherent:
        assert is_coherent(P, d, tol=1e-8).all()
    for beta in (0.5, 1.0, 2.0):
        for zero_division, nonempty in [(1.0, False), (0.3, False), (0.0, False), (1.0, True)]:
            model.set_params(beta=beta, zero_division=zero_division, nonempty=nonempty)
            _, values = values_of_all_sets(P, d[:, 0], beta, zero_division, nonempty)
            labels, expected_f = model.decide(X)
            np.testing.assert_allclose(expected_f, values.max(axis=1), rtol=1e-9)
            chosen = values[np.arange(len(X)), labels @ (1 << np.arange(4)[::-1])]
            np.testing.assert_allclose(chosen, values.max(axis=1), rtol=1e-9)
            assert (model.predict(X) == labels).all()
            assert (model.expected_f(X) == expected_f).all()


def test_values_of_all_sets_are_expectations():
    # the helper above, against a sum over the joint distribution that Powerset knows
    part = Powerset(random_state=0).fit(X, Y)
    proba = part.models_.answers(X).proba(0)
    P, d = part.estimate(X)
    for beta, zero_division in [(1.0, 1.0), (2.0, 0.3)]:
        sets, values = values_of_all_sets(P, d[:, 0], beta, zero_division, False)
        table = f_table(sets, beta, zero_division)
        of_set = part.labelsets_.astype(int) @ (1 << np.arange(4)[::-1])
        np.testing.assert_allclose(values, proba @ table[of_set], atol=1e-12)


def test_single_factor_is_gfm():
    model = FGFMClassifier(method="two-step", nonempty=False, random_state=0)
    decided, expected_f = model.fit(X, Y).decide(X)
    P, d = TwoStep(random_state=0).fit(X, Y).estimate(X)
    for row in range(60):
        labels, value = gfm(P[row], d[row, 0])
        assert (decided[row] == labels).all()
        assert expected_f[row] == pytest.approx(value)


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("reweighted", Reweighted),
        ("two-step", TwoStep),
        ("tilted", Tilted),
        ("powerset", Powerset),
        ("direct", Direct),
    ],
)
def test_factors_are_fitted_as_if_alone(method, kind):
    model = FGFMClassifier(factors=[[2, 0], [1, 3]], method=method, random_state=0)
    model.fit(X, Y)
    p = model.predict_proba(X)
    for factor in ([2, 0], [1, 3]):
        alone = kind(random_state=0).fit(X, Y[:, factor]).estimate(X)
        np.testing.assert_allclose(p[:, factor], alone.P.sum(axis=2), atol=1e-12)


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("factors", FACTORS, ids=str)
def test_answers_agree_with_each_other(method, factors):
    model = FGFMClassifier(method=method, factors=factors, random_state=0).fit(X, Y)
    P, d = estimates_by_hand(model, X)
    np.testing.assert_allclose(model.predict_proba(X), P.sum(axis=2), atol=1e-12)
    np.testing.assert_allclose(model.predict_cardinality_proba(X), d, atol=1e-12)
    sizes = np.arange(d.shape[1])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), d @ sizes, atol=1e-9)
    assert model.n_parameters_ == sum(
        len(f) * len(set(Y[:, f].sum(axis=1)) - {0}) for f in model.factors_
    )
    assert model.score(X, Y) == fgfm.f_measure(Y, model.predict(X))


def test_expected_f_is_about_the_score():
    rows, labels = some_data(3000, seed=4)
    model = FGFMClassifier(random_state=0).fit(rows[:2000], labels[:2000])
    assert model.expected_f(rows[2000:]).mean() == pytest.approx(
        model.score(rows[2000:], labels[2000:]), abs=0.03
    )


def test_score_is_better_than_the_threshold():
    rows, _ = some_data(2000)
    rng = np.random.default_rng(4)
    labels = (0.5 * rows[:, :1] + rng.normal(size=(2000, 5)) > 1.0).astype(int)
    labels[~labels.any(axis=1), 0] = 1
    model = FGFMClassifier(random_state=0).fit(rows[:1000], labels[:1000])
    plain = (model.predict_proba(rows[1000:]) > 0.5).astype(int)
    assert model.score(rows[1000:], labels[1000:]) > fgfm.f_measure(labels[1000:], plain) + 0.01


@pytest.mark.parametrize("learner", [None, GaussianNB()])
@pytest.mark.parametrize("factors", ["single", "independent"])
def test_settings_of_the_decision_need_no_refit(learner, factors):
    model = FGFMClassifier(learner, factors=factors, cv=2, random_state=0).fit(X, Y)
    first = model.predict(X)
    for setting in ({"beta": 2.0}, {"beta": 0.25}, {"nonempty": True}, {"zero_division": 0.0}):
        changed = clone(model).set_params(**setting).fit(X, Y)
        same(pickle.loads(pickle.dumps(model)).set_params(**setting), changed)
    assert (model.set_params(beta=4.0).predict(X) != first).any()


@pytest.mark.parametrize(
    ("setting", "error", "sentence"),
    [
        ({"beta": 0.0}, ValueError, r"beta is 0\.0: it must be a number greater than 0"),
        ({"zero_division": 1.5}, ValueError, r"zero_division is 1\.5: it must be a number in"),
        ({"nonempty": 1}, TypeError, "nonempty is 1: it must be 'auto', True or False"),
        ({"nonempty": "no"}, TypeError, "nonempty is 'no': it must be 'auto', True or False"),
    ],
    ids=str,
)
def test_settings_of_the_decision_are_checked_when_they_take_effect(setting, error, sentence):
    model = FGFMClassifier(random_state=0).fit(X, Y).set_params(**setting)
    with pytest.raises(error, match=sentence):
        model.predict(X)
    with pytest.raises(error, match=sentence):
        model.expected_f(X)


@pytest.mark.parametrize("fitted", ["powerset", "two-step", "direct"])
def test_other_settings_take_effect_with_the_next_fit(fitted):
    labels = Y.copy()
    labels[:, 1] = 1
    model = FGFMClassifier(factors="independent", method=fitted, random_state=0).fit(X, labels)
    expected = model.predict_proba(X), model.predict(X)
    for other in ["two-step", "powerset", "tilted"]:
        model.set_params(method=other, factors="single", coherent=False)
        assert (model.predict_proba(X) == expected[0]).all()
        assert (model.predict(X) == expected[1]).all()


def test_flat_y_is_decided_by_one_half():
    y = Y[:, 0]
    model = FGFMClassifier(random_state=0).fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (60, 2)
    assert (model.predict(X) == (proba[:, 1] > 0.5)).all()
    named = FGFMClassifier(random_state=0).fit(X, np.array(["no", "yes"])[y])
    assert (named.predict(X) == np.array(["no", "yes"])[model.predict(X)]).all()
    assert named.score(X, np.array(["no", "yes"])[y]) == model.score(X, y)
    assert not hasattr(named, "label_names_in_")
    with pytest.raises(
        ValueError, match=r"y\[0\] is .*'maybe'.*: the classes in fit were 'no', 'y"
    ):
        named.score(X[:1], ["maybe"])


def test_one_column_is_flat_only_as_an_array():
    with pytest.warns(sklearn.exceptions.DataConversionWarning):
        assert FGFMClassifier().fit(X, Y[:, :1]).predict(X).shape == (60,)
    pd = pytest.importorskip("pandas")
    frame = FGFMClassifier().fit(X, pd.DataFrame(Y[:, :1], columns=["a"]))
    assert frame.predict(X).shape == (60, 1)
    assert frame.predict_proba(X).shape == (60, 1)
    assert FGFMClassifier().fit(X, sparse.csr_array(Y[:, :1])).predict(X).shape == (60, 1)


# Kinds of data


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("learner", [None, LogisticRegression(), GaussianNB()])
def test_frames(library, learner):
    frames = pytest.importorskip(library)
    X_frame = frames.DataFrame({f"x{j}": X[:, j] for j in range(3)})
    Y_frame = frames.DataFrame({name: Y[:, i] for i, name in enumerate("abcd")})
    model = FGFMClassifier(learner, random_state=0).fit(X_frame, Y_frame)
    plain = FGFMClassifier(learner, random_state=0).fit(X, Y)
    assert model.classes_.tolist() == model.label_names_in_.tolist() == list("abcd")
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    assert plain.classes_.tolist() == [0, 1, 2, 3]
    assert not hasattr(plain, "label_names_in_")
    np.testing.assert_allclose(model.predict_proba(X_frame), plain.predict_proba(X), atol=1e-9)
    predicted = model.predict(X_frame)
    assert type(predicted) is np.ndarray
    assert predicted.dtype == np.int64
    assert (predicted == plain.predict(X)).all()
    framed = model.predict_frame(X_frame)
    assert type(framed) is frames.DataFrame
    assert list(framed.columns) == list("abcd")
    assert (framed.to_numpy() == predicted).all()
    assert model.score(X_frame, Y_frame) == plain.score(X, Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X_frame[["x1", "x0", "x2"]])
    with pytest.raises(ValueError, match="y has column 0 'b' where fit had 'a': the columns must"):
        model.score(X_frame, Y_frame[["b", "a", "c", "d"]])


def test_frames_keep_their_index():
    pd = pytest.importorskip("pandas")
    index = [f"row {i}" for i in range(60)][::-1]
    X_frame = pd.DataFrame(X, index=index, columns=list("xyz"))
    for learner in (None, GaussianNB()):
        model = FGFMClassifier(learner, random_state=0).fit(X_frame, pd.DataFrame(Y, index=index))
        assert list(model.predict_frame(X_frame[5:9]).index) == index[5:9]
        assert (model.predict_frame(X_frame)[2] == model.predict(X_frame)[:, 2]).all()


@pytest.mark.parametrize("rows", [X[:4], X[:4].tolist(), sparse.csr_array(X[:4])], ids=type)
def test_predict_frame_of_rows_that_are_no_frame(rows):
    pytest.importorskip("pandas")
    model = FGFMClassifier(random_state=0).fit(X, Y)
    frame = model.predict_frame(rows)
    assert list(frame.index) == [0, 1, 2, 3]
    assert list(frame.columns) == [0, 1, 2, 3]
    assert (frame.to_numpy() == model.predict(X[:4])).all()


def test_predict_frame_of_a_flat_y():
    pytest.importorskip("pandas")
    model = FGFMClassifier(random_state=0).fit(X, np.array(["no", "yes"])[Y[:, 0]])
    frame = model.predict_frame(X)
    assert frame.shape == (60, 1)
    assert (frame.to_numpy()[:, 0] == model.predict(X)).all()


def test_predict_frame_without_pandas(monkeypatch):
    model = FGFMClassifier(random_state=0).fit(X, Y)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas is not installed: pip install pandas, or call"):
        model.predict_frame(X)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int32, np.float32, np.float64])
def test_predictions_have_the_dtype_of_y(dtype):
    model = FGFMClassifier(random_state=0).fit(X, Y.astype(dtype))
    assert model.predict(X).dtype == dtype
    assert (model.predict(X) == FGFMClassifier(random_state=0).fit(X, Y).predict(X)).all()
    assert FGFMClassifier().fit(X, sparse.csr_array(Y.astype(dtype))).predict(X).dtype == dtype


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "float64", "bool", object])
def test_columns_of_any_dtype(dtype):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(Y, columns=list("abcd")).astype(dtype)
    model = FGFMClassifier(random_state=0).fit(X, frame)
    assert (model.predict(X) == FGFMClassifier(random_state=0).fit(X, Y).predict(X)).all()
    assert model.predict(X).dtype.kind in "bif"


def test_lists():
    model = FGFMClassifier(random_state=0).fit(X.tolist(), Y.tolist())
    same(model, FGFMClassifier(random_state=0).fit(X, Y))
    assert (model.predict(X.tolist()) == model.predict(X)).all()
    other = FGFMClassifier(GaussianNB(), random_state=0).fit(X.tolist(), Y.tolist())
    same(other, FGFMClassifier(GaussianNB(), random_state=0).fit(X, Y))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("learner", [None, LogisticRegression()])
def test_sparse_features(form, kind, learner):
    rows, labels = kind(X[:40]).asformat(form), Y[:40, :2]
    model = FGFMClassifier(learner, random_state=0).fit(rows, labels)
    plain = FGFMClassifier(learner, random_state=0).fit(X[:40], labels)
    np.testing.assert_allclose(model.predict_proba(rows), plain.predict_proba(X[:40]), atol=2e-3)
    assert model.score(rows, labels) == pytest.approx(plain.score(X[:40], labels), abs=0.03)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_labels(form, kind):
    labels = kind(Y).asformat(form)
    model = FGFMClassifier(random_state=0).fit(X, labels)
    plain = FGFMClassifier(random_state=0).fit(X, Y)
    predicted = model.predict(X)
    assert sparse.issparse(predicted)
    assert isinstance(predicted, sparse.sparray) == (kind is sparse.csr_array)
    assert (predicted.toarray() == plain.predict(X)).all()
    assert model.score(X, labels) == plain.score(X, Y)
    assert model.score(X, Y) == plain.score(X, Y)


def test_refitting_forgets():
    pd = pytest.importorskip("pandas")
    model = FGFMClassifier(random_state=0).fit(
        pd.DataFrame(X, columns=list("xyz")), pd.DataFrame(Y, columns=list("abcd"))
    )
    model.fit(X[:, :2], Y[:, :3])
    assert not hasattr(model, "label_names_in_")
    assert not hasattr(model, "feature_names_in_")
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_features_in_ == 2
    same(model, FGFMClassifier(random_state=0).fit(X[:, :2], Y[:, :3]), X[:, :2])
    model.fit(X, Y[:, 0])
    assert model.predict(X).ndim == 1


def test_arguments_are_left_alone():
    rows, labels, weight = X.copy(), Y.copy(), np.linspace(0.0, 2.0, 60)
    for array in (rows, labels, weight):
        array.setflags(write=False)
    for learner in (None, GaussianNB()):
        model = FGFMClassifier(learner, random_state=0).fit(rows, labels, sample_weight=weight)
        model.predict(rows)
    partition = [[0, 1], [2, 3]]
    FGFMClassifier(factors=partition).fit(X, Y)
    assert partition == [[0, 1], [2, 3]]
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("xyz"))
    FGFMClassifier(GaussianNB()).fit(frame, Y).predict(frame)
    assert list(frame.columns) == list("xyz")


# Factors


def test_partition_by_name():
    pd = pytest.importorskip("pandas")
    labels = pd.DataFrame(Y, columns=["cat", "dog", "cow", "hen"])
    by_name = FGFMClassifier(factors=[["hen", "cat"], ("dog", "cow")], random_state=0)
    by_number = FGFMClassifier(factors=[[3, 0], np.array([1, 2])], random_state=0)
    same(by_name.fit(X, labels), by_number.fit(X, Y))
    assert [f.tolist() for f in by_name.factors_] == [[3, 0], [1, 2]]


def test_order_of_factors_and_labels_does_not_matter():
    one = FGFMClassifier(factors=[[0, 2], [1, 3]], cv=KFold(3)).fit(X, Y)
    two = FGFMClassifier(factors=[[3, 1], [2, 0]], cv=KFold(3)).fit(X, Y)
    close(one, two)
    assert (one.predict(X) == two.predict(X)).all()


def test_singletons_are_independent_labels():
    one = FGFMClassifier(factors="independent", random_state=0).fit(X, Y)
    two = FGFMClassifier(factors=[[2], [0], [3], [1]], random_state=0).fit(X, Y)
    close(one, two)
    assert (one.predict(X) == two.predict(X)).all()
    decision = fgfm.decision.from_marginals(one.predict_proba(X), nonempty=one.nonempty_)
    assert (one.predict(X) == decision.labels).all()


class Finder(BaseEstimator):
    """Finds the factors that it is told, and remembers what it was given."""

    def __init__(self, found=None, random_state=None):
        self.found = found
        self.random_state = random_state

    def fit(self, X, Y, sample_weight=None):
        assert set(np.unique(Y)) <= {0, 1}
        self.factors_ = self.found
        Finder.last = (self, X.shape, Y.shape, sample_weight)
        return self


def test_factors_of_an_object():
    finder = Finder([[0, 3], [1, 2]])
    model = FGFMClassifier(factors=finder, random_state=0).fit(X, Y)
    same(model, FGFMClassifier(factors=[[0, 3], [1, 2]], random_state=0).fit(X, Y))
    assert not hasattr(finder, "factors_")
    used, *shapes, weight = Finder.last
    assert used.random_state == 0
    assert shapes == [(60, 3), (60, 4)]
    assert weight is None
    model.fit(X, Y, sample_weight=np.ones(60))
    assert len(Finder.last[3]) == 60
    with pytest.raises(ValueError, match="factors leaves out label 3: every label must be in"):
        FGFMClassifier(factors=Finder([[0, 1], [2]])).fit(X, Y)


class Constant(BaseEstimator):
    """An estimate of P that looks at no feature, and gives d or leaves it out."""

    def __init__(self, with_d=True):
        self.with_d = with_d

    def fit(self, X, Y, sample_weight=None):
        self.part_ = Powerset(DummyClassifier()).fit(X, Y, sample_weight)
        return self

    def estimate(self, X):
        P, d = self.part_.estimate(X)
        return (P, d) if self.with_d else P


def test_parameters_of_an_object():
    expected = FGFMClassifier(DummyClassifier(), factors=[[0, 1], [2, 3]], method="powerset").fit(
        X, Y
    )
    for with_d in (True, False):
        model = FGFMClassifier(factors=[[0, 1], [2, 3]], method=Constant(with_d)).fit(X, Y)
        close(model, expected)
        assert (model.predict(X) == expected.predict(X)).all()
        np.testing.assert_allclose(
            model.predict_cardinality_proba(X), expected.predict_cardinality_proba(X), atol=1e-12
        )
    assert not hasattr(model.method, "part_")
    weight = np.linspace(0.5, 2.0, 60)
    close(model.fit(X, Y, sample_weight=weight), expected.fit(X, Y, sample_weight=weight))


def test_parameters_of_an_object_with_the_wrong_shape():
    class Wrong(BaseEstimator):
        def fit(self, X, Y):
            return self

        def estimate(self, X):
            return np.zeros((len(X), 2, 2))

    model = FGFMClassifier(method=Wrong()).fit(X, Y)
    sentence = r"method\.estimate for factor 0 gave P of shape \(60, 2, 2\): it must have shape"
    with pytest.raises(ValueError, match=sentence + r" \(60, 4, S\)"):
        model.predict(X)


# Refusals


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
        ({"method": TwoStep}, TypeError, "method is .*TwoStep.*: it must be .*instance"),
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
        ({"estimator": "ridge"}, TypeError, r"estimator is 'ridge': it must be a scikit-learn cl"),
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
        ({"cv": 1}, ValueError, "cv is 1: it must be 2 folds or more"),
        ({"cv": "three"}, TypeError, "cv is 'three': it must be a number of folds"),
        ({"estimator": GaussianNB(), "cv": 1}, ValueError, "cv is 1: it must be 2 folds or more"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_settings_that_are_refused(settings, error, sentence):
    with pytest.raises(error, match=sentence):
        FGFMClassifier(**settings).fit(X, Y)


def spoiled(index, value):
    labels = Y.astype(float)
    labels[index] = value
    return labels


BAD_LABELS = {
    "minus one": (2 * Y - 1, ValueError, r"y\[0, \d\] is -1: labels must be 0 or 1"),
    "one and two": (Y + 1, ValueError, r"y\[0, \d\] is 2: labels must be 0 or 1"),
    "two": (spoiled((7, 2), 2), ValueError, r"y\[7, 2\] is 2.0: labels must be 0 or 1"),
    "half": (spoiled((7, 2), 0.5), ValueError, r"y\[7, 2\] is 0.5: labels must be 0 or 1"),
    "nan": (spoiled((5, 3), np.nan), ValueError, r"y\[5, 3\] is nan: labels must be 0 or 1"),
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
    "masked": (np.ma.array(Y, mask=Y == 1), TypeError, "y is a masked array: fill in what is"),
}


@pytest.mark.parametrize("name", BAD_LABELS)
@pytest.mark.parametrize("learner", [None, GaussianNB()])
def test_labels_that_are_refused(name, learner):
    labels, error, sentence = BAD_LABELS[name]
    with pytest.raises(error, match=sentence):
        FGFMClassifier(learner).fit(X, labels)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_labels_that_are_refused(library):
    frames = pytest.importorskip(library)
    missing = frames.DataFrame({"a": [None] + [1] * 59, "b": [0, 1] * 30})
    with pytest.raises(ValueError, match=r"y\[0, 0\] is nan: labels must be 0 or 1"):
        FGFMClassifier().fit(X, missing)
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
def test_text_is_no_number_in_a_frame_either(library):
    frames = pytest.importorskip(library)
    with pytest.raises(TypeError, match=r"y has dtype .*: it must hold real numbers"):
        FGFMClassifier().fit(X, frames.DataFrame({"a": ["0", "1"] * 30, "b": ["1", "1"] * 30}))


@pytest.mark.parametrize("learner", [None, GaussianNB(), LogisticRegression()])
def test_features_that_are_refused(learner):
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


def test_weights_that_are_refused():
    with pytest.raises(ValueError, match="sample_weight has 3 rows and X has 60: they must have"):
        FGFMClassifier().fit(X, Y, sample_weight=np.ones(3))
    with pytest.raises(
        ValueError, match=r"sample_weight\[4\] is -1.0: weights must be finite and"
    ):
        FGFMClassifier().fit(X, Y, sample_weight=np.where(np.arange(60) == 4, -1.0, 1.0))
    with pytest.raises(ValueError, match="sample_weight is zero in every row: one weight must be"):
        FGFMClassifier().fit(X, Y, sample_weight=np.zeros(60))
    sentence = (
        "sample_weight is given, and estimator KNeighborsClassifier takes none in fit: leave"
    )
    with pytest.raises(ValueError, match=sentence):
        FGFMClassifier(KNeighborsClassifier()).fit(X, Y, sample_weight=np.ones(60))
    with pytest.raises(
        ValueError, match="sample_weight is given, and estimator Pipeline takes no"
    ):
        FGFMClassifier(make_pipeline(StandardScaler(), GaussianNB())).fit(
            X, Y, sample_weight=np.ones(60)
        )


@pytest.mark.parametrize("learner", [None, RidgeLogistic()])
def test_arguments_of_fit_that_the_ridge_does_not_know(learner):
    with pytest.raises(TypeError, match="fit got colour: the default base learner takes nothing"):
        FGFMClassifier(learner).fit(X, Y, colour="red")


def test_arguments_of_fit_go_to_the_learner():
    class Coloured(DummyClassifier):
        def fit(self, X, y, sample_weight=None, colour=None, shade=None):
            assert colour == "red"
            assert len(shade) == len(y)
            Coloured.rows = len(y)
            return super().fit(X, y, sample_weight)

    FGFMClassifier(Coloured(), calibration="sigmoid").fit(X, Y, colour="red", shade=np.arange(60))
    assert Coloured.rows == 60
    with pytest.raises(AssertionError):
        FGFMClassifier(Coloured()).fit(X, Y)


def test_methods_that_need_an_estimate():
    model = FGFMClassifier(random_state=0).fit(X, Y)
    assert not hasattr(model, "predict_mode")
    assert not hasattr(model, "repair")
    with pytest.raises(AttributeError) as caught:
        _ = model.predict_mode
    assert "predict_mode needs method='powerset'" in str(caught.value.__cause__)
    with pytest.raises(AttributeError) as caught:
        _ = model.repair
    assert "repair needs method='direct'" in str(caught.value.__cause__)


def test_mode_and_repair():
    factors = [[1, 3], [0, 2]]
    model = FGFMClassifier(factors=factors, method="powerset", random_state=0).fit(X, Y)
    mode = model.predict_mode(X)
    for factor in factors:
        alone = Powerset(random_state=0).fit(X, Y[:, factor])
        assert (mode[:, factor] == alone.mode(X)).all()
    direct = FGFMClassifier(factors=factors, method="direct", random_state=0).fit(X, Y)
    repairs = direct.repair(X)
    assert len(repairs) == 2
    for factor, repair in zip(factors, repairs, strict=True):
        assert repair.d_0.shape == repair.moved.shape == (60,)
        alone = Direct(random_state=0).fit(X, Y[:, factor]).repair(X)
        np.testing.assert_allclose(repair.d_0, alone.d_0, atol=1e-12)
        np.testing.assert_allclose(repair.moved, alone.moved, atol=1e-12)


# Base learners


class NoWeights(ClassifierMixin, BaseEstimator):
    """A learner whose fit takes nothing but the data; it knows a class by its mean."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == k].mean(axis=0) for k in self.classes_])
        return self

    def predict_proba(self, X):
        closeness = np.exp(-((X[:, None] - self.means_) ** 2).sum(axis=2))
        return closeness / closeness.sum(axis=1, keepdims=True)


LEARNERS = {
    "forest": RandomForestClassifier(5),
    "boosting": GradientBoostingClassifier(n_estimators=5),
    "neighbours": KNeighborsClassifier(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "bayes": GaussianNB(),
    "scores only": LinearSVC(),
    "no weights": NoWeights(),
    "search": GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-2]}, cv=KFold(2)),
    "ridge": RidgeLogistic([1.0]),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_base_learners(name):
    model = FGFMClassifier(LEARNERS[name], cv=2, random_state=0).fit(X, Y)
    P, d = estimates_by_hand(model, X)
    assert is_coherent(P, d, tol=1e-8).all()
    predicted = model.predict(X)
    assert predicted.shape == (60, 4)
    best = fgfm.f_measure(Y, np.tile(Y.mean(axis=0) > 0.3, (60, 1)).astype(int))
    assert model.score(X, Y) > best + 0.03
    same(clone(model).fit(X, Y), model)  # the seed reaches every learner


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_pipelines_that_choose_columns_by_name(library):
    frames = pytest.importorskip(library)
    rows, labels = some_data(120, 3)
    colour = np.array(["red", "green", "blue"])[(rows[:, 0] > 0.5) + (rows[:, 0] > -0.5) * 1]
    frame = frames.DataFrame({"colour": colour, "size": rows[:, 1], "age": rows[:, 2]})
    learner = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["colour"]),
            remainder="passthrough",
        ),
        LogisticRegression(),
    )
    model = FGFMClassifier(learner, random_state=0).fit(frame, labels)
    assert model.score(frame, labels) > 0.6
    coded = np.column_stack([np.eye(3)[np.unique(colour, return_inverse=True)[1]], rows[:, 1:]])
    plain = FGFMClassifier(LogisticRegression(), random_state=0).fit(coded, labels)
    np.testing.assert_allclose(model.predict_proba(frame), plain.predict_proba(coded), atol=1e-3)
    assert model.predict_frame(frame[:5]).shape == (5, 3)


def test_missing_values_are_the_learners_affair():
    rows = X.copy()
    rows[::7, 1] = np.nan
    model = FGFMClassifier(
        HistGradientBoostingClassifier(max_iter=2), factors="independent", cv=2, random_state=0
    )
    assert sklearn.utils.get_tags(model).input_tags.allow_nan
    with threadpool_limits(1):  # its threads wait for each other on busy machines
        assert model.fit(rows, Y[:, :2]).predict(rows).shape == (60, 2)


# Weights and routing


@pytest.mark.parametrize("learner", [None, GaussianNB(), RidgeLogistic([0.5])])
@pytest.mark.parametrize("factors", ["single", "independent", [[0, 1], [2, 3]]])
def test_weight_zero_removes_a_row(learner, factors):
    labels = Y.copy()
    labels[labels.sum(axis=1) == 4, 0] = 0
    labels[9] = 1  # the only row with four labels
    labels[labels.sum(axis=1) == 0, 1] = 1
    labels[10] = 0  # the only row with none
    weight = np.ones(60)
    weight[[9, 10, 30]] = 0.0
    kept = np.flatnonzero(weight)
    model = FGFMClassifier(learner, factors=factors, random_state=0)
    part = clone(model).fit(X[kept], labels[kept])
    whole = model.fit(X, labels, sample_weight=weight)
    assert whole.nonempty_
    assert part.nonempty_
    assert whole.n_parameters_ == part.n_parameters_
    close(whole, part, atol=1e-7)
    assert whole.predict_cardinality_proba(X).shape == part.predict_cardinality_proba(X).shape


@pytest.mark.parametrize("weight", [[1.0] * 60, [1] * 60, np.ones(60, np.float32)])
def test_weights_of_one_change_nothing(weight):
    for learner in (None, GaussianNB()):
        model = FGFMClassifier(learner, random_state=0)
        close(clone(model).fit(X, Y, sample_weight=weight), model.fit(X, Y), atol=1e-7)


def test_weights_as_a_series():
    pd = pytest.importorskip("pandas")
    weight = np.linspace(0.0, 2.0, 60)
    series = pd.Series(weight, index=np.arange(60)[::-1])
    for learner in (None, GaussianNB()):
        model = FGFMClassifier(learner, random_state=0)
        same(clone(model).fit(X, Y, sample_weight=series), model.fit(X, Y, sample_weight=weight))


def test_score_takes_weights():
    model = FGFMClassifier(random_state=0).fit(X, Y)
    weight = np.linspace(0.0, 1.0, 60)
    expected = fgfm.f_measure(Y, model.predict(X), sample_weight=weight)
    assert model.score(X, Y, sample_weight=weight) == expected
    model.set_params(beta=2.0, zero_division=0.0)
    expected = fgfm.f_measure(Y, model.predict(X), 2.0, zero_division=0.0)
    assert model.score(X, Y) == expected


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_routed_weights():
    weight = np.linspace(0.0, 2.0, 60)
    with sklearn.config_context(enable_metadata_routing=False):
        expected = {
            learner: FGFMClassifier(learner, random_state=0).fit(X, Y, sample_weight=weight)
            for learner in (None, GaussianNB())
        }
    close(
        FGFMClassifier(random_state=0).fit(X, Y, sample_weight=weight), expected[None], atol=1e-12
    )
    for learner, plain in expected.items():
        if learner is not None:
            asked = clone(learner).set_fit_request(sample_weight=True)
            model = FGFMClassifier(asked, random_state=0).fit(X, Y, sample_weight=weight)
            close(model, plain, atol=1e-12)
    pipeline = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=True),
        GaussianNB().set_fit_request(sample_weight=True),
    )
    weighted = FGFMClassifier(pipeline, random_state=0).fit(X, Y, sample_weight=weight)
    unweighted = FGFMClassifier(pipeline, random_state=0).fit(X, Y)
    assert np.abs(weighted.predict_proba(X) - unweighted.predict_proba(X)).max() > 1e-3


@pytest.mark.usefixtures("routing")
def test_metadata_that_nobody_asked_for_is_refused():
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        FGFMClassifier(GaussianNB()).fit(X, Y, sample_weight=np.ones(60))
    with pytest.raises(TypeError, match="colour"):
        FGFMClassifier().fit(X, Y, colour="red")


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("kind", [RidgeLogistic, GaussianNB])
def test_a_learner_that_declines_weights(kind):
    labels = Y.copy()
    labels[labels.sum(axis=1) == 4, 0] = 0
    labels[9] = 1  # the only row with four labels has the weight 0
    weight = np.where(np.arange(60) == 9, 0.0, 1.0)
    learner = kind().set_fit_request(sample_weight=False)
    model = FGFMClassifier(learner, random_state=0).fit(X, labels, sample_weight=weight)
    d = model.predict_cardinality_proba(X)
    np.testing.assert_allclose(d.sum(axis=1), 1.0, atol=1e-9)
    assert model.predict(X).shape == (60, 4)


@pytest.mark.usefixtures("routing")
def test_routing_through_a_search():
    weight = np.linspace(0.1, 2.0, 60)
    model = FGFMClassifier(random_state=0).set_fit_request(sample_weight=True)
    scorer = make_scorer(fgfm.f_measure).set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"beta": [1.0]}, cv=3, scoring=scorer)
    search.fit(X, Y, sample_weight=weight)
    close(search.best_estimator_, clone(model).fit(X, Y, sample_weight=weight), atol=1e-12)


# Reproducible, parallel, in blocks


@pytest.mark.parametrize("learner", [None, RandomForestClassifier(3), GaussianNB(), LinearSVC()])
def test_random_state(learner):
    labels = Y[:, :2]
    model = FGFMClassifier(learner, random_state=0, cv=2).fit(X, labels)
    same(model, FGFMClassifier(learner, random_state=0, cv=2).fit(X, labels))
    one = FGFMClassifier(learner, random_state=np.random.RandomState(3), cv=2)
    two = FGFMClassifier(learner, random_state=np.random.RandomState(3), cv=2)
    same(one.fit(X, labels), two.fit(X, labels))
    same(clone(model).fit(X, labels), model)


@pytest.mark.parametrize("method", [TwoStep(), TwoStep(RandomForestClassifier(2), cv=2)])
def test_random_state_reaches_an_object_of_parameters(method):
    model = FGFMClassifier(method=method, random_state=0)
    same(clone(model).fit(X, Y), clone(model).fit(X, Y))


@pytest.mark.parametrize("learner", [None, LogisticRegression(), RandomForestClassifier(2)])
def test_n_jobs_gives_the_same_bits(learner, monkeypatch):
    settings = {"factors": [[0, 1], [2, 3]], "random_state": 0, "cv": 2}
    one = FGFMClassifier(learner, **settings).fit(X, Y)
    two = FGFMClassifier(learner, n_jobs=2, **settings).fit(X, Y)
    same(one, two)
    monkeypatch.setattr(classifier, "_BLOCK_BYTES", 20_000)  # several blocks for the threads
    same(one, two)


def test_n_jobs_of_nothing():
    with pytest.raises(ValueError, match="n_jobs is 0: it must be None or an integer other than"):
        FGFMClassifier(n_jobs=0).fit(X, Y).predict(X)


@pytest.mark.parametrize("method", [*NAMES, TwoStep(random_state=0)], ids=str)
@pytest.mark.parametrize("factors", ["single", "independent"])
@pytest.mark.parametrize("kind", ["array", "sparse", "frame"])
def test_blocks_of_rows(method, factors, kind, monkeypatch):
    model = FGFMClassifier(method=method, factors=factors, random_state=0)
    rows = X[:24]
    if kind == "sparse":
        rows = sparse.csr_array(rows)
    if kind == "frame":
        rows = pytest.importorskip("pandas").DataFrame(rows, columns=list("abc"))
        if isinstance(method, str):
            model.set_params(estimator=GaussianNB(), calibration=None)
    model.fit(rows, Y[:24])

    def answers():
        found = [
            model.predict(rows),
            model.predict_proba(rows),
            model.predict_cardinality_proba(rows),
            model.expected_f(rows),
        ]
        if method == "powerset":
            found.append(model.predict_mode(rows))
        if method == "direct":
            found += [array for repair in model.repair(rows) for array in repair]
        return found

    whole = answers()
    blocks = []
    work = type(model)._decide
    monkeypatch.setattr(
        type(model), "_decide", lambda self, block: blocks.append(1) or work(self, block)
    )
    monkeypatch.setattr(classifier, "_BLOCK_BYTES", 1)
    for one, other in zip(whole, answers(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert len(blocks) == 2 * 24  # predict and expected_f, row by row


# Searches


def test_search_over_beta():
    search = GridSearchCV(
        FGFMClassifier(random_state=0), {"beta": [0.25, 1.0, 4.0]}, scoring=fgfm.f_scorer, cv=3
    ).fit(X, Y)
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) == 3
    for beta, score in zip([0.25, 1.0, 4.0], scores, strict=True):
        model = FGFMClassifier(beta=beta, random_state=0)
        assert cross_val_score(model, X, Y, cv=3, scoring=fgfm.f_scorer).mean() == score


def test_search_over_the_learner_and_the_factors():
    search = GridSearchCV(
        FGFMClassifier(LogisticRegression()),
        {"estimator__C": [1e-4, 1.0], "factors": ["single", "independent"]},
        cv=2,
    ).fit(X, Y)
    assert search.best_params_["estimator__C"] == 1.0
    assert search.best_score_ > 0.5
    fitted = search.best_estimator_
    assert fitted.get_params()["estimator__C"] == 1.0


@pytest.mark.parametrize("learner", [None, GaussianNB()])
def test_cross_val_predict(learner):
    model = FGFMClassifier(learner, calibration=None, random_state=0)
    proba = cross_val_predict(model, X, Y, cv=KFold(3), method="predict_proba")
    assert proba.shape == (60, 4)
    for train, test in KFold(3).split(X):
        fold = clone(model).fit(X[train], Y[train])
        np.testing.assert_allclose(proba[test], fold.predict_proba(X[test]), atol=1e-12)
    flat = cross_val_predict(model, X, Y[:, 0], cv=3, method="predict_proba")
    assert flat.shape == (60, 2)
    assert (cross_val_predict(model, X, Y, cv=3) <= 1).all()


# Real life. Warnings are errors here, as everywhere


def labels_of_real_life():
    n = 18
    rng = np.random.default_rng(1)
    few = (rng.random((n, 3)) < 0.4).astype(int)
    ordinary = few.copy()
    ordinary[few.sum(axis=1) == 0, 0] = 1

    def column(values):
        return np.column_stack([few, values])

    once = np.zeros(n, dtype=int)
    once[5] = 1
    many = (rng.random((n, 20)) < 0.1).astype(int)
    all_once = np.where(few.sum(axis=1, keepdims=True) == 3, [1, 0, 1], few)
    all_once[11] = 1
    return {
        "a label that is never present": column(np.zeros(n, int)),
        "a label that is always present": column(np.ones(n, int)),
        "one positive": column(once),
        "one negative": column(1 - once),
        "empty rows": np.where((np.arange(n) % 3 == 0)[:, None], 0, few),
        "no label at all": np.zeros((n, 3), int),
        "all labels always": np.ones((n, 3), int),
        "one row that is not empty": np.outer(once, [1, 1, 0]),
        "a number of labels seen once": all_once,
        "more labels than rows": many,
        "no empty row": ordinary,
        "exactly one label": np.eye(3, dtype=int)[np.arange(n) % 3],
        "equal labels": np.repeat(few[:, :1], 3, axis=1),
        "sorted": np.sort(few, axis=0),
    }


REAL_LIFE = labels_of_real_life()


@pytest.mark.parametrize("case", REAL_LIFE)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"factors": "independent"},
        {"method": "two-step"},
        {"method": "tilted"},
        {"method": "direct"},
        {"method": "powerset"},
        {"coherent": False},
        {"estimator": GaussianNB(), "cv": 3},
        {"estimator": GaussianNB(), "calibration": "isotonic", "cv": 2},
        {"estimator": KNeighborsClassifier(2), "factors": "independent"},
        {"estimator": LinearSVC(), "cv": 2},
    ],
    ids=str,
)
def test_real_life(case, settings):
    labels = REAL_LIFE[case]
    rows = np.random.default_rng(0).normal(size=(18, 2))
    model = FGFMClassifier(random_state=0, **settings).fit(rows, labels)
    assert model.nonempty_ == labels.any(axis=1).all()
    assert model.factors_ is not None
    predicted = model.predict(rows)
    assert predicted.shape == labels.shape
    if model.nonempty_:
        assert predicted.any(axis=1).all()
    p, d = model.predict_proba(rows), model.predict_cardinality_proba(rows)
    assert ((p >= 0.0) & (p <= 1.0)).all()
    np.testing.assert_allclose(d.sum(axis=1), 1.0, atol=1e-9)
    assert ((model.expected_f(rows) >= 0.0) & (model.expected_f(rows) <= 1.0 + 1e-12)).all()
    assert (p[:, ~labels.any(axis=0)] < 1e-9).all()


def test_many_label_sets_do_not_look_like_a_regression():
    labels = (np.random.default_rng(0).random((24, 30)) < 0.1).astype(int)  # hardly two are equal
    model = FGFMClassifier(method="powerset", random_state=0).fit(X[:24], labels)
    assert model.predict(X).shape == (60, 30)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("learner", [None, GaussianNB(), LinearSVC(), RandomForestClassifier(2)])
@pytest.mark.parametrize("factors", ["single", "independent"])
@pytest.mark.parametrize("method", ["two-step", "powerset"])
def test_few_rows(n, learner, factors, method):
    model = FGFMClassifier(learner, factors=factors, method=method, random_state=0)
    labels = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 0]])[:n]
    model.fit(X[:n], labels)
    predicted = model.predict(X)
    assert predicted.shape == (60, 3)
    if n == 1:
        assert (predicted == labels).all()
        np.testing.assert_allclose(model.expected_f(X), 1.0)


def test_duplicate_rows_and_constant_features():
    rows = np.repeat([[0.0, 1.0], [1.0, 1.0]], 10, axis=0)
    labels = np.repeat([[1, 0, 0], [0, 1, 1]], 10, axis=0)
    for method in NAMES:
        model = FGFMClassifier(method=method, random_state=0).fit(rows, labels)
        assert (model.predict(rows) == labels).all()
    constant = FGFMClassifier(method="two-step", random_state=0).fit(np.ones((20, 2)), labels)
    np.testing.assert_allclose(constant.predict_proba(np.ones((1, 2))), 0.5, atol=1e-6)


def test_a_fold_without_a_class():
    labels = np.zeros((30, 2), dtype=int)
    labels[:10, 0] = 1
    labels[10:20, 1] = 1  # unshuffled folds: each lacks a class
    rows = np.random.default_rng(0).normal(size=(30, 2)) + 2.0 * labels
    for learner in (None, GaussianNB(), LinearSVC(), KNeighborsClassifier(2)):
        for calibration in ("auto", "sigmoid", KFold(3)):
            model = FGFMClassifier(learner, calibration=calibration, cv=KFold(3)).fit(rows, labels)
            assert np.isfinite(model.expected_f(rows)).all()
            if learner is None and calibration == "auto":
                assert model.score(rows, labels) > 0.6


@pytest.mark.parametrize("factors", ["single", "independent"])
def test_nonempty_auto(factors):
    labels = np.where(Y.any(axis=1, keepdims=True), Y, [1, 0, 0, 0])
    rare = np.column_stack([labels, np.zeros(60, int)])
    model = FGFMClassifier(factors=factors, random_state=0).fit(X, rare)
    assert model.nonempty_
    assert model.predict(X).any(axis=1).all()
    close(model, FGFMClassifier(factors=factors, nonempty=True, random_state=0).fit(X, rare))
    rare[3] = 0
    model.fit(X, rare)
    assert not model.nonempty_
    close(model, FGFMClassifier(factors=factors, nonempty=False, random_state=0).fit(X, rare))
    assert not FGFMClassifier().fit(X, np.ones(60, int)).nonempty_  # flat: a class, no set


@pytest.mark.parametrize("factors", ["single", "independent", [[0], [1, 2]]])
@pytest.mark.parametrize("method", NAMES)
def test_rows_for_which_a_learner_names_no_label(factors, method):
    # one neighbour, and its number of labels is 1; each label's own model says 0 to all of them
    class Never(DummyClassifier):
        def predict_proba(self, X):
            p = super().predict_proba(X)
            if 0 in self.classes_:
                p[:] = self.classes_ == 0
            return p

    labels = np.array([[1, 0, 0]] * 30 + [[0, 1, 0]] * 20 + [[0, 0, 1]] * 10)
    model = FGFMClassifier(Never(), factors=factors, method=method, calibration=None)
    decided = model.fit(X, labels).predict(X[:3])
    assert model.nonempty_
    assert decided.any(axis=1).all()
    assert np.isfinite(model.expected_f(X)).all()
    if factors == "independent":
        assert not model.predict_proba(X).any()
        prior = fgfm.decision.from_marginals(labels.mean(axis=0)[None], nonempty=True)
        assert (decided == prior.labels).all()
        np.testing.assert_allclose(model.expected_f(X), prior.expected_f[0])


def test_silent_neighbours_among_others():
    rows = np.array([[0.0], [0.1], [0.2], [10.0], [10.1], [10.2]])
    labels = np.array([[1, 0], [0, 1], [1, 0], [0, 1], [0, 1], [0, 1]])
    model = FGFMClassifier(KNeighborsClassifier(1), factors=[[0], [1]]).fit(rows, labels)
    frequencies = fgfm.decision.from_marginals(labels.mean(axis=0)[None], nonempty=True)

    class Half(KNeighborsClassifier):
        """Certain that there is no label, left of 5."""

        def predict_proba(self, X):
            p = super().predict_proba(X)
            p[np.asarray(X)[:, 0] < 5.0] = [1.0, 0.0]
            return p

    silent = FGFMClassifier(Half(1), factors=[[0], [1]]).fit(rows, labels)
    assert (silent.predict(rows)[:3] == frequencies.labels).all()
    assert (silent.predict(rows)[3:] == model.predict(rows)[3:]).all()
    np.testing.assert_allclose(silent.expected_f(rows)[3:], model.expected_f(rows)[3:])


def test_nonempty_where_no_label_ever_occurred():
    model = FGFMClassifier(nonempty=True, random_state=0).fit(X, np.zeros((60, 3), int))
    with pytest.warns(
        UserWarning, match="rows without probability for a non-empty label set.* 5,"
    ):
        decision = model.decide(X[:5])
    assert not decision.labels.any()
    assert np.isnan(decision.expected_f).all()


# Telling how far it is


def test_verbose(capsys):
    FGFMClassifier(random_state=0).fit(X, Y)
    assert capsys.readouterr().out == ""
    FGFMClassifier(factors=[[0, 1], [2, 3]], verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[FGFMClassifier] 4 label(s) in 2 factor(s) (")
    assert lines[-1].startswith("[FGFMClassifier] 6 of 6 models (")
    assert len(lines) == 2
    FGFMClassifier(GaussianNB(), factors="independent", verbose=2).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("] ")[1].split(" (")[0] for line in lines[1:]] == [
        f"{count} of 4 models" for count in (1, 2, 3, 4)
    ]
    FGFMClassifier(method=TwoStep(), factors=[[0, 1], [2, 3]], verbose=1).fit(X, Y)
    assert "2 of 2 models" in capsys.readouterr().out


class Recording:
    """A callback of scikit-learn 1.9 that writes down what it is told."""

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
    ("settings", "models"),
    [
        ({}, 5),
        ({"factors": "independent"}, 4),
        ({"method": "powerset"}, 1),
        ({"estimator": GaussianNB(), "calibration": None}, 5),
        ({"method": TwoStep(), "factors": [[0, 1], [2, 3]]}, 2),
    ],
    ids=str,
)
def test_callbacks_hear_of_every_model(settings, models):
    pytest.importorskip("sklearn.callback")
    heard = Recording()
    model = FGFMClassifier(random_state=0, **settings).set_callbacks(heard).fit(X, Y)
    names = [name for kind, name in heard.record if kind == "begin"]
    assert sorted(names) == sorted(
        name for kind, name in heard.record if kind == "end"
    )  # all that begins ends
    assert names.count("model") == models
    assert names.count("models") == names.count("label factors") == 1
    assert len(names) == models + 3
    assert heard.record[0][0] == "setup"
    assert heard.record[-1][0] == "teardown"
    close(model, FGFMClassifier(random_state=0, **settings).fit(X, Y), atol=1.0)


def test_callbacks_of_a_fit_that_fails_are_torn_down():
    pytest.importorskip("sklearn.callback")
    heard = Recording()
    with pytest.raises(ValueError, match="labels must be 0 or 1"):
        FGFMClassifier().set_callbacks(heard).fit(X, Y + 1)
    kinds = [kind for kind, _ in heard.record]
    assert kinds.count("setup") == kinds.count("teardown")


def test_progress_bar(capsys):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    model = FGFMClassifier(random_state=0).set_callbacks(callback.ProgressBar()).fit(X, Y)
    assert "FGFMClassifier" in capsys.readouterr().out
    same(model, FGFMClassifier(random_state=0).fit(X, Y))
    search = GridSearchCV(FGFMClassifier(random_state=0), {"beta": [1.0, 2.0]}, cv=2)
    search.set_callbacks(callback.ProgressBar()).fit(X, Y)


def test_html_and_text():
    model = fgfm.FGFMClassifier(GaussianNB(), beta=2.0, random_state=0)
    assert "FGFMClassifier" in model._repr_html_()
    model.fit(X, Y)
    html = model._repr_html_()
    assert "GaussianNB" in html
    assert "n_parameters_" in html or "Fitted" in html
    assert repr(model) == "FGFMClassifier(beta=2.0, estimator=GaussianNB(), random_state=0)"


@pytest.mark.parametrize("learner", [None, GaussianNB(), LinearSVC()])
@pytest.mark.parametrize("method", NAMES)
def test_pickle(learner, method):
    model = FGFMClassifier(learner, method=method, cv=2, random_state=0).fit(X, Y)
    same(pickle.loads(pickle.dumps(model)), model)


def test_fitting_returns_itself_and_sets_what_is_promised():
    model = FGFMClassifier(factors=[[0, 1], [2, 3]], random_state=0)
    assert model.fit(X, Y) is model
    promised = {"factors_", "classes_", "nonempty_", "n_parameters_", "n_features_in_"}
    found = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert found == promised
    assert model.n_features_in_ == 3


def test_a_column_transformer_that_drops_the_number_of_labels():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("xyz"))

    def learner(remainder):
        kept = ColumnTransformer([("kept", StandardScaler(), ["x", "y"])], remainder=remainder)
        return make_pipeline(kept, LogisticRegression())

    with pytest.warns(UserWarning, match="drops other columns, .* set remainder='passthrough'"):
        FGFMClassifier(learner("drop"), method="two-step").fit(frame, Y)
    FGFMClassifier(learner("passthrough"), method="two-step").fit(frame, Y)
    FGFMClassifier(learner("drop"), method="tilted").fit(frame, Y)


def test_an_object_of_parameters_reads_the_features_itself():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"word": np.where(X[:, 0] > 0.0, "left", "right"), "x": X[:, 1]})
    words = ColumnTransformer([("w", OneHotEncoder(), ["word"])], remainder="passthrough")
    learner = make_pipeline(words, LogisticRegression())
    own = FGFMClassifier(method=TwoStep(learner, random_state=0)).fit(frame, Y)
    named = FGFMClassifier(learner, method="two-step", random_state=0).fit(frame, Y)
    same(own, named, frame)


# Learned factors


def pairs_of_labels(n=400):
    """Give labels that depend on each other two by two, given features of any kind."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(n, 2))
    noise = rng.random((n, 4)) < 0.15
    labels = (rows[:, [0, 0, 1, 1]] + rng.normal(size=(n, 2))[:, [0, 0, 1, 1]] > 0.0) ^ noise
    return rows, labels.astype(int)


def test_factors_are_learned_where_asked_for():
    rows, labels = pairs_of_labels()
    model = fgfm.FGFMClassifier(factors="ilf", random_state=0).fit(rows, labels)
    assert [factor.tolist() for factor in model.factors_] == [[0, 1], [2, 3]]
    assert type(model.factor_finder_) is fgfm.ILFCompo
    same(model, FGFMClassifier(factors=[[0, 1], [2, 3]], random_state=0).fit(rows, labels), rows)
    weight = np.ones(2 * len(rows))
    weight[len(rows) :] = 0.0  # rows of weight 0 are not there, for the tests neither
    twice = fgfm.FGFMClassifier(factors="ilf", random_state=0)
    twice.fit(np.vstack([rows, rows]), np.vstack([labels, labels[::-1]]), sample_weight=weight)
    same(twice, model, rows)
    stricter = fgfm.FGFMClassifier(factors=fgfm.ILFCompo(alpha=1e-300)).fit(rows, labels)
    assert len(stricter.factors_) == 4
    assert not hasattr(stricter.set_params(factors="single").fit(rows, labels), "factor_finder_")


def test_factors_are_learned_from_frames_with_names_and_gaps():
    pd = pytest.importorskip("pandas")
    rows, labels = pairs_of_labels()
    frame = pd.DataFrame({"x": rows[:, 0], "word": np.where(rows[:, 1] > 0.0, "left", "right")})
    frame.loc[::7, "x"] = np.nan
    learner = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(sparse_output=False), ["word"]), remainder="passthrough"
        ),
        HistGradientBoostingClassifier(max_iter=5),
    )
    model = fgfm.FGFMClassifier(learner, factors="ilf", calibration=None, random_state=0)
    model.fit(frame, labels)
    assert [factor.tolist() for factor in model.factors_] == [[0, 1], [2, 3]]
    assert model.predict(frame).shape == labels.shape


def test_the_finder_keeps_the_names_and_must_be_an_instance():
    pd = pytest.importorskip("pandas")
    rows, labels = pairs_of_labels()
    model = fgfm.FGFMClassifier(factors="ilf")
    model.fit(rows, pd.DataFrame(labels, columns=list("abcd")))
    assert model.factor_finder_.label_names_in_.tolist() == list("abcd")
    with pytest.raises(TypeError, match=r"factors is .*ILFCompo.*, a class: it must be an object"):
        fgfm.FGFMClassifier(factors=fgfm.ILFCompo).fit(rows, labels)


def test_a_generator_is_not_shared_between_processes():
    learner = TwoStep(RandomForestClassifier(3), calibration=None)
    models = [
        FGFMClassifier(
            factors=[[0, 1], [2, 3]],
            method=learner,
            random_state=np.random.RandomState(3),
            n_jobs=n_jobs,
        ).fit(X, Y)
        for n_jobs in (None, 2)
    ]
    same(*models)
