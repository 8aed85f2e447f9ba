"""Data sets in files: what was written comes back, and what is wrong is said in one sentence."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import sys
import threading
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.pipeline import make_pipeline
from sklearn.utils import Bunch
from sklearn.utils.estimator_checks import parametrize_with_checks

import fgfm
from fgfm.data import DataError, Dataset, FeatureEncoder, load, save

DATA = Path(os.environ.get("FGFM_DATA", Path(__file__).parents[3] / "shared" / "data"))
# format, end of the name, whether it has names, whether it says which labels it has
WAYS = {
    "csv": ("csv", ".csv", True, False),
    "csv.gz": ("csv", ".csv.gz", True, False),
    "tsv": ("tsv", ".tsv", True, False),
    "parquet": ("parquet", ".parquet", True, True),
    "arff": ("arff", ".arff", True, True),
    "arff.gz": ("arff", ".arff.gz", True, True),
    "meka": ("meka", ".arff", True, True),
    "meka.gz": ("meka", ".arff.gz", True, True),
    "svmlight": ("svmlight", ".svm", False, False),
    "svmlight.gz": ("svmlight", ".svm.gz", False, False),
    "xmc": ("xmc", ".txt", False, True),
    "xmc.gz": ("xmc", ".txt.gz", False, True),
    "npz": ("npz", ".npz", True, True),
}


def real(name):
    path = DATA / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"{name}.npz is not there: FGFM_DATA must name the folder of the data sets")
    return path


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def some_data(kind="dense", n=30, p=6, m=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, p)) * 10.0 ** rng.integers(-9, 9, size=(n, p))).astype(dtype)
    X[rng.random((n, p)) < 0.4] = 0
    X[:, -1] = 0  # a feature that no row has
    X[3] = 0
    Y = (rng.random((n, m)) < 0.4).astype(np.uint8)
    Y[3] = 0  # a row that is empty
    Y[:, -1] = 0
    names = ("a", "b c", "d,e", "it's", 'say "x"', "été\\", "x7")[:p]
    labels = ("1st", "l, m", "Ω", "{q}%")[:m]
    return Dataset(X if kind == "dense" else sparse.csr_array(X), Y, names, labels)


def back(dataset, path, way, **options):
    """Write a data set and read it again, with what the format itself does not say."""
    format, _, _, declares = WAYS[way]
    save(dataset, path, format=format)
    if not declares and dataset.Y is not None:
        m = dataset.Y.shape[1]
        options["labels"] = -m if format in ("csv", "tsv") else m
    if format == "svmlight":
        options["n_features"] = dataset.X.shape[1]
    return load(path, **options)


def same(one, other, way):
    assert other.X.shape == one.X.shape
    if sparse.issparse(one.X) and sparse.issparse(other.X):
        assert (one.X != other.X).nnz == 0
    else:
        assert (dense(other.X) == dense(one.X)).all()
    assert other.Y.dtype == np.uint8
    assert (other.Y == one.Y).all()
    m = one.Y.shape[1]
    if way == "npz":
        assert other.feature_names == one.feature_names
        assert other.label_names == one.label_names
    elif WAYS[way][2]:
        assert other.feature_names == (
            one.feature_names or tuple(f"x{j + 1}" for j in range(one.X.shape[1]))
        )
        assert other.label_names == (one.label_names or tuple(f"y{k + 1}" for k in range(m)))
    else:
        first = 1 if way.startswith("svmlight") else 0
        assert other.feature_names is None
        assert other.label_names == tuple(str(k + first) for k in range(m))


# Round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trip(way, kind, dtype, tmp_path):
    one = some_data(kind, dtype=dtype)
    path = tmp_path / f"set{WAYS[way][1]}"
    other = back(one, path, way, dtype=dtype)
    same(one, other, way)
    assert other.X.dtype == dtype
    sparse_format = WAYS[way][0] in ("svmlight", "xmc")
    if WAYS[way][0] in ("arff", "meka", "npz"):
        sparse_format = kind == "sparse"
    assert sparse.issparse(other.X) == sparse_format
    if sparse_format:
        assert other.X.indices.dtype == np.int32
    with path.open("rb") as file:
        assert (file.read(2) == b"\x1f\x8b") == way.endswith(".gz")
    again = tmp_path / f"again{WAYS[way][1]}"
    same(one, back(other, again, way, dtype=dtype), way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["flags", "foodtruck", "emotions"])
def test_round_trip_of_real_data(name, way, tmp_path):
    one = load(real(name))
    other = back(one, tmp_path / f"{name}{WAYS[way][1]}", way, dtype="float32")
    same(one, other, way)


@pytest.mark.parametrize("way", ["arff", "meka.gz", "svmlight", "xmc.gz", "npz"])
@pytest.mark.parametrize("name", ["genbase", "eukaryote_go", "stackex_chess", "reutersk500"])
def test_round_trip_of_real_sparse_data(name, way, tmp_path):
    one = load(real(name))
    same(one, back(one, tmp_path / f"{name}{WAYS[way][1]}", way, dtype="float32"), way)


@pytest.mark.parametrize("way", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["yeast", "medical"])
def test_round_trip_of_real_wide_tables(name, way, tmp_path):
    one = load(real(name))
    same(one, back(one, tmp_path / f"{name}{WAYS[way][1]}", way, dtype="float32"), way)


@pytest.mark.parametrize("name", ["flags", "foodtruck"])
def test_nominal_columns_are_encoded_as_those_who_made_the_archive_did(name):
    found = load(real(name))
    archive = np.load(real(name))
    assert (archive["X_onehot"] == found.X).all()
    assert found.feature_names == tuple(archive["feature_names_onehot"])


@pytest.mark.parametrize("name", ["emotions", "enron"])
def test_archive_is_read_as_it_is(name):
    found, archive = load(real(name)), np.load(real(name))
    if "X" in archive:
        assert (archive["X"] == found.X).all()
    else:
        assert (found.X.data == archive["X_data"]).all()
        assert (found.X.indices == archive["X_indices"]).all()
    assert (archive["Y"] == found.Y).all()
    assert found.label_names == tuple(archive["label_names"])
    assert (found.train == archive["train_idx"]).all()
    assert (found.test == archive["test_idx"]).all()


def test_split_is_kept_by_archives(tmp_path):
    one = some_data()
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


@pytest.mark.parametrize("way", WAYS)
def test_files_without_labels(way, tmp_path):
    one = some_data()
    trained = back(one, tmp_path / f"train{WAYS[way][1]}", way)
    bare = Dataset(one.X, None, one.feature_names)
    path = tmp_path / f"new{WAYS[way][1]}"
    save(bare, path, format=WAYS[way][0])
    other = load(path, encoder=trained.encoder)
    assert other.Y is None
    assert other.label_names is None
    assert (dense(other.X) == dense(one.X)).all()
    assert "no labels" in repr(other)
    with_labels = load(tmp_path / f"train{WAYS[way][1]}", encoder=trained.encoder)
    same(trained, with_labels, "npz")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("other_way", ["csv", "svmlight", "xmc", "arff", "npz", "parquet"])
def test_a_model_of_one_format_reads_another(way, other_way, tmp_path):
    one = some_data()
    encoder = back(one, tmp_path / f"train{WAYS[way][1]}", way).encoder
    bare = Dataset(one.X, None, one.feature_names)
    path = tmp_path / f"new{WAYS[other_way][1]}"
    save(bare, path, format=WAYS[other_way][0])
    options = {"zero_based": False} if other_way == "svmlight" else {}
    assert (dense(load(path, encoder=encoder, **options).X) == dense(one.X)).all()


@pytest.mark.parametrize("way", WAYS)
def test_data_set_of_one_row_and_one_label(way, tmp_path):
    one = Dataset(np.array([[0.1]]), np.array([[1]], np.uint8), ("f",), ("l",))
    same(one, back(one, tmp_path / f"a{WAYS[way][1]}", way), way)


def test_files_appear_when_they_are_complete(tmp_path, monkeypatch):
    one = some_data()
    for format in ("csv", "arff", "xmc", "npz", "parquet"):
        path = tmp_path / f"set.{format}"
        path.write_text("before")

        def full(*_):
            raise OSError("no space left")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(DataError, match=r"cannot be written: no space left"):
                save(one, path, format=format)
        assert path.read_text() == "before"
        assert [f.name for f in tmp_path.iterdir()] == [path.name]
        save(one, path, format=format)
        assert path.read_bytes() != b"before"
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()
        for file in tmp_path.iterdir():
            file.unlink()


def _umask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_same_data_same_compressed_file(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        save(some_data(), tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


# Tables --------------------------------------------------------------------------------------


def text(tmp_path, content, name="a.csv"):
    path = tmp_path / name
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(content)
    return path


TABLE = "x,label_b,y,label_a\n1,0,2.5,1\n-3e2,1,0,0\n"


@pytest.mark.parametrize(
    ("labels", "names", "Y"),
    [
        (["label_a", "label_b"], ("label_a", "label_b"), [[1, 0], [0, 1]]),
        ("label_*", ("label_b", "label_a"), [[0, 1], [1, 0]]),
        (["*_a", "label_?"], ("label_a", "label_b"), [[1, 0], [0, 1]]),
        ("label_a", ("label_a",), [[1], [0]]),
        (-1, ("label_a",), [[1], [0]]),
    ],
)
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_labels_by_name_pattern_and_count(labels, names, Y, format, tmp_path):
    path = text(tmp_path, TABLE)
    if format == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        csv = pytest.importorskip("pyarrow.csv")
        parquet.write_table(csv.read_csv(path), tmp_path / "a.parquet")
        path = tmp_path / "a.parquet"
    found = load(path, labels=labels)
    assert found.label_names == names
    assert found.Y.tolist() == Y
    assert set(found.feature_names) == {"x", "y", "label_a", "label_b"} - set(names)


def test_first_columns_as_labels(tmp_path):
    found = load(text(tmp_path, "a,b,x\n1,0,5\n0,true,6\n".replace("true", "1")), labels=2)
    assert found.label_names == ("a", "b")
    assert found.X.tolist() == [[5], [6]]


def test_labels_in_words(tmp_path):
    found = load(text(tmp_path, "x,a,b\n1,TRUE,no\n2,False,YES\n"), labels=["a", "b"])
    assert found.Y.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("format", ["csv", "arff", "parquet"])
def test_labels_may_be_left_out(format, tmp_path):
    one = some_data()
    save(one, tmp_path / "a", format=format)
    labels = list(one.label_names)
    found = load(tmp_path / "a", format=format, labels=labels, drop=["l, m", "a"])
    assert found.label_names == ("1st", "Ω", "{q}%")
    assert (one.Y[:, [0, 2, 3]] == found.Y).all()
    assert found.feature_names == one.feature_names[1:]
    again = load(tmp_path / "a", format=format, encoder=found.encoder)
    assert (again.Y == found.Y).all()


@pytest.mark.parametrize("format", ["csv", "tsv", "arff", "meka", "parquet", "npz"])
def test_names_of_all_kinds(format, tmp_path):
    names = ["a\rb", "c\nd", "e\tf", " g ", "%", "?", "{0,1}", "'", '"', "\\", "-C 3", "="]
    names += ["@data", "numeric", "1", "nan", ",", ";", "#", "\x7f", "a b", "a\\'b", "\\n"]
    names += ["日本", "é\u2028", "\U0001d4b3"]
    if format in ("csv", "tsv"):  # blanks around names are no part of them
        names[3] = "g"
    X = np.arange(len(names), dtype=float)[None]
    one = Dataset(
        X, np.ones((1, len(names)), np.uint8), tuple(names), tuple(f"{n}." for n in names)
    )
    save(one, tmp_path / "a", format=format)
    if format == "arff":
        with pytest.raises(DataError, match="has characters"):
            save(Dataset(X, one.Y[:, :1], tuple(names), ("\x01",)), tmp_path / "b", format="arff")
    asked = None if format == "npz" else list(one.label_names)
    found = load(tmp_path / "a", format=format, labels=asked)
    assert found.feature_names == one.feature_names
    assert found.label_names == one.label_names


def test_lists_of_labels(tmp_path):
    path = text(tmp_path, 'x,tags\n1,"b; a"\n2,\n3,a;;c\n')
    found = load(path, labels="tags", separator=";")
    assert found.label_names == ("a", "b", "c")
    assert found.Y.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 1]]
    assert found.feature_names == ("x",)
    new = text(tmp_path, "tags,x\nc,1\na,7\n", "new.csv")
    assert load(new, encoder=found.encoder).Y.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert load(text(tmp_path, "x\n7\n", "bare.csv"), encoder=found.encoder).Y is None
    wrong = text(tmp_path, "x,tags\n1,a\n2,a;z\n", "wrong.csv")
    with pytest.raises(DataError, match=r"line 3, column 'tags': 'z' is an unknown label: .*'a'"):
        load(wrong, encoder=found.encoder)


def test_other_separators_are_remembered(tmp_path):
    found = load(text(tmp_path, "x,tags\n1,b|a\n"), labels="tags", separator="|")
    assert found.label_names == ("a", "b")
    again = load(text(tmp_path, "x,tags\n1,b|a\n", "b.csv"), encoder=found.encoder)
    assert again.Y.tolist() == [[1, 1]]


def test_lists_of_labels_in_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"x": [1, 2, None], "tags": [["a", "b"], [], ["b"]], "c": ["u", None, "v"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", labels="tags")
    assert found.label_names == ("a", "b")
    assert found.Y.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert found.feature_names == ("x", "c=u", "c=v", "x missing", "c missing")
    assert found.X.tolist() == [[1, 1, 0, 0, 0], [2, 0, 0, 0, 1], [1.5, 0, 1, 1, 0]]


def test_parquet_types(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    import datetime
    from decimal import Decimal

    columns = {
        "b": [True, False],
        "i": pyarrow.array([1, 2], pyarrow.int8()),
        "d": [Decimal("1.5"), Decimal("2.5")],
        "c": pyarrow.array(["u", "v"]).dictionary_encode(),
        "l": pyarrow.array([True, False]),
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", labels=["l"])
    assert found.X.tolist() == [[1, 1, 1.5, 1, 0], [0, 2, 2.5, 0, 1]]
    assert found.Y.tolist() == [[1], [0]]
    columns = {"f": np.ones(2, np.float32), "i": np.array([2**24 + 1, 0])}
    parquet.write_table(pyarrow.table(columns), tmp_path / "b.parquet")
    assert load(tmp_path / "b.parquet").X[0, 1] == 2**24 + 1
    columns["i"] = np.array([1, 0], dtype=np.int8)
    parquet.write_table(pyarrow.table(columns), tmp_path / "b.parquet")
    assert load(tmp_path / "b.parquet").X.dtype == np.float32
    parquet.write_table(pyarrow.table({"t": [datetime.date(2020, 1, 1)]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b.parquet, column 't': values of type date32"):
        load(tmp_path / "b.parquet")


def test_columns_are_numbers_or_categories(tmp_path):
    path = text(
        tmp_path,
        "size,colour,ok,id,zone\n1.5,red,yes,p1,3\n?,blue,no,p2,10\n4,,yes,p3,3\nNA,red,,p4,n/a\n",
    )
    found = load(path, drop=["id"], categorical=["zone"])
    assert found.feature_names == (
        "size",
        "colour=blue",
        "colour=red",
        "ok",
        "zone=10",
        "zone=3",
        "size missing",
        "colour missing",
        "ok missing",
        "zone missing",
    )
    assert found.X.tolist() == [
        [1.5, 0, 1, 1, 0, 1, 0, 0, 0, 0],
        [2.75, 1, 0, 0, 1, 0, 1, 0, 0, 0],
        [4.0, 0, 0, 1, 0, 1, 0, 1, 0, 0],
        [2.75, 0, 1, 0, 0, 0, 1, 0, 1, 1],
    ]
    # another order, an unseen category, numbers as texts, the identifier again
    new = text(tmp_path, "id,zone,ok,colour,size\nq,3,YES,green,\nr,7,0,blue,9\n", "new.csv")
    with pytest.warns(UserWarning, match="training did not have") as caught:
        again = load(new, encoder=found.encoder)
    assert [str(warning.message) for warning in caught] == [
        f"{new}, column 'colour': 1 of 2 rows have a category that training did not have, such as "
        "'green'",
        f"{new}, column 'zone': 1 of 2 rows have a category that training did not have, such as "
        "'7'",
    ]
    assert again.X.tolist() == [
        [2.75, 0, 0, 1, 0, 1, 1, 0, 0, 0],
        [9.0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    ]


def test_the_same_columns_in_arff(tmp_path):
    path = text(
        tmp_path,
        "@relation r\n@attribute size numeric\n@attribute colour {red,'light blue'}\n"
        "@attribute ok {YES,NO}\n@attribute note string\n@attribute l {0,1}\n@data\n"
        "1.5,red,YES,u,1\n?,'light blue',NO,v,0\n4,?,YES,'it\\'s',0\n",
        "a.arff",
    )
    found = load(path, labels=["l"])
    assert found.feature_names == (
        "size",
        "colour=red",
        "colour=light blue",
        "ok",
        "note=u",
        "note=v",
        "note=it's",
        "size missing",
        "colour missing",
    )
    assert found.X.tolist() == [
        [1.5, 1, 0, 1, 1, 0, 0, 0, 0],
        [2.75, 0, 1, 0, 0, 1, 0, 1, 0],
        [4, 0, 0, 1, 0, 0, 1, 0, 1],
    ]
    assert found.Y.tolist() == [[1], [0], [0]]
    new = text(tmp_path, "note,ok,colour,size\nv,NO,red,1\n", "new.csv")
    assert load(new, encoder=found.encoder).X.tolist() == [[1, 1, 0, 0, 0, 1, 0, 0, 0]]


def test_sparse_arff_leaves_out_the_first_value(tmp_path):
    path = text(
        tmp_path,
        "% a comment\n@RELATION 'set: -C 2'\n@ATTRIBUTE l1 {1,0}\n@ATTRIBUTE l2 {0,1}\n"
        "@ATTRIBUTE c {u,v,w}\n@ATTRIBUTE x REAL\n@ATTRIBUTE t {YES,NO}\n@DATA\n"
        "{0 0,2 w, 3 1.5}\n\n{1 1}\n{3 ?, 4 NO}\n",
        "a.arff",
    )
    found = load(path)
    assert found.label_names == ("l1", "l2")
    assert found.Y.tolist() == [[0, 0], [1, 1], [1, 0]]
    assert sparse.issparse(found.X)
    assert found.feature_names == ("c=u", "c=v", "c=w", "x", "t", "x missing")
    assert found.X.toarray().tolist() == [
        [0, 0, 1, 1.5, 1, 0],
        [1, 0, 0, 0, 1, 0],
        [1, 0, 0, 0.75, 0, 1],
    ]


def test_mulan_labels_have_the_order_of_the_attributes(tmp_path):
    xml = (
        '<?xml version="1.0"?><labels xmlns="http://mulan.sourceforge.net/labels">'
        '<label name="c &amp; d"><label name="a"></label></label></labels>'
    )
    arff = "@relation r\n@attribute a {0,1}\n@attribute x numeric\n@attribute 'c & d' {0,1}\n"
    arff += "@data\n1,5,0\n0,6,1\n"
    path = text(tmp_path, arff, "a.arff")
    assert load(path).Y is None
    text(tmp_path, xml, "a.xml")
    found = load(path)
    assert found.label_names == ("a", "c & d")
    assert found.Y.tolist() == [[1, 0], [0, 1]]
    other = text(tmp_path, arff, "b.arff")
    assert load(other, labels=tmp_path / "a.xml").label_names == ("a", "c & d")
    bare = "@relation r\n@attribute x numeric\n@data\n5\n"
    assert load(text(tmp_path, bare, "a.arff")).Y is None


def test_arff_whose_labels_were_taken_away(tmp_path):
    head = "@relation 'r: -C -1'\n@attribute x numeric\n@attribute y numeric\n"
    train = text(tmp_path, head + "@attribute l {0,1}\n@data\n1,2,1\n3,4,0\n", "train.arff")
    encoder = load(train).encoder
    bare = load(text(tmp_path, head + "@data\n5,6\n", "new.arff"), encoder=encoder)
    assert bare.Y is None
    assert bare.X.tolist() == [[5, 6]]
    other = text(tmp_path, head + "@attribute k {0,1}\n@data\n1,2,1\n", "other.arff")
    with pytest.raises(DataError, match=r"other.arff: 'k' is an unknown label: training did not"):
        load(other, encoder=encoder)


def test_arff_is_read_as_liac_arff_does(tmp_path):
    arff = pytest.importorskip("arff")
    for kind in ("dense", "sparse"):
        one = some_data(kind)
        save(one, tmp_path / "a.arff")
        rows = arff.load((tmp_path / "a.arff").read_text(encoding="utf-8"))
        if kind == "dense":
            table = np.array(rows["data"], dtype=float)
        else:
            both = arff.load(
                (tmp_path / "a.arff").read_text(encoding="utf-8"), return_type=arff.COO
            )
            values, i, j = both["data"]
            table = np.zeros((30, 10))
            table[i, j] = np.array(values, dtype=float)
        assert (table[:, :6] == dense(one.X)).all()
        assert (table[:, 6:] == one.Y).all()
        assert [name for name, _ in rows["attributes"]][-4:] == list(one.label_names)


def test_quoted_and_odd_csv(tmp_path):
    path = text(tmp_path, '﻿"a\nb","c,d"\r\n" 1 ","+2e0"\r\n\r\n.5,-0\r\n')
    found = load(path)
    assert found.feature_names == ("a\nb", "c,d")
    assert found.X.tolist() == [[1, 2], [0.5, 0]]


def test_delimiter_and_encoding(tmp_path):
    path = text(tmp_path, "é;l\n1;1\n".encode("latin-1"))
    found = load(path, delimiter=";", encoding="latin-1", labels=["l"])
    assert found.feature_names == ("é",)


def test_large_tables_are_read_in_blocks(tmp_path, monkeypatch):
    from fgfm.data import _csv

    monkeypatch.setattr(_csv, "_BLOCK", 64)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 7))
    X[rng.random(X.shape) < 0.1] = np.nan
    words = rng.choice(["u", "v", ""], size=500)
    lines = ["c," + ",".join(f"x{j}" for j in range(7))]
    for row, word in zip(X, words, strict=True):
        lines.append(word + "," + ",".join("" if v != v else repr(v) for v in row.tolist()))
    found = load(text(tmp_path, "\n".join(lines)))
    assert found.feature_names[:3] == ("c=u", "c=v", "x0")
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    assert (found.X[:, 2:9] == filled).all()
    assert (found.X[:, 0] == (words == "u")).all()
    lines[301] = "u," + ",".join(["1"] * 6) + ",oops"
    with pytest.raises(
        DataError, match=r"line 302, column 'x6': 'oops' is not a number, and line"
    ):
        load(text(tmp_path, "\n".join(lines)))


# Rows of svmlight ----------------------------------------------------------------------------


def test_svmlight_counts_from_zero_or_one(tmp_path):
    one = text(tmp_path, "1,3 1:0.5 4:2 # remark\n# only a remark\n\n 2:1e-3\n2\n", "one.svm")
    found = load(one)
    assert found.X.toarray().tolist() == [[0.5, 0, 0, 2], [0, 1e-3, 0, 0], [0, 0, 0, 0]]
    assert found.Y.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert found.label_names == ("1", "2", "3")
    zero = load(one, zero_based=True, zero_based_labels=True)
    assert zero.X.shape == (3, 5)
    assert zero.label_names == ("0", "1", "2", "3")
    mixed = load(text(tmp_path, "0,2 1:1\n", "mixed.svm"))
    assert mixed.X.shape == (1, 1)
    assert mixed.label_names == ("0", "1", "2")
    # what was found is remembered, though nothing in this file tells
    encoder = load(text(tmp_path, "0 0:1 2:1\n1 1:1\n", "train.svm")).encoder
    again = load(text(tmp_path, "1 2:5\n", "new.svm"), encoder=encoder)
    assert again.X.toarray().tolist() == [[0, 0, 5]]
    assert again.Y.tolist() == [[0, 1]]


def test_svmlight_is_read_as_scikit_learn_does(tmp_path):
    one = some_data("sparse")
    one = one.rows(np.arange(30) != 3)  # scikit-learn does not keep empty rows
    save(one, tmp_path / "a.svm")
    X, tags = load_svmlight_file(tmp_path / "a.svm", n_features=6, multilabel=True)
    assert (X.toarray() == one.X.toarray()).all()
    assert all(
        list(np.flatnonzero(row) + 1) == list(t) for row, t in zip(one.Y, tags, strict=True)
    )
    dump_svmlight_file(one.X, sparse.csr_matrix(one.Y), str(tmp_path / "b.svm"), multilabel=True)
    other = load(
        tmp_path / "b.svm", n_features=6, labels=4, zero_based=True, zero_based_labels=True
    )
    # it writes 16 digits
    assert np.allclose(other.X.toarray(), one.X.toarray(), rtol=1e-14, atol=0)
    assert (other.Y == one.Y).all()


def test_xmc_keeps_empty_rows(tmp_path):
    found = load(text(tmp_path, "3 4 2\n0,1 0:1 3:2\n\n1\n\n", "a.txt"))
    assert found.X.toarray().tolist() == [[1, 0, 0, 2], [0] * 4, [0] * 4]
    assert found.Y.tolist() == [[1, 1], [0, 0], [0, 1]]
    named = load(tmp_path / "a.txt", labels=["u", "v"])
    assert named.label_names == ("u", "v")


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ("2 3 2\n0 1:1\n1 2:1\n", "xmc"),
        ("1,2 1:1\n", "svmlight"),
        ("1:1\n", "svmlight"),
        ("% x\n@relation r\n@attribute x numeric\n@data\n1\n", "arff"),
    ],
)
def test_format_by_contents(content, format, tmp_path):
    plain = load(text(tmp_path, content, "data"))
    packed = load(text(tmp_path, gzip.compress(content.encode()), "data.txt.gz"))
    stated = load(tmp_path / "data", format=format)
    for found in (packed, stated):
        assert (dense(found.X) == dense(plain.X)).all()


def test_binary_formats_by_contents(tmp_path):
    one = some_data()
    for format in ("npz", "parquet"):
        save(one, tmp_path / "data", format=format)
        same(one, load(tmp_path / "data"), "npz")


# OpenML --------------------------------------------------------------------------------------


@pytest.fixture
def openml(monkeypatch):
    asked = []

    def answer(bunch):
        def fetch_openml(**options):
            asked.append(options)
            if isinstance(bunch, Exception):
                raise bunch
            return bunch

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
        return asked

    return answer


def openml_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "x": [1.0, np.nan],
            "c": pandas.Categorical(["u", "v"]),
            "l1": pandas.Categorical(["TRUE", "FALSE"]),
            "l2": pandas.Categorical(["FALSE", "TRUE"]),
        }
    )
    names = ["l1", "l2"]
    return Bunch(data=frame[["x", "c"]], target=frame[names], frame=frame, target_names=names)


def test_openml(openml):
    asked = openml(openml_frame())
    found = load("openml:scene:4")
    assert asked[0]["name"] == "scene"
    assert asked[0]["version"] == 4
    assert found.label_names == ("l1", "l2")
    assert found.Y.tolist() == [[1, 0], [0, 1]]
    assert found.X.tolist() == [[1, 1, 0, 0], [1, 0, 1, 1]]
    assert repr(found).startswith("<Dataset openml:scene:4: 2 rows, 4 features")
    assert load("openml:scene", labels=["l2"], drop=["l1"]).Y.tolist() == [[0], [1]]
    assert asked[1]["version"] == "active"
    load("openml:40595")
    assert asked[2]["data_id"] == 40595


def test_openml_sparse(openml):
    X = sparse.csr_matrix([[0, 1.5], [2, 0]])
    target = np.array([["1", "0"], ["0", "1"]], dtype=object)
    openml(
        Bunch(data=X, target=target, frame=None, feature_names=["a", "b"], target_names=["u", "v"])
    )
    found = load("openml:text")
    assert found.feature_names == ("a", "b")
    assert found.label_names == ("u", "v")
    assert (found.X.toarray() == X.toarray()).all()
    assert found.Y.tolist() == [[1, 0], [0, 1]]


def test_openml_refusals(openml):
    openml(OSError("no network"))
    with pytest.raises(DataError, match=r"^openml:x: OpenML did not give the data: no network$"):
        load("openml:x")
    for name in ("openml:", "openml:x:new"):
        with pytest.raises(DataError, match=rf"^{name}: this must be openml:name"):
            load(name)


# The encoder ---------------------------------------------------------------------------------


def test_encoder_is_saved_in_models(tmp_path):
    pytest.importorskip("skops.io")
    path = text(tmp_path, "x,c,l\n1,u,0\n,v,1\n3,u,1\n,w,0\n")
    found = load(path, labels=["l"])
    fgfm.save(found.encoder, tmp_path / "encoder")
    again = fgfm.load(tmp_path / "encoder")
    new = text(tmp_path, "c,x\nw,\nu,2\n", "new.csv")
    assert (load(new, encoder=again).X == load(new, encoder=found.encoder).X).all()
    assert list(again.label_names_) == ["l"]
    assert again.get_feature_names_out().tolist() == found.encoder.get_feature_names_out().tolist()
    sparse_one = back(some_data("sparse"), tmp_path / "a.svm", "svmlight").encoder
    fgfm.save(sparse_one, tmp_path / "encoder")
    assert fgfm.load(tmp_path / "encoder").zero_based_ is False


@parametrize_with_checks([FeatureEncoder()])
def test_encoder_passes_the_common_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=SkipTestWarning)
        check(estimator)


def test_encoder_in_a_pipeline(tmp_path):
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
def test_encoder_takes_tables_of_all_kinds(library):
    columns = {"x": [1.0, None, 3.0], "n": [1, 2, 3], "c": ["u", None, "v"]}
    expected = [[1, 1, 1, 0, 0, 0], [2, 2, 0, 0, 1, 1], [3, 3, 0, 1, 0, 0]]
    if library == "dict":
        X = columns
    elif library == "objects":
        X = np.array(list(zip(*columns.values(), strict=True)), dtype=object)
    else:
        X = pytest.importorskip(library).DataFrame(columns)
    encoder = FeatureEncoder()
    assert encoder.fit_transform(X).tolist() == expected
    assert clone(encoder).fit(X).n_features_in_ == 3
    named = library != "objects"
    assert encoder.get_feature_names_out().tolist() == (
        ["x", "n", "c=u", "c=v", "x missing", "c missing"]
        if named
        else ["x1", "x2", "x3=u", "x3=v", "x1 missing", "x3 missing"]
    )


def test_encoder_and_pandas_own_missing_values():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "i": pandas.array([1, None, 3], dtype="Int64"),
            "s": pandas.array(["u", None, "v"], dtype="string"),
        }
    )
    assert FeatureEncoder().fit_transform(frame).tolist() == [
        [1, 1, 0, 0, 0],
        [2, 0, 0, 1, 1],
        [3, 0, 1, 0, 0],
    ]


def test_encoder_keeps_numbers_as_they_are():
    for X in (np.eye(3, dtype=np.float32), np.eye(3), sparse.csr_array(np.eye(3))):
        out = FeatureEncoder().fit_transform(X)
        assert out.dtype == X.dtype
        assert type(out) is type(X)
        assert (dense(out) == dense(X)).all()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_encoder_medians_of_dense_and_sparse(kind):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(41, 5)).astype(float)
    X[:, 1] = 0
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 4] = np.nan
    encoder = FeatureEncoder().fit(kind(X))
    medians = np.append(np.nanmedian(X[:, :4], axis=0), 0)
    expected = np.hstack([np.where(np.isnan(X), medians, X), np.isnan(X)])
    assert (dense(encoder.transform(kind(X))) == expected).all()
    new = np.full((1, 5), np.nan)
    assert (dense(encoder.transform(kind(new)))[0, :5] == medians).all()


def test_encoder_refusals(tmp_path):
    with pytest.raises(NotFittedError):
        FeatureEncoder().transform([[1.0]])
    train = load(text(tmp_path, "x,c,ok,l\n1,u,yes,0\n2,v,no,1\n"), labels=["l"])

    def refused(content, match):
        path = text(tmp_path, content, "new.csv")
        with pytest.raises(DataError, match=match):
            load(path, encoder=train.encoder)

    refused("x,ok\n1,no\n", r"new.csv: there is no column 'c', which training had$")
    refused("x,c,ok,z\n1,u,no,3\n", r"training had no column 'z': leave it out with drop=\[...\]")
    refused("x,c,ok\n1,u,no\nabc,u,no\n", r"line 3, column 'x': 'abc' is not a number, and line 2")
    refused("x,c,ok\nabc,u,no\n", r"new.csv, line 2, column 'x': 'abc' is not a number: in train")
    refused("x,c,ok\n1,u,no\n1,u,7\n", r"line 3, column 'ok': '7' is neither 0 nor 1: in training")
    refused("x,c,ok,l\n1,u,no,2\n", r"line 2, column 'l': the label is 2: labels must be 0 or 1")
    with pytest.raises(DataError, match=r"a.txt: X has 2 features, but .* expecting 3 features"):
        load(text(tmp_path, "1 2 0\n0:1\n", "a.txt"), encoder=train.encoder)
    two = load(text(tmp_path, "1 1:1 2:1\n", "b.svm"))
    with pytest.raises(DataError, match=r"line 1: there is a feature 3: .* from 1 to 2"):
        load(text(tmp_path, "3:1\n", "a.svm"), encoder=two.encoder)
    with pytest.raises(DataError, match=r"line 1: 2 is an unknown label: .* from 1 to 1"):
        load(text(tmp_path, "2 1:1\n", "a.svm"), encoder=two.encoder)
    with pytest.raises(DataError, match=r"^X: X has 3 features, but .* is expecting 2 features"):
        two.encoder.transform(np.ones((1, 3)))


def test_encoder_limits_categories(tmp_path):
    lines = "\n".join(["id,x", *(f"p{k},1" for k in range(1001))])
    path = text(tmp_path, lines)
    with pytest.raises(DataError, match=r"column 'id': there are 1001 different texts, such as"):
        load(path)
    assert load(path, drop=["id"]).X.shape == (1001, 1)
    rule = r"a.csv, column 'id': nearly every row has a text of its own \(1001 in 1001 rows\)"
    with pytest.warns(UserWarning, match=rule):
        found = load(path, encoder=FeatureEncoder(max_categories=2000))
    assert found.X.shape == (1001, 1002)


def test_labels_of_another_order_and_unknown_labels(tmp_path):
    one = some_data()
    encoder = back(one, tmp_path / "a.npz", "npz").encoder
    turned = Dataset(one.X, one.Y[:, ::-1], one.feature_names, one.label_names[::-1])
    save(turned, tmp_path / "b.npz")
    assert (load(tmp_path / "b.npz", encoder=encoder).Y == one.Y).all()
    other = Dataset(one.X, one.Y, one.feature_names, (*one.label_names[:3], "new"))
    save(other, tmp_path / "b.npz")
    with pytest.raises(DataError, match=r"b.npz: 'new' is an unknown label"):
        load(tmp_path / "b.npz", encoder=encoder)
    fewer = Dataset(one.X, one.Y[:, :3], one.feature_names, one.label_names[:3])
    save(fewer, tmp_path / "b.npz")
    with pytest.raises(DataError, match=r"there is no label '\{q\}%', which training had"):
        load(tmp_path / "b.npz", encoder=encoder)


# Files as others write them ---------------------------------------------------------------


def svm_rows(n=2000):
    return "".join(f"{1 + k % 3} {1 + k % 7}:{k}\n" for k in range(n))


def fed(content):
    """Give the reading end of a pipe that a thread writes to."""
    reading, writing = os.pipe()

    def write():
        with os.fdopen(writing, "wb") as file:
            file.write(content)

    thread = threading.Thread(target=write)
    thread.start()
    return reading, thread


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("format", ["svmlight", None])
def test_pipes_are_read_from_their_beginning(packed, format, tmp_path):
    content = svm_rows().encode()
    reading, thread = fed(gzip.compress(content) if packed else content)
    try:
        found = load(f"/dev/fd/{reading}", format=format)
    finally:
        os.close(reading)
        thread.join()
    assert found.X.shape == (2000, 7)
    assert found.source == f"/dev/fd/{reading}"
    wanted = load(text(tmp_path, content, "a.svm"))
    assert (found.X != wanted.X).nnz == 0
    assert (found.Y == wanted.Y).all()


def test_named_pipes(tmp_path):
    path = tmp_path / "a.csv"
    os.mkfifo(path)
    for content, match in (("x,l\n1,0\n2,1\n", None), ("x,l\n1,0\n2,7\n", "a.csv, line 3, c")):
        thread = threading.Thread(target=path.write_text, args=(content,))
        thread.start()
        if match is None:
            assert load(path, labels=["l"]).X.tolist() == [[1.0], [2.0]]
        else:
            with pytest.raises(DataError, match=match) as caught:
                load(path, labels=["l"])
            assert str(caught.value).startswith(str(path))
        thread.join()


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x,y\n1,2\n3,4\n")))
    found = load("-", format="csv")
    assert found.X.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert found.source == "-"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x,y\n1,2\n3,4\n")))
    with pytest.raises(DataError, match=r"^-: neither its name nor its first line tells"):
        load("-")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(DataError, match=r"^-: the file is empty$"):
        load("-", format="csv")


def test_decimal_commas(tmp_path):
    path = text(tmp_path, "x;y;c;l\n0,53;1;u;0\n-1,5e3;?;v;1\n,5;2;u;1\n")
    found = load(path, labels=["l"], delimiter=";", decimal=",")
    assert found.feature_names == ("x", "y", "c=u", "c=v", "y missing")
    assert found.X[:, :2].tolist() == [[0.53, 1], [-1500, 1.5], [0.5, 2]]
    quoted = text(tmp_path, 'x,y\n"0,5",1\n', "quoted.csv")
    assert load(quoted, decimal=",").X.tolist() == [[0.5, 1]]
    # as texts, where that is asked for
    found = load(path, labels=["l"], delimiter=";", categorical=["x"])
    assert found.feature_names[:3] == ("x=,5", "x=-1,5e3", "x=0,53")
    # texts of which some look like numbers, and dates and versions, are categories
    odd = text(tmp_path, 'a,b,c\n"1,5",2024-01-02,1.2.3\nu,2024-01-03,1.2.4\n', "odd.csv")
    assert load(odd).X.shape == (2, 6)
    with pytest.raises(ValueError, match=r"decimal is ';': it must be '\.' or ','"):
        load(path, decimal=";")
    with pytest.raises(ValueError, match=r"decimal= is for csv, tsv"):
        load(text(tmp_path, "1 1:1\n", "a.svm"), decimal=",")


def test_blanks_in_headers(tmp_path):
    found = load(text(tmp_path, "a, b ,\tl\n1, 2, 0\n3, 4, 1\n"), labels=["l"])
    assert found.feature_names == ("a", "b")
    assert found.label_names == ("l",)
    one = load(text(tmp_path, '"size, in cm"\n1\n2\n', "one.csv"))
    assert one.feature_names == ("size, in cm",)


def test_columns_without_a_name_are_dropped_by_number(tmp_path):
    found = load(text(tmp_path, ",x,y,\n0,2,3,\n1,4,5,\n"), drop=["1", "4"])
    assert found.feature_names == ("x", "y")
    assert found.X.tolist() == [[2, 3], [4, 5]]
    new = text(tmp_path, ",x,y\n0,6,7\n", "new.csv")
    assert load(new, encoder=found.encoder).X.tolist() == [[6, 7]]


def test_the_index_of_pandas_is_no_feature(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.0, 2, 3], "l": [0, 1, 1]}, index=[7, 3, 9])
    frame.to_parquet(tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", labels=-1)
    assert found.feature_names == ("x",)
    assert found.label_names == ("l",)
    dropped = load(tmp_path / "a.parquet", labels=["l"], drop=["__index_level_0__"])
    assert dropped.feature_names == ("x",)
    # a model that was fitted with it has it
    mapped = {"x": [1.0, 2], "__index_level_0__": [3.0, 4]}
    encoder = FeatureEncoder().fit(mapped)
    assert load(tmp_path / "a.parquet", encoder=encoder, drop=["l"]).X.shape == (3, 2)
    # the same name without pandas is a name like others
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"__index_level_0__": [1, 2], "x": [3, 4]})
    for metadata in ({}, {"pandas": "{"}, {"pandas": "[]"}, {"pandas": '{"index_columns": 3}'}):
        pytest.importorskip("pyarrow.parquet").write_table(
            table.replace_schema_metadata(metadata), tmp_path / "b.parquet"
        )
        assert load(tmp_path / "b.parquet").X.shape == (2, 2)


def test_columns_of_any_type_can_be_dropped(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    when = pd.to_datetime(["2024-01-01", "2024-01-02"])
    pd.DataFrame({"when": when, "x": [1.0, 2]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"column 'when': values of type timestamp.* are neither"):
        load(tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", drop=["when"])
    assert found.feature_names == ("x",)
    assert load(tmp_path / "a.parquet", encoder=found.encoder).X.tolist() == [[1], [2]]


@pytest.mark.parametrize(
    "kind",
    ["list large", "large_list large", "large_list", "list view", "list dictionary", "fixed"],
)
def test_lists_of_labels_of_all_types(kind, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    types = {
        "list large": lambda: pa.list_(pa.large_string()),
        "large_list large": lambda: pa.large_list(pa.large_string()),
        "large_list": lambda: pa.large_list(pa.string()),
        "list view": lambda: pa.list_(pa.string_view()),
        "list dictionary": lambda: pa.list_(pa.dictionary(pa.int32(), pa.string())),
        "fixed": lambda: pa.list_(pa.string(), 2),
    }
    rows = [["u", "v"], ["v", "w"]]
    column = pa.array(rows, types[kind]())
    parquet.write_table(pa.table({"x": [1.0, 2], "t": column}), tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", labels="t")
    assert found.label_names == ("u", "v", "w")
    assert found.Y.tolist() == [[1, 1, 0], [0, 1, 1]]


def test_texts_of_polars(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"c": pa.array(["u", "v", None], pa.string_view())})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet").feature_names == ("c=u", "c=v", "c missing")


def test_missing_lists_of_labels_are_empty(tmp_path):
    path = text(tmp_path, "x,t\n1,a;b\n2,NA\n3,?\n4,\n5,b;NA\n6,nan\n7,[b]\n")
    found = load(path, labels="t", separator=";")
    assert found.label_names == ("NA", "[b]", "a", "b")
    assert found.Y.sum(axis=1).tolist() == [2, 0, 0, 0, 2, 0, 1]
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"x": [1, 2, 3], "t": ["a;b", "NA", None]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", labels="t", separator=";")
    assert found.Y.tolist() == [[1, 1], [0, 0], [0, 0]]
    table = pa.table({"x": [1, 2], "t": ["a", "['a', 'b']"]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"row 1, column 't': .* notation of a program"):
        load(tmp_path / "a.parquet", labels="t", separator=",")


UNLABELLED = {
    "blank": "l,x,m\n,1,\n?,2,NA\n",
    "words": "l,x,m\nmaybe,1,0\n7,2,soon\n",
    "some": "x,m\n1,\n2,1\n",
    "none": "x\n1\n2\n",
}


@pytest.mark.parametrize("case", UNLABELLED)
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_labels_that_are_not_read(case, format, tmp_path):
    encoder = load(text(tmp_path, "x,l,m\n1,0,1\n2,1,1\n"), labels=["l", "m"]).encoder
    path = text(tmp_path, UNLABELLED[case], "new.csv")
    if format == "parquet":
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        frame = pd.read_csv(path, keep_default_na=False)
        path = tmp_path / "new.parquet"
        frame.to_parquet(path)
    found = load(path, encoder=encoder, with_labels=False)
    assert found.X.tolist() == [[1], [2]]
    assert found.Y is None
    assert found.label_names is None


def test_labels_that_are_not_read_in_other_formats(tmp_path):
    path = text(tmp_path, "x,t\n1,a;b\n2,b\n")
    encoder = load(path, labels="t", separator=";").encoder
    new = text(tmp_path, "t,x\nunknown,1\n['q'],2\n", "new.csv")
    found = load(new, encoder=encoder, with_labels=False)
    assert found.X.tolist() == [[1], [2]]
    assert found.Y is None
    assert load(path, labels="t", separator=";", with_labels=False).X.tolist() == [[1], [2]]
    for way in WAYS:
        one = some_data()
        path = tmp_path / f"set{WAYS[way][1]}"
        known = back(one, path, way)
        found = load(path, encoder=known.encoder, with_labels=False)
        assert found.Y is None
        assert (dense(found.X) == dense(known.X)).all()
        if WAYS[way][3]:
            found = load(path, with_labels=False)
            assert found.Y is None
            assert found.X.shape == known.X.shape
    svm = load(text(tmp_path, "1 1:1\n2 2:1\n", "a.svm"))
    found = load(text(tmp_path, "9 1:1\n", "b.svm"), encoder=svm.encoder, with_labels=False)
    assert found.Y is None
    arff = text(tmp_path, ARFF + "1,u,0\n2,v,1\n", "a.arff")
    encoder = load(arff, labels=-1).encoder
    found = load(text(tmp_path, ARFF + "1,u,?\n", "b.arff"), encoder=encoder, with_labels=False)
    assert found.Y is None
    assert load(arff, labels=-1, with_labels=False).X.shape == (2, 3)
    for wrong in (None, 1):
        with pytest.raises(TypeError, match=r"with_labels is .*: it must be True"):
            load(arff, with_labels=wrong)


def test_categories_that_are_numbers(tmp_path):
    path = text(tmp_path, "z,x\n0,1\n1,2\n2,3\n")
    encoder = load(path, categorical=["z"]).encoder
    new = text(tmp_path, "z,x\n0.0,1\n1.00,2\n2e0,3\n", "new.csv")
    assert load(new, encoder=encoder).X[:, :3].tolist() == np.eye(3).tolist()
    assert encoder.transform({"z": [2.0, 0], "x": [1, 1]})[:, :3].tolist() == [
        [0, 0, 1],
        [1, 0, 0],
    ]
    # and the other way; 01 is a text
    encoder = load(new, categorical=["z"]).encoder
    assert load(path, encoder=encoder).X[:, :3].tolist() == np.eye(3).tolist()
    with pytest.warns(UserWarning, match=r"'z': 2 of 3 rows have a category .* such as '01'"):
        found = load(text(tmp_path, "z,x\n01,1\n1,2\n7,3\n", "odd.csv"), encoder=encoder)
    assert found.X[:, :3].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    codes = text(tmp_path, "z,x\n01234,1\n1234,2\n5,3\n", "codes.csv")
    encoder = load(codes, categorical=["z"]).encoder
    with pytest.warns(UserWarning, match=r"'z': 1 of 1 rows"):
        load(text(tmp_path, "z,x\n1234.0,1\n", "new.csv"), encoder=encoder)
    # 1 and 1.0 are two where training had both
    both = text(tmp_path, "z,x\n1,1\n1.0,2\n5,3\n", "both.csv")
    found = load(both, categorical=["z"])
    assert (load(both, encoder=found.encoder).X == found.X).all()


def test_truth_values_from_elsewhere(tmp_path):
    encoder = FeatureEncoder().fit({"b": np.array([True, False, True]), "x": [1.0, 2, 3]})
    found = load(text(tmp_path, "b,x\nTrue,1\nfalse,2\nNA,3\n"), encoder=encoder)
    assert found.X.tolist() == [[1, 1], [0, 2], [1, 3]]
    with pytest.raises(DataError, match=r"line 2, column 'x': 'True' is not a number"):
        load(text(tmp_path, "b,x\nTrue,True\n"), encoder=encoder)
    with pytest.raises(DataError, match=r"line 2, column 'b': 'red' is not a number"):
        load(text(tmp_path, "b,x\nred,1\n"), encoder=encoder)
    del encoder.zero_one_  # a model of an earlier version
    with pytest.raises(DataError, match=r"line 2, column 'b': 'True' is not a number"):
        load(text(tmp_path, "b,x\nTrue,1\n"), encoder=encoder)
    encoder = load(text(tmp_path, "b,x\nTrue,1\nFalse,2\n")).encoder
    new = text(tmp_path, "b,x\n1.0,1\n0.0,2\n0,3\nTRUE,4\n", "new.csv")
    assert load(new, encoder=encoder).X[:, 0].tolist() == [1, 0, 0, 1]
    with pytest.raises(DataError, match=r"line 2, column 'b': '1.5' is neither 0 nor 1"):
        load(text(tmp_path, "b,x\n1.5,1\n", "new.csv"), encoder=encoder)


# Files that are wrong ------------------------------------------------------------------------

ARFF = "@relation r\n@attribute x numeric\n@attribute c {u,v}\n@attribute l {0,1}\n@data\n"
BAD = {
    "empty csv": ("a.csv", "", {}, r"a.csv: the file is empty$"),
    "empty gzip": ("a.csv.gz", gzip.compress(b""), {}, r"a.csv.gz: the file is empty$"),
    "blank csv": ("a.csv", "\n\n", {}, r"a.csv: the file is empty$"),
    "header only": ("a.csv", "x,y\n", {}, r"a.csv: there are no rows after the header$"),
    "short row": ("a.csv", "x,y\n1,2\n3\n", {}, r"a.csv, line 3: there are 1 values: the header"),
    "long row": ("a.csv", "x,y\n1,2,3\n", {}, r"line 2: there are 3 values: .* has 2 columns$"),
    "after a long cell": ("a.csv", 'x,c\n1,"u\nv"\n2\n', {}, r"a.csv, line 4: there are 1 values"),
    "unclosed quote": ("a.csv", 'x\n"1\n2\n', {}, r"a.csv, line 2: this is no table: unexpected"),
    "text in numbers": ("a.csv", "x\n1\n2\nq\n", {}, r"line 4, column 'x': 'q' is not a number"),
    "numbers of Python": (
        "a.csv",
        "x\n1\n1_0\n",
        {},
        r"line 3, column 'x': '1_0' is not a number",
    ),
    "digits of a script": ("a.csv", "x\n1\n٣\n", {}, r"line 3, column 'x': '٣' is not a num"),
    "infinite": ("a.csv", "x\n1\n1e999\n", {}, r"line 3, column 'x': '1e999' is not a finite num"),
    "infinite word": (
        "a.csv",
        "x,c\n1,u\ninf,u\n",
        {},
        r"line 3, column 'x': 'inf' is not a fini",
    ),
    "same name": ("a.csv", "x,y,x\n1,2,3\n", {}, r"line 1, column 3: the name 'x' is that of col"),
    "no name": ("a.csv", "x,,y\n1,2,3\n", {}, r"line 1, column 2: this column has no name"),
    "index": (
        "a.csv",
        ",x\n0,2\n",
        {"drop": ["x"]},
        r"line 1, column 1: .*without its index \(index=False\) .* by its number, 1, with drop=",
    ),
    "decimal commas": (
        "a.csv",
        "x;y\n?;1\n0,53;2\n1,5;3\n",
        {"delimiter": ";"},
        r"line 3, column 'x': '0,53' is not a number here, .* decimal=',' says so, .*categorical=",
    ),
    "decimal commas and whole numbers": (
        "a.csv",
        "x;y\n1;1\n0,53;2\n",
        {"delimiter": ";"},
        r"line 3, column 'x': '0,53' is not a number, and line 2 has '1': .*decimal=',' says so$",
    ),
    "decimal points": (
        "a.csv",
        "x;y\n1.5;1\n",
        {"delimiter": ";", "decimal": ","},
        r"line 2, column 'x': '1.5' is not a number here, .* 1234,5 where decimal=',' is given",
    ),
    "thousands": ("a.csv", 'x,y\n"1,500",1\n"12,000",2\n', {}, r"column 'x': '1,500' is not"),
    "thousands with blanks": ("a.csv", "x,y\n1 500.5,1\n", {}, r"column 'x': '1 500.5' is not"),
    "percents": ("a.csv", "x,y\n5%,1\n 7.5 %,1\n", {}, r"line 2, column 'x': '5%' is not a num"),
    "money": ("a.csv", "x,y\n$5,1\n-$7.25,1\n", {}, r"line 2, column 'x': '\$5' is not a numb"),
    "euros": ("a.csv", "x,y\n5 €,1\n", {}, r"line 2, column 'x': '5 €' is not a number here"),
    "lists of Python": (
        "a.csv",
        "x,t\n1,a\n2,\"['x', 'y']\"\n",
        {"labels": "t", "separator": ","},
        r"line 3, column 't': .* is a list in the notation of a program: .* such as a;b",
    ),
    "lists of JSON": (
        "a.csv",
        'x,t\n1,"[""x"", ""y""]"\n',
        {"labels": "t", "separator": ";"},
        r"line 2, column 't': .* is a list in the notation of a program",
    ),
    "other delimiter and labels": (
        "a.csv",
        "x;l\n1;0\n",
        {"labels": "l"},
        r"a.csv, line 1: ',' gives one column, 'x;l': give the file's own delimiter=\.\.\.$",
    ),
    "other delimiter and lists": (
        "a.csv",
        "x\tl\n1\ta\n",
        {"labels": "l", "separator": ";"},
        r"give the file's own delimiter=\.\.\.$",
    ),
    "columns that are there": (
        "a.csv",
        "x,y,l\n1,2,0\n",
        {"labels": "m", "separator": ";"},
        r"no column is called 'm', which labels= asks for: the columns are 'x', 'y', 'l'$",
    ),
    "label 2": ("a.csv", "x,l\n1,0\n1,2\n", {"labels": -1}, r"line 3, column 'l': the label is 2"),
    "label NaN": ("a.csv", "x,l\n1,nan\n", {"labels": -1}, r"'l': the label is missing: labels"),
    "no label": (
        "a.csv",
        "x,l\n1,\n",
        {"labels": -1},
        r"line 2, column 'l': the label is missing",
    ),
    "label inf": (
        "a.csv",
        "x,l\n1,inf\n",
        {"labels": -1},
        r"line 2, column 'l': 'inf' is not a f",
    ),
    "label word": (
        "a.csv",
        "x,l\n1,0\n2,q\n",
        {"labels": -1},
        r"line 3, column 'l': the label is",
    ),
    "label words": (
        "a.csv",
        "x,l\n1,p\n2,q\n",
        {"labels": -1},
        r"line 2, column 'l': the label is",
    ),
    "unknown label": ("a.csv", "x,l\n1,0\n", {"labels": ["m"]}, r"no column is called 'm', which"),
    "unknown pattern": ("a.csv", "x,l\n1,0\n", {"labels": "m*"}, r"no column is called 'm\*'"),
    "label twice": (
        "a.csv",
        "x,l\n1,0\n",
        {"labels": ["l", "l"]},
        r"labels= names .* twice",
    ),
    "all labels": (
        "a.csv",
        "x,l\n1,0\n",
        {"labels": 2},
        r"labels=2 leaves no features: there are 2",
    ),
    "all labels by name": ("a.csv", "l\n0\n", {"labels": "l"}, r"a.csv: there are no features"),
    "nothing to drop": ("a.csv", "x,l\n1,0\n", {"drop": ["i"]}, r"no column 'i', which drop="),
    "no tags": ("a.csv", "x,t\n1,\n", {"labels": "t", "separator": ";"}, r"no row has a label"),
    "other delimiter": ("a.csv", "x;y\n1;2\n", {}, r"give the file's own delimiter=\.\.\.$"),
    "encoding": ("a.csv", b"x\n1\n\xff\xfe\n", {}, r"a.csv, line 3: this is not utf-8 text"),
    "encoding of a header": (
        "a.arff",
        b"@relation \xe9\n",
        {},
        r"a.arff, line 1: this is not utf-",
    ),
    "encoding asked": ("a.csv", "x\n1\né\n", {"encoding": "ascii"}, r"line 3: this is not ascii"),
    "truncated gzip": (
        "a.csv.gz",
        gzip.compress(b"x\n" + b"1\n" * 999)[:-20],
        {},
        r"a.csv.gz: the compressed file ends too early: it is truncated$",
    ),
    "damaged gzip": (
        "a.csv.gz",
        gzip.compress(b"x\n1\n")[:-8] + bytes(8),
        {},
        r"a.csv.gz: the file cannot be read: CRC check failed",
    ),
    "unknown format": (
        "a.dat",
        "hello\n",
        {},
        r"a.dat: neither its name nor its first line tells",
    ),
    "no arff": ("a.arff", "x,y\n1,2\n", {}, r"line 1: 'x,y' is no line of an ARFF header"),
    "no data": ("a.arff", "@relation r\n@attribute x real\n", {}, r"the file ends before @data"),
    "no attributes": ("a.arff", "@relation r\n@data\n1\n", {}, r"line 2: there is no @attribute"),
    "no arff rows": ("a.arff", ARFF, {}, r"a.arff: there are no rows after @data"),
    "arff type": ("a.arff", "@attribute x date\n", {}, r"line 1: attribute 'x' has type 'date'"),
    "arff no type": ("a.arff", "@attribute x\n", {}, r"line 1: '@attribute x' is no attribute"),
    "arff values": ("a.arff", "@attribute x {u,u}\n", {}, r"has an empty value or one twice"),
    "arff name": (
        "a.arff",
        "@attribute 'x real\n",
        {},
        r"line 1: \"@attribute 'x real\" is no attr",
    ),
    "arff same name": (
        "a.arff",
        "@attribute x real\n@attribute x real\n@data\n1,2\n",
        {},
        r"a.arff, column 2: the name 'x' is that of column 1 too",
    ),
    "arff short row": (
        "a.arff",
        ARFF + "1,u,0\n2,v\n",
        {},
        r"line 7: there are 2 values: the head",
    ),
    "arff text": (
        "a.arff",
        ARFF + "1,u,0\nq,v,1\n",
        {},
        r"line 7, column 'x': 'q' is not a number",
    ),
    "arff nan": (
        "a.arff",
        ARFF + "nan,u,0\n",
        {},
        r"line 6, column 'x': 'nan' is not a number; a m",
    ),
    "arff gap": (
        "a.arff",
        ARFF + ",u,0\n",
        {},
        r"line 6, column 'x': the value is empty: a missing",
    ),
    "arff inf": ("a.arff", ARFF + "1e999,u,0\n", {}, r"line 6, column 'x': the value is infinite"),
    "arff category": (
        "a.arff",
        ARFF + "1,w,0\n",
        {},
        r"line 6, column 'c': 'w' is not a value that",
    ),
    "arff label": (
        "a.arff",
        ARFF + "1,u,2\n",
        {"labels": -1},
        r"line 6, column 'l': '2' is not a v",
    ),
    "arff no label": (
        "a.arff",
        ARFF + "1,u,?\n",
        {"labels": -1},
        r"column 'l': the label is missi",
    ),
    "arff quotes": (
        "a.arff",
        ARFF + "1,'u,0\n",
        {},
        r"line 6: the quotes in \"'u,0\" do not match",
    ),
    "arff mixed": (
        "a.arff",
        ARFF + "1,u,0\n{0 1}\n",
        {},
        r"line 7: dense and sparse rows must not",
    ),
    "arff sparse": ("a.arff", ARFF + "{0 1, 3 1}\n", {}, r"line 6: there is an attribute 3: they"),
    "arff sparse twice": (
        "a.arff",
        ARFF + "{0 1, 0 2}\n",
        {},
        r"line 6: attribute 0 occurs twice",
    ),
    "arff sparse end": ("a.arff", ARFF + "{0 1\n", {}, r"line 6: a sparse row must end with \}$"),
    "arff sparse entry": (
        "a.arff",
        ARFF + "{0:1}\n",
        {},
        r"line 6: '0:1' is no entry of a sparse",
    ),
    "arff meka": (
        "a.arff",
        "@relation 'r: -C 9'\n" + ARFF[12:] + "1,u,0\n",
        {},
        r"labels=9 leaves",
    ),
    "arff xml": (
        "a.arff",
        ARFF + "1,u,0\n",
        {"labels": "none.xml"},
        r"none.xml: the file cannot be",
    ),
    "svm feature": (
        "a.svm",
        "1 2:1\n1 2:x\n",
        {},
        r"line 2, column 3: '2:x' is no feature: it must",
    ),
    "svm label": ("a.svm", "1,a 2:1\n", {}, r"line 1, column 1: '1,a' is no list of labels"),
    "svm label fraction": (
        "a.svm",
        "1.5 2:1\n",
        {},
        r"line 1, column 1: '1.5' is no list of label",
    ),
    "svm negative": ("a.svm", "1 -2:1\n", {}, r"line 1, column 3: '-2:1' is no feature"),
    "svm nan": ("a.svm", "1 2:nan\n", {}, r"line 1, column 3: '2:nan' is no feature"),
    "svm inf": ("a.svm", "1 1:1\n1 2:1e999\n", {}, r"line 2: feature 2 is not a finite number"),
    "svm twice": ("a.svm", "1 1:1\n1 2:1 3:1 2:5\n", {}, r"line 2: feature 2 occurs twice"),
    "svm beyond": (
        "a.svm",
        "1 3:1\n",
        {"n_features": 2},
        r"line 1: there is a feature 3: .* 1 to 2",
    ),
    "svm label beyond": (
        "a.svm",
        "1 1:1\n3 1:1\n",
        {"labels": 2},
        r"line 2: 3 is an unknown label",
    ),
    "svm base": (
        "a.svm",
        "1 0:1\n",
        {"zero_based": False},
        r"line 1: there is a feature 0: .* from 1",
    ),
    "svm many labels": (
        "a.svm",
        "1 1:1\n999999999 1:1\n",
        {},
        r"line 2: 999999999 labels are too ma",
    ),
    "svm no rows": ("a.svm", "# nothing\n", {}, r"a.svm: there are no rows$"),
    "xmc header": ("a.xmc", "1 2\n1:1\n", {}, r"line 1: '1 2' is no header: it must be three num"),
    "xmc short": (
        "a.txt",
        "3 2 2\n0 1:1\n1 0:1\n",
        {},
        r"line 4: the file ends after 2 of the 3 rows",
    ),
    "xmc long": (
        "a.txt",
        "1 2 2\n0 1:1\n1 0:1\n",
        {},
        r"line 3: there are more rows than the 1 of",
    ),
    "xmc feature": (
        "a.txt",
        "1 2 2\n0 2:1\n",
        {},
        r"line 2: there is a feature 2: .* from 0 to 1",
    ),
    "xmc label": ("a.txt", "1 2 2\n2 1:1\n", {}, r"line 2: 2 is an unknown label: .* from 0 to 1"),
    "xmc billion": ("a.txt", "3 2 1000000000\n", {}, r"line 1: 1000000000 labels are too many"),
    "xmc many": (
        "a.txt",
        "1000000000 9 9999\n",
        {},
        r"line 1: 1000000000 rows of 9999 labels are too",
    ),
    "xmc features": (
        "a.txt",
        "3 99999999999 1\n",
        {},
        r"line 1: 99999999999 features are too many",
    ),
    "xmc names": ("a.txt", "1 2 2\n0 1:1\n", {"labels": 3}, r"line 1: the header says 2 labels"),
    "no npz": (
        "a.npz",
        b"hello",
        {},
        r"a.npz: this is no NumPy archive, or is damaged: File is not",
    ),
    "no parquet": (
        "a.parquet",
        b"hello",
        {},
        r"a.parquet: this is no Parquet file, or is damaged",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(case, tmp_path):
    name, content, options, match = BAD[case]
    path = text(tmp_path, content, name)
    with pytest.raises(DataError, match=match) as caught:
        load(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path)) or "none.xml" in message


def test_bad_places(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.csv: there is no such file$"):
        load(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match=r": this is a directory: a file is needed$"):
        load(tmp_path)
    with pytest.raises(DataError, match=r"cannot be written: .*[Nn]o such f"):
        save(some_data(), tmp_path / "no" / "a.csv")


@pytest.mark.parametrize(
    ("xml", "match"),
    [
        ("<labels><label name='l'></labels>", r"a.xml: this is no XML: mismatched tag"),
        ("<labels></labels>", r"a.xml: there must be <label name=...> elements"),
        ("<labels><label/></labels>", r"a.xml: there must be <label name=...> elements"),
        ("<labels><label name='l'/><label name='q'/></labels>", r"a.arff: there is no column 'q'"),
        ("<labels><label name='l'/><label name='l'/></labels>", r"a.xml, column 2: the name 'l'"),
        (
            "<!DOCTYPE a [<!ENTITY b 'c'>]><labels/>",
            r"a.xml: a list of labels has no document type",
        ),
    ],
)
def test_bad_lists_of_labels(xml, match, tmp_path):
    text(tmp_path, xml, "a.xml")
    with pytest.raises(DataError, match=match):
        load(text(tmp_path, ARFF + "1,u,0\n", "a.arff"))


GOOD = {"X": np.eye(2), "Y": np.eye(2, dtype=np.uint8)}
PIECES = {
    "X_data": np.ones(2),
    "X_indices": np.array([0, 1]),
    "X_indptr": np.array([0, 1, 2]),
    "X_shape": np.array([2, 2]),
    "Y": GOOD["Y"],
}
BAD_ARRAYS = {
    "no X": ({"Y": GOOD["Y"]}, r"there is neither X nor X_data"),
    "flat X": (GOOD | {"X": np.ones(2)}, r"X has dtype float64 and shape \(2,\)"),
    "text X": (GOOD | {"X": np.array([["a"]])}, r"X has dtype <U1"),
    "objects": (
        GOOD | {"X": np.array([[None]])},
        r"array 'X': .*damaged: it holds Python objects",
    ),
    "infinite X": (
        GOOD | {"X": np.array([[1, np.inf]] * 2)},
        r"row 0, column 2: the value is inf",
    ),
    "rows": (GOOD | {"Y": np.ones((3, 2))}, r"shape \(3, 2\): it must be numbers, 2 rows"),
    "label 2": (
        GOOD | {"Y": np.array([[1, 0], [2, 0]])},
        r"row 1: Y\[1, 0\] is 2: labels must be",
    ),
    "label NaN": (GOOD | {"Y": np.array([[1, 0], [0, np.nan]])}, r"Y\[1, 1\] is nan: labels must"),
    "names": (GOOD | {"label_names": np.array(["a"])}, r"label_names has .* it must be 2 texts"),
    "same names": (
        GOOD | {"feature_names": np.array(["a", "a"])},
        r"feature_names, column 2: the n",
    ),
    "split": (
        GOOD | {"train_idx": np.array([0, 2])},
        r"train_idx must be numbers of rows, from 0",
    ),
    "pieces": (
        PIECES | {"X_indptr": np.array([0, 2])},
        r"do not make a CSR matrix of shape \(2, 2\)",
    ),
    "index": (PIECES | {"X_indices": np.array([0, 2])}, r"do not make a CSR matrix"),
    "shape": (PIECES | {"X_shape": np.array([10**12, 2])}, r"do not make a CSR matrix"),
    "float index": (
        PIECES | {"X_indices": np.ones(2)},
        r"and the other pieces of X whole numbers",
    ),
    "twice": (
        PIECES | {"X_indptr": np.array([0, 2, 2]), "X_indices": np.array([1, 1])},
        r"row 0: feature 1 occurs twice",
    ),
    "nominal": (
        GOOD | {"nominal_categories_json": np.array("{")},
        r"nominal_categories_json is not",
    ),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_bad_archives(case, tmp_path):
    arrays, match = BAD_ARRAYS[case]
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=match):
        load(tmp_path / "a.npz")


def test_an_archive_that_claims_too_much_gets_no_room(tmp_path):
    content = io.BytesIO()
    np.lib.format.write_array(content, np.ones((2, 2)))
    claimed = content.getvalue().replace(b"(2, 2), }" + b" " * 8, b"(99999999999, 2), }"[:17])
    assert claimed != content.getvalue()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**3)}
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, header)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", content.getvalue() + bytes(64))
    with pytest.raises(
        DataError, match=r"array 'X': .*its header says shape \(1000000000000, 1000\)"
    ):
        load(tmp_path / "a.npz")


def test_truncated_archives_of_all_kinds(tmp_path):
    for way, (format, ending, _, _) in WAYS.items():
        path = tmp_path / f"a{ending}"
        save(some_data(), path, format=format)
        if not (way.endswith(".gz") or format in ("npz", "parquet")):
            continue
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(DataError, match=re.escape(path.name)):
            load(path)


def test_bad_arguments(tmp_path):
    path = text(tmp_path, "x,l\n1,0\n")
    one = some_data()
    for options, match in [
        ({"format": "xls"}, r"^format is 'xls': it must be one of None, 'csv'"),
        ({"labels": 0}, r"^labels is 0: it must be a number that is not 0"),
        ({"labels": []}, r"^labels is \[\]: it must be"),
        ({"labels": [1]}, r"^labels is \[1\]: it must be"),
        ({"labels": ["x"], "separator": ";"}, r"with a separator it must be the name"),
        ({"delimiter": "::"}, r"^delimiter is '::': it must be one character"),
        ({"encoding": "klingon"}, r"^encoding is 'klingon': Python knows no such"),
        ({"dtype": int}, r"^dtype is .*: it must be float32 or float64"),
        (
            {"n_features": 3},
            r"^n_features is 3, and .* read as 'csv': n_features= is for svmlight",
        ),
        ({"zero_based": True}, r"zero_based= is for svmlight"),
        ({"format": "svmlight", "labels": "l"}, r"^labels is 'l': this format has no names"),
        ({"format": "svmlight", "drop": ["l"]}, r"^drop is \('l',\), and .* drop= is for csv"),
        ({"format": "svmlight", "n_features": 0}, r"^n_features is 0: it must be a number from 1"),
    ]:
        with pytest.raises(ValueError, match=match) as caught:
            load(path, **options)
        assert type(caught.value) is ValueError
    for options, match in [
        ({"drop": "x"}, r"^drop is 'x': it must be a list of names"),
        ({"labels": 1.5}, r"^labels is 1.5: it must be"),
        ({"zero_based": 1}, r"^zero_based is 1: it must be True, False or None"),
    ]:
        with pytest.raises(TypeError, match=match):
            load(path, **options)
    with pytest.raises(TypeError, match=r"^encoder is str: it must be a FeatureEncoder"):
        load(path, encoder="one-hot")
    with pytest.raises(ValueError, match=r"a.npz.gz': npz is compressed as it is, without .gz"):
        save(one, tmp_path / "a.npz.gz")
    with pytest.raises(TypeError, match=r"^dataset is ndarray: it must be a Dataset"):
        save(one.X, path)
    with pytest.raises(ValueError, match=r"its name does not tell the format; give format="):
        save(one, tmp_path / "a.dat")
    with pytest.raises(DataError, match=r"X has a value that is not finite"):
        save(Dataset(np.array([[np.nan]])), path)
    with pytest.raises(DataError, match=r"Y has shape \(1, 1\): it must be \(n, m\) of 0 and 1"):
        save(Dataset(np.ones((1, 1)), np.array([[3]])), path)
    with pytest.raises(DataError, match=r"column 2: the name 'a' is that of column 1 too"):
        save(Dataset(np.ones((1, 1)), np.array([[1]]), ("a",), ("a",)), path)
    with pytest.raises(DataError, match=r"a value is too large for float32"):
        load(text(tmp_path, "x\n1e300\n"), dtype="float32")


def test_missing_libraries_are_named(tmp_path, monkeypatch):
    one = some_data()
    save(one, tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ImportError, match=r"^reading Parquet needs pyarrow: pip install 'fgfm\[da"
    ):
        load(tmp_path / "a.parquet")
    with pytest.raises(ImportError, match=r"^writing Parquet needs pyarrow"):
        save(one, tmp_path / "b.parquet")


def test_huge_numbers(tmp_path):
    found = load(text(tmp_path, "x,y\n1e308,1\n1.7e308,2\n"))
    assert found.X[1, 0] == 1.7e308
    assert found.encoder.medians_[0] == 2 * (0.5e308 / 2 + 1.7e308 / 4)
