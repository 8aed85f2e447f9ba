"""Two small data sets, and a benchmark on them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification

from benchmarks.real import benchmark

QUICK_RULES = ("half", "independent", "lp", "powerset")


def write_dataset(folder, name, n, m, *, split=None, as_sparse=False, seed=0):
    X, Y = make_multilabel_classification(
        n, n_features=5, n_classes=m, allow_unlabeled=name == "b", random_state=seed
    )
    train, test = (None, None) if split is None else np.split(np.arange(n), [split])
    X = sparse.csr_array(X) if as_sparse else X
    split = {} if train is None else {"train_idx": train, "test_idx": test}
    parts = {"X": X}
    if as_sparse:
        parts = {f"X_{part}": getattr(X, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(folder / f"{name}.npz", Y=Y, **parts, **split)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return a folder with data set "a" in a standard split, and "b" without one."""
    path = tmp_path_factory.mktemp("data")
    write_dataset(path, "a", 120, 4, split=80)
    write_dataset(path, "b", 60, 3, as_sparse=True, seed=1)
    return path


@pytest.fixture(scope="session")
def quick_rules():
    """Return rules that take milliseconds."""
    return list(QUICK_RULES)


@pytest.fixture(scope="session")
def small(folder, quick_rules, tmp_path_factory):
    """Return the results of a small benchmark."""
    return benchmark(tmp_path_factory.mktemp("out"), data=folder, rules=quick_rules, n_jobs=2)
