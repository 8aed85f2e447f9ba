"""svmlight and xmc."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from dataset_files import assert_invalid, make_dataset, write_file
from fgfm.data import load, save


def test_numbering_from_zero_or_one(tmp_path):
    one = write_file(
        tmp_path, "1,3 1:0.5 4:2 # remark\n# only a remark\n\n 2:1e-3\n2\n", "one.svm"
    )
    found = load(one)
    assert found.X.toarray().tolist() == [[0.5, 0, 0, 2], [0, 1e-3, 0, 0], [0, 0, 0, 0]]
    assert found.Y.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert found.label_names == ("1", "2", "3")
    zero = load(one, zero_based=True, zero_based_labels=True)
    assert zero.X.shape == (3, 5)
    assert zero.label_names == ("0", "1", "2", "3")
    mixed = load(write_file(tmp_path, "0,2 1:1\n", "mixed.svm"))
    assert mixed.X.shape == (1, 1)
    assert mixed.label_names == ("0", "1", "2")
    # what was found is remembered, though nothing in this file tells
    encoder = load(write_file(tmp_path, "0 0:1 2:1\n1 1:1\n", "train.svm")).encoder
    again = load(write_file(tmp_path, "1 2:5\n", "new.svm"), encoder=encoder)
    assert again.X.toarray().tolist() == [[0, 0, 5]]
    assert again.Y.tolist() == [[0, 1]]


def test_agrees_with_scikit_learn(tmp_path):
    one = make_dataset("sparse")
    one = one.rows(np.arange(30) != 3)  # scikit-learn does not keep empty rows
    save(one, tmp_path / "a.svm")
    X, tags = load_svmlight_file(tmp_path / "a.svm", n_features=6, multilabel=True)
    assert (X.toarray() == one.X.toarray()).all()
    assert all(
        list(np.flatnonzero(row) + 1) == list(t) for row, t in zip(one.Y, tags, strict=True)
    )
    dump_svmlight_file(one.X, sparse.csr_matrix(one.Y), str(tmp_path / "b.svm"), multilabel=True)
    other = load(
        tmp_path / "b.svm", n_features=6, labels=4, zero_based=True, zero_based_labels=True
    )
    # it writes 16 digits
    assert np.allclose(other.X.toarray(), one.X.toarray(), rtol=1e-14, atol=0)
    assert (other.Y == one.Y).all()


def test_xmc_keeps_empty_rows(tmp_path):
    found = load(write_file(tmp_path, "3 4 2\n0,1 0:1 3:2\n\n1\n\n", "a.txt"))
    assert found.X.toarray().tolist() == [[1, 0, 0, 2], [0] * 4, [0] * 4]
    assert found.Y.tolist() == [[1, 1], [0, 0], [0, 1]]
    named = load(tmp_path / "a.txt", labels=["u", "v"])
    assert named.label_names == ("u", "v")


INVALID = {  # the content, the message, perhaps options and another name of the file
    "value": (
        "1 2:1\n1 2:x\n",
        r"line 2, column 3: '2:x' is not a feature: it must be number:value, such as 5:0.2$",
    ),
    "label": ("1,a 2:1\n", r"line 1, column 1: '1,a' is not a list of labels: .*, such as 1,3$"),
    "fractional label": ("1.5 2:1\n", r"line 1, column 1: '1.5' is not a list of labels"),
    "negative index": ("1 -2:1\n", r"line 1, column 3: '-2:1' is not a feature"),
    "labels after a blank": (
        " 1,2 2:1\n",
        r"line 1, column 2: the labels '1,2' are not at the beginning of the line$",
    ),
    "nan": ("1 2:nan\n", r"line 1, column 3: '2:nan' is not a feature"),
    "overflow": ("1 1:1\n1 2:1e999\n", r"line 2: feature 2 is not a finite number"),
    "repeated feature": ("1 1:1\n1 2:1 3:1 2:5\n", r"line 2: feature 2 occurs twice"),
    "feature beyond n_features": (
        "1 3:1\n",
        r"line 1: there is a feature 3: features must be numbered from 1 to 2$",
        {"n_features": 2},
    ),
    "label beyond labels": (
        "1 1:1\n3 1:1\n",
        r"line 2: 3 is an unknown label: labels must be numbered from 1 to 2$",
        {"labels": 2},
    ),
    "feature 0": ("1 0:1\n", r"line 1: there is a feature 0: .* from 1", {"zero_based": False}),
    "too many labels": ("1 1:1\n999999999 1:1\n", r"line 2: 999999999 labels are too many"),
    "no rows": ("# nothing\n", r"a.svm: there are no rows$"),
    "header of xmc": (
        "1 2\n1:1\n",
        r"line 1: '1 2' is not a header: it must be the numbers of rows, features and labels$",
        {},
        "a.xmc",
    ),
    "short xmc": (
        "3 2 2\n0 1:1\n1 0:1\n",
        r"line 4: the file ends after 2 of the 3 rows",
        {},
        "a.txt",
    ),
    "long xmc": (
        "1 2 2\n0 1:1\n1 0:1\n",
        r"line 3: there are more rows than the 1 of the header$",
        {},
        "a.txt",
    ),
    "feature of xmc": (
        "1 2 2\n0 2:1\n",
        r"line 2: there is a feature 2: .* from 0 to 1",
        {},
        "a.txt",
    ),
    "label of xmc": (
        "1 2 2\n2 1:1\n",
        r"line 2: 2 is an unknown label: .* from 0 to 1",
        {},
        "a.txt",
    ),
    "a billion labels": (
        "3 2 1000000000\n",
        r"line 1: 1000000000 labels are too many",
        {},
        "a.txt",
    ),
    "too many rows of labels": (
        "1000000000 9 9999\n",
        r"line 1: 1000000000 rows of 9999 labels are too many",
        {},
        "a.txt",
    ),
    "too many features": (
        "3 99999999999 1\n",
        r"line 1: 99999999999 features are too many",
        {},
        "a.txt",
    ),
    "number of labels of xmc": (
        "1 2 2\n0 1:1\n",
        r"line 1: the header declares 2 labels: there must be 3$",
        {"labels": 3},
        "a.txt",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_file_raises(case, tmp_path):
    assert_invalid(tmp_path, "a.svm", *INVALID[case])
