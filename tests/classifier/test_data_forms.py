"""Forms of X and y: data frames, sparse matrices, lists, and dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from fgfm import FGFMClassifier
from multilabel import X, Y, assert_same, close


def frames_of(library, index=None):
    """Return X and Y as data frames with column names."""
    frames = pytest.importorskip(library)
    X_frame = frames.DataFrame({f"x{j}": X[:, j] for j in range(3)})
    Y_frame = frames.DataFrame({name: Y[:, i] for i, name in enumerate("abcd")})
    if library == "pandas" and index is not None:
        X_frame.index = Y_frame.index = index
    return X_frame, Y_frame


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("learner", [None, LogisticRegression(), GaussianNB()])
def test_data_frames(library, learner):
    X_frame, Y_frame = frames_of(library)
    model = FGFMClassifier(learner, random_state=0).fit(X_frame, Y_frame)
    plain = FGFMClassifier(learner, random_state=0).fit(X, Y)
    assert model.classes_.tolist() == model.label_names_in_.tolist() == list("abcd")
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    assert not hasattr(plain, "label_names_in_")
    close(model.predict_proba(X_frame), plain.predict_proba(X), atol=1e-9)
    predicted = model.predict(X_frame)
    assert type(predicted) is np.ndarray
    assert (predicted == plain.predict(X)).all()
    framed = model.predict_frame(X_frame)
    assert type(framed) is type(X_frame)
    assert list(framed.columns) == list("abcd")
    assert (framed.to_numpy() == predicted).all()
    assert model.score(X_frame, Y_frame) == plain.score(X, Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X_frame[["x1", "x0", "x2"]])
    with pytest.raises(ValueError, match="column 0 of y is 'b' and that of fit is 'a': both must"):
        model.score(X_frame, Y_frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_decisions_for_data_frames_are_data_frames(library):
    X_frame, Y_frame = frames_of(library, index=[f"row {i}" for i in range(60)])
    model = FGFMClassifier("ridge", random_state=0).fit(X_frame, Y_frame)
    plain = FGFMClassifier("ridge", random_state=0).fit(X, Y)
    for average in ("samples", "macro", "micro"):
        labels, expected_f = model.decide(X_frame, average=average)
        expected = plain.decide(X, average=average)
        assert type(labels) is type(X_frame)
        assert list(labels.columns) == list("abcd")
        np.testing.assert_array_equal(labels.to_numpy(), expected.labels)
        close(np.asarray(expected_f), expected.expected_f)
        if library == "pandas":
            assert labels.index.equals(X_frame.index)
            if average == "macro":
                assert list(expected_f.index) == list("abcd")
    if library == "pandas":
        assert list(model.predict_frame(X_frame[5:9]).index) == list(X_frame.index[5:9])


def test_decisions_of_a_flat_y_are_flat():
    model = FGFMClassifier("ridge", random_state=0).fit(X, Y[:, 0])
    labels, expected_f = model.decide(X)
    assert labels.shape == expected_f.shape == (len(X),)
    assert (labels == model.predict(X)).all()
    for average in ("macro", "micro"):
        labels, expected_f = model.decide(X, average=average)
        assert labels.shape == (len(X),)
        assert np.ndim(expected_f) == 0
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(len(X))])
    model = FGFMClassifier("ridge", random_state=0).fit(frame, np.array(["no", "yes"])[Y[:, 0]])
    labels, expected_f = model.decide(frame)
    assert (labels.name, expected_f.name) == ("labels", "expected_f")
    assert labels.index.equals(frame.index)
    assert expected_f.index.equals(frame.index)
    assert (model.predict_frame(frame).to_numpy()[:, 0] == model.predict(frame)).all()


@pytest.mark.parametrize("rows", [X[:4], X[:4].tolist(), sparse.csr_array(X[:4])], ids=type)
def test_predict_frame_of_arrays_and_lists(rows):
    pytest.importorskip("pandas")
    model = FGFMClassifier(random_state=0).fit(X.tolist(), Y.tolist())
    assert_same(model, FGFMClassifier(random_state=0).fit(X, Y))
    frame = model.predict_frame(rows)
    assert list(frame.index) == [0, 1, 2, 3]
    assert list(frame.columns) == [0, 1, 2, 3]
    assert (frame.to_numpy() == model.predict(X[:4])).all()


def test_predict_frame_without_pandas_raises(monkeypatch):
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
def test_label_columns_of_any_dtype(dtype):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(Y, columns=list("abcd")).astype(dtype)
    model = FGFMClassifier(random_state=0).fit(X, frame)
    assert (model.predict(X) == FGFMClassifier(random_state=0).fit(X, Y).predict(X)).all()
    assert model.predict(X).dtype.kind in "bif"


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize(
    ("learner", "form"),
    [
        *((None, form) for form in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")),
        (LogisticRegression(), "coo"),
    ],
)
def test_sparse_features(form, kind, learner):
    rows, labels = kind(X[:40]).asformat(form), Y[:40, :2]
    model = FGFMClassifier(learner, random_state=0).fit(rows, labels)
    plain = FGFMClassifier(learner, random_state=0).fit(X[:40], labels)
    np.testing.assert_allclose(model.predict_proba(rows), plain.predict_proba(X[:40]), atol=2e-3)
    assert model.score(rows, labels) == pytest.approx(plain.score(X[:40], labels), abs=0.03)


def test_stored_values_that_are_repeated_or_not_in_order():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((60, 30)) < 0.1, rng.integers(1, 5, (60, 30)), 0.0)
    row, column = np.nonzero(dense)
    order = rng.permutation(2 * len(row))  # half of each value, twice
    values = np.tile(dense[row, column] / 2.0, 2)[order]
    row, column = np.tile(row, 2)[order], np.tile(column, 2)[order]
    by_row = np.argsort(row, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=60))])
    rows = sparse.csr_array((values[by_row], column[by_row], indptr), shape=(60, 30))
    assert not rows.has_canonical_format
    model = FGFMClassifier(random_state=0).fit(rows, Y)
    plain = FGFMClassifier(random_state=0).fit(dense, Y)
    assert (model.predict_proba(rows) == plain.predict_proba(dense)).all()
    assert rows.nnz == len(order)


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
