"""NumPy archives."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from scipy import sparse

from dataset_files import make_dataset, real_path, to_dense, write_file
from fgfm.data import DataError, Dataset, load, save


@pytest.mark.parametrize("name", ["flags", "foodtruck"])
def test_nominal_columns_match_the_one_hot_array_of_the_archive(name):
    found = load(real_path(name))
    archive = np.load(real_path(name))
    names = archive["feature_names_onehot"].tolist()
    assert sorted(found.feature_names) == sorted(names)
    order = [found.feature_names.index(name) for name in names]
    assert (archive["X_onehot"] == found.X[:, order]).all()


@pytest.mark.parametrize("name", ["emotions", "enron"])
def test_arrays_are_read_unchanged(name):
    found, archive = load(real_path(name)), np.load(real_path(name))
    if "X" in archive:
        assert (archive["X"] == found.X).all()
    else:
        assert (found.X.data == archive["X_data"]).all()
        assert (found.X.indices == archive["X_indices"]).all()
    assert (archive["Y"] == found.Y).all()
    assert found.label_names == tuple(archive["label_names"])
    assert (found.train == archive["train_idx"]).all()
    assert (found.test == archive["test_idx"]).all()


def test_split_is_kept(tmp_path):
    one = make_dataset()
    one = Dataset(one.X, one.Y, train=np.arange(20), test=np.arange(20, 30))
    save(one, tmp_path / "a.npz")
    other = load(tmp_path / "a.npz")
    assert (other.train == one.train).all()
    assert (other.test == one.test).all()
    assert "split 20/10" in repr(other)
    part = other.rows(other.test)
    assert part.X.shape == (10, 6)
    assert (one.Y[20:] == part.Y).all()
    assert part.train is None


VALID = {"X": np.eye(2), "Y": np.eye(2, dtype=np.uint8)}
CSR = {
    "X_data": np.ones(2),
    "X_indices": np.array([0, 1]),
    "X_indptr": np.array([0, 1, 2]),
    "X_shape": np.array([2, 2]),
    "Y": VALID["Y"],
}
INVALID = {
    "no X": ({"Y": VALID["Y"]}, r"there is neither X nor X_data"),
    "flat X": (VALID | {"X": np.ones(2)}, r"X has dtype float64 and shape \(2,\)"),
    "text X": (VALID | {"X": np.array([["a"]])}, r"X has dtype <U1"),
    "objects": (
        VALID | {"X": np.array([[None]])},
        r"array 'X': .*damaged: it holds Python objects",
    ),
    "infinite X": (
        VALID | {"X": np.array([[1, np.inf]] * 2)},
        r"row 0, column 2: the value is inf",
    ),
    "rows": (VALID | {"Y": np.ones((3, 2))}, r"shape \(3, 2\): it must be numbers with 2 rows"),
    "label 2": (
        VALID | {"Y": np.array([[1, 0], [2, 0]])},
        r"row 1: Y\[1, 0\] is 2: labels must be",
    ),
    "label NaN": (
        VALID | {"Y": np.array([[1, 0], [0, np.nan]])},
        r"Y\[1, 1\] is nan: labels must",
    ),
    "names": (
        VALID | {"label_names": np.array(["a"])},
        r"label_names has .* it must be 2 strings",
    ),
    "repeated names": (
        VALID | {"feature_names": np.array(["a", "a"])},
        r"feature_names, column 2: the n",
    ),
    "split": (
        VALID | {"train_idx": np.array([0, 2])},
        r"train_idx must be row numbers from 0 to 1",
    ),
    "indptr": (
        CSR | {"X_indptr": np.array([0, 2])},
        r"do not form a CSR matrix of shape \(2, 2\)",
    ),
    "index": (CSR | {"X_indices": np.array([0, 2])}, r"do not form a CSR matrix"),
    "shape": (CSR | {"X_shape": np.array([10**12, 2])}, r"do not form a CSR matrix"),
    "float index": (
        CSR | {"X_indices": np.ones(2)},
        r"and the other parts of X integers",
    ),
    "repeated index": (
        CSR | {"X_indptr": np.array([0, 2, 2]), "X_indices": np.array([1, 1])},
        r"row 0: feature 1 occurs twice",
    ),
    "nominal": (
        VALID | {"nominal_categories_json": np.array("{")},
        r"nominal_categories_json is invalid",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_archive_raises(case, tmp_path):
    arrays, match = INVALID[case]
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=match):
        load(tmp_path / "a.npz")


def test_declared_shape_must_match_the_size_of_the_array(tmp_path):
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**3)}
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, header)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", content.getvalue() + bytes(64))
    rule = r"array 'X': .*its header declares shape \(1000000000000, 1000\)"
    with pytest.raises(DataError, match=rule):  # before memory is allocated
        load(tmp_path / "a.npz")


def test_other_file_raises(tmp_path):
    path = write_file(tmp_path, b"hello", "a.npz")
    with pytest.raises(DataError, match=r"a.npz: this is not a NumPy archive, or it is damaged: "):
        load(path)


def test_declared_nominal_columns_are_categories(tmp_path):
    declared = np.array('{"c": {"red": 1, "blue": 2}}')
    names = np.array(["x", "c"])
    arrays = {"feature_names": names, "nominal_categories_json": declared}
    np.savez(tmp_path / "a.npz", X=np.array([[0.5, 2], [1.5, 1], [2.5, np.nan]]), **arrays)
    found = load(tmp_path / "a.npz")
    assert found.feature_names == ("x", "c=blue", "c=red", "c missing")
    assert found.X.tolist() == [[0.5, 1, 0, 0], [1.5, 0, 1, 0], [2.5, 0, 0, 1]]
    np.savez(tmp_path / "a.npz", X=np.array([[0.5, 7]]), **arrays)
    rule = r"row 0, column 'c': the value 7 is not declared: it must be one of red, blue$"
    with pytest.raises(DataError, match=rule):
        load(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", **CSR, **arrays)
    with pytest.raises(DataError, match=r"nominal columns must be in a dense X"):
        load(tmp_path / "a.npz")


def test_columns_without_names_cannot_be_selected(tmp_path):
    np.savez(tmp_path / "a.npz", **VALID)
    for argument in ("drop", "categorical"):
        rule = rf"the columns have no names: .* \(argument: {argument}\)$"
        with pytest.raises(DataError, match=rule):
            load(tmp_path / "a.npz", **{argument: ["x"]})


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_numbers_as_categories(kind, tmp_path):
    one = make_dataset(kind)
    X = np.zeros((30, 6))
    X[::3, 1], X[1::3, 1] = 2, 0.5
    X = X if kind == "dense" else sparse.csr_array(X)
    save(Dataset(X, one.Y, one.feature_names, one.label_names), tmp_path / "a.npz")
    found = load(tmp_path / "a.npz", categorical=["b c"])
    assert found.feature_names[-3:] == ("b c=0", "b c=0.5", "b c=2")
    assert to_dense(found.X)[:3, -3:].tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
