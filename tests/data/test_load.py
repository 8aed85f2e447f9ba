"""Arguments of `load`, and files read with the encoder of training."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dataset_files import VARIANTS, assert_same, make_dataset, round_trip, to_dense, write_file
from fgfm.data import DataError, Dataset, load, save


@pytest.mark.parametrize("variant", VARIANTS)
def test_encoder_reads_files_without_labels(variant, tmp_path):
    one = make_dataset()
    trained = round_trip(one, tmp_path / f"train{VARIANTS[variant][1]}", variant)
    bare = Dataset(one.X, None, one.feature_names)
    path = tmp_path / f"new{VARIANTS[variant][1]}"
    save(bare, path, format=VARIANTS[variant][0])
    other = load(path, encoder=trained.encoder)
    assert other.Y is None
    assert other.label_names is None
    assert (to_dense(other.X) == to_dense(one.X)).all()
    assert "no labels" in repr(other)
    with_labels = load(tmp_path / f"train{VARIANTS[variant][1]}", encoder=trained.encoder)
    assert_same(trained, with_labels, "npz")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("other_variant", ["csv", "svmlight", "xmc", "arff", "npz", "parquet"])
def test_encoder_of_one_format_reads_another(variant, other_variant, tmp_path):
    one = make_dataset()
    encoder = round_trip(one, tmp_path / f"train{VARIANTS[variant][1]}", variant).encoder
    bare = Dataset(one.X, None, one.feature_names)
    path = tmp_path / f"new{VARIANTS[other_variant][1]}"
    save(bare, path, format=VARIANTS[other_variant][0])
    options = {"zero_based": False} if other_variant == "svmlight" else {}
    assert (to_dense(load(path, encoder=encoder, **options).X) == to_dense(one.X)).all()


def test_labels_are_matched_with_those_of_training(tmp_path):
    one = make_dataset()
    encoder = round_trip(one, tmp_path / "a.npz", "npz").encoder
    reversed_order = Dataset(one.X, one.Y[:, ::-1], one.feature_names, one.label_names[::-1])
    save(reversed_order, tmp_path / "b.npz")
    assert (load(tmp_path / "b.npz", encoder=encoder).Y == one.Y).all()
    other = Dataset(one.X, one.Y, one.feature_names, (*one.label_names[:3], "new"))
    save(other, tmp_path / "b.npz")
    with pytest.raises(DataError, match=r"b.npz: 'new' is not a label of training"):
        load(tmp_path / "b.npz", encoder=encoder)
    fewer = Dataset(one.X, one.Y[:, :3], one.feature_names, one.label_names[:3])
    save(fewer, tmp_path / "b.npz")
    with pytest.raises(DataError, match=r"there is no label '\{q\}%', unlike in training"):
        load(tmp_path / "b.npz", encoder=encoder)


UNLABELLED = {
    "blank": "l,x,m\n,1,\n?,2,NA\n",
    "words": "l,x,m\nmaybe,1,0\n7,2,soon\n",
    "some": "x,m\n1,\n2,1\n",
    "none": "x\n1\n2\n",
}


@pytest.mark.parametrize("case", UNLABELLED)
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_label_columns_may_hold_anything_without_labels(case, format, tmp_path):
    encoder = load(write_file(tmp_path, "x,l,m\n1,0,1\n2,1,1\n"), labels=["l", "m"]).encoder
    path = write_file(tmp_path, UNLABELLED[case], "new.csv")
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


@pytest.mark.parametrize("variant", VARIANTS)
def test_labels_are_not_read_without_labels(variant, tmp_path):
    path = tmp_path / f"set{VARIANTS[variant][1]}"
    with_labels = round_trip(make_dataset(), path, variant)
    found = load(path, encoder=with_labels.encoder, with_labels=False)
    assert found.Y is None
    assert (to_dense(found.X) == to_dense(with_labels.X)).all()
    if VARIANTS[variant][3]:
        found = load(path, with_labels=False)
        assert found.Y is None
        assert found.X.shape == with_labels.X.shape


def test_label_lists_may_hold_anything_without_labels(tmp_path):
    path = write_file(tmp_path, "x,t\n1,a;b\n2,b\n")
    encoder = load(path, labels="t", separator=";").encoder
    new = write_file(tmp_path, "t,x\nunknown,1\n['q'],2\n", "new.csv")
    found = load(new, encoder=encoder, with_labels=False)
    assert found.X.tolist() == [[1], [2]]
    assert found.Y is None
    assert load(path, labels="t", separator=";", with_labels=False).X.tolist() == [[1], [2]]


def test_unknown_and_missing_labels_are_not_read_without_labels(tmp_path):
    svm = load(write_file(tmp_path, "1 1:1\n2 2:1\n", "a.svm"))
    new = write_file(tmp_path, "9 1:1\n", "b.svm")
    assert load(new, encoder=svm.encoder, with_labels=False).Y is None
    head = "@relation r\n@attribute x numeric\n@attribute c {u,v}\n@attribute l {0,1}\n@data\n"
    arff = write_file(tmp_path, head + "1,u,0\n2,v,1\n", "a.arff")
    encoder = load(arff, labels=-1).encoder
    new = write_file(tmp_path, head + "1,u,?\n", "b.arff")
    assert load(new, encoder=encoder, with_labels=False).Y is None
    assert load(arff, labels=-1, with_labels=False).X.shape == (2, 3)


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet"])
def test_id_columns_are_kept_and_are_not_features(format, tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / f"a.{format}"
    if format == "parquet":
        table = pa.table({"id": [7, 8], "x": [1.5, 2.5], "l": [0, 1]})
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        rows = [["id", "x", "l"], ["007", "1.5", "0"], ['"8, 9"', "2.5", "1"]]
        delimiter = "," if format == "csv" else "\t"
        path.write_text("\n".join(delimiter.join(row) for row in rows))
    found = load(path, labels=["l"], ids=["id"])
    assert found.feature_names == ("x",)
    assert found.X.tolist() == [[1.5], [2.5]]
    ids = [7, 8] if format == "parquet" else ["007", "8, 9"]
    assert found.ids.to_pydict() == {"id": ids}
    assert found.rows([1]).ids.to_pydict() == {"id": ids[1:]}
    assert found.rows(np.array([True, False])).ids.to_pydict() == {"id": ids[:1]}
    # the encoder leaves the column out of further files
    assert load(path, encoder=found.encoder).feature_names == ("x",)


def test_id_columns_of_training_remain_features(tmp_path):
    pytest.importorskip("pyarrow")
    path = write_file(tmp_path, "x,y,l\n1,2,0\n3,4,1\n")
    encoder = load(path, labels=["l"]).encoder
    found = load(path, encoder=encoder, ids=["x", "l"])
    assert found.X.tolist() == [[1, 2], [3, 4]]
    assert found.Y.tolist() == [[0], [1]]
    assert found.ids.to_pydict() == {"x": ["1", "3"], "l": ["0", "1"]}


def test_unknown_id_column_raises(tmp_path):
    path = write_file(tmp_path, "x,y\n1,2\n")
    with pytest.raises(DataError, match=r"there is no column 'id' \(argument: ids\)$"):
        load(path, ids=["id"])
    with pytest.raises(
        ValueError, match=r"ids is \('id',\), .* ids applies to csv, tsv, parquet$"
    ):
        load(write_file(tmp_path, "1 1:1\n", "a.svm"), ids=["id"])
    with pytest.raises(ValueError, match=r"ids is \('id',\): it must be empty for data from Open"):
        load("openml:x", ids=["id"])


def test_truncated_compressed_file_raises(tmp_path):
    for variant, (format, ending, _, _) in VARIANTS.items():
        path = tmp_path / f"a{ending}"
        save(make_dataset(), path, format=format)
        if not (variant.endswith(".gz") or format in ("npz", "parquet")):
            continue
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(DataError, match=re.escape(path.name)):
            load(path)


INVALID = [
    ({"format": "xls"}, r"^format is 'xls': it must be one of None, 'csv'"),
    ({"labels": 0}, r"^labels is 0: it must be a number other than 0"),
    ({"labels": []}, r"^labels is \[\]: it must be"),
    ({"labels": [1]}, r"^labels is \[1\]: it must be"),
    ({"labels": ["x"], "separator": ";"}, r"with a separator it must be the name of the column"),
    ({"separator": ""}, r"^separator is '': it must be a non-empty string$"),
    ({"delimiter": "::"}, r"^delimiter is '::': it must be one character"),
    ({"encoding": "klingon"}, r"^encoding is 'klingon': Python has no such encoding"),
    ({"dtype": int}, r"^dtype is .*: it must be float32 or float64"),
    (
        {"n_features": 3},
        r"^n_features is 3, and .* read as 'csv': n_features applies to svmlight$",
    ),
    ({"zero_based": True}, r"zero_based applies to svmlight$"),
    ({"format": "svmlight", "labels": "l"}, r"^labels is 'l': this format has no names"),
    ({"format": "svmlight", "drop": ["l"]}, r"^drop is \('l',\), and .* drop applies to csv"),
    ({"format": "svmlight", "n_features": 0}, r"^n_features is 0: it must be an integer, 1 or mo"),
]


@pytest.mark.parametrize(("options", "match"), INVALID)
def test_invalid_value_raises(options, match, tmp_path):
    with pytest.raises(ValueError, match=match) as caught:
        load(write_file(tmp_path, "x,l\n1,0\n"), **options)
    assert type(caught.value) is ValueError


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"drop": "x"}, r"^drop is 'x': it must be a list of column names"),
        ({"ids": "x"}, r"^ids is 'x': it must be a list of column names"),
        ({"labels": 1.5}, r"^labels is 1.5: it must be"),
        ({"zero_based": 1}, r"^zero_based is 1: it must be True, False or None"),
        ({"with_labels": None}, r"^with_labels is None: it must be True or False"),
        ({"with_labels": 1}, r"^with_labels is 1: it must be True or False"),
        ({"encoder": "one-hot"}, r"^encoder is str: it must be a FeatureEncoder"),
    ],
)
def test_invalid_type_raises(options, match, tmp_path):
    with pytest.raises(TypeError, match=match):
        load(write_file(tmp_path, "x,l\n1,0\n"), **options)


def test_overflow_of_float32_raises(tmp_path):
    with pytest.raises(DataError, match=r"a.csv: a value is too large for float32"):
        load(write_file(tmp_path, "x\n1e300\n"), dtype="float32")
