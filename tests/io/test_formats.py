"""ARFF, svmlight and the format of extreme classification; formats by name and content."""

from __future__ import annotations

from contextlib import contextmanager

import arff
import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from fgfm.io import FORMATS, DataError, load
from fgfm.io._formats import Format, detect_format
from fgfm.io._tables import Table


def written(folder, name, content):
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / name


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (b"PAR1", "parquet"),
        (b"% x\n@relation r\n@attribute a numeric\n", "arff"),
        (b'{"a": 1}\n', "jsonl"),
        (b"2 3 4\n0 1:1\n", "xmc"),
        (b"1,2 3:0.5\n", "svmlight"),
        (b"a\tb\n1\t2\n", "tsv"),
        (b"a,b\n1,2\n", "csv"),
    ],
)
def test_formats_are_found_by_content(tmp_path, content, format):
    assert detect_format(written(tmp_path, "file", content)) == format
    assert detect_format(written(tmp_path, "file.TSV.gz", content)) == "tsv"


def test_a_new_format_is_a_reader_and_a_line(tmp_path, monkeypatch):
    @contextmanager
    def open_words(path, text, encoder):
        cells = path.read_text().split()
        yield Table.of(
            str(path), {"word": pa.array(cells), "long": pa.array([len(c) > 3 for c in cells])}
        )

    monkeypatch.setitem(FORMATS, "words", Format("words", (".words",), open_words))
    path = written(tmp_path, "a.words", "a long word is short\n")
    assert load(path, "long").Y[:, 0].tolist() == [0, 1, 1, 0, 1]
    with pytest.raises(ValueError, match=r"format is 'word': .*'words'"):
        load(path, format="word")


DENSE = (
    "% remark\n@relation r\n@attribute size numeric\n@attribute colour {red,'light blue'}\n"
    "@attribute note string\n@attribute 'a b' {0,1}\n@attribute l2 {0,1}\n\n@data\n"
    "1.5,red,u,1,0\n?,'light blue',\"v, w\",0,1\n4,?,'it\\'s',0,0\n"
)


def test_arff(tmp_path):
    path = written(tmp_path, "a.arff", DENSE)
    assert load(path).Y is None
    found = load(path, ["a b", "l2"], drop=["size"])
    assert found.Y.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert found.X["colour"].tolist()[:2] == ["red", "light blue"]
    assert found.X["note"].tolist() == ["u", "v, w", "it's"]
    meka = written(tmp_path, "m.arff", DENSE.replace("@relation r", "@relation 'r: -C -2'"))
    assert load(meka).label_names == ("a b", "l2")
    front = "@relation 'r: -C 1'\n@attribute l {0,1}\n@attribute x real\n@data\n1,5\n0,6\n"
    assert load(written(tmp_path, "f.arff", front)).Y.tolist() == [[1], [0]]
    xml = '<labels xmlns="http://x"><label name="l2"><label name="a b"/></label></labels>'
    written(tmp_path, "a.xml", xml)
    assert set(load(path).label_names) == {"a b", "l2"}
    assert load(meka, str(tmp_path / "a.xml")).Y.shape == (3, 2)


def test_sparse_arff(tmp_path):
    head = "@relation 's: -C 2'\n@attribute l1 {0,1}\n@attribute l2 {0,1}\n"
    text = head + "@attribute x real\n@attribute y real\n@data\n{0 1,2 1.5}\n\n{1 1, 3 -2}\n{}\n"
    found = load(written(tmp_path, "a.arff", text))
    assert found.Y.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert found.X.toarray().tolist() == [[1.5, 0], [0, -2], [0, 0]]
    read = arff.loads(text, return_type=arff.LOD)
    assert [row.get(2, 0) for row in read["data"]] == [1.5, 0, 0]
    mixed = head + "@attribute c {u,v,w}\n@attribute x real\n@data\n{2 w, 3 1.5}\n{1 1}\n{3 ?}\n"
    found = load(written(tmp_path, "b.arff", mixed))
    assert found.X["c"].tolist() == ["w", "u", "u"]  # the first value is omitted
    np.testing.assert_array_equal(found.X["x"], [1.5, 0, np.nan])


HEAD = "@relation r\n@attribute x numeric\n@attribute c {u,v}\n@data\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@relation r\n", "there is no @data: the file is truncated"),
        ("@relation r\n@data\n1\n", "line 2: '@data' is not a line of an ARFF header"),
        (HEAD, "there are no rows after @data"),
        (HEAD + "1,u\n1\n", "line 6: there are 1 values: the header has 2 attributes"),
        (HEAD + "1_0,u\n", "row 0, column 'x': '1_0' is not a number"),
        (HEAD + "{0 1}\n1,u\n", "line 6: a sparse row must be in braces"),
        (HEAD + "{0 1,0 2}\n", "an entry of a sparse row must be an index from 0 to 1, once"),
        (HEAD + "{7 1}\n", "line 5: '7 1': an entry of a sparse row"),
        ("@attribute x\n@data\n1\n", "line 1: .* is not a line of an ARFF header"),
        ("@attribute x {a\n@data\n1\n", "'@attribute x {a' is not a line"),
        (HEAD.replace("c {", "x {") + "1,u\n", "two attributes are called 'x'"),
        (HEAD.replace(" r\n", " '-C 2'\n") + "1,u\n", "the relation declares 2 labels of 2 attr"),
    ],
)
def test_invalid_arff_raises(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        load(written(tmp_path, "a.arff", text))


@pytest.mark.parametrize(
    "xml", ["<labels/>", "no xml", "<!DOCTYPE x><labels/>", '<l><label name="z"/></l>']
)
def test_invalid_xml_of_labels_raises(tmp_path, xml):
    path = written(tmp_path, "a.arff", HEAD + "1,u\n")
    written(tmp_path, "a.xml", xml)
    with pytest.raises(DataError, match=r"a\.xml: "):
        load(path)


def test_svmlight(tmp_path):
    path = written(tmp_path, "a.svm", "1,3 1:0.5 4:2 # remark\n# remark\n\n 2:1e-3\n2\n")
    found = load(path)
    assert found.X.toarray().tolist() == [[0.5, 0, 0, 2], [0, 1e-3, 0, 0], [0, 0, 0, 0]]
    assert found.Y.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert found.label_names == ("1", "2", "3")
    assert found.zero_based == (False, False)
    named = load(path, label_names=["u", "v", "w"])
    assert named.label_names == ("u", "v", "w")


def test_svmlight_agrees_with_scikit_learn(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.random_array((40, 6), density=0.4, format="csr", rng=rng)
    Y = (rng.random((40, 3)) < 0.5).astype(np.uint8)
    path = str(tmp_path / "a.svm")
    dump_svmlight_file(X, sparse.csr_matrix(Y), path, multilabel=True, zero_based=False)
    theirs, tags = load_svmlight_file(path, n_features=6, multilabel=True, zero_based=False)
    found = load(path)
    assert (found.X.toarray() == theirs.toarray()).all()
    assert [tuple(map(float, np.flatnonzero(row))) for row in found.Y] == tags


def test_xmc_keeps_empty_rows(tmp_path):
    found = load(written(tmp_path, "a.xmc", "3 4 2\n0,1 0:1 3:2\n\n1\n\n"))
    assert found.X.toarray().tolist() == [[1, 0, 0, 2], [0] * 4, [0] * 4]
    assert found.Y.tolist() == [[1, 1], [0, 0], [0, 1]]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.svm", "1 2:1\n1 2:x\n", "line 2: '1 2:x': a row must be labels"),
        ("a.svm", "1 2:1_0\n", "line 1: '1 2:1_0': a row must be labels"),
        ("a.svm", "1,a 2:1\n", "line 1: '1,a 2:1'"),
        ("a.svm", "1 1:1\n1 2:1e999\n", "row 1: a feature is not finite"),
        ("a.svm", "1 1:1\n1 2:1 3:1 2:5\n", "line 2: '1 2:1 3:1 2:5': .* sorted and unique"),
        ("a.svm", "# nothing\n", "there are no rows"),
        ("a.svm", "1 1:1\n999999999 1:1\n" * 9, "rows of 999999999 labels are too many"),
        ("a.xmc", "1 2\n1:1\n", "line 1: '1 2' is not a header"),
        ("a.xmc", "3 2 2\n0 1:1\n1 0:1\n", "there are 2 rows: the header declares 3"),
        ("a.xmc", "1 2 2\n0 1:1\n1 0:1\n", "there are 2 rows: the header declares 1"),
        ("a.xmc", "1 2 2\n0 2:1\n", "there are 3 features: there must be at most 2"),
        ("a.xmc", "1 2 2\n2 1:1\n", "row 0: 2 is an unknown label: .* from 0 to 1"),
    ],
)
def test_invalid_sparse_rows_raise(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        load(written(tmp_path, name, text))
