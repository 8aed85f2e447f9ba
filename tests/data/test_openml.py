"""Data sets from OpenML."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import Bunch

from fgfm.data import DataError, load


@pytest.fixture
def openml(monkeypatch):
    queries = []

    def respond(bunch):
        def fetch_openml(**options):
            queries.append(options)
            if isinstance(bunch, Exception):
                raise bunch
            return bunch

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
        return queries

    return respond


def openml_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "x": [1.0, np.nan],
            "c": pandas.Categorical(["u", "v"]),
            "l1": pandas.Categorical(["TRUE", "FALSE"]),
            "l2": pandas.Categorical(["FALSE", "TRUE"]),
        }
    )
    names = ["l1", "l2"]
    return Bunch(data=frame[["x", "c"]], target=frame[names], frame=frame, target_names=names)


def test_labels_are_the_targets(openml):
    queries = openml(openml_frame())
    found = load("openml:scene:4")
    assert queries[0]["name"] == "scene"
    assert queries[0]["version"] == 4
    assert found.label_names == ("l1", "l2")
    assert found.Y.tolist() == [[1, 0], [0, 1]]
    assert found.X.tolist() == [[1, 0, 1, 0], [1, 1, 0, 1]]
    assert repr(found).startswith("<Dataset openml:scene:4: 2 rows, 4 features")
    assert load("openml:scene", labels=["l2"], drop=["l1"]).Y.tolist() == [[0], [1]]
    assert queries[1]["version"] == "active"
    load("openml:40595")
    assert queries[2]["data_id"] == 40595


def test_sparse_data(openml):
    X = sparse.csr_matrix([[0, 1.5], [2, 0]])
    target = np.array([["1", "0"], ["0", "1"]], dtype=object)
    openml(
        Bunch(data=X, target=target, frame=None, feature_names=["a", "b"], target_names=["u", "v"])
    )
    found = load("openml:text")
    assert found.feature_names == ("a", "b")
    assert found.label_names == ("u", "v")
    assert (found.X.toarray() == X.toarray()).all()
    assert found.Y.tolist() == [[1, 0], [0, 1]]


def test_failures_raise(openml):
    openml(OSError("no network"))
    with pytest.raises(DataError, match=r"^openml:x: the data cannot be fetched: no network$"):
        load("openml:x")
    for name in ("openml:", "openml:x:new"):
        with pytest.raises(DataError, match=rf"^{name}: the name must be openml:name"):
            load(name)
