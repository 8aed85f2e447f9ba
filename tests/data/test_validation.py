"""Probabilities and true labels of validation rows, from two files."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from fgfm.data import DataError, Dataset, LabelSetWriter, load_validation, save

NAMES = ["news", "sport", "arts", "war, peace"]


@pytest.fixture
def rows():
    """Probabilities and labels of 50 rows."""
    rng = np.random.default_rng(0)
    proba = rng.random((50, 4)).round(4)
    return proba, (rng.random((50, 4)) < proba).astype(np.int8)


def write_table(values, path, ids=None, names=NAMES):
    """Write a matrix with id columns in the format of the suffix; return the path."""
    frame = pd.DataFrame(values, columns=names)
    for name, column in (ids or {}).items():
        frame.insert(0, name, column)
    suffix = path.name.partition(".")[2]
    if suffix in ("csv", "csv.gz", "tsv"):
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    elif suffix == "parquet":
        frame.to_parquet(path, index=False)
    elif suffix == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif suffix == "npy":
        np.save(path, values)
    else:
        sparse.save_npz(path, sparse.csr_array(values))
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet", "npy", "npz"])
@pytest.mark.parametrize("truth", ["csv", "tsv", "csv.gz", "parquet", "jsonl", "npy", "npz"])
def test_tables_of_all_formats(rows, tmp_path, kind, truth):
    proba, Y = rows
    found = load_validation(
        write_table(proba, tmp_path / f"p.{kind}"), write_table(Y, tmp_path / f"y.{truth}")
    )
    assert sparse.issparse(found.proba) == sparse.issparse(found.Y) == (kind == "npz")
    if kind == "npz":
        found = found._replace(proba=found.proba.toarray(), Y=found.Y.toarray())
    assert_array_equal(found.proba, proba)
    assert_array_equal(found.Y, Y)
    assert found.Y.dtype == np.int8
    nameless = kind in ("npy", "npz") and truth in ("npy", "npz")
    assert found.label_names == (["0", "1", "2", "3"] if nameless else NAMES)


@pytest.mark.parametrize("out", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("expected_f", [None, np.full(50, 0.5)])
def test_label_sets_as_they_are_written(rows, tmp_path, out, wide, expected_f):
    proba, Y = rows
    Y[:3] = 0
    Y[-1] = 0  # an empty set in the last line
    with LabelSetWriter(tmp_path / f"y.{out}", NAMES, wide=wide) as writer:
        writer.write(Y[:20], None if expected_f is None else expected_f[:20])
        writer.write(Y[20:], None if expected_f is None else expected_f[20:])
    found = load_validation(write_table(proba, tmp_path / "p.parquet"), tmp_path / f"y.{out}")
    assert_array_equal(found.Y, Y)
    sparse.save_npz(tmp_path / "p.npz", sparse.csr_array(proba))
    with LabelSetWriter(tmp_path / f"z.{out}", ["0", "1", "2", "3"], wide=wide) as writer:
        writer.write(Y, expected_f)
    numbered = load_validation(tmp_path / "p.npz", tmp_path / f"z.{out}")
    assert_array_equal(numbered.Y.toarray(), Y)


def test_empty_lines_of_one_column_are_empty_sets(tmp_path):
    (tmp_path / "p.csv").write_text("a,b\n" + "0.1,0.2\n" * 4)
    (tmp_path / "y.csv").write_text("labels\n\na;b\n\n\n")
    assert load_validation(tmp_path / "p.csv", tmp_path / "y.csv").Y.tolist() == [
        [0, 0],
        [1, 1],
        [0, 0],
        [0, 0],
    ]


@pytest.mark.parametrize("kind", ["arff", "svm", "xmc", "npz"])
def test_labels_of_a_data_set(rows, tmp_path, kind):
    proba, Y = rows
    names = tuple(NAMES) if kind in ("arff", "npz") else None
    save(Dataset(np.arange(100.0).reshape(50, 2), Y, None, names), tmp_path / f"y.{kind}")
    columns = NAMES if names else [str(j + (kind == "svm")) for j in range(4)]
    order = [2, 0, 3, 1] if names else [0, 1, 2, 3]
    write_table(proba[:, order], tmp_path / "p.csv", names=[columns[j] for j in order])
    found = load_validation(tmp_path / "p.csv", tmp_path / f"y.{kind}")
    assert_array_equal(found.Y, Y[:, order])
    assert found.label_names == [columns[j] for j in order]


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("numbers", [False, True])
def test_labels_and_rows_are_matched(rows, tmp_path, kind, numbers):
    proba, Y = rows
    rng = np.random.default_rng(1)
    ids = rng.permutation(50) if numbers else [f'row "{k}"' for k in rng.permutation(50)]
    shuffled, order = rng.permutation(50), [3, 0, 2, 1]
    write_table(proba, tmp_path / "p.csv", {"id": ids, "note": ["x"] * 50})
    write_table(
        Y[shuffled][:, order],
        tmp_path / f"y.{kind}",
        {"day": [7] * 50, "id": np.asarray(ids)[shuffled]},
        [NAMES[j] for j in order],
    )
    found = load_validation(tmp_path / "p.csv", tmp_path / f"y.{kind}", ids=["id", "note", "day"])
    assert_array_equal(found.proba, proba)
    assert_array_equal(found.Y, Y)
    assert found.label_names == NAMES
    sets = [";".join(np.array(["a", "b", "c", "d"])[y == 1]) for y in Y]
    pd.DataFrame({"id": ids, "labels": sets}).sample(frac=1.0, random_state=0).to_csv(
        tmp_path / "sets.csv", index=False
    )
    write_table(proba, tmp_path / "q.csv", {"id": ids}, ["a", "b", "c", "d"])
    assert_array_equal(load_validation(tmp_path / "q.csv", tmp_path / "sets.csv", ids=["id"]).Y, Y)


def test_two_id_columns_are_one_key(tmp_path):
    (tmp_path / "p.csv").write_text("day,id,a\n1,x,0.1\n1,y,0.2\n2,x,0.3\n")
    (tmp_path / "y.csv").write_text("id,day,a\nx,2,1\ny,1,0\nx,1,1\n")
    found = load_validation(tmp_path / "p.csv", tmp_path / "y.csv", ids=["day", "id"])
    assert found.Y.tolist() == [[1], [0], [1]]


def test_single_precision_is_kept(rows, tmp_path):
    proba, Y = rows
    single = proba.astype(np.float32)
    for name in ("p.npy", "p.parquet"):
        write_table(single, tmp_path / name)
        found = load_validation(tmp_path / name, write_table(Y, tmp_path / "y.csv"))
        assert found.proba.dtype == np.float32
        assert_array_equal(found.proba, single)


def test_booleans_and_logits(tmp_path):
    pd.DataFrame({"a": [True, False], "b": [False, True]}).to_parquet(tmp_path / "y.parquet")
    (tmp_path / "p.csv").write_text("a,b\n-3.5,2\n0,inf\n")
    found = load_validation(tmp_path / "p.csv", tmp_path / "y.parquet", logits=True)
    assert_array_equal(found.proba, [[-3.5, 2.0], [0.0, np.inf]])
    assert found.Y.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "npz"])
def test_many_blocks(tmp_path, kind):
    n = 400_000  # more than a block
    rng = np.random.default_rng(0)
    proba = rng.random((n, 2)).round(3)
    Y = (rng.random((n, 2)) < proba).astype(np.int8)
    counts = []
    found = load_validation(
        write_table(proba, tmp_path / f"p.{kind}", names=["a", "b"]),
        write_table(Y, tmp_path / f"y.{kind}", names=["a", "b"]),
        progress=counts.append,
    )
    assert len(counts) > 2
    assert counts == sorted(counts)
    assert counts[-1] == 2 * n
    if kind == "npz":
        found = found._replace(proba=found.proba.toarray(), Y=found.Y.toarray())
    assert_array_equal(found.proba, proba)
    assert_array_equal(found.Y, Y)
    with LabelSetWriter(tmp_path / "sets.jsonl", ["a", "b"]) as writer:
        writer.write(Y, None)
    if kind == "csv":
        again = load_validation(tmp_path / "p.csv", tmp_path / "sets.jsonl")
        assert_array_equal(again.Y, Y)


def test_standard_input(tmp_path, monkeypatch):
    (tmp_path / "y.csv").write_text("a,b\n1,0\n0,1\n")
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(b"a,b\n0.9,0.1\n0.2,0.8\n")
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert load_validation("-", tmp_path / "y.csv").proba.shape == (2, 2)


P = "id,art,law\nx,0.1,0.2\ny,0.3,0.4\n"
INVALID = {
    "other label": (
        "id,art,lav\nx,1,0\ny,0,1\n",
        "'lav' is not a label of the probabilities: .* 'law'",
    ),
    "missing label": ("id,art\nx,1\ny,0\n", "y.csv: there is no label 'law', unlike in the prob"),
    "not 0 or 1": (
        "id,art,law\nx,1,0\ny,0.5,1\n",
        r"line 3, column 'art': 0.5 is not a label:",
    ),
    "no value": ("id,art,law\nx,1,0\ny,,1\n", "line 3, column 'art': there is no value: it must"),
    "other row": ("id,art,law\nx,1,0\nz,0,1\n", r"p.csv, line 3: id 'y' is not in .*y.csv: both"),
    "more rows": (
        "id,art,law\nx,1,0\nz,0,1\ny,0,1\n",
        r"y.csv, line 3: id 'z' is not in .*p.csv: both files must have all rows",
    ),
    "fewer rows": ("id,art,law\nx,1,0\n", r"p.csv, line 3: id 'y' is not in .*y.csv"),
    "repeated row": ("id,art,law\nx,1,0\nx,0,1\n", "y.csv, line 3: id 'x' is there twice"),
    "other count": (
        "art,law\n1,0\n",
        r"there are 1 row, and .*p.csv has 2 rows: .* \(argument: ids\)",
    ),
    "unknown in a set": (
        "id,labels\nx,art\ny,art;lau\n",
        "y.csv, line 3: there is no label 'lau' among .* did you mean 'law",
    ),
    "beside a list": (
        "id,labels,art\nx,art,1\ny,,0\n",
        "column 'art': it stands beside the column 'labels'",
    ),
    "empty": ("", "the file is empty"),
}


@pytest.mark.parametrize("case", INVALID)
def test_files_that_differ_raise(tmp_path, case):
    text, message = INVALID[case]
    (tmp_path / "p.csv").write_text(P)
    (tmp_path / "y.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        load_validation(tmp_path / "p.csv", tmp_path / "y.csv", ids=["id"])


INVALID_JSON = {
    '{"labels": ["art"]}\n{"labels": "law"}\n': "line 2: 'labels' is 'law': it must be a list",
    '{"labels": ["art"]}\n{"labels": ["lau"]}\n': "line 2: there is no label 'lau' among",
    '{"labels": ["art"]}\n{}\n': "line 2: there is no 'labels'",
    '{"labels": ["art"]}\n\n{"labels": []}\n': "line 2: the line is empty",
    '{"labels": ["art"]}\n{"labels"\n': "line 2: it is not JSON",
    '{"labels": ["art"]}\n[1]\n': r"line 2: it is '\[1\]': it must be a JSON object",
    '{"art": 1, "law": 0}\n{"art": 1, "law": 2}\n': "line 2: 'law' is 2: a label must be 0 or 1",
    '{"art": 1, "law": 0}\n{"art": 1, "law": null}\n': "line 2: 'law' is None: a label must",
    '{"art": 1, "law": 0}\n{"art": 1}\n': "line 2: there is no 'law'",
    '{"art": 1, "lav": 0}\n': "'lav' is not a label of the prob",
    "\n": "there are no rows",
}


@pytest.mark.parametrize("text", INVALID_JSON)
def test_invalid_json_lines_raise(tmp_path, text):
    (tmp_path / "p.csv").write_text("art,law\n0.1,0.2\n0.3,0.4\n")
    (tmp_path / "y.jsonl").write_text(text)
    with pytest.raises(DataError, match=INVALID_JSON[text]):
        load_validation(tmp_path / "p.csv", tmp_path / "y.jsonl")


def test_other_invalid_files_raise(rows, tmp_path):
    proba, Y = rows
    p = write_table(proba, tmp_path / "p.csv")
    write_table(Y[:, :3], tmp_path / "three.npy", names=NAMES[:3])
    save(Dataset(np.ones((50, 1)), Y[:, :3]), tmp_path / "data.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK nonsense")
    (tmp_path / "none.csv").write_text(",".join(NAMES[:3]) + "\n")
    lists = pd.DataFrame({"labels": [["news"]] * 49 + [None]})
    lists.to_parquet(tmp_path / "null.parquet")
    for name, message in {
        "three.npy": "the number of labels is 3: it must be 4, that of the probabilities",
        "data.npz": "the number of labels is 3: it must be 4",
        "bad.npz": "it is not a sparse matrix",
        "missing.csv": "there is no such file",
        "null.parquet": "row 49: there is no label list",
    }.items():
        with pytest.raises(DataError, match=message):
            load_validation(p, tmp_path / name)
    with pytest.raises(DataError, match="there are no rows"):
        load_validation(tmp_path / "none.csv", p)
    with pytest.raises(DataError, match=r"no column 'x' here or in the prob.* \(argument: ids\)"):
        load_validation(p, write_table(Y, tmp_path / "y.csv"), ids=["x"])
    with pytest.raises(ValueError, match=r"extension '\.xls'"):
        load_validation(p, write_table(Y, tmp_path / "y.csv").rename(tmp_path / "y.xls"))
    with pytest.raises(ValueError, match="labels_format is 'xls'"):
        load_validation(p, tmp_path / "y.xls", labels_format="xls")
    assert_array_equal(load_validation(p, tmp_path / "y.xls", labels_format="csv").Y, Y)


def test_labels_named_as_the_columns_of_decide(tmp_path):
    (tmp_path / "p.csv").write_text("labels,expected_f\n0.1,0.2\n0.3,0.4\n")
    (tmp_path / "y.csv").write_text("labels,expected_f\n1,0\n0,1\n")
    found = load_validation(tmp_path / "p.csv", tmp_path / "y.csv")
    assert found.Y.tolist() == [[1, 0], [0, 1]]
    rows = [{"labels": 1, "expected_f": 0}, {"labels": 0, "expected_f": 1}]
    (tmp_path / "y.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = load_validation(tmp_path / "p.csv", tmp_path / "y.jsonl")
    assert found.Y.tolist() == [[1, 0], [0, 1]]
