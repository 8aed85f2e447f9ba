"""Streams, compression and encodings."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading

import pytest

from dataset_files import assert_invalid, make_dataset, write_file
from fgfm.data import DataError, load, save


def svm_rows(n=2000):
    return "".join(f"{1 + k % 3} {1 + k % 7}:{k}\n" for k in range(n))


def open_pipe(content):
    """Return the reading end of a pipe, and the thread that writes to it."""
    reading, writing = os.pipe()

    def write():
        with os.fdopen(writing, "wb") as file:
            file.write(content)

    thread = threading.Thread(target=write)
    thread.start()
    return reading, thread


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("format", ["svmlight", None])
def test_pipes(compressed, format, tmp_path):
    content = svm_rows().encode()
    reading, thread = open_pipe(gzip.compress(content) if compressed else content)
    try:
        found = load(f"/dev/fd/{reading}", format=format)
    finally:
        os.close(reading)
        thread.join()
    assert found.X.shape == (2000, 7)
    assert found.source == f"/dev/fd/{reading}"
    wanted = load(write_file(tmp_path, content, "a.svm"))
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
    with pytest.raises(DataError, match=r"^-: the format follows neither from the file name nor"):
        load("-")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(DataError, match=r"^-: the file is empty$"):
        load("-", format="csv")


INVALID = {  # the content, the message, perhaps options and another name of the file
    "empty": ("", r"a.csv: the file is empty$"),
    "empty gzip": (gzip.compress(b""), r"a.csv.gz: the file is empty$", {}, "a.csv.gz"),
    "encoding": (
        b"x\n1\n\xff\xfe\n",
        r"a.csv, line 3: this is not utf-8 text: .* another encoding \(argument: encoding\)$",
    ),
    "encoding of a header": (
        b"@relation \xe9\n",
        r"a.arff, line 1: this is not utf-8 text",
        {},
        "a.arff",
    ),
    "given encoding": ("x\n1\né\n", r"line 3: this is not ascii", {"encoding": "ascii"}),
    "truncated gzip": (
        gzip.compress(b"x\n" + b"1\n" * 999)[:-20],
        r"a.csv.gz: the compressed file ends too early: it is truncated$",
        {},
        "a.csv.gz",
    ),
    "damaged gzip": (
        gzip.compress(b"x\n1\n")[:-8] + bytes(8),
        r"a.csv.gz: the file cannot be read: CRC check failed",
        {},
        "a.csv.gz",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_file_raises(case, tmp_path):
    assert_invalid(tmp_path, "a.csv", *INVALID[case])


def test_invalid_paths_raise(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.csv: there is no such file$"):
        load(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match=r": this is a directory: a file is needed$"):
        load(tmp_path)
    with pytest.raises(DataError, match=r"cannot be written: .*[Nn]o such f"):
        save(make_dataset(), tmp_path / "no" / "a.csv")
