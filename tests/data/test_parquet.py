"""Parquet."""

from __future__ import annotations

import datetime
import sys
from decimal import Decimal

import numpy as np
import pytest

from dataset_files import make_dataset, write_file
from fgfm.data import DataError, FeatureEncoder, load, save


def test_label_lists(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"x": [1, 2, None], "tags": [["a", "b"], [], ["b"]], "c": ["u", None, "v"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", labels="tags")
    assert found.label_names == ("a", "b")
    assert found.Y.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert found.feature_names == ("x", "x missing", "c=u", "c=v", "c missing")
    assert found.X.tolist() == [[1, 0, 1, 0, 0], [2, 0, 0, 0, 1], [1.5, 1, 0, 1, 0]]


def test_column_types(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

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
    days = [datetime.date(2020, 1, 1), None, datetime.date(2021, 3, 1)]
    hours = [day and datetime.datetime(day.year, day.month, 1, 12) for day in days]
    parquet.write_table(pyarrow.table({"t": days, "u": hours}), tmp_path / "b.parquet")
    found = load(tmp_path / "b.parquet")
    assert found.encoder.kinds_.kinds == {0: "date", 1: "date"}
    assert found.X[:, :8].tolist()[2] == [2021, 3, 0, 425] * 2
    parquet.write_table(pyarrow.table({"t": [datetime.time(1)]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b.parquet, column 't': values of type time64"):
        load(tmp_path / "b.parquet")


def test_unnamed_index_of_pandas_is_not_a_feature(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.0, 2, 3], "l": [0, 1, 1]}, index=[7, 3, 9])
    frame.to_parquet(tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", labels=-1)
    assert found.feature_names == ("x",)
    assert found.label_names == ("l",)
    dropped = load(tmp_path / "a.parquet", labels=["l"], drop=["__index_level_0__"])
    assert dropped.feature_names == ("x",)
    # unless the encoder was fitted with it
    columns = {"x": [1.0, 2], "__index_level_0__": [3.0, 4]}
    encoder = FeatureEncoder().fit(columns)
    assert load(tmp_path / "a.parquet", encoder=encoder, drop=["l"]).X.shape == (3, 2)
    # without the metadata of pandas it is a column like others
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
    when = pd.to_timedelta([1, 2], unit="s")
    pd.DataFrame({"when": when, "x": [1.0, 2]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"column 'when': values of type duration.* are neither"):
        load(tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", drop=["when"])
    assert found.feature_names == ("x",)
    assert load(tmp_path / "a.parquet", encoder=found.encoder).X.tolist() == [[1], [2]]


@pytest.mark.parametrize(
    "kind",
    ["list large", "large_list large", "large_list", "list view", "list dictionary", "fixed"],
)
def test_label_lists_of_all_types(kind, tmp_path):
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


def test_string_views_are_texts(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"c": pa.array(["u", "v", None], pa.string_view())})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet").feature_names == ("c=u", "c=v", "c missing")


def test_missing_library_is_named(tmp_path, monkeypatch):
    one = make_dataset()
    save(one, tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ImportError, match=r"^reading Parquet needs pyarrow: pip install 'fgfm\[da"
    ):
        load(tmp_path / "a.parquet")
    with pytest.raises(ImportError, match=r"^writing Parquet needs pyarrow"):
        save(one, tmp_path / "b.parquet")


def test_other_file_raises(tmp_path):
    path = write_file(tmp_path, b"hello", "a.parquet")
    rule = r"a.parquet: this is not a Parquet file, or it is damaged: "
    with pytest.raises(DataError, match=rule):
        load(path)
