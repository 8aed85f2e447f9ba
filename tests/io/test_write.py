"""LabelSetWriter and ProbabilityWriter."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from fgfm.io import LabelSetWriter, ProbabilityWriter, decide

NAMES = ["a", "b, c"]
LABELS = np.array([[1, 0], [1, 1], [0, 0]], dtype=np.int8)
EXPECTED_F = np.array([0.123456789, 1.0, np.nan])
IDS = pa.table({"id": ["x", 'say "y"', None], "k": [1, 2, 3]})


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_blocks_are_appended(kind, tmp_path):
    with LabelSetWriter(tmp_path / "s.csv", NAMES) as writer:
        writer.write(kind(LABELS[:1]), EXPECTED_F[:1], IDS.slice(0, 1))
        writer.write(kind(LABELS[1:]), EXPECTED_F[1:], IDS.slice(1))
    assert (tmp_path / "s.csv").read_text() == (
        'id,k,labels,expected_f\nx,1,a,0.123457\n"say ""y""",2,"a;b, c",1\n,3,,\n'
    )


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_many_rows_are_written_in_parts(format, wide, kind, tmp_path):
    n = 66_000  # more than are written at a time
    labels, expected_f = np.tile(LABELS, (n // 3, 1)), np.tile(EXPECTED_F, n // 3)
    ids = pa.concat_tables([IDS] * (n // 3)).combine_chunks()

    def written(name, size):
        path = tmp_path / f"{name}.{format}"
        with (
            LabelSetWriter(path, NAMES, wide=wide) as sets,
            ProbabilityWriter(tmp_path / f"p_{name}.{format}", NAMES) as proba,
        ):
            for at in range(0, n, size):
                part = slice(at, at + size)
                sets.write(kind(labels[part]), expected_f[part], ids.slice(at, size))
                proba.write(labels[part] / 3, ids.slice(at, size))
        if format == "parquet":
            return [pa.parquet.read_table(p) for p in (path, tmp_path / f"p_{path.name}")]
        return path.read_text(), (tmp_path / f"p_{path.name}").read_text()

    assert written("whole", n) == written("parts", 9000)


def test_json_lines(tmp_path):
    for wide, labels in (
        (False, [{"labels": ["a"]}, {"labels": ["a", "b, c"]}, {"labels": []}]),
        (True, [{"a": 1, "b, c": 0}, {"a": 1, "b, c": 1}, {"a": 0, "b, c": 0}]),
    ):
        with LabelSetWriter(tmp_path / "s.jsonl", NAMES, wide=wide) as writer:
            writer.write(LABELS, EXPECTED_F, IDS)
        found = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
        ids = [{"id": "x", "k": 1}, {"id": 'say "y"', "k": 2}, {"id": None, "k": 3}]
        expected = [{"expected_f": 0.123457}, {"expected_f": 1}, {"expected_f": None}]
        assert found == [a | b | c for a, b, c in zip(ids, labels, expected, strict=True)]


def test_parquet_has_lists_all_digits_and_metadata(tmp_path):
    path = tmp_path / "s.parquet"
    with LabelSetWriter(path, NAMES) as writer:
        writer.write(LABELS, EXPECTED_F)
        writer.metadata = {"made by": "a test"}
    found = pa.parquet.read_table(path)
    assert found["labels"].to_pylist() == [["a"], ["a", "b, c"], []]
    assert found["expected_f"].to_pylist() == [0.123456789, 1.0, None]
    assert pa.parquet.read_metadata(path).metadata[b"made by"] == b"a test"


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet"])
def test_wide_output_has_a_column_per_label(format, tmp_path):
    path = tmp_path / f"s.{format}"
    with LabelSetWriter(path, NAMES, wide=True) as writer:
        writer.write(sparse.csr_array(LABELS), EXPECTED_F)
    if format == "parquet":
        found = pd.read_parquet(path)
    else:
        found = pd.read_csv(path, sep="," if format == "csv" else "\t")
    assert list(found.columns) == [*NAMES, "expected_f"]
    assert_array_equal(found[NAMES], LABELS)


def test_header_without_rows(tmp_path):
    with LabelSetWriter(tmp_path / "s.tsv", NAMES) as writer:
        writer.write(LABELS[:0], EXPECTED_F[:0], IDS.slice(0, 0))
    assert (tmp_path / "s.tsv").read_text() == "id\tk\tlabels\texpected_f\n"
    (tmp_path / "other").touch()
    assert (tmp_path / "s.tsv").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_failure_keeps_the_old_file(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("before")

    def fail():
        with LabelSetWriter(path, NAMES) as writer:
            writer.write(LABELS, EXPECTED_F)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_probabilities_are_read_by_decide(tmp_path):
    proba = np.random.default_rng(0).random((3, 2))
    for format in ("csv", "tsv", "jsonl", "parquet"):
        path = tmp_path / f"p.{format}"
        with ProbabilityWriter(path, NAMES) as writer:
            writer.write(proba[:2], IDS.slice(0, 2))
            writer.write(proba[2:], IDS.slice(2))
        assert decide(path, tmp_path / "s.csv", ids=["id", "k"]).rows == 3
    assert_array_equal(pd.read_parquet(path)[NAMES], proba)


def test_invalid_arguments_raise(tmp_path):
    with pytest.raises(ValueError, match=r"s.csv.gz has the extension '.gz': it must be .csv"):
        LabelSetWriter(tmp_path / "s.csv.gz", NAMES)
    with pytest.raises(ValueError, match=r"format is 'npz': it must be one of None, 'csv'"):
        LabelSetWriter(tmp_path / "s", NAMES, format="npz")
    with pytest.raises(ValueError, match=r"separator is ',', which occurs in the label 'b, c'"):
        LabelSetWriter(tmp_path / "s.csv", NAMES, separator=",")
    with pytest.raises(ValueError, match=r"a label is called 'expected_f'"):
        LabelSetWriter(tmp_path / "s.csv", ["expected_f"], wide=True)
    ids = pa.table({"a": [1, 2, 3]})
    with (
        ProbabilityWriter(tmp_path / "p.csv", NAMES) as writer,
        pytest.raises(ValueError, match=r"ids has the column 'a', which is written too"),
    ):
        writer.write(LABELS.astype(float), ids)


def test_closed_standard_output_raises(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(ValueError, match=r"standard output is closed"), LabelSetWriter("-", NAMES):
        pass
