"""Files changed at random: an error of one line that names the file, or valid data."""

from __future__ import annotations

import gzip
import io
import os
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from fgfm.io import DataError, FeatureEncoder, decide, load, load_blocks

MANY = int(os.environ.get("FGFM_FUZZ", "150"))
CSV = b"x,y,c,d,t\n" + b"1.5,0,red,2001-02-03,a;b\n-2e3,,blue,2004-05-06,b\nNA,5,red,,\n" * 8
ARFF = b"""@relation 'set: -C -2'
% a remark
@attribute x numeric
@attribute 'a name' real
@attribute c {red,'light blue',green}
@attribute l1 {0,1}
@attribute l2 {0,1}

@data
1.5,0,red,0,1
-2e3,?,'light blue',1,1
7,3.25,red,0,0
"""
SPARSE_ARFF = ARFF.partition(b"@data")[0] + b"@data\n{0 1.5,2 green,4 1}\n{1 -2e3,3 1}\n{}\n"
SVMLIGHT = b"1,3 1:0.5 4:2 # remark\n2 2:1e-3 3:-4.25\n 1:7\n1,2 4:12\n3 1:1 2:2 3:3 4:4\n"
XMC = b"5 5 3\n0,2 1:0.5 4:2\n1 2:1e-3 3:-4.25\n\n0,1 4:12\n2 0:1 2:2 3:3 4:4\n"
JSONL = b'{"x": 1, "c": "red", "t": ["a"]}\n{"x": null, "c": 2, "t": []}\n{"c": "u", "t": ["b"]}\n'
TOKENS = [
    "", "1e999", "99999999999999999999", "1000000000", "-1", "nan", "inf", "1_0", "٣", "0x1F", "é",
    "\x00", "\u2028", "\x85", "\r", '"', "'", "{", "}", "#", "%", ",", ":", ";", "\\", "?", "\t",
    "\n", "@data", "1:1", "[", "]", "[1", "\ufeff", "9" * 400, "1e-999", "9999-99-99", "[[[[",
]  # fmt: skip


def parquet():
    content = io.BytesIO()
    frame = pd.DataFrame({"x": [1.5, None, 2.0], "c": ["u", "v", None], "t": [["a"], [], ["b"]]})
    frame.to_parquet(content)
    return content.getvalue()


FILES = {
    "a.csv": (CSV, "t"),
    "b.csv.gz": (gzip.compress(CSV, mtime=0), "t"),
    "c.arff": (ARFF, None),
    "d.arff": (SPARSE_ARFF, None),
    "e.svm": (SVMLIGHT, None),
    "f.xmc": (XMC, None),
    "g.jsonl": (JSONL, "t"),
    "i.parquet": (parquet(), "t"),
}


@st.composite
def damaged(draw, content: bytes):
    """Draw a file with one to three changes."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        match draw(st.integers(0, 4)):
            case 0:
                flipped = bytes(b ^ draw(st.integers(1, 255)) for b in content[at : at + 1])
                content = content[:at] + flipped + content[at + 1 :]
            case 1:
                content = content[:at]
            case 2:
                content = content[:at] + draw(st.sampled_from(TOKENS)).encode() + content[at:]
            case 3:  # replace a value
                found = list(re.finditer(rb"[^\s,:]+", content))
                if found:
                    a, b = draw(st.sampled_from(found)).span()
                    content = content[:a] + draw(st.sampled_from(TOKENS)).encode() + content[b:]
            case _:
                content = content[:at] + content[draw(st.integers(at, len(content))) :]
    return content


def fuzz(count, content, check):
    options = settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize="FGFM_FUZZ" not in os.environ,
        database=None,
    )
    options(given(damaged(content))(check))()


def check_message(error, path):
    assert str(error).startswith(str(path))
    assert "\n" not in str(error)


COUNTS = pytest.mark.parametrize("count", [12, pytest.param(MANY, marks=pytest.mark.slow)])


@COUNTS
@pytest.mark.parametrize("name", FILES)
def test_damaged_data_sets(name, count, tmp_path):
    whole, labels = FILES[name]
    path = tmp_path / name
    path.write_bytes(whole)
    encoder = FeatureEncoder(labels=["t"]).fit(load(path, labels).X)

    def check(content):
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            for read in (lambda: load(path, labels), lambda: blocks(path, encoder)):
                try:
                    found = read()
                except DataError as error:
                    check_message(error, path)
                    continue
                if found is not None and found.Y is not None:
                    assert found.Y.shape == (found.X.shape[0], len(found.label_names))
                    assert set(np.unique(found.Y)) <= {0, 1}

    fuzz(count, whole, check)


def blocks(path, encoder):
    if path.suffix in (".csv", ".gz", ".jsonl", ".parquet"):
        for block in load_blocks(path, encoder, rows=2):
            values = block.X.data if sparse.issparse(block.X) else block.X
            assert not np.isnan(values).any()


@COUNTS
@pytest.mark.parametrize("name", ["p.csv", "p.jsonl"])
def test_damaged_probabilities(name, count, tmp_path):
    path, target = tmp_path / name, tmp_path / "s.jsonl"
    proba = np.random.default_rng(0).random((6, 3)).round(2)
    frame = pd.DataFrame(proba, columns=["a", "b", "c"])
    if name == "p.csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)

    def check(content):
        path.write_bytes(content)
        target.unlink(missing_ok=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                report = decide(path, target)
        except DataError as error:
            check_message(error, path)
            assert not target.exists()
        else:
            assert target.read_text().count("\n") == report.rows

    fuzz(count, path.read_bytes(), check)
