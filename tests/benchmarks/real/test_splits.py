"""Data sets: standard splits, folds, names and errors."""

from __future__ import annotations

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from benchmarks.real.splits import find_sources, load_split
from fgfm.io import load


def test_features_are_scaled_by_the_training_rows(folder):
    split = load_split(folder / "a.npz")
    stored = load(folder / "a.npz")
    X = stored.X[:80]
    assert_allclose(split.X_train, (X - X.mean(axis=0)) / X.std(axis=0))
    assert_allclose(split.X_test, (stored.X[80:] - X.mean(axis=0)) / X.std(axis=0))
    assert_array_equal(split.Y_test, stored.Y[80:])


def test_five_folds_contain_every_row_once(folder):
    folds = [load_split(folder / "b.npz", fold, seed=3) for fold in range(5)]
    assert [len(fold.Y_test) for fold in folds] == [12] * 5
    assert all(sparse.issparse(fold.X_train) for fold in folds)
    assert all(abs(fold.X_train).max() == 1.0 for fold in folds)
    truth = load(folder / "b.npz").Y
    found = np.concatenate([fold.Y_test for fold in folds])
    assert_array_equal(np.sort(found @ [1, 2, 4]), np.sort(truth @ np.array([1, 2, 4])))
    other = load_split(folder / "b.npz", 0, seed=4)
    assert (other.Y_test != folds[0].Y_test).any()


def test_small_data_sets_come_first_and_are_named_after_their_files(folder, monkeypatch):
    sources = find_sources(folder, None)
    assert [(s.name, s.folds) for s in sources] == [("b", 5), ("a", 1)]
    assert [s.name for s in find_sources([folder / "a.npz"], None)] == ["a"]
    monkeypatch.setenv("FGFM_DATA", os.fspath(folder))
    assert [s.name for s in find_sources(None, ["a"])] == ["a"]


def test_missing_data_raise(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("FGFM_DATA", raising=False)
    with pytest.raises(ValueError, match="FGFM_DATA is not set: pass a folder"):
        find_sources(None, None)
    with pytest.raises(ValueError, match=r"datasets\[1\] is 'x': it must be one of a, b"):
        find_sources(folder, ["a", "x"])
    with pytest.raises(ValueError, match="datasets is empty"):
        find_sources(folder, [])
    with pytest.raises(ValueError, match="no such folder or file"):
        find_sources(tmp_path / "none", None)
    with pytest.raises(ValueError, match=r"has no file \.npz"):
        find_sources(tmp_path, None)
    with pytest.raises(ValueError, match="have the same name"):
        find_sources([folder / "a.npz", folder / "a.npz"], None)


def test_unusable_data_raise(tmp_path):
    X = np.zeros((4, 2))
    np.savez(tmp_path / "few.npz", X=X, Y=np.eye(4, dtype=int))
    with pytest.raises(ValueError, match="has 4 rows: 5 folds need at least 5"):
        find_sources(tmp_path / "few.npz", None)
    np.savez(tmp_path / "none.npz", X=X)
    for read in (load_split, lambda path: find_sources(path, None)):
        with pytest.raises(ValueError, match="has no labels"):
            read(tmp_path / "none.npz")
