"""ARFF."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dataset_files import assert_invalid, make_dataset, to_dense, write_file
from fgfm.data import DataError, load, save


def test_numbers_categories_and_strings(tmp_path):
    path = write_file(
        tmp_path,
        "@relation r\n@attribute size numeric\n@attribute colour {red,'light blue'}\n"
        "@attribute ok {YES,NO}\n@attribute note string\n@attribute l {0,1}\n@data\n"
        "1.5,red,YES,u,1\n?,'light blue',NO,v,0\n4,?,YES,'it\\'s',0\n",
        "a.arff",
    )
    found = load(path, labels=["l"])
    assert found.feature_names == (
        "size",
        "ok",
        "size missing",
        "colour=light blue",
        "colour=red",
        "colour missing",
        "note=it's",
        "note=u",
        "note=v",
    )
    assert found.X.tolist() == [
        [1.5, 1, 0, 0, 1, 0, 0, 1, 0],
        [2.75, 0, 1, 1, 0, 0, 0, 0, 1],
        [4, 1, 0, 0, 0, 1, 1, 0, 0],
    ]
    assert found.Y.tolist() == [[1], [0], [0]]
    new = write_file(tmp_path, "note,ok,colour,size\nv,NO,red,1\n", "new.csv")
    assert load(new, encoder=found.encoder).X.tolist() == [[1, 0, 0, 0, 1, 0, 0, 0, 1]]


def test_sparse_rows_omit_the_first_category(tmp_path):
    path = write_file(
        tmp_path,
        "% a comment\n@RELATION 'set: -C 2'\n@ATTRIBUTE l1 {1,0}\n@ATTRIBUTE l2 {0,1}\n"
        "@ATTRIBUTE c {u,v,w}\n@ATTRIBUTE x REAL\n@ATTRIBUTE t {YES,NO}\n@DATA\n"
        "{0 0,2 w, 3 1.5}\n\n{1 1}\n{3 ?, 4 NO}\n",
        "a.arff",
    )
    found = load(path)
    assert found.label_names == ("l1", "l2")
    assert found.Y.tolist() == [[0, 0], [1, 1], [1, 0]]
    assert sparse.issparse(found.X)
    assert found.feature_names == ("x", "t", "x missing", "c=u", "c=w")
    assert found.X.toarray().tolist() == [
        [1.5, 1, 0, 0, 1],
        [0, 1, 0, 1, 0],
        [0.75, 0, 1, 1, 0],
    ]


def test_mulan_labels_are_in_the_order_of_the_attributes(tmp_path):
    xml = (
        '<?xml version="1.0"?><labels xmlns="http://mulan.sourceforge.net/labels">'
        '<label name="c &amp; d"><label name="a"></label></label></labels>'
    )
    arff = "@relation r\n@attribute a {0,1}\n@attribute x numeric\n@attribute 'c & d' {0,1}\n"
    arff += "@data\n1,5,0\n0,6,1\n"
    path = write_file(tmp_path, arff, "a.arff")
    assert load(path).Y is None
    write_file(tmp_path, xml, "a.xml")
    found = load(path)
    assert found.label_names == ("a", "c & d")
    assert found.Y.tolist() == [[1, 0], [0, 1]]
    other = write_file(tmp_path, arff, "b.arff")
    assert load(other, labels=tmp_path / "a.xml").label_names == ("a", "c & d")
    bare = "@relation r\n@attribute x numeric\n@data\n5\n"
    assert load(write_file(tmp_path, bare, "a.arff")).Y is None


def test_labels_may_be_absent_after_training(tmp_path):
    head = "@relation 'r: -C -1'\n@attribute x numeric\n@attribute y numeric\n"
    train = write_file(tmp_path, head + "@attribute l {0,1}\n@data\n1,2,1\n3,4,0\n", "train.arff")
    encoder = load(train).encoder
    bare = load(write_file(tmp_path, head + "@data\n5,6\n", "new.arff"), encoder=encoder)
    assert bare.Y is None
    assert bare.X.tolist() == [[5, 6]]
    other = write_file(tmp_path, head + "@attribute k {0,1}\n@data\n1,2,1\n", "other.arff")
    with pytest.raises(
        DataError, match=r"other.arff: 'k' is not a label of training: there are 'l'"
    ):
        load(other, encoder=encoder)


def test_agrees_with_liac_arff(tmp_path):
    arff = pytest.importorskip("arff")
    for kind in ("dense", "sparse"):
        one = make_dataset(kind)
        save(one, tmp_path / "a.arff")
        rows = arff.load((tmp_path / "a.arff").read_text(encoding="utf-8"))
        if kind == "dense":
            table = np.array(rows["data"], dtype=float)
        else:
            both = arff.load(
                (tmp_path / "a.arff").read_text(encoding="utf-8"), return_type=arff.COO
            )
            values, i, j = both["data"]
            table = np.zeros((30, 10))
            table[i, j] = np.array(values, dtype=float)
        assert (table[:, :6] == to_dense(one.X)).all()
        assert (table[:, 6:] == one.Y).all()
        assert [name for name, _ in rows["attributes"]][-4:] == list(one.label_names)


ARFF = "@relation r\n@attribute x numeric\n@attribute c {u,v}\n@attribute l {0,1}\n@data\n"


@pytest.mark.parametrize(
    ("xml", "match"),
    [
        ("<labels><label name='l'></labels>", r"a.xml: this is not XML: mismatched tag"),
        ("<labels></labels>", r"a.xml: there must be <label name=...> elements"),
        ("<labels><label/></labels>", r"a.xml: there must be <label name=...> elements"),
        ("<labels><label name='l'/><label name='q'/></labels>", r"a.arff: there is no column 'q'"),
        ("<labels><label name='l'/><label name='l'/></labels>", r"a.xml, column 2: the name 'l'"),
        (
            "<!DOCTYPE a [<!ENTITY b 'c'>]><labels/>",
            r"a.xml: document types and entities are not allowed",
        ),
    ],
)
def test_invalid_xml_of_labels_raises(xml, match, tmp_path):
    write_file(tmp_path, xml, "a.xml")
    with pytest.raises(DataError, match=match):
        load(write_file(tmp_path, ARFF + "1,u,0\n", "a.arff"))


INVALID = {  # the content, the message, perhaps options and another name of the file
    "not ARFF": ("x,y\n1,2\n", r"line 1: 'x,y' is not a line of an ARFF header"),
    "no data": ("@relation r\n@attribute x real\n", r"a.arff: the file ends before @data"),
    "no attributes": ("@relation r\n@data\n1\n", r"line 2: there is no @attribute"),
    "no rows": (ARFF, r"a.arff: there are no rows after @data"),
    "unknown type": ("@attribute x date\n", r"line 1: attribute 'x' has type 'date'"),
    "no type": ("@attribute x\n", r"line 1: '@attribute x' is not an attribute"),
    "repeated value": (
        "@attribute x {u,u}\n",
        r"line 1: attribute 'x' has an empty or a repeated value",
    ),
    "unclosed name": (
        "@attribute 'x real\n",
        r"line 1: \"@attribute 'x real\" is not an attribute",
    ),
    "repeated name": (
        "@attribute x real\n@attribute x real\n@data\n1,2\n",
        r"a.arff, column 2: the name 'x' is that of column 1 too",
    ),
    "short row": (
        ARFF + "1,u,0\n2,v\n",
        r"line 7: there are 2 values: the header has 3 attributes$",
    ),
    "text": (
        ARFF + "1,u,0\nq,v,1\n",
        r"line 7, column 'x': 'q' is not a number; a missing value is written \?$",
    ),
    "nan": (ARFF + "nan,u,0\n", r"line 6, column 'x': 'nan' is not a number; a m"),
    "empty value": (
        ARFF + ",u,0\n",
        r"line 6, column 'x': the value is empty: a missing value is written \?$",
    ),
    "overflow": (ARFF + "1e999,u,0\n", r"line 6, column 'x': the value is infinite"),
    "undeclared category": (
        ARFF + "1,w,0\n",
        r"line 6, column 'c': 'w' is not one of the values that the header declares$",
    ),
    "undeclared label": (
        ARFF + "1,u,2\n",
        r"line 6, column 'l': '2' is not one of the values",
        {"labels": -1},
    ),
    "missing label": (
        ARFF + "1,u,?\n",
        r"line 6, column 'l': the label is missing",
        {"labels": -1},
    ),
    "unclosed quote": (ARFF + "1,'u,0\n", r"line 6: the quotes in \"'u,0\" do not match"),
    "dense and sparse": (
        ARFF + "1,u,0\n{0 1}\n",
        r"line 7: dense and sparse rows must not be mixed$",
    ),
    "unknown attribute": (
        ARFF + "{0 1, 3 1}\n",
        r"line 6: there is an attribute 3: attributes are numbered from 0 to 2$",
    ),
    "repeated attribute": (ARFF + "{0 1, 0 2}\n", r"line 6: attribute 0 occurs twice"),
    "unclosed row": (ARFF + "{0 1\n", r"line 6: a sparse row must end with \}$"),
    "invalid entry": (
        ARFF + "{0:1}\n",
        r"line 6: '0:1' is not an entry of a sparse row: it must be an index and a value$",
    ),
    "too many labels of MEKA": (
        "@relation 'r: -C 9'\n" + ARFF[12:] + "1,u,0\n",
        r"a.arff: 9 labels leave no features",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_file_raises(case, tmp_path):
    assert_invalid(tmp_path, "a.arff", *INVALID[case])


def test_missing_xml_raises(tmp_path):
    path = write_file(tmp_path, ARFF + "1,u,0\n", "a.arff")
    with pytest.raises(DataError, match=r"^none.xml: the file cannot be read"):
        load(path, labels="none.xml")
