"""Tables as people have them: CSV, TSV, Parquet, JSON lines and Excel."""

from __future__ import annotations

import csv
import gzip
import io
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fgfm.io import DataError, FeatureEncoder, load, load_blocks
from fgfm.io._files import TextFormat
from fgfm.io._formats import open_file


def read(path, **options):
    """Return the names of a CSV file and its rows of texts."""
    with open_file(path, "csv", TextFormat(**options)) as table:
        return table.names, [list(row.values()) for row in table.rows.to_pylist()]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n3,4", [["1", "2"], ["3", "4"]]),
        (b"\n\na,b\n1,2\n\n\n3,4\n\n", [["1", "2"], ["3", "4"]]),
        (b'a,b\n1,"u\n\nv"\n2,w\n', [["1", "u\n\nv"], ["2", "w"]]),
        (b'a,b\n1,"x ""y"""\n', [["1", 'x "y"']]),
        (b"a;b\n1;u,v\n", [["1", "u,v"]]),
        (b"a\tb\n1\tu,v\n", [["1", "u,v"]]),
        (b'"a", b \n1,2\n', [["1", "2"]]),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), [["1", "2"]]),
        ("a,b\n٣,é\n".encode(), [["٣", "é"]]),
        (b"a,b\n", []),
    ],
)
def test_awkward_csv(tmp_path, content, rows):
    (tmp_path / "a.csv").write_bytes(content)
    assert read(tmp_path / "a.csv") == (["a", "b"], rows)


def test_cells_are_those_that_were_written(tmp_path):
    cells = st.text(st.sampled_from('a1.,;"\n é'), max_size=5)

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(
        rows=st.lists(st.lists(cells, min_size=2, max_size=2), min_size=1, max_size=8),
        end=st.sampled_from(["\n", "\r\n"]),
    )
    def check(rows, end):
        text = io.StringIO()
        csv.writer(text, lineterminator=end).writerow(["n", "m"])
        csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
        (tmp_path / "a.csv").write_bytes(text.getvalue().encode())
        assert read(tmp_path / "a.csv") == (["n", "m"], rows)

    check()


def test_encodings(tmp_path):
    (tmp_path / "a.csv").write_bytes("é;l\n1,5;1\n".encode("latin-1"))
    found = load(tmp_path / "a.csv", "l", encoding="latin-1", decimal=",")
    assert found.X.to_dict("list") == {"é": [1.5]}
    (tmp_path / "b.csv").write_text("é,l\nß,1\n", encoding="utf-16")
    assert load(tmp_path / "b.csv", encoding="utf-16").X.iloc[0, 0] == "ß"
    with pytest.raises(
        DataError, match=r"a.csv: this is not utf-8 text: .* \(argument: encoding\)"
    ):
        load(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="encoding is 'utf-99'"):
        load(tmp_path / "a.csv", encoding="utf-99")


def test_header_is_declared_or_found(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("0.5,0.25\n0.75,1\n")
    with pytest.raises(
        DataError, match=r"line 1: the first row, .*, has only numbers: .*header\)$"
    ):
        load(path)
    assert load(path, header=False).X.to_numpy().tolist() == [[0.5, 0.25], [0.75, 1.0]]
    assert list(load(path, header=True).X) == ["0.5", "0.25"]
    path.write_text("0,1,2\n5,6,7\n")  # numbered columns
    assert list(load(path).X) == ["0", "1", "2"]
    path.write_text(",a\n0,5\n1,6\n")  # the index of pandas
    assert list(load(path).X) == ["row", "a"]


INVALID = {  # content: message
    "": "the file is empty",
    "\n\n": "the file is empty",
    "a,b\n": "there are no rows",
    "a,a\n1,2\n": "two columns are called 'a': names must be unique",
    "a,b,\n1,2,3\n": "column 3 has no name",
    "a,b\n1,2\n3\n": "row 1: expected 2 columns, got 1",
    "a,b\n1,2\n3,4,5\n": "row 1: expected 2 columns, got 3",
    "\n\na,b\n\n1,2\n\n3\n": "row 1: expected 2 columns, got 1",
    '"a\nc",b\n1,"u\n\nv"\n3\n': "row 1: expected 2 columns, got 1",
    "a,b\r\n1,2\r\n3\r\n": "row 1: expected 2 columns, got 1",
    "a,b\n" + "1,2\n" * 1_200_000 + "3\n": "row 1200000: expected 2 columns, got 1",
}


@pytest.mark.parametrize("text", INVALID, ids=INVALID.values())
def test_invalid_csv_raises_with_the_place(tmp_path, text):
    (tmp_path / "a.csv").write_bytes(text.encode())
    with pytest.raises(DataError, match="^" + str(tmp_path / "a.csv")) as error:
        load(tmp_path / "a.csv")
    assert INVALID[text] in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_files_folders_and_damaged_gzip_raise(tmp_path, monkeypatch):
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 9000)
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    for name, message in {
        "none.csv": "it does not exist",
        "none": "it does not exist",
        ".": "it is a folder",
        "cut.csv.gz": "its gzip data are damaged",
    }.items():
        with pytest.raises(DataError, match=message):
            load(tmp_path / name, format="csv")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="standard input: it is closed"):
        load("-")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ImportError, match=r"reading csv needs pyarrow: pip install 'fgfm\[data\]'"
    ):
        load(tmp_path / "cut.csv.gz")


def test_bad_cells_become_missing_with_one_warning(tmp_path):
    lines = [f"{k},{k / 2}" for k in range(100)]
    lines[40], lines[60] = "many,20", "60,lots"
    (tmp_path / "a.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
    message = r"a.csv, row 40, column 'x': 'many' is not a number; 1 more such cells\. They are"
    with pytest.warns(UserWarning, match=message) as caught:
        found = load(tmp_path / "a.csv")
    assert len(caught) == 1
    assert found.X["x"].isna().sum() == found.X["y"].isna().sum() == 1
    with pytest.raises(DataError, match="row 40, column 'x': 'many' is not a number"):
        load(tmp_path / "a.csv", strict=True)
    # In further tables the kinds are those of training: more than 5 % are an error.
    encoder = FeatureEncoder(number=["x"]).fit(found.X)
    (tmp_path / "b.csv").write_text("x,y\n" + "few,1\n" * 9 + "2,3\n" * 91)
    rule = (
        r"b.csv, row 0, column 'x': 'few' is not a number, nor are 8 further cells of 100: .*drop"
    )
    with pytest.raises(DataError, match=rule):
        list(load_blocks(tmp_path / "b.csv", encoder, rows=7))
    (tmp_path / "b.csv").write_text("x,y\n" + "few,1\n" * 4 + "2,3\n" * 96)
    with pytest.warns(UserWarning, match="row 0, column 'x': 'few' is not a number; 3 more"):
        list(load_blocks(tmp_path / "b.csv", encoder, rows=7))
    with pytest.raises(DataError, match="row 0, column 'x': 'few' is not a number"):
        list(load_blocks(tmp_path / "b.csv", encoder, strict=True))


def test_decimal_commas_name_the_option(tmp_path):
    (tmp_path / "a.csv").write_text("x;y\n" + "0,5;1\n1,5;2\n" * 20)
    rule = r"'0,5' is not a number, although .* \(arguments: decimal, category\)"
    with pytest.raises(DataError, match=rule):
        FeatureEncoder().fit(load(tmp_path / "a.csv").X)
    assert load(tmp_path / "a.csv", decimal=",").X["x"].tolist() == [0.5, 1.5] * 20
    with pytest.raises(ValueError, match="decimal and delimiter are both ','"):
        load(tmp_path / "a.csv", decimal=",", delimiter=",")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 500
    words = rng.choice(["red", "blue", "old", "new", "fast", "slow"], (n, 9))
    return pd.DataFrame(
        {
            "id": [f"f{k:04d}" for k in range(n)],
            "x": rng.normal(size=n).round(3),
            "colour": rng.choice(["red", "blue", None], n),
            "when": [f"{1 + k % 28:02d}.{1 + k % 12:02d}.20{k % 20:02d}" for k in range(n)],
            "plot": [" ".join(row) for row in words],
            "tags": rng.choice(["a;b", "b", "", "c;a"], n),
        }
    )


def write(frame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    return path


@pytest.mark.parametrize("kind", ["tsv", "parquet", "jsonl", "xlsx"])
def test_formats_and_frames_are_encoded_alike(tmp_path, frame, kind):
    expected = load(write(frame, tmp_path / "a.csv"), "tags")
    found = load(write(frame, tmp_path / f"a.{kind}"), "tags")
    assert found.label_names == ("a", "b", "c")
    np.testing.assert_array_equal(found.Y, expected.Y)
    encoder = FeatureEncoder(labels=["tags"]).fit(expected.X)
    X = encoder.transform(expected.X).toarray()
    for other in (found.X, frame, frame.drop(columns=["tags", "id"])):
        np.testing.assert_array_equal(encoder.transform(other).toarray(), X)
        again = FeatureEncoder(labels=["tags"]).fit(other)
        assert {**again.kinds_, "id": "identifier"} == {**encoder.kinds_, "id": "identifier"}


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "xlsx"])
def test_blocks_do_not_depend_on_their_size(tmp_path, frame, kind):
    path = write(frame[frame.columns[::-1]], tmp_path / f"a.{kind}")  # columns by name
    encoder = FeatureEncoder(labels=["tags"]).fit(load(path).X)
    whole = encoder.transform(load(path).X).toarray()
    for rows in (1, 7, 500, None):
        blocks = list(load_blocks(path, encoder, rows=rows, ids=["id"]))
        np.testing.assert_array_equal(np.vstack([b.X.toarray() for b in blocks]), whole)
        ids = [value for block in blocks for value in block.ids["id"].to_pylist()]
        assert ids == frame["id"].tolist()
        assert rows is None or [len(b.X.toarray()) for b in blocks[:-1]] == [rows] * (
            len(blocks) - 1
        )
    with pytest.raises(DataError, match=r"there is no column 'no' \(argument: ids\)"):
        list(load_blocks(path, encoder, ids=["no"]))


def test_parquet(tmp_path, frame):
    indexed = frame.set_index("id")
    indexed.to_parquet(tmp_path / "named.parquet")
    assert "id" in load(tmp_path / "named.parquet").X
    frame[::2].to_parquet(tmp_path / "unnamed.parquet")
    assert list(load(tmp_path / "unnamed.parquet").X) == list(frame)
    (tmp_path / "no.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataError, match="this is not a Parquet file, or it is damaged"):
        load(tmp_path / "no.parquet")


def test_json_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1, "t": ["a", "b"]}\n\n{"t": [], "x": null}\n{"x": "2"}\n')
    found = load(path, "t")
    assert found.Y.tolist() == [[1, 1], [0, 0], [0, 0]]
    assert FeatureEncoder().fit(found.X).kinds_ == {"x": "number"}
    for text, message in (
        ('{"x": 1}\n{"x"\n', "line 2: it is not JSON"),
        ('{"x": 1}\n[1]\n', "line 2: .* is not a JSON object"),
        ("\n", "there are no rows"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            load(path)


def test_json_values_of_several_types(tmp_path):
    rows = ['{"x": 1, "y": null}'] * 9000 + ['{"x": "two", "y": "u"}', '{"x": 2.5}']
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    found = load(tmp_path / "a.jsonl")
    assert found.X["x"].tolist()[8999:] == ["1", "two", "2.5"]
    assert found.X["y"].notna().tolist()[8999:] == [False, True, False]
    warning = "row 9000, column 'x': 'two' is not a number"
    with pytest.warns(UserWarning, match=warning):
        encoder = FeatureEncoder(category=["y"]).fit(found.X)
    with pytest.warns(UserWarning, match=warning):
        blocks = list(load_blocks(tmp_path / "a.jsonl", encoder, rows=4000))
    assert [len(block.X) for block in blocks] == [4000, 4000, 1002]


def test_excel(tmp_path, monkeypatch):
    path = tmp_path / "a.xlsx"
    dates = pd.to_datetime(["2001-02-03", None, "2004-05-06"])
    frame = pd.DataFrame({"x": [1.5, None, "n/a"], "when": dates, "t": ["a;b", None, "b"]})
    frame.to_excel(path, index=False)
    found = load(path, "t")
    assert found.Y.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert FeatureEncoder().fit(found.X).kinds_ == {"x": "number", "when": "date"}
    path.write_bytes(b"PK no workbook")
    with pytest.raises(DataError, match=r"a\.xlsx: it is not an Excel file"):
        load(path)
    with pytest.raises(DataError, match="it does not exist"):
        load(tmp_path / "b.xlsx")
    frame.to_excel(path, index=False)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match="reading Excel files needs openpyxl: pip install"):
        load(path)


def test_columns_apart(tmp_path):
    (tmp_path / "a.csv").write_text("k,x,t,u\n007,1,a,z\n008,2,b,z\n")
    found = load(tmp_path / "a.csv", "t", ids=["k"], drop=["u"])
    assert found.ids.to_pydict() == {"k": ["007", "008"]}
    assert list(found.X) == ["x"]
    assert found.label_columns == ("t",)
    assert repr(found).endswith("a.csv: 2 rows, 1 feature, 2 labels (1.00 per row)>")
    assert found.rows(np.array([1])).ids.to_pydict() == {"k": ["008"]}
    for argument in ("ids", "drop"):
        with pytest.raises(DataError, match=rf"no column 'v'.* \(argument: {argument}\)"):
            load(tmp_path / "a.csv", **{argument: ["v"]})
    with pytest.raises(DataError, match="there are no features: every column is a label"):
        load(tmp_path / "a.csv", "*")
