"""Round trips of data sets in all formats."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest
from scipy import sparse

from dataset_files import VARIANTS, assert_same, make_dataset, real_path, round_trip
from fgfm.data import DataError, Dataset, load, save


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trip(variant, kind, dtype, tmp_path):
    one = make_dataset(kind, dtype=dtype)
    path = tmp_path / f"set{VARIANTS[variant][1]}"
    other = round_trip(one, path, variant, dtype=dtype)
    assert_same(one, other, variant)
    assert other.X.dtype == dtype
    sparse_format = VARIANTS[variant][0] in ("svmlight", "xmc")
    if VARIANTS[variant][0] in ("arff", "meka", "npz"):
        sparse_format = kind == "sparse"
    assert sparse.issparse(other.X) == sparse_format
    if sparse_format:
        assert other.X.indices.dtype == np.int32
    with path.open("rb") as file:
        assert (file.read(2) == b"\x1f\x8b") == variant.endswith(".gz")
    again = tmp_path / f"again{VARIANTS[variant][1]}"
    assert_same(one, round_trip(other, again, variant, dtype=dtype), variant)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["flags", "foodtruck", "emotions"])
def test_round_trip_of_real_data(name, variant, tmp_path):
    one = load(real_path(name))
    other = round_trip(one, tmp_path / f"{name}{VARIANTS[variant][1]}", variant, dtype="float32")
    assert_same(one, other, variant)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["arff", "meka.gz", "svmlight", "xmc.gz", "npz"])
@pytest.mark.parametrize("name", ["genbase", "eukaryote_go", "stackex_chess", "reutersk500"])
def test_round_trip_of_real_sparse_data(name, variant, tmp_path):
    one = load(real_path(name))
    other = round_trip(one, tmp_path / f"{name}{VARIANTS[variant][1]}", variant, dtype="float32")
    assert_same(one, other, variant)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["yeast", "medical"])
def test_round_trip_of_real_wide_tables(name, variant, tmp_path):
    one = load(real_path(name))
    other = round_trip(one, tmp_path / f"{name}{VARIANTS[variant][1]}", variant, dtype="float32")
    assert_same(one, other, variant)


@pytest.mark.parametrize("variant", VARIANTS)
def test_round_trip_of_one_row_and_one_label(variant, tmp_path):
    one = Dataset(np.array([[0.1]]), np.array([[1]], np.uint8), ("f",), ("l",))
    assert_same(one, round_trip(one, tmp_path / f"a{VARIANTS[variant][1]}", variant), variant)


@pytest.mark.parametrize("format", ["csv", "tsv", "arff", "meka", "parquet", "npz"])
def test_round_trip_of_unusual_names(format, tmp_path):
    names = ["a\rb", "c\nd", "e\tf", " g ", "%", "?", "{0,1}", "'", '"', "\\", "-C 3", "="]
    names += ["@data", "numeric", "1", "nan", ",", ";", "#", "\x7f", "a b", "a\\'b", "\\n"]
    names += ["日本", "é\u2028", "\U0001d4b3"]
    if format in ("csv", "tsv"):  # blanks around names are removed
        names[3] = "g"
    X = np.arange(len(names), dtype=float)[None]
    one = Dataset(
        X, np.ones((1, len(names)), np.uint8), tuple(names), tuple(f"{n}." for n in names)
    )
    save(one, tmp_path / "a", format=format)
    labels = None if format == "npz" else list(one.label_names)
    found = load(tmp_path / "a", format=format, labels=labels)
    assert found.feature_names == one.feature_names
    assert found.label_names == one.label_names


@pytest.mark.parametrize("format", ["csv", "arff", "xmc", "npz", "parquet"])
def test_failed_write_keeps_the_old_file(format, tmp_path, monkeypatch):
    one = make_dataset()
    path = tmp_path / f"set.{format}"
    path.write_text("before")

    def disk_full(*_):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk_full)
        with pytest.raises(DataError, match=r"cannot be written: no space left"):
            save(one, path, format=format)
    assert path.read_text() == "before"
    assert [f.name for f in tmp_path.iterdir()] == [path.name]
    save(one, path, format=format)
    assert path.read_bytes() != b"before"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()


def _umask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_compressed_files_are_reproducible(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        save(make_dataset(), tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_invalid_arguments_raise(tmp_path):
    one = make_dataset()
    path = tmp_path / "a.csv"
    with pytest.raises(ValueError, match=r"a.npz.gz': npz is compressed already, without .gz"):
        save(one, tmp_path / "a.npz.gz")
    with pytest.raises(TypeError, match=r"^dataset is ndarray: it must be a Dataset"):
        save(one.X, path)
    with pytest.raises(ValueError, match=r"the format does not follow from its name; format must"):
        save(one, tmp_path / "a.dat")
    with pytest.raises(
        ValueError, match=r"there are 1 feature_names and 0 label_names: X has 2 c"
    ):
        save(Dataset(np.ones((1, 2)), None, ("a",)), path)


def test_invalid_data_raise(tmp_path):
    path = tmp_path / "a.csv"
    with pytest.raises(DataError, match=r"X has a value that is not finite"):
        save(Dataset(np.array([[np.nan]])), path)
    with pytest.raises(DataError, match=r"Y has shape \(1, 1\): it must be 0 or 1"):
        save(Dataset(np.ones((1, 1)), np.array([[3]])), path)
    with pytest.raises(DataError, match=r"column 2: the name 'a' is that of column 1 too"):
        save(Dataset(np.ones((1, 1)), np.array([[1]]), ("a",), ("a",)), path)
    with pytest.raises(
        DataError, match=r"the label '\\x01' has characters that XML does not allow"
    ):
        save(Dataset(np.ones((1, 1)), np.array([[1]]), ("a",), ("\x01",)), tmp_path / "b.arff")
    assert list(tmp_path.iterdir()) == []
