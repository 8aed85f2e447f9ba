"""Tables in text, read in blocks: pyarrow, the csv module and any size of blocks must agree."""

from __future__ import annotations

import csv
import gzip
import io
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fgfm.data import DataError, _text_table, decide, load
from fgfm.data._numbers import parse_number
from fgfm.data._options import TextFormat
from fgfm.data._parquet import open_parquet
from fgfm.data._text_table import TextTable, open_text_table


def read(content: bytes, texts=(), **options):
    """Return the names, the rows of values (numbers, texts and None) and their lines."""
    table = TextTable(io.BytesIO(content).read, "t", **options)
    rows, lines = [], []
    for block in table.blocks(texts):
        assert block.first == len(rows)
        assert len(block.lines) == len(block.numbers)
        lines += [int(line) for line in block.lines]
        others = {j: cells.to_pylist() for j, cells in block.others.items()}
        for k, values in enumerate(block.numbers.tolist()):
            row = [None if math.isnan(v) else v for v in values]
            rows.append([others[j][k] if j in others else v for j, v in enumerate(row)])
    return table.names, rows, lines


@pytest.fixture(params=["whole", "small blocks", "csv module"])
def route(request, monkeypatch):
    """How the table is read."""
    if request.param == "small blocks":
        monkeypatch.setattr(_text_table, "_BLOCK_BYTES", 7)
    if request.param == "csv module":
        monkeypatch.setattr(_text_table, "_WIDE", 0)
        monkeypatch.setattr(_text_table, "_WIDE_BLOCK_BYTES", 1 << 22)
    return request.param


CELLS = st.one_of(
    st.sampled_from(["", "0.5", "1e3", "NA", " ? ", "null", "01", "+5", "-nan", "nan(x)", "inf"]),
    st.text(st.sampled_from('a1.,;"\n\r é'), max_size=5),
)
TABLES = st.integers(1, 3).flatmap(
    lambda p: st.lists(st.lists(CELLS, min_size=p, max_size=p), min_size=1, max_size=8)
)


def test_cells_are_those_that_were_written(route):
    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(rows=TABLES, end=st.sampled_from(["\n", "\r\n"]))
    def check(rows, end):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_MINIMAL)
        p = len(rows[0])
        writer.writerow([f"n{j}" for j in range(p)])
        # csv.writer does not quote a carriage return alone
        csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
        content = text.getvalue().encode()
        names, found, _ = read(content, texts=range(p))
        assert names == [f"n{j}" for j in range(p)]
        assert found == rows
        _, found, _ = read(content)
        for j, column in enumerate(zip(*rows, strict=True)):
            values = [parse_number(cell) for cell in column]
            for k, (cell, value) in enumerate(zip(column, values, strict=True)):
                missing = value is not None and math.isnan(value)
                number = None if missing else value
                # a column is text from the block of its first text on
                assert found[k][j] == cell or (
                    None not in values[: k + 1] and found[k][j] == number
                )

    check()


def test_any_text_is_read_as_by_the_csv_module(route):
    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(text=st.text(st.sampled_from('a1,"\n\r '), max_size=24))
    @example('x\n"a\nb')
    @example('1" x,2\n"a\n",b\n')
    @example('"a""\n",b\n""\n')
    def check(text):
        content = ("n,m\n" + text).encode()
        try:
            expected = list(
                filter(None, csv.reader(io.StringIO("n,m\n" + text, newline=""), strict=True))
            )[1:]
        except csv.Error:
            expected = None
        if expected is None or any(len(row) != 2 for row in expected):
            with pytest.raises(DataError, match=r"^t, line [0-9]+: "):
                read(content, texts=(0, 1))
        else:
            assert read(content, texts=(0, 1))[1] == expected

    check()


@pytest.mark.parametrize(
    ("content", "rows", "lines"),
    [
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n3,4", [[1, 2], [3, 4]], [2, 3]),
        (b"a,b\r1,2\r3,4\r", [[1, 2], [3, 4]], [2, 3]),
        (b"\n\na,b\n\n1,2\n\n\n3,4\n\n", [[1, 2], [3, 4]], [5, 8]),
        (b'a,b\n1,"u\n\nv"\n2,w\n', [[1, "u\n\nv"], [2, "w"]], [2, 5]),
        (b'a,b\n1,5" disk\n2,"x ""y"""\n', [[1, '5" disk'], [2, 'x "y"']], [2, 3]),
        (b"a,b\n01,u\n10,v\n", [[1, "u"], [10, "v"]], [2, 3]),
        (b"a,b\n+1, 2 \nNA, N/A \n", [[1, 2], [None, None]], [2, 3]),
        (b"a,b\n99999999999999999999,1e999\n", [[1e20, math.inf]], [2]),
        (b"a,b\n1_0,0x1F\n", [["1_0", "0x1F"]], [2]),
        ("a,b\n\u0663,1\u00a0\n".encode(), [["\u0663", 1]], [2]),
    ],
)
def test_notations(content, rows, lines, route):
    names, found, at = read(content)
    assert names == ["a", "b"]
    assert found == rows
    assert at == lines


def test_blocks_of_declared_texts(route):
    content = b"a,b,c\n01,x,0.50\n1,y,2\n"
    assert read(content, texts=[0, 2])[1] == [["01", "x", "0.50"], ["1", "y", "2"]]
    table = TextTable(io.BytesIO(content).read, "t")
    for block in table.blocks([0], skipped=[1, 2]):
        assert list(block.others) == [0]
        assert np.isnan(block.numbers).all()


def test_parquet_has_the_same_blocks(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"a": [1, None], "b": ["x", None], "c": [True, False], "d": [0.5, 2.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    with open_parquet(tmp_path / "a.parquet") as opened:
        assert opened.names == ["a", "b", "c", "d"]
        (block,) = opened.blocks(texts=[3], skipped=[2])
    assert_array_equal(block.numbers, [[1, *[np.nan] * 3], [np.nan] * 4])
    assert {j: column.to_pylist() for j, column in block.others.items()} == {
        1: ["x", None],
        3: [0.5, 2.0],
    }
    assert (block.first, block.lines) == (0, None)


def test_wide_tables(tmp_path):
    m = 3000
    rng = np.random.default_rng(0)
    proba = rng.random((4, m)).round(3)
    lines = ["id," + ",".join(f"l{j}" for j in range(m))]
    lines += [f'"row, {i}",' + ",".join(map(str, row)) for i, row in enumerate(proba.tolist())]
    (tmp_path / "p.csv").write_text("\n".join(lines) + "\n")
    with open_text_table(tmp_path / "p.csv", "csv", TextFormat()) as table:
        (block,) = table.blocks([0])
    assert_array_equal(block.numbers[:, 1:], proba)
    assert block.others[0].to_pylist() == [f"row, {i}" for i in range(4)]
    assert decide(tmp_path / "p.csv", tmp_path / "s.csv", ids=["id"]).rows == 4
    lines[3] = lines[3].rpartition(",")[0] + ",x"
    (tmp_path / "p.csv").write_text("\n".join(lines))
    with pytest.raises(DataError, match=rf"line 4, column 'l{m - 1}': 'x' is not a number"):
        decide(tmp_path / "p.csv", tmp_path / "s.csv", ids=["id"])
    lines[3] = lines[3].rpartition(",")[0]
    (tmp_path / "p.csv").write_text("\n".join(lines))
    with pytest.raises(DataError, match=rf"line 4: there are {m} values: .* {m + 1} columns"):
        decide(tmp_path / "p.csv", tmp_path / "s.csv", ids=["id"])


@pytest.mark.parametrize("first", ["0.5,0.25", "1,0,1", "3,1,2", "0,1", "7", "NA,0.5", "1e-3,2,3"])
def test_first_row_of_numbers_is_refused(first, tmp_path):
    (tmp_path / "p.csv").write_text(f"{first}\n{first}\n")
    rule = r"p\.csv, line 1: the first row, .*, has only numbers: declare .* \(argument: header\)$"
    for read_file in (load, lambda path: decide(path, tmp_path / "s.csv")):
        with pytest.raises(DataError, match=rule):
            read_file(tmp_path / "p.csv")


@pytest.mark.parametrize("names", ["0,1,2", "101,205,309", "a,1", "NA,x"])
def test_names_that_are_numbers(names, tmp_path):
    p = names.count(",") + 1
    (tmp_path / "p.csv").write_text(f"{names}\n{','.join(['0.5'] * p)}\n")
    assert load(tmp_path / "p.csv").feature_names == tuple(names.split(","))
    assert decide(tmp_path / "p.csv", tmp_path / "s.csv").rows == 1


def test_header_is_declared(tmp_path):
    (tmp_path / "p.csv").write_text("0.5,0.25\n0.75,1\n")
    assert decide(tmp_path / "p.csv", tmp_path / "s.jsonl", header=False).rows == 2
    assert (tmp_path / "s.jsonl").read_text().startswith('{"labels": ["0"]')
    assert decide(tmp_path / "p.csv", tmp_path / "s.csv", header=True).rows == 1
    found = load(tmp_path / "p.csv", header=False, labels="x2", separator="|")
    assert found.feature_names == ("x1",)
    assert found.label_names == ("0.25", "1")
    assert load(tmp_path / "p.csv", header=True).feature_names == ("0.5", "0.25")
    with pytest.raises(TypeError, match=r"header is 'yes': it must be True, False or None"):
        load(tmp_path / "p.csv", header="yes")


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_delimiter_is_detected(mark, tmp_path):
    text = "a,b,c\n0.5,0.25,0\n0.125,1,0.75\n"
    (tmp_path / "p.csv").write_text(text)
    decide(tmp_path / "p.csv", tmp_path / "s.csv")
    (tmp_path / "q.csv").write_text(text.replace(",", mark))
    decide(tmp_path / "q.csv", tmp_path / "t.csv")
    assert (tmp_path / "s.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()
    assert_array_equal(load(tmp_path / "p.csv").X, load(tmp_path / "q.csv").X)
    # a name of the only column is not split
    (tmp_path / "one.csv").write_text(f"war{mark}peace\n0.75\n")
    decide(tmp_path / "one.csv", tmp_path / "s.jsonl")
    assert (tmp_path / "s.jsonl").read_text().startswith('{"labels": ["war')


def test_notation_of_probabilities(tmp_path):
    (tmp_path / "p.csv").write_text("a;é\n0,5;0,25\n", encoding="utf-16")
    options = {"decimal": ",", "encoding": "utf-16"}
    decide(tmp_path / "p.csv", tmp_path / "s.jsonl", wide=True, **options)
    assert '"é": 0' in (tmp_path / "s.jsonl").read_text(encoding="utf-8")
    (tmp_path / "p.csv").write_text("0,5;0,25\n0,5;1\n")
    assert decide(tmp_path / "p.csv", tmp_path / "s.csv", decimal=",", header=False).rows == 2
    (tmp_path / "p.csv").write_text("a;b\n0,5;0,25\n")
    rule = r"line 2, column 'a': '0,5' is not a number, unless commas .* \(argument: decimal\)$"
    with pytest.raises(DataError, match=rule):
        decide(tmp_path / "p.csv", tmp_path / "s.csv")


def test_rows_of_several_lines_are_counted(tmp_path):
    (tmp_path / "p.csv").write_text('id,a,b\n"1\n2",0.5,0.25\n"3",0.5,1.5\n')
    with pytest.raises(DataError, match=r"line 4, column 'b': 1.5 is not a probability"):
        decide(tmp_path / "p.csv", tmp_path / "s.csv", ids=["id"])
    (tmp_path / "p.csv").write_text('id,a,b\n"1\n2",0.5,0.25\n"3",0,0\n')
    with pytest.warns(UserWarning, match="line 4: all probabilities are 0"):
        decide(tmp_path / "p.csv", tmp_path / "s.csv", ids=["id"], nonempty=True)
    with (tmp_path / "s.csv").open(newline="") as lines:
        assert [row[0] for row in csv.reader(lines)] == ["id", "1\n2", "3"]


def test_quote_without_an_end_is_found_early(monkeypatch):
    monkeypatch.setattr(_text_table, "_LONGEST_ROW", 100)
    monkeypatch.setattr(_text_table, "_BLOCK_BYTES", 16)
    with pytest.raises(DataError, match="line 3: a row is longer than 100 bytes: a quote may be"):
        read(b'a,b\n1,2\n"3,4\n' + b"1,2\n" * 100)


def test_compressed_tables_are_found_by_their_first_bytes(tmp_path):
    (tmp_path / "p.csv").write_bytes(gzip.compress(b"a,b\n0.5,0.25\n"))
    assert decide(tmp_path / "p.csv", tmp_path / "s.csv").rows == 1


def test_missing_library_is_named(tmp_path, monkeypatch):
    import sys

    (tmp_path / "p.csv").write_text("a,b\n0.5,0.25\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for read_file in (load, lambda path: decide(path, tmp_path / "s.csv")):
        with pytest.raises(ImportError, match=r"^reading CSV needs pyarrow: pip install 'fgfm\[d"):
            read_file(tmp_path / "p.csv")
