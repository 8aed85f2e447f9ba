"""FDecider: every form of probabilities and labels, and messages about bad ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError

import fgfm
from decider_data import independent
from fgfm import FDecider
from multilabel import close, make_data

P, Y = independent(200, 4)
AVERAGES = ["samples", "macro", "micro"]


@pytest.fixture(params=AVERAGES)
def average(request):
    """Return each average."""
    return request.param


def same(X, average="samples", y=Y, atol=1e-12, **parameters):
    """Assert that another form of P predicts as the array does; return the decider."""
    plain = FDecider(average=average).fit(P, Y)
    decider = FDecider(average=average, **parameters).fit(X, y)
    close(dense(decider.predict_proba(X)), plain.predict_proba(P), atol)
    close(np.asarray(decider.expected_f(X)), plain.expected_f(P), atol)
    assert (dense(decider.predict(X)) == plain.predict(P)).all()
    assert (dense(decider.decide(X).labels) == plain.decide(P).labels).all()
    assert decider.score(X, y) == pytest.approx(plain.score(P, Y))
    return decider


def dense(values):
    """Return an array."""
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


# Forms


@pytest.mark.parametrize("form", ["list", "float32", "object", "fortran", "read-only"])
def test_arrays(form, average):
    X = {
        "list": P.tolist(),
        "float32": P.astype(np.float32),
        "object": P.astype(object),
        "fortran": np.asfortranarray(P),
        "read-only": P.copy(),
    }[form]
    if form == "read-only":
        X.setflags(write=False)
    same(X, average, atol=1e-4 if form == "float32" else 1e-12)


def test_integers_are_certain_predictions():
    noisy = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, 1 - Y, Y)
    decider = FDecider().fit(noisy, Y)
    proba = decider.predict_proba(np.eye(4, dtype=int))
    assert ((proba > 0.0) & (proba < 1.0)).all()
    assert decider.score(noisy, Y) >= fgfm.f_measure(Y, noisy) - 0.02
    assert (decider.predict_proba(noisy)[noisy == 1] > 0.4).all()


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_sparse_with_all_entries_stored(kind, average):
    decider = same(kind(P), average)
    labels = decider.decide(kind(P)).labels
    assert labels.format == "csr"
    assert isinstance(labels, sparse.sparray) == issubclass(kind, sparse.sparray)
    assert sparse.issparse(decider.predict_proba(kind(P)))
    assert isinstance(decider.predict(kind(P)), np.ndarray)  # as y


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_labels(kind, average):
    decider = same(P, average, kind(Y))
    assert isinstance(decider.predict(P), kind)
    assert isinstance(decider.predict(sparse.csr_array(P)), (sparse.spmatrix, sparse.sparray))
    same(sparse.csr_array(P), average, kind(Y))


def test_sparse_with_few_entries(average):
    p = np.where(P > 0.25, P, 0.0)
    X = sparse.csr_array(p)
    X[0, 1] = 0.0  # stored
    decider = FDecider(average=average).fit(X, Y)
    labels, proba = decider.predict(X), decider.predict_proba(X)
    assert (labels <= (p > 0.0)).all()
    assert (dense(proba)[p == 0.0] == 0.0).all()
    assert decider.score(X, Y) > 0.5
    order = np.random.default_rng(0).permutation(200)
    assert (decider.predict(X[order]) == labels[order]).all()
    one = FDecider(average=average).fit(X[:, [3, 1, 0, 2]], Y[:, [3, 1, 0, 2]])
    close(dense(one.predict_proba(X[:, [3, 1, 0, 2]])), dense(proba)[:, [3, 1, 0, 2]], 1e-5)


def test_sparse_duplicates_are_summed_and_nothing_is_changed():
    rows, columns = np.indices(P.shape)
    twice = sparse.coo_array(
        (np.tile(P.ravel() / 2, 2), (np.tile(rows.ravel(), 2), np.tile(columns.ravel(), 2))),
        shape=P.shape,
    )
    same(twice)
    X = sparse.csr_array(P)
    before = X.data.copy()
    FDecider().fit(X, Y).predict(X)
    assert (X.data == before).all()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_keep_names_and_index(library, average):
    frames = pytest.importorskip(library)
    names = list("abcd")
    X, y = (frames.DataFrame(dict(zip(names, table.T, strict=True))) for table in (P, Y))
    if library == "pandas":
        X.index = y.index = [f"row {i}" for i in range(200)]
    decider = same(X, average, y)
    assert decider.classes_.tolist() == names
    assert decider.label_names_in_.tolist() == names
    labels, expected_f = decider.decide(X)
    assert isinstance(labels, frames.DataFrame)
    assert list(labels.columns) == names
    predicted = decider.predict_frame(X)
    assert isinstance(predicted, frames.DataFrame)
    assert list(predicted.columns) == names
    if library == "pandas":
        assert labels.index.equals(X.index)
        assert predicted.index.equals(X.index)
        if average == "samples":
            assert expected_f.index.equals(X.index)
        elif average == "macro":
            assert list(expected_f.index) == names
    if average != "micro":
        assert isinstance(expected_f, frames.Series)
    # names of X alone are names of labels too
    labels = FDecider(average=average).fit(X, Y).decide(X).labels
    assert list(labels.columns) == names


def test_frames_with_default_columns_have_no_names():
    pd = pytest.importorskip("pandas")
    named = pd.DataFrame(Y, columns=list("abcd"))
    decider = FDecider().fit(pd.DataFrame(P), named)
    assert list(decider.predict_frame(pd.DataFrame(P)).columns) == list("abcd")
    pl = pytest.importorskip("polars")
    FDecider().fit(pl.DataFrame(P), named)
    FDecider().fit(pd.DataFrame(P, columns=list("abcd")), pd.DataFrame(Y))


def test_predict_frame_of_an_array():
    pd = pytest.importorskip("pandas")
    frame = FDecider().fit(P, Y.astype(np.int8)).predict_frame(P)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == [0, 1, 2, 3]
    assert (frame.dtypes == np.int8).all()


def test_torch_tensors(average):
    torch = pytest.importorskip("torch")
    same(torch.tensor(P, requires_grad=True), average)
    pairs = [torch.tensor(np.column_stack([1 - p, p])) for p in P.T]
    same(pairs, average)


def test_lists_of_class_probabilities(average):
    pairs = [np.column_stack([1.0 - p, p]) for p in P.T]
    same(pairs, average)
    same(tuple(pairs), average)
    same(np.stack(pairs), average)


def test_output_of_a_forest():
    X, labels = make_data(300, 4)
    forest = RandomForestClassifier(20, random_state=0).fit(X[:150], labels[:150])
    found = forest.predict_proba(X[150:])
    assert isinstance(found, list)
    decider = FDecider().fit(found, labels[150:])
    stacked = np.stack([part[:, 1] for part in found], axis=1)
    close(
        decider.predict_proba(found), FDecider().fit(stacked, labels[150:]).predict_proba(stacked)
    )


@pytest.mark.parametrize("form", ["flat", "list", "column", "two", "series", "polars", "frame"])
def test_binary_probabilities(form):
    p, y = P[:, 0], Y[:, 0]
    two = np.column_stack([1.0 - p, p])
    plain = FDecider().fit(p, y)
    if form in ("series", "frame", "polars"):
        frames = pytest.importorskip("polars" if form == "polars" else "pandas")
        X = frames.DataFrame({"no": 1.0 - p, "yes": p}) if form == "frame" else frames.Series(p)
    else:
        X = {"flat": p, "list": p.tolist(), "column": p[:, None], "two": two}[form]
    decider = FDecider().fit(X, y)
    assert (decider.predict(X) == plain.predict(p)).all()
    close(decider.predict_proba(X), plain.predict_proba(p))
    assert decider.thresholds_ == pytest.approx(plain.thresholds_)
    labels, expected_f = decider.decide(X)
    assert labels.shape == (200,)
    assert np.ndim(expected_f) == 0
    assert decider.score(X, y) == pytest.approx(plain.score(p, y))


def test_classes_of_a_flat_y():
    names = np.array(["ham", "spam"])[Y[:, 0]]
    decider = FDecider(pos_label="spam").fit(P[:, 0], names)
    assert decider.classes_.tolist() == ["ham", "spam"]
    assert set(decider.predict(P[:, 0])) <= {"ham", "spam"}
    assert decider.score(P[:, 0], names) > 0.5
    frame = pytest.importorskip("pandas").Series(P[:, 0], index=range(5, 205))
    predicted = decider.predict_frame(frame)
    assert list(predicted.columns) == ["labels"]
    assert predicted.index.equals(frame.index)
    assert decider.decide(frame).labels.index.equals(frame.index)
    with pytest.raises(ValueError, match=r"y\[0\] is 'eggs': the classes in fit were 'ham', 'sp"):
        decider.score(P[:1, 0], ["eggs"])


def test_one_label_in_a_matrix():
    column = sparse.csr_array(Y[:, :1])
    decider = FDecider().fit(P[:, :1], column)
    assert decider.multilabel_
    assert decider.predict(P[:, :1]).shape == (200, 1)
    # the F-measure of rows of one label, with 0/0 = 1, is maximal at 1/2
    chosen = decider.predict_proba(P[:, :1]) > 0.5
    assert (decider.predict(P[:, :1]).toarray() == chosen).all()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, float])
def test_predictions_have_the_dtype_of_y(dtype):
    assert FDecider().fit(P, Y.astype(dtype)).predict(P).dtype == dtype


# Bad input


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (P[:1], Y[:1], "n_samples=1: FDecider needs at least 2 validation rows"),
        (P, 0 * Y, "y has no positive label"),
        (P[:, 0], 0 * Y[:, 0], "y has one class"),
        (
            8.0 * P - 4.0,
            Y,
            "probabilities must lie in \\[0, 1\\]; pass scores=True if X has scores",
        ),
        (P[:50], Y, "y has 200 rows and X has 50"),
        (P[:, :3], Y, "X has 3 columns and y has 4: there must be one probability for each"),
        (P, Y[:, 0], "X has 4 columns and y has 1: there must be one probability for each"),
        (np.where(P > 0.9, np.nan, P), Y, r"X\[\d+, \d+\] is nan: probabilities must lie in"),
        (
            1.0 + P,
            Y,
            r"X\[0, 0\] is 1.\d+: probabilities must lie in \[0, 1\]; pass scores=True",
        ),
        (P[:, :2], Y[:, 0], r"X\[0\] is .* and y is flat: two columns must be the probabilities"),
        (P, 2 * Y, r"y\[\d+, \d+\] is 2: labels must be 0 or 1"),
        (P, None, "FDecider requires y to be passed"),
        (P[:0], Y[:0], r"y has shape \(0, 4\): it must have at least one row"),
        ([P[:, :2], P], Y[:, :2], r"X\[0\]\[0\] sums to|X\[1\] has shape"),
        ([P[:, :1]] * 4, Y, "label 0 had one class in training"),
        (sparse.csr_array((200, 4)), Y, "X stores no probability of a true label"),
        (sparse.csr_array(2.0 * P), Y, r"X\[\d+, \d+\] is 1\.\d+: probabilities must lie in"),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        FDecider().fit(X, y)


def test_weights_that_leave_nothing():
    weight = np.zeros(200)
    with pytest.raises(ValueError, match="sample_weight is zero in every row"):
        FDecider().fit(P, Y, weight)
    with pytest.raises(
        ValueError, match=r"sample_weight\[0\] is 1e\+300: the largest weight must"
    ):
        FDecider().fit(P, Y, np.full(200, 1e300))
    weight[7] = 1.0
    with pytest.raises(ValueError, match="n_samples=1: FDecider needs at least 2 validation rows"):
        FDecider().fit(P, Y, weight)
    with pytest.raises(ValueError, match="sample_weight has 3 rows and X has 200"):
        FDecider().fit(P, Y, [1, 1, 1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"beta": 0.0}, "beta"),
        (
            {"average": "binary"},
            "average is 'binary' and y is a matrix: it must be one of 'samples', 'macro'",
        ),
        ({"calibration": "platt"}, "calibration is 'platt'"),
        ({"nonempty": "yes"}, "nonempty is 'yes': it must be 'auto', True or False"),
        ({"zero_division": 2.0}, "zero_division"),
        ({"scores": 1}, "scores"),
        ({"scores": True, "calibration": None}, "scores is True and calibration is None"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        FDecider(**parameters).fit(P, Y)


def test_rows_and_labels_of_frames_must_match():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(P, columns=list("abcd"))
    y = pd.DataFrame(Y, columns=list("abcd"))
    with pytest.raises(ValueError, match="column 0 of X is 'a' and that of y is 'b': both must"):
        FDecider().fit(X, y[list("bacd")])
    with pytest.raises(ValueError, match="row 1 of X has index 1 and that of y has 2: X and y"):
        FDecider().fit(X, y.iloc[[0, 2, 1, *range(3, 200)]])
    decider = FDecider().fit(X, y)
    with pytest.raises(ValueError, match="row 1 of X has index 1 and that of y has 2"):
        decider.score(X, y.iloc[[0, 2, 1, *range(3, 200)]])
    with pytest.raises(ValueError, match="row 0 of X has index 0 and that of y has 199"):
        decider.lower_bound(X, y[::-1])
    with pytest.raises(ValueError, match="column 0 of y is 'b' and that of fit is 'a'"):
        decider.score(X, y[list("bacd")])
    for fitted in (decider, FDecider().fit(P, y)):  # names of y alone
        with pytest.raises(ValueError, match="column 0 of X is 'b' and that of fit is 'a'"):
            fitted.predict_frame(X[list("bacd")])


def test_names_that_are_not_strings():
    pd = pytest.importorskip("pandas")
    X, y = (pd.DataFrame(table, columns=[7, 3, 5, 1]) for table in (P, Y))
    for labels in (Y, y, pd.DataFrame(Y)):
        decider = FDecider().fit(X, labels)
        assert decider.label_names_in_.tolist() == [7, 3, 5, 1]
        assert list(decider.decide(X).labels.columns) == [7, 3, 5, 1]
        with pytest.raises(ValueError, match="column 0 of X is 1 and that of fit is 7: both must"):
            decider.predict(X[[1, 3, 5, 7]])
    with pytest.raises(ValueError, match="column 0 of X is 0 and that of y is 1: both must have"):
        FDecider().fit(pd.DataFrame(P), pd.DataFrame(Y, columns=[1, 0, 3, 2]))
    with pytest.raises(ValueError, match="column 0 of X is 1 and that of fit is 0: both must hav"):
        FDecider().fit(pd.DataFrame(P), Y).decide(pd.DataFrame(P, columns=[1, 0, 3, 2]))


def test_polars_as_many_rows_as_labels(average):
    pl = pytest.importorskip("polars")
    decider = FDecider(average=average).fit(P, Y)
    for seed in range(5):
        p = np.random.default_rng(seed).random((4, 4))
        assert (dense(decider.decide(pl.DataFrame(p)).labels) == decider.decide(p).labels).all()
        assert (dense(decider.predict_frame(pl.DataFrame(p))) == decider.predict(p)).all()


@pytest.mark.parametrize("method", ["predict", "decide", "expected_f", "predict_proba"])
def test_not_fitted(method):
    with pytest.raises(NotFittedError, match="This FDecider instance is not fitted yet"):
        getattr(FDecider(), method)(P)


def test_data_frames_without_rows():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(P, columns=list("abcd"))
    for X in (frame, P, sparse.csr_array(P)):
        decider, empty = FDecider().fit(X, Y), X[:0]
        assert decider.predict(empty).shape == (0, 4)
        labels, expected_f = decider.decide(empty)
        assert labels.shape == (0, 4)
        assert expected_f.shape == (0,)
    assert FDecider().fit(P, Y).predict([]).shape == (0, 4)
    with pytest.raises(ValueError, match=r"y has shape \(0, 4\): it must have at least one row"):
        FDecider().fit(frame[:0], Y[:0])


def test_sparse_rows_with_fewer_labels_than_validation_rows(average):
    everything = sparse.csr_array(P)
    decider = FDecider(average=average).fit(everything, np.maximum(Y, np.arange(200)[:, None] < 5))
    few = np.where(np.sort(P, axis=1)[:, -2:-1] <= P, P, 0.0)  # two stored labels, of four
    few[7] = 0.0
    batch = np.vstack([few[:20], P[:1]])  # the last row stores all labels
    expected = dense(decider.predict(sparse.csr_array(batch)))
    for i in range(20):
        row = sparse.csr_array(few[i : i + 1])
        assert (dense(decider.predict(row))[0] == expected[i]).all()
        assert dense(decider.decide(row).labels).shape == (1, 4)
    if average == "samples":
        expected_f = decider.expected_f(sparse.csr_array(batch))[:20]
        close(decider.expected_f(sparse.csr_array(few[:20])), expected_f)


MASKED = np.ma.masked_array(P, P > 0.9)
STACK = np.stack([1.0 - P[:4], P[:4]], axis=2)  # (4, 4, 2)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (MASKED, TypeError, "X is a masked array: fill the masked values first"),
        (
            [np.ma.masked_array(np.column_stack([1.0 - p, p])) for p in P.T],
            TypeError,
            "X is a masked array: fill the masked values first",
        ),
        (STACK, ValueError, r"X has shape \(4, 4, 2\): it must have 2 dimensions"),
        (STACK.transpose(1, 0, 2), ValueError, r"X has shape \(4, 4, 2\): it must have 2 dimen"),
        (P[:, :3], ValueError, "X has 3 features, but FDecider is expecting 4"),
        (P[:, 0], ValueError, "Expected 2D array, got 1D array"),
        (P.astype(str), TypeError, r"X has dtype <U.*, and X\[0, 0\] is the text '0"),
        (
            np.where(P > 0.9, "much", P.astype(object)),
            TypeError,
            "is the text 'much'; convert it",
        ),
    ],
)
def test_bad_rows_after_fit(X, error, message):
    with pytest.raises(error, match=message):
        FDecider().fit(P, Y).predict(X)


@pytest.mark.parametrize(
    ("columns", "classes"), [(["ham", "spam"], ["ham", "spam"]), ([False, True], [0, 1])]
)
def test_columns_are_in_the_order_of_the_classes(columns, classes):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.column_stack([1.0 - P[:, 0], P[:, 0]]), columns=columns)
    y, swapped = np.array(classes)[Y[:, 0]], frame.set_axis(columns[::-1], axis=1)
    decider = FDecider(pos_label=classes[1])
    fitted = FDecider(pos_label=classes[1]).fit(frame, y)
    message = f"column 0 of X is {columns[1]!r}, and class 0 of y is {classes[0]!r}"
    for call in (lambda: decider.fit(swapped, y), lambda: fitted.predict(swapped)):
        with pytest.raises(ValueError, match=message):
            call()
    other = frame.set_axis(["no", "yes"], axis=1)  # which are no classes
    with pytest.raises(ValueError, match="column 0 of X is 'yes' and that of fit is 'no': both"):
        FDecider().fit(other, Y[:, 0]).predict(other[["yes", "no"]])


def test_masked_labels():
    with pytest.raises(TypeError, match="y is a masked array: fill its masked values first"):
        FDecider().fit(P[:, 0], Y[:, 0]).score(P[:, 0], np.ma.masked_array(Y[:, 0]))
