"""Label sets from files of probabilities."""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import fgfm
from fgfm.data import DataError, decide

NAMES = ["news", "sport", "arts", "war, peace"]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(np.round(rng.random((300, 4)) ** 2, 4), columns=NAMES)


def write(table, path):
    """Write probabilities in the format of the suffix; return the path."""
    suffix = path.name.partition(".")[2]
    if suffix in ("csv", "csv.gz"):
        table.to_csv(path, index=False)
    elif suffix == "tsv":
        table.to_csv(path, index=False, sep="\t")
    elif suffix == "parquet":
        table.to_parquet(path, index=False)
    elif suffix == "npy":
        np.save(path, table[NAMES].to_numpy())
    else:
        sparse.save_npz(path, sparse.csr_array(table[NAMES].to_numpy()))
    return path


def read_sets(path, names):
    """Return the label sets of a file as an (n, m) array, and the expected F-measures."""
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        sets, expected = [row["labels"] for row in rows], [row["expected_f"] for row in rows]
    elif path.suffix == ".parquet":
        frame = pd.read_parquet(path)
        sets, expected = frame["labels"].tolist(), frame["expected_f"].tolist()
    else:
        with path.open(newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="," if path.suffix == ".csv" else "\t"))
        sets = [[name for name in row["labels"].split(";") if name] for row in rows]
        expected = [float(row["expected_f"]) for row in rows]
    return np.array([[name in of for name in names] for of in sets], dtype=int), np.array(expected)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "npy", "npz"])
@pytest.mark.parametrize("out", ["csv", "tsv", "jsonl", "parquet"])
def test_formats_agree_with_from_marginals(table, tmp_path, kind, out):
    source = write(table, tmp_path / f"p.{kind}")
    report = decide(source, tmp_path / f"sets.{out}", beta=2.0)
    labels, expected_f = fgfm.decision.from_marginals(table.to_numpy(), beta=2.0)
    names = NAMES if kind not in ("npy", "npz") else ["0", "1", "2", "3"]
    found, expected = read_sets(tmp_path / f"sets.{out}", names)
    assert_array_equal(found, labels)
    assert_allclose(expected, expected_f, atol=1e-12 if out == "parquet" else 5.1e-7)
    assert report.rows == 300
    assert_allclose(report.mean_expected_f, expected_f.mean(), rtol=1e-12)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"p.{kind}", f"sets.{out}"]


@pytest.mark.parametrize("option", [{"nonempty": True}, {"zero_division": 0.0}, {"beta": 0.5}])
def test_options_are_passed_to_the_decision(table, tmp_path, option):
    decide(write(table, tmp_path / "p.csv"), tmp_path / "s.parquet", **option)
    labels, expected_f = fgfm.decision.from_marginals(table.to_numpy(), **option)
    found, expected = read_sets(tmp_path / "s.parquet", NAMES)
    assert_array_equal(found, labels)
    assert_allclose(expected, expected_f, rtol=1e-12)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("out", ["csv", "jsonl", "parquet"])
def test_id_columns_are_copied(table, tmp_path, kind, out):
    table.insert(2, "name", [f'row "{i}", of 300' for i in range(300)])
    decide(write(table, tmp_path / f"p.{kind}"), tmp_path / f"s.{out}", ids=["name"])
    path = tmp_path / f"s.{out}"
    if out == "csv":
        names = pd.read_csv(path)["name"].tolist()
    elif out == "jsonl":
        names = [json.loads(line)["name"] for line in path.read_text().splitlines()]
    else:
        names = pd.read_parquet(path)["name"].tolist()
    assert names == table["name"].tolist()
    found, _ = read_sets(path, NAMES)
    assert_array_equal(found, fgfm.decision.from_marginals(table[NAMES].to_numpy()).labels)


@pytest.mark.parametrize("out", ["csv", "jsonl", "parquet"])
def test_wide_output_has_a_column_per_label(table, tmp_path, out):
    decide(write(table, tmp_path / "p.npz"), tmp_path / f"s.{out}", wide=True)
    path = tmp_path / f"s.{out}"
    if out == "jsonl":
        frame = pd.read_json(path, lines=True)
    else:
        frame = pd.read_csv(path) if out == "csv" else pd.read_parquet(path)
    assert list(frame.columns) == ["0", "1", "2", "3", "expected_f"] or out == "jsonl"
    found = frame[frame.columns[:4]].to_numpy()
    assert_array_equal(found, fgfm.decision.from_marginals(table.to_numpy()).labels)


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "npz"])
def test_blocks_do_not_change_the_result(tmp_path, kind):
    n = 160_000  # more than a block: 4 MiB of text, 65 536 rows
    table = pd.DataFrame(np.random.default_rng(0).random((n, 4)).round(4), columns=NAMES)
    counts = []
    source = write(table, tmp_path / f"p.{kind}")
    decide(source, tmp_path / "s.parquet", n_jobs=2, progress=counts.append)
    assert len(counts) > 1
    assert counts[-1] == n
    found = pd.read_parquet(tmp_path / "s.parquet")
    proba = table.to_numpy()
    labels, expected_f = fgfm.decision.from_marginals(
        sparse.csr_array(proba) if kind == "npz" else proba
    )
    labels = labels.toarray() if kind == "npz" else labels
    assert_array_equal(found["expected_f"], expected_f)
    assert_array_equal(found["labels"].map(len), labels.sum(axis=1))
    last = NAMES if kind in ("csv", "parquet") else ["0", "1", "2", "3"]
    assert list(found["labels"].iloc[-1]) == [last[j] for j in np.flatnonzero(labels[-1])]


def test_table_without_rows(tmp_path):
    (tmp_path / "p.csv").write_text("id,a,b\n")
    for out in ("csv", "jsonl", "parquet"):
        report = decide(tmp_path / "p.csv", tmp_path / f"s.{out}", ids=["id"])
        assert report.rows == 0
    assert (tmp_path / "s.csv").read_text() == "id,labels,expected_f\n"
    assert (tmp_path / "s.jsonl").read_text() == ""
    assert pd.read_parquet(tmp_path / "s.parquet").columns.tolist() == [
        "id",
        "labels",
        "expected_f",
    ]


def test_windows_line_ends_and_byte_order_mark(tmp_path):
    (tmp_path / "p.csv").write_bytes(b"\xef\xbb\xbfa,b\r\n0.9,0.1\r\n0.2,0.8\r\n")
    decide(tmp_path / "p.csv", tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text().splitlines()[1].startswith("a,")


INVALID = {
    "a,b\n0.1,0.2\n0.3\n": "line 3: there are 1 values: the header has 2 columns",
    "a,b\n0.1,0.2\n0.3,0.4,0.5\n": "line 3: there are 3 values: the header has 2 columns",
    "a,b\n0.1,0.2\n0.3,x\n": "line 3, column 'b': 'x' is not a number",
    "a,b\n0.1,0.2\n0.3,1.5\n": "line 3, column 'b': 1.5 is not a probability",
    "a,b\n0.1,-0.2\n": "line 2, column 'b': -0.2 is not a probability",
    "a,b\n0.1,nan\n": "line 2, column 'b': there is no value",
    "a,b\n0.1,\n": "line 2, column 'b': there is no value",
    "a,b\n0.1,inf\n": "line 2, column 'b': inf is not a probability",
    "a,a\n0.1,0.2\n": "line 1, column 2: the name 'a' is that of column 1 too",
    "": "the file is empty",
    "\n\n": "the file is empty",
}


@pytest.mark.parametrize("text", INVALID)
def test_invalid_table_raises_with_the_place(tmp_path, text):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(DataError, match="^" + str(tmp_path / "p.csv")) as error:
        decide(tmp_path / "p.csv", tmp_path / "s.csv")
    assert INVALID[text] in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0.5,2.5", "line 500002, column 'b': 2.5 is not a probability"),
        ("0.5,x", "line 500002, column 'b': 'x' is not a number"),
        ("0.5", "line 500002: there are 1 values"),
    ],
)
def test_line_numbers_in_later_blocks(tmp_path, line, message):
    row = "0.25,0.5\n"  # a block has 4 MiB
    (tmp_path / "p.csv").write_text("a,b\n" + row * 500_000 + line + "\n" + row * 100)
    with pytest.raises(DataError, match=message):
        decide(tmp_path / "p.csv", tmp_path / "s.csv")


def test_damaged_file_raises(table, tmp_path):
    whole = gzip.compress(table.to_csv(index=False).encode())
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "no.parquet").write_bytes(b"PAR1 nonsense")
    (tmp_path / "no.npy").write_bytes(b"nonsense")
    (tmp_path / "no.npz").write_bytes(b"nonsense")
    (tmp_path / "latin.csv").write_bytes("caf\xe9,b\n0.1,0.2\n".encode("latin-1"))
    np.save(tmp_path / "flat.npy", np.zeros(3))
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    pa.parquet.write_table(pa.table({"a": ["x"]}), tmp_path / "text.parquet")
    for name, message in {
        "cut.csv.gz": "the compressed file ends too early",
        "no.parquet": "not a Parquet file",
        "no.npy": "not an array of numbers",
        "no.npz": "not a sparse matrix",
        "latin.csv": "line 1: this is not utf-8 text",
        "flat.npy": "it has shape",
        "text.npy": "real numbers",
        "text.parquet": r"column 'a': it is of type string: .* \(argument: ids\)",
        "missing.csv": "it does not exist",
    }.items():
        with pytest.raises(DataError, match=message):
            decide(tmp_path / name, tmp_path / "s.csv")
        assert not (tmp_path / "s.csv").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": 0.0}, "beta is 0"),
        ({"zero_division": 2.0}, "zero_division is 2"),
        ({"ids": ["none"]}, "there is no column 'none': there are 'news', 'sport'"),
        ({"ids": NAMES}, "there are no labels"),
        ({"format": "xls"}, "format is 'xls'"),
        ({"output_format": "xls"}, "format is 'xls'"),
        ({"delimiter": ",,"}, "delimiter is ',,'"),
        ({"separator": ", "}, "separator is ', ', which occurs in the label 'war, peace'"),
        ({"target": "s.xls"}, "extension '.xls'"),
        ({"source": "p.xls"}, "extension '.xls'"),
    ],
)
def test_invalid_argument_raises(table, tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    write(table, tmp_path / "p.csv")
    with pytest.raises(ValueError, match=message):
        decide(**{"source": "p.csv", "target": "s.csv"} | change)
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_damaged_sparse_matrix_raises(tmp_path):
    whole = {"format": b"csr", "shape": (2, 5), "data": np.array([0.9, 0.8])}
    for name, indices, indptr in (
        ("far", [1, 4_000_000], [0, 1, 2]),
        ("negative", [1, -3_000_000], [0, 1, 2]),
        ("pointers", [1, 2], [0, 99_999_999, 2]),
    ):
        np.savez(tmp_path / name, indices=np.int32(indices), indptr=np.int32(indptr), **whole)
        with pytest.raises(DataError, match="not a sparse matrix"):
            decide(tmp_path / f"{name}.npz", tmp_path / "s.csv")
    sparse.save_npz(tmp_path / "cut.npz", sparse.csr_array(np.eye(50)))
    content = (tmp_path / "cut.npz").read_bytes()
    for name in ("cut.npz", "cut.npy"):
        (tmp_path / name).write_bytes(content[:-30])
        with pytest.raises(DataError, match=r"not a sparse matrix|not an array"):
            decide(tmp_path / name, tmp_path / "s.csv")


def test_repeated_names_raise(tmp_path):
    (tmp_path / "p.csv").write_text("a,expected_f\n0.5,0.2\n")
    with pytest.raises(ValueError, match="a label is called 'expected_f'"):
        decide(tmp_path / "p.csv", tmp_path / "s.csv", wide=True)
    decide(tmp_path / "p.csv", tmp_path / "s.csv")
    (tmp_path / "p.csv").write_text("a,labels\n0.5,x\n")
    for out in ("csv", "jsonl", "parquet"):
        with pytest.raises(ValueError, match="ids has the column 'labels', which is written too"):
            decide(tmp_path / "p.csv", tmp_path / f"t.{out}", ids=["labels"])
    (tmp_path / "p.csv").write_text(",a,b\n0,0.5,0.2\n")
    with pytest.raises(DataError, match="line 1, column 1: this column has no name"):
        decide(tmp_path / "p.csv", tmp_path / "s.csv")


def test_id_columns_of_parquet(tmp_path):
    table = pa.table({"x": [1.5, float("nan")], "bad": [[1], [2]], "a": [0.5, 0.9]})
    pa.parquet.write_table(table.drop_columns(["bad"]), tmp_path / "p.parquet")
    decide(tmp_path / "p.parquet", tmp_path / "s.jsonl", ids=["x"])
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [row["x"] for row in rows] == [1.5, None]
    pa.parquet.write_table(table, tmp_path / "p.parquet")
    with pytest.raises(DataError, match="column 'bad': it is of type list"):
        decide(tmp_path / "p.parquet", tmp_path / "t.csv", ids=["bad", "x"])


def test_rounding_of_single_precision_is_tolerated(tmp_path):
    pa.parquet.write_table(pa.table({"a": np.float32([1.000001])}), tmp_path / "p.parquet")
    assert decide(tmp_path / "p.parquet", tmp_path / "s.csv").mean_expected_f == 1.0


def test_invalid_header_raises(tmp_path):
    (tmp_path / "p.csv").write_text("a" * 200_000 + "\n")
    with pytest.raises(DataError, match="line 1: the header cannot be parsed"):
        decide(tmp_path / "p.csv", tmp_path / "s.csv")


def test_closed_standard_input_raises(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="standard input: it is closed"):
        decide("-", tmp_path / "s.csv")


def test_suffix_of_gzip_in_capitals(table, tmp_path):
    (tmp_path / "p.csv.GZ").write_bytes(gzip.compress(table.to_csv(index=False).encode()))
    assert decide(tmp_path / "p.csv.GZ", tmp_path / "s.csv").rows == 300


def test_contradictory_rows_are_reported_once_with_the_first_line(tmp_path):
    row = "0.25,0.5\n"  # a block has 4 MiB
    rows = row * 500_000 + "0,0\n" + row * 10 + "0,0\n"
    (tmp_path / "p.csv").write_text("a,b\n" + rows)
    rule = r"p\.csv, line 500002: all probabilities are 0, .* \(2 such rows\)"
    with pytest.warns(UserWarning, match=rule) as caught:
        report = decide(tmp_path / "p.csv", tmp_path / "s.csv", nonempty=True)
    assert len(caught) == 1
    expected = fgfm.decision.from_marginals([[0.25, 0.5]], nonempty=True).expected_f[0]
    assert_allclose(report.mean_expected_f, expected, rtol=1e-12)
    assert (tmp_path / "s.csv").read_text().splitlines()[500_001] == ","


def test_links_and_pipes_are_written_through(table, tmp_path):
    source = write(table, tmp_path / "p.csv")
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    decide(source, tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    whole = (tmp_path / "real.csv").read_bytes()
    assert whole.startswith(b"labels,")
    os.mkfifo(tmp_path / "pipe.csv")
    with subprocess.Popen(["cat", tmp_path / "pipe.csv"], stdout=subprocess.PIPE) as reader:
        decide(source, tmp_path / "pipe.csv")
        assert reader.communicate()[0] == whole
    with subprocess.Popen(["cp", source, tmp_path / "pipe.csv"]):
        decide(tmp_path / "pipe.csv", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == whole
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        decide(source, tmp_path / "none" / "s.csv")


LINE = st.text(st.sampled_from("ab0123456789.,-+eE\"' \tnaif\r\x00é"), max_size=12)
LINES = st.lists(LINE, max_size=6)
HEADERS = st.sampled_from(["a,b", "a", "a,b,c"])


@pytest.mark.parametrize("examples", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_random_tables_are_decided_or_raise(tmp_path_factory, examples):
    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(lines=LINES, header=HEADERS)
    def check(lines, header):
        folder = tmp_path_factory.mktemp("fuzz")
        text = "\n".join([header, *lines])
        (folder / "p.csv").write_bytes(text.encode())
        try:
            decide(folder / "p.csv", folder / "s.jsonl")
        except DataError:
            assert not (folder / "s.jsonl").exists()
            return
        rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[1:]
        while rows and not rows[-1]:
            rows.pop()
        values = [[float(v.strip('"')) for v in row.split(",")] for row in rows]
        labels, _ = read_sets(folder / "s.jsonl", header.split(","))
        if values:
            average = "macro" if header == "a" else "samples"  # a binary classifier
            assert_array_equal(
                labels, fgfm.decision.from_marginals(values, average=average).labels
            )
        else:
            assert len(labels) == 0

    check()


def test_standard_input(tmp_path, monkeypatch):
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(b"a,b\n0.9,0.1\n0.2,0.8\n")
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert decide("-", tmp_path / "s.csv").rows == 2
    with pytest.raises(ValueError, match="format is 'npy': standard input must be 'csv' or 'tsv'"):
        decide("-", tmp_path / "s.csv", format="npy")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n0.1,0.2\n\xff,0.3\n", "line 3: this is not utf-8 text"),
        (b"a,b\n0.1,0.2\n0.1\r,x\n", "line 3: there are 1 values"),
        (b'a,b\n0.1,0.2\n"0.1\n2",0.3\n', r"line 3, column 'a': '0.1\\n2' is not a number"),
        (b'a,b\n0.1,0.2\n"0.1"2,0.3\n', "line 3: the table cannot be parsed: ',' expected after"),
        (b'a,b\n0.1,0.2\n"0.1,0.3\n', "line 3: the table cannot be parsed: unexpected end"),
        (b"a,b\n0.1,0.2\n\n0.1,0.3\n", "line 3: the line is empty: the header has 2"),
    ],
)
def test_malformed_line_raises_with_the_place(tmp_path, content, message):
    (tmp_path / "p.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        decide(tmp_path / "p.csv", tmp_path / "s.csv")


def test_sparse_values_are_validated(tmp_path):
    sparse.save_npz(tmp_path / "p.npz", sparse.csr_array([[0.0, 0.5], [1.5, 0.0]]))
    with pytest.raises(DataError, match=r"row 1, column '0': 1\.5 is not a probability"):
        decide(tmp_path / "p.npz", tmp_path / "s.csv")
    with pytest.raises(ValueError, match=r"ids is \['x'\]: it must be empty, .* no named columns"):
        decide(tmp_path / "p.npz", tmp_path / "s.csv", ids=["x"])
