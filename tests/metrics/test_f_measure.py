"""The F-measure against its definition and scikit-learn, for every type of input."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import fgfm.metrics
from fgfm.metrics import f_measure

HAS_1D_SPARSE = sparse.coo_array(np.zeros(2)).ndim == 1  # SciPy >= 1.13
SPARSE_FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


def plain_f(y, h, beta, zero_division):
    """Return F_beta of one row by its definition."""
    both = sum(int(a) * int(b) for a, b in zip(y, h, strict=True))
    size = beta**2 * sum(int(a) for a in y) + sum(int(b) for b in h)
    return (1 + beta**2) * both / size if size else zero_division


@st.composite
def label_pairs(draw):
    shape = (draw(st.integers(1, 6)), draw(st.integers(1, 6)))
    labels = arrays(np.int64, shape, elements=st.integers(0, 1))
    return draw(labels), draw(labels)


@pytest.fixture
def pair():
    rng = np.random.default_rng(5)
    Y, H = (rng.random((2, 40, 7)) < 0.25).astype(np.int64)
    assert ((Y.sum(1) == 0) & (H.sum(1) == 0)).any()  # 0/0 occurs
    return Y, H


@settings(deadline=None, derandomize=True)
@given(label_pairs(), st.floats(0.1, 10.0), st.floats(0.0, 1.0))
def test_f_measure_agrees_with_its_definition(pair, beta, zero_division):
    Y, H = pair
    expected = [plain_f(y, h, beta, zero_division) for y, h in zip(Y, H, strict=True)]
    f = f_measure(Y, H, beta, zero_division=zero_division, per_row=True)
    assert f.dtype == np.float64
    np.testing.assert_allclose(f, expected, rtol=1e-14)
    mean = f_measure(Y, H, beta, zero_division=zero_division)
    assert type(mean) is float
    assert mean == pytest.approx(np.mean(expected), rel=1e-14)


@pytest.mark.parametrize("average", ["samples", "macro", "weighted", "micro", None])
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_averages_agree_with_scikit_learn(pair, average, beta, zero_division):
    Y, H = (labels.copy() for labels in pair)
    Y[:, 0] = H[:, 0] = 0  # 0/0
    weight = np.random.default_rng(0).random(len(Y))
    weight[:3] = 0.0
    forms = [(Y, H), (sparse.csr_array(Y), H), (Y, sparse.csc_matrix(H))]
    forms.append((sparse.csr_matrix(Y), sparse.csr_array(H)))
    for sample_weight in (None, weight):
        kwargs = {"average": average, "zero_division": zero_division}
        kwargs["sample_weight"] = sample_weight
        expected = fbeta_score(Y, H, beta=beta, **kwargs)
        for true, predicted in forms:
            np.testing.assert_allclose(
                f_measure(true, predicted, beta, **kwargs), expected, rtol=1e-12
            )


def test_one_dimensional_input_is_the_positive_class_of_a_batch(pair):
    y, h = pair[0][:, 1], pair[1][:, 1]
    for average in ("macro", "micro"):
        expected = fbeta_score(y, h, beta=2.0)
        np.testing.assert_allclose(f_measure(y, h, 2.0, average=average), expected, rtol=1e-12)


@pytest.mark.parametrize("average", ["samples", "macro", "weighted", "micro"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_nan_leaves_undefined_terms_out(pair, average, form):
    Y, H = (labels.copy() for labels in pair)
    Y[:, 0] = H[:, 0] = 0
    weight = np.random.default_rng(0).random(len(Y))
    for w in (None, weight):
        options = {"average": average, "zero_division": np.nan, "sample_weight": w}
        expected = fbeta_score(Y, H, beta=2.0, **options)
        np.testing.assert_allclose(f_measure(form(Y), form(H), 2.0, **options), expected)
    nothing = np.zeros((3, 2), dtype=int)
    assert np.isnan(f_measure(nothing, nothing, average=average, zero_division=np.nan))


@pytest.mark.parametrize("matrix", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("form", SPARSE_FORMATS)
def test_sparse_equals_dense(pair, form, matrix):
    Y, H = pair
    expected = f_measure(Y, H, 0.5, per_row=True)
    Y_sparse, H_sparse = matrix(Y).asformat(form), matrix(H).asformat(form)
    for a, b in [(Y_sparse, H_sparse), (Y_sparse, H), (Y, H_sparse)]:
        np.testing.assert_array_equal(f_measure(a, b, 0.5, per_row=True), expected)
    np.testing.assert_array_equal(Y_sparse.toarray(), Y)  # the input is not modified


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.float32, np.float64])
def test_all_dtypes_are_accepted(pair, dtype):
    Y, H = pair
    expected = f_measure(Y, H, per_row=True)
    np.testing.assert_array_equal(f_measure(Y.astype(dtype), H, per_row=True), expected)
    a, b = sparse.csr_array(Y.astype(dtype)), sparse.csr_array(H.astype(dtype))
    np.testing.assert_array_equal(f_measure(a, b, per_row=True), expected)


def test_sparse_input_is_not_densified():
    shape = (10, 10**9)
    Y = sparse.coo_array((np.ones(3), ([0, 0, 4], [5, 10**8, 7])), shape=shape)
    H = sparse.coo_array((np.ones(2), ([0, 9], [5, 1])), shape=shape)
    f = f_measure(Y, H, per_row=True)
    np.testing.assert_allclose(f, [2 / 3, 1, 1, 1, 0, 1, 1, 1, 1, 0])


def test_sparse_with_explicit_zeros_and_repeated_entries():
    Y = sparse.csr_array((np.array([0, 1, 1]), np.array([0, 1, 2]), np.array([0, 2, 3])))
    assert Y.nnz == 3  # one of them is a zero
    assert f_measure(Y, [[0, 1, 0], [0, 0, 1]]) == 1.0
    assert Y.nnz == 3  # the input is not modified
    twice = sparse.csr_array((np.array([1, 1]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    with pytest.raises(ValueError, match=r"Y_true\[0, 1\] is 2: labels must be 0 or 1"):
        f_measure(twice, [[0, 1]])


def test_data_frames_equal_arrays(pair):
    pd = pytest.importorskip("pandas")
    Y, H = pair
    expected = f_measure(Y, H, per_row=True)
    names = list("abcdefg")
    Y_frame, H_frame = pd.DataFrame(Y, columns=names), pd.DataFrame(H, columns=names)
    mixed = H_frame.astype({"a": bool, "b": float, "c": "Int64", "d": "boolean"})
    for a, b in [(Y_frame, H_frame), (Y_frame, mixed), (Y_frame, H), (sparse.csr_array(Y), mixed)]:
        np.testing.assert_array_equal(f_measure(a, b, per_row=True), expected)
    mixed.loc[3, "c"] = pd.NA
    with pytest.raises(ValueError, match=r"Y_pred\[3, 2\] is nan: labels must be 0 or 1"):
        f_measure(Y_frame, mixed)
    with pytest.raises(ValueError, match="column 'a' of Y_pred holds 'no': labels must be 0 or 1"):
        f_measure(Y_frame, H_frame.astype(object).replace({0: "no"}))
    swapped = H_frame[list("abdcefg")]
    with pytest.raises(
        ValueError, match="column 2 of Y_pred is 'd' and that of Y_true is 'c': both must have"
    ):
        f_measure(Y_frame, swapped)
    # different names do not imply a different order
    np.testing.assert_array_equal(f_measure(Y_frame, pd.DataFrame(H), per_row=True), expected)


def test_one_dimensional_input_is_one_label_per_row():
    y, h = np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0])
    expected = [1.0, 0.0, 0.0, 0.25]
    inputs = [h, h[:, None], list(h), sparse.csr_array(h[:, None])]
    if HAS_1D_SPARSE:
        inputs.append(sparse.coo_array(h))
    for b in inputs:
        np.testing.assert_array_equal(f_measure(y, b, zero_division=0.25, per_row=True), expected)


@pytest.mark.parametrize("beta", [1e-50, 1e50])
def test_extreme_beta_is_precision_or_recall(beta):
    f = f_measure(
        [[1, 1, 0], [1, 0, 0], [1, 0, 0]], [[1, 0, 0], [1, 1, 0], [0, 0, 0]], beta, per_row=True
    )
    np.testing.assert_allclose(f, [1, 0.5, 0] if beta < 1 else [0.5, 1, 0], rtol=1e-15)


def test_no_rows_have_no_mean():
    empty = np.zeros((0, 3), dtype=int)
    for a in [empty, sparse.csr_array(empty), []]:
        f = f_measure(a, a, per_row=True)
        assert f.shape == (0,)
        assert f.dtype == np.float64
        with pytest.raises(ValueError, match="Y_true has no rows: the mean needs at least one"):
            f_measure(a, a)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize(
    ("value", "shown"), [(-1, "-1.0"), (2, "2.0"), (0.5, "0.5"), (np.nan, "nan"), (np.inf, "inf")]
)
def test_values_other_than_0_and_1_raise(make, value, shown):
    good = np.eye(4, 3)
    bad = good.copy()
    bad[3, 0] = bad[2, 1] = value  # the message names the first in row order
    with pytest.raises(ValueError, match=rf"Y_true\[2, 1\] is {shown}: labels must be 0 or 1"):
        f_measure(make(bad), good)
    with pytest.raises(ValueError, match=rf"Y_pred\[2, 1\] is {shown}: labels must be 0 or 1"):
        f_measure(good, make(bad))


@pytest.mark.parametrize("make", [np.asarray, sparse.coo_array])
def test_values_other_than_0_and_1_in_one_dimension_raise(make):
    if make is sparse.coo_array and not HAS_1D_SPARSE:
        pytest.skip("this SciPy has no 1-D sparse arrays")
    with pytest.raises(ValueError, match=r"Y_pred\[2\] is -1: labels must be 0 or 1"):
        f_measure([1, 0, 1], make(np.array([1, 0, -1])))


Y, EYE = np.zeros((4, 3), dtype=int), np.eye(3, dtype=int)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((Y, Y[:, :2]), {}, ValueError, "Y_pred has shape (4, 2) and Y_true has (4, 3): they"),
        ((Y, sparse.csr_array(Y[:3])), {}, ValueError, "Y_pred has shape (3, 3) and Y_true has"),
        ((Y, Y[:, 0]), {}, ValueError, "Y_pred has shape (4,) and Y_true has (4, 3): they"),
        ((Y[:, :0], Y[:, :0]), {}, ValueError, "Y_true has shape (4, 0): it must have at least"),
        ((Y, sparse.csr_array((4, 0))), {}, ValueError, "Y_pred has shape (4, 0): it must have"),
        ((Y[None], Y[None]), {}, ValueError, "Y_true has shape (1, 4, 3): it must have 2 dim"),
        ((Y.astype(str), Y), {}, TypeError, "Y_true has dtype <U21: it must hold real numbers"),
        (([["a"]], [[0]]), {}, ValueError, "Y_pred has no names of labels and Y_true lists them"),
        ((sparse.csr_array(Y * 1j), Y), {}, TypeError, "Y_true has dtype complex128: it must"),
        (([[1, 2]], [[1, 2]]), {}, ValueError, "Y_true[0, 1] is 2: labels must be 0 or 1"),
        ((Y, Y), {"beta": 0}, ValueError, "beta is 0.0: it must be a number greater than 0"),
        ((Y, Y), {"beta": "1"}, TypeError, "beta is '1': it must be a number greater than 0"),
        ((Y, Y), {"zero_division": 1.5}, ValueError, "zero_division is 1.5: it must be a number"),
        ((Y, Y), {"zero_division": "warn"}, TypeError, "zero_division is 'warn': it must be a"),
        ((Y, Y), {"per_row": 1}, TypeError, "per_row is 1: it must be True or False"),
        *(
            ((EYE, EYE), options, ValueError, message)
            for options, message in (
                ({"sample_weight": [1, 1]}, "sample_weight has 2 rows and Y_true"),
                ({"sample_weight": EYE}, "sample_weight has shape (3, 3): it must"),
                ({"sample_weight": [1, -2, 3]}, "sample_weight[1] is -2.0: weights"),
                ({"sample_weight": [1, 2, np.nan]}, "sample_weight[2] is nan: wei"),
                ({"sample_weight": [0, 0, 0]}, "sample_weight is zero in every row"),
                ({"sample_weight": [1, 1e300, 2]}, "sample_weight[1] is 1e+300: the largest"),
                ({"sample_weight": [0, 0, 1e-99]}, "sample_weight[2] is 1e-99: the largest"),
                ({"sample_weight": [1, 1, 1], "per_row": True}, "weights apply to the mean"),
                ({"average": "macro", "per_row": True}, "average is 'macro' and per_row is True"),
                ({"average": "binary"}, "average is 'binary' and Y_true is not flat: several"),
            )
        ),
    ],
)
def test_invalid_arguments_raise(arguments, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        f_measure(*arguments, **options)


def test_scorer_is_a_singleton_and_can_be_pickled(pair):
    Y, H = pair
    scorer = fgfm.metrics.f_scorer
    assert fgfm.metrics.f_scorer is scorer
    copy = pickle.loads(pickle.dumps(scorer))
    model = DummyClassifier(strategy="constant", constant=H[0]).fit(Y, Y)
    expected = f_measure(Y, np.tile(H[0], (len(Y), 1)))
    assert scorer(model, Y, Y) == copy(model, Y, Y) == expected
    with pytest.raises(AttributeError, match=r"module 'fgfm\.metrics' has no attribute 'f_score'"):
        fgfm.metrics.f_score  # noqa: B018


def test_scorers_validate_their_parameters():
    names = r"parameters by name \(beta, .*average.*\), as in f_scorer\(beta=2\)"
    with pytest.raises(TypeError, match=rf"f_scorer got averge='macro': it takes .*{names}"):
        fgfm.f_scorer(averge="macro")
    with pytest.raises(TypeError, match=f"f_scorer got 2: it takes a fitted estimator, .*{names}"):
        fgfm.f_scorer(2)
    with pytest.raises(TypeError, match=rf"f_scorer got \[\[1\]\]: it takes .*{names}"):
        fgfm.f_scorer([[1]], [[1]])
    with pytest.raises(ValueError, match="average is 'none'"):
        fgfm.f_scorer(average="none")
    for parameters in ({"average": None}, {"per_row": True}):
        with pytest.raises(ValueError, match="has several values: it must have one"):
            fgfm.f_scorer(**parameters)


def test_scorer_with_parameters(pair):
    Y, H = pair
    model = DummyClassifier(strategy="constant", constant=H[0]).fit(Y, Y)
    scorer = fgfm.f_scorer(beta=2.0, average="macro")
    expected = f_measure(Y, np.tile(H[0], (len(Y), 1)), 2.0, average="macro")
    assert scorer(model, Y, Y) == expected
    assert pickle.loads(pickle.dumps(scorer))(model, Y, Y) == expected
    assert fgfm.f_scorer(estimator=model, X=Y, y_true=Y) == fgfm.f_scorer()(model, Y, Y)


def test_scorer_works_in_model_selection(pair):
    Y, _ = pair
    X = Y + np.random.default_rng(0).normal(scale=0.5, size=Y.shape)
    model = KNeighborsClassifier()
    scores = cross_val_score(model, X, Y, cv=4, scoring=fgfm.metrics.f_scorer)
    predicted = model.fit(X[10:], Y[10:]).predict(X[:10])
    assert scores[0] == f_measure(Y[:10], predicted)
    f2_scorer = make_scorer(f_measure, beta=2.0)
    search = GridSearchCV(
        model,
        {"n_neighbors": [1, 5]},
        cv=4,
        refit="f1",
        n_jobs=1,
        scoring={"f1": fgfm.metrics.f_scorer, "f2": f2_scorer},
    ).fit(X, Y)
    assert search.cv_results_["split0_test_f1"][1] == scores[0]
    assert search.cv_results_["split0_test_f2"][1] == f_measure(Y[:10], predicted, 2.0)


def test_flat_labels_are_a_binary_classifier() -> None:
    from sklearn.metrics import f1_score

    y, h = [0, 1, 1, 0, 1], [1, 1, 0, 0, 0]
    for average in ("samples", "macro", "micro"):
        assert f_measure(y, h, average=average) == pytest.approx(f1_score(y, h))
    assert f_measure(y, h, average="binary") == f1_score(y, h, average="binary")
    model = DummyClassifier(strategy="constant", constant=1).fit(y, y)
    assert fgfm.f_scorer(average="binary")(model, y, y) == f1_score(y, np.ones(5))
    assert f_measure(y, h, per_row=True).tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]
