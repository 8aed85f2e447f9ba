"""Data sets and files for the tests of `fgfm.data`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from fgfm.data import DataError, Dataset, load, save

__all__ = [
    "VARIANTS",
    "assert_invalid",
    "assert_same",
    "make_dataset",
    "real_path",
    "round_trip",
    "to_dense",
    "write_file",
]

REAL = Path(os.environ.get("FGFM_DATA", Path(__file__).parents[2] / "shared" / "data"))
# format, suffix, whether it has names, whether it declares its labels
VARIANTS = {
    "csv": ("csv", ".csv", True, False),
    "csv.gz": ("csv", ".csv.gz", True, False),
    "tsv": ("tsv", ".tsv", True, False),
    "parquet": ("parquet", ".parquet", True, True),
    "arff": ("arff", ".arff", True, True),
    "arff.gz": ("arff", ".arff.gz", True, True),
    "meka": ("meka", ".arff", True, True),
    "meka.gz": ("meka", ".arff.gz", True, True),
    "svmlight": ("svmlight", ".svm", False, False),
    "svmlight.gz": ("svmlight", ".svm.gz", False, False),
    "xmc": ("xmc", ".txt", False, True),
    "xmc.gz": ("xmc", ".txt.gz", False, True),
    "npz": ("npz", ".npz", True, True),
}


def real_path(name):
    """Return the path of a real data set, or skip the test."""
    path = REAL / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"{name}.npz is missing: FGFM_DATA must be the folder of the data sets")
    return path


def to_dense(X):
    """Return a matrix as an array."""
    return X.toarray() if sparse.issparse(X) else X


def make_dataset(kind="dense", n=30, p=6, m=4, dtype=np.float64, seed=0):
    """Return random data with an empty feature, an empty row and an empty label."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, p)) * 10.0 ** rng.integers(-9, 9, size=(n, p))).astype(dtype)
    X[rng.random((n, p)) < 0.4] = 0
    X[:, -1] = 0
    X[3] = 0
    Y = (rng.random((n, m)) < 0.4).astype(np.uint8)
    Y[3] = 0
    Y[:, -1] = 0
    names = ("a", "b c", "d,e", "it's", 'say "x"', "été\\", "x7")[:p]
    labels = ("1st", "l, m", "Ω", "{q}%")[:m]
    return Dataset(X if kind == "dense" else sparse.csr_array(X), Y, names, labels)


def write_file(folder, content, name="a.csv"):
    """Write a file; return its path."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def assert_invalid(folder, default_name, content, match, options=None, name=None):
    """Assert that a file is refused with one line that begins with its path."""
    path = write_file(folder, content, name or default_name)
    with pytest.raises(DataError, match=match) as caught:
        load(path, **(options or {}))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))


def round_trip(dataset, path, variant, **options):
    """Write a data set and read it again, with the arguments that the format does not declare."""
    format, _, _, declares = VARIANTS[variant]
    save(dataset, path, format=format)
    if not declares and dataset.Y is not None:
        m = dataset.Y.shape[1]
        options["labels"] = -m if format in ("csv", "tsv") else m
    if format == "svmlight":
        options["n_features"] = dataset.X.shape[1]
    return load(path, **options)


def assert_same(one, other, variant):
    """Assert that a data set was not changed by a format."""
    assert other.X.shape == one.X.shape
    if sparse.issparse(one.X) and sparse.issparse(other.X):
        assert (one.X != other.X).nnz == 0
    else:
        assert (to_dense(other.X) == to_dense(one.X)).all()
    assert other.Y.dtype == np.uint8
    assert (other.Y == one.Y).all()
    m = one.Y.shape[1]
    if variant == "npz":
        assert other.feature_names == one.feature_names
        assert other.label_names == one.label_names
    elif VARIANTS[variant][2]:
        assert other.feature_names == (
            one.feature_names or tuple(f"x{j + 1}" for j in range(one.X.shape[1]))
        )
        assert other.label_names == (one.label_names or tuple(f"y{k + 1}" for k in range(m)))
    else:
        first = 1 if variant.startswith("svmlight") else 0
        assert other.feature_names is None
        assert other.label_names == tuple(str(k + first) for k in range(m))
