"""FeatureEncoder."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import fgfm
from dataset_files import make_dataset, round_trip, to_dense, write_file
from fgfm.data import DataError, FeatureEncoder, load


def test_saved_encoder_reads_files_alike(tmp_path):
    pytest.importorskip("skops.io")
    path = write_file(tmp_path, "x,c,l\n1,u,0\n,v,1\n3,u,1\n,w,0\n")
    found = load(path, labels=["l"])
    fgfm.save(found.encoder, tmp_path / "encoder")
    again = fgfm.load(tmp_path / "encoder")
    new = write_file(tmp_path, "c,x\nw,\nu,2\n", "new.csv")
    assert (load(new, encoder=again).X == load(new, encoder=found.encoder).X).all()
    assert again.schema_.label_names == ("l",)
    assert again.get_feature_names_out().tolist() == found.encoder.get_feature_names_out().tolist()
    sparse_one = round_trip(make_dataset("sparse"), tmp_path / "a.svm", "svmlight").encoder
    fgfm.save(sparse_one, tmp_path / "encoder")
    assert fgfm.load(tmp_path / "encoder").schema_.zero_based is False


@parametrize_with_checks([FeatureEncoder()])
def test_common_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=SkipTestWarning)
        check(estimator)


def test_saved_pipeline_predicts_alike(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("skops.io")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"x": rng.normal(size=40), "c": rng.choice(["u", "v"], size=40)})
    frame.loc[3, "x"] = np.nan
    frame.loc[4, "c"] = None
    Y = np.column_stack([frame["c"] == "u", rng.random(40) < 0.5]).astype(int)
    model = make_pipeline(FeatureEncoder(), fgfm.FGFMClassifier(factors="single", random_state=0))
    model.fit(frame, Y)
    fgfm.save(model, tmp_path / "model")
    again = fgfm.load(tmp_path / "model")
    assert (again.predict(frame[["c", "x"]]) == model.predict(frame)).all()


@pytest.mark.parametrize("library", ["pandas", "polars", "dict", "objects"])
def test_tables_of_all_types(library):
    columns = {"x": [1.0, None, 3.0], "n": [1, 2, 3], "c": ["u", None, "v"]}
    expected = [[1, 1, 0, 1, 0, 0], [2, 2, 1, 0, 0, 1], [3, 3, 0, 0, 1, 0]]
    if library == "dict":
        X = columns
    elif library == "objects":
        X = np.array(list(zip(*columns.values(), strict=True)), dtype=object)
    else:
        X = pytest.importorskip(library).DataFrame(columns)
    encoder = FeatureEncoder()
    assert encoder.fit_transform(X).tolist() == expected
    assert clone(encoder).fit(X).n_features_in_ == 3
    has_names = library != "objects"
    assert encoder.get_feature_names_out().tolist() == (
        ["x", "n", "x missing", "c=u", "c=v", "c missing"]
        if has_names
        else ["x1", "x2", "x1 missing", "x3=u", "x3=v", "x3 missing"]
    )


def test_missing_values_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "i": pandas.array([1, None, 3], dtype="Int64"),
            "s": pandas.array(["u", None, "v"], dtype="string"),
        }
    )
    assert FeatureEncoder().fit_transform(frame).tolist() == [
        [1, 0, 1, 0, 0],
        [2, 1, 0, 0, 1],
        [3, 0, 0, 1, 0],
    ]


def test_numbers_are_unchanged():
    for X in (np.eye(3, dtype=np.float32), np.eye(3), sparse.csr_array(np.eye(3))):
        out = FeatureEncoder().fit_transform(X)
        assert out.dtype == X.dtype
        assert type(out) is type(X)
        assert (to_dense(out) == to_dense(X)).all()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_medians_of_dense_and_sparse(kind):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(41, 5)).astype(float)
    X[:, 1] = 0
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 4] = np.nan
    encoder = FeatureEncoder().fit(kind(X))
    medians = np.append(np.nanmedian(X[:, :4], axis=0), 0)
    expected = np.hstack([np.where(np.isnan(X), medians, X), np.isnan(X)])
    assert (to_dense(encoder.transform(kind(X))) == expected).all()
    new = np.full((1, 5), np.nan)
    assert (to_dense(encoder.transform(kind(new)))[0, :5] == medians).all()


def test_files_unlike_training_raise(tmp_path):
    with pytest.raises(NotFittedError):
        FeatureEncoder().transform([[1.0]])
    train = load(write_file(tmp_path, "x,c,ok,l\n1,u,yes,0\n2,v,no,1\n"), labels=["l"])

    def refused(content, match):
        path = write_file(tmp_path, content, "new.csv")
        with pytest.raises(DataError, match=match):
            load(path, encoder=train.encoder)

    refused("x,ok\n1,no\n", r"new.csv: there is no column 'c', which training had$")
    refused("x,cc\n1,u\n", r"there are no columns 'c', 'ok' \(did you mean 'cc'\?\), which train")
    refused("x,c,ok\n1,u,no\nabc,u,no\n", r"line 3, column 'x': 'abc' is not a number, and line 2")
    refused("x,c,ok\nabc,u,no\n", r"new.csv, line 2, column 'x': 'abc' is not a number: in train")
    refused("x,c,ok\n1,u,no\n1,u,7\n", r"line 3, column 'ok': '7' is neither 0 nor 1: in training")
    refused("x,c,ok,l\n1,u,no,2\n", r"line 2, column 'l': the label is 2: labels must be 0 or 1")
    with pytest.raises(DataError, match=r"a.txt: X has 2 features, but .* expecting 3 features"):
        load(write_file(tmp_path, "1 2 0\n0:1\n", "a.txt"), encoder=train.encoder)
    two = load(write_file(tmp_path, "1 1:1 2:1\n", "b.svm"))
    with pytest.raises(DataError, match=r"line 1: there is a feature 3: .* from 1 to 2"):
        load(write_file(tmp_path, "3:1\n", "a.svm"), encoder=two.encoder)
    with pytest.raises(DataError, match=r"line 1: 2 is an unknown label: .* from 1 to 1"):
        load(write_file(tmp_path, "2 1:1\n", "a.svm"), encoder=two.encoder)
    with pytest.raises(DataError, match=r"^X: X has 3 features, but .* is expecting 2 features"):
        two.encoder.transform(np.ones((1, 3)))


def test_rare_categories_share_a_feature():
    rng = np.random.default_rng(0)
    texts = [f"c{k}" for k in rng.geometric(0.2, size=2000)]
    encoder = FeatureEncoder(max_categories=4)
    X = encoder.fit_transform({"c": texts})
    names = ["c=c1", "c=c2", "c=c3", "c=(rare)"]
    assert encoder.get_feature_names_out().tolist() == names
    expected = [[text == name[2:] for name in names[:3]] for text in texts]
    assert X[:, :3].tolist() == np.array(expected, dtype=float).tolist()
    assert (X.sum(axis=1) == 1).all()
    rule = r"^X, column 'c': 1 of 2 rows have a category that training did not have, such as 'new'"
    with pytest.warns(UserWarning, match=rule):
        assert encoder.transform({"c": ["c2", "new"]}).tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]
    [(_, kind, becomes)] = encoder.summary()
    assert (kind, becomes) == ("category", "4 categories, one for the rare ones")
    # of more than 20 categories, those of fewer than 5 rows are rare
    counts = {text: texts.count(text) for text in texts}
    assert len(counts) > 20
    frequent = FeatureEncoder().fit({"c": texts}).get_feature_names_out()[:-1]
    assert {name[2:] for name in frequent} == {text for text in texts if counts[text] >= 5}


def test_numeric_categories_are_compared_as_numbers(tmp_path):
    path = write_file(tmp_path, "z,x\n0,1\n1,2\n2,3\n")
    encoder = load(path, categorical=["z"]).encoder
    new = write_file(tmp_path, "z,x\n0.0,1\n1.00,2\n2e0,3\n", "new.csv")
    assert load(new, encoder=encoder).X[:, 1:].tolist() == np.eye(3).tolist()
    assert encoder.transform({"z": [2.0, 0], "x": [1, 1]})[:, 1:].tolist() == [
        [0, 0, 1],
        [1, 0, 0],
    ]
    # and the reverse; 01 is a text
    encoder = load(new, categorical=["z"]).encoder
    assert load(path, encoder=encoder).X[:, 1:].tolist() == np.eye(3).tolist()
    with pytest.warns(UserWarning, match=r"'z': 2 of 3 rows have a category .* such as '01'"):
        found = load(write_file(tmp_path, "z,x\n01,1\n1,2\n7,3\n", "odd.csv"), encoder=encoder)
    assert found.X[:, 1:].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    codes = write_file(tmp_path, "z,x\n01234,1\n1234,2\n5,3\n", "codes.csv")
    encoder = load(codes, categorical=["z"]).encoder
    with pytest.warns(UserWarning, match=r"'z': 1 of 1 rows"):
        load(write_file(tmp_path, "z,x\n1234.0,1\n", "new.csv"), encoder=encoder)
    # 1 and 1.0 differ if training had both
    both = write_file(tmp_path, "z,x\n1,1\n1.0,2\n5,3\n", "both.csv")
    found = load(both, categorical=["z"])
    assert (load(both, encoder=found.encoder).X == found.X).all()


def test_truth_values_and_numbers_are_equivalent(tmp_path):
    encoder = FeatureEncoder().fit({"b": np.array([True, False, True]), "x": [1.0, 2, 3]})
    found = load(write_file(tmp_path, "b,x\nTrue,1\nfalse,2\nNA,3\n"), encoder=encoder)
    assert found.X.tolist() == [[1, 1], [0, 2], [1, 3]]
    with pytest.raises(DataError, match=r"line 2, column 'x': 'True' is not a number"):
        load(write_file(tmp_path, "b,x\nTrue,True\n"), encoder=encoder)
    with pytest.raises(DataError, match=r"line 2, column 'b': 'red' is not a number"):
        load(write_file(tmp_path, "b,x\nred,1\n"), encoder=encoder)
    encoder = load(write_file(tmp_path, "b,x\nTrue,1\nFalse,2\n")).encoder
    new = write_file(tmp_path, "b,x\n1.0,1\n0.0,2\n0,3\nTRUE,4\n", "new.csv")
    assert load(new, encoder=encoder).X[:, 0].tolist() == [1, 0, 0, 1]
    with pytest.raises(DataError, match=r"line 2, column 'b': '1.5' is neither 0 nor 1"):
        load(write_file(tmp_path, "b,x\n1.5,1\n", "new.csv"), encoder=encoder)


def test_median_of_huge_numbers_is_finite(tmp_path):
    found = load(write_file(tmp_path, "x,y\n1e308,1\n1.7e308,2\n"))
    assert found.X[1, 0] == 1.7e308
    assert found.encoder.numbers_.medians[0] == 2 * (0.5e308 / 2 + 1.7e308 / 4)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_sparse_output(kind):
    X = np.array([[1.0, 0], [np.nan, 2]])
    expected = [[1, 0, 0], [1, 2, 1]]
    for sparse_output in (None, False, True):
        encoder = FeatureEncoder(sparse_output=sparse_output)
        out = encoder.fit_transform(kind(X))
        default = sparse.issparse(kind(X))
        assert sparse.issparse(out) == (default if sparse_output is None else sparse_output)
        assert encoder.sparse_ == sparse.issparse(out)
        assert to_dense(out).tolist() == expected


def test_files_of_sparse_rows_can_be_encoded_as_dense(tmp_path):
    path = write_file(tmp_path, "1 1:1\n2 2:5\n", "a.svm")
    found = load(path, encoder=FeatureEncoder(sparse_output=False))
    assert found.X.tolist() == [[1, 0], [0, 5]]
    new = write_file(tmp_path, "1 2:7\n", "b.svm")
    assert load(new, encoder=found.encoder).X.tolist() == [[0, 7]]


def test_invalid_tables_raise():
    with pytest.raises(DataError, match=r"X, row 1, column 'x': a dict is neither a number nor"):
        FeatureEncoder().fit({"x": [1.0, {}]})
    rule = r"X, row 0, column 'x': 'u' is not a number, and row 1 has one: a column must have ei"
    with pytest.raises(DataError, match=rule):
        FeatureEncoder().fit({"x": ["u", 2.0]})
    with pytest.raises(DataError, match=r"X, column 2: there are 1 values and 2 in the first col"):
        FeatureEncoder().fit({"x": [1, 2], "y": [1]})
    with pytest.raises(DataError, match=r"X, row 0, column 1: the value is infinite"):
        FeatureEncoder().fit(sparse.csr_array([[np.inf]]))


def test_sparse_features_are_not_changed_in_place():
    X = sparse.csr_array((np.array([0.0, 2.0]), [0, 1], [0, 1, 2]), shape=(2, 2))
    FeatureEncoder().fit(X).transform(X)
    assert X.nnz == 2
