"""Find data sets, and read their training and test rows with scaled features."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.model_selection import KFold
from sklearn.preprocessing import MaxAbsScaler, StandardScaler, normalize

from fgfm.io import Dataset, FeatureEncoder, load

__all__ = ["FOLDS", "Source", "Split", "find_sources", "fingerprint", "load_split", "scaled"]

FOLDS = 5  # of data sets without a standard split
_OPENML = "openml:"
_SUFFIXES = (".npz", ".arff", ".svm", ".libsvm", ".xmc")  # formats that identify the labels


class Split(NamedTuple):
    """Training and test rows of a data set."""

    X_train: Any
    Y_train: npt.NDArray[np.int64]
    X_test: Any
    Y_test: npt.NDArray[np.int64]


class Source(NamedTuple):
    """Path, number of folds and size of a data set."""

    name: str
    path: str
    folds: int
    size: int  # number of stored feature values, times the number of labels


def fingerprint(source: Source) -> str:
    """Return a digest that distinguishes a data set from others of the same name."""
    path = Path(source.path)
    if not path.is_file():
        return source.path
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def scaled(X_train: Any, X_test: Any) -> tuple[Any, Any]:
    """Scale features by the training rows.

    Dense features get mean 0 and variance 1. Sparse ones are divided by their largest absolute
    value and stay sparse.
    """
    scaler = MaxAbsScaler() if sparse.issparse(X_train) else StandardScaler()
    scaler.fit(X_train.astype(np.float64))
    return scaler.transform(X_train.astype(np.float64)), scaler.transform(
        X_test.astype(np.float64)
    )


def load_split(
    path: str | os.PathLike[str], fold: int = 0, seed: int = 0, *, features: str = "scaled"
) -> Split:
    """Read a data set in its standard split, or in one of five folds if it has none."""
    data = _load(path)
    if data.train is not None and data.test is not None:
        train, test = data.train, data.test
    else:
        folds = KFold(FOLDS, shuffle=True, random_state=seed).split(data.X)
        train, test = list(folds)[fold]
    Y = np.asarray(data.Y).astype(np.int64)
    X_train, X_test = data.X[train], data.X[test]
    if features == "log counts" and sparse.issparse(X_train) and X_train.min() >= 0.0:
        X_train, X_test = (normalize(X.astype(np.float64).log1p()) for X in (X_train, X_test))
    elif features != "raw":
        X_train, X_test = scaled(X_train, X_test)
    return Split(X_train, Y[train], X_test, Y[test])


def find_sources(data: Any, datasets: Sequence[str] | None) -> list[Source]:
    """Find data sets, smallest first."""
    found = _by_name(_paths(data))
    wanted = list(found) if datasets is None else list(dict.fromkeys(datasets))
    for k, name in enumerate(wanted):
        if name not in found:
            raise ValueError(f"datasets[{k}] is {name!r}: it must be one of {', '.join(found)}")
    if not wanted:
        raise ValueError("datasets is empty: it must have one name or more")
    return sorted((_source(name, found[name]) for name in wanted), key=lambda s: (s.size, s.name))


def _paths(data: Any) -> Iterable[str]:
    if data is None:
        data = os.environ.get("FGFM_DATA")
        if not data:
            raise ValueError(
                "data is None and FGFM_DATA is not set: pass a folder of data sets, or a list of "
                "files and names such as openml:yeast"
            )
    if not isinstance(data, (str, os.PathLike)):
        return [os.fspath(path) for path in data]
    name = os.fspath(data)
    if name.startswith(_OPENML) or Path(name).is_file():
        return [name]
    if not Path(name).is_dir():
        raise ValueError(f"data is {name!r}: there is no such folder or file")
    paths = [os.fspath(p) for p in sorted(Path(name).iterdir()) if p.suffix.lower() in _SUFFIXES]
    if not paths:
        raise ValueError(f"data is {name!r}: the folder has no file {', '.join(_SUFFIXES)}")
    return paths


def _by_name(paths: Iterable[str]) -> dict[str, str]:
    """Return the paths by the names of their data sets."""
    found: dict[str, str] = {}
    for path in paths:
        name = path.removeprefix(_OPENML).replace(":", "-")
        name = name if path.startswith(_OPENML) else Path(path).stem
        if name in found:
            raise ValueError(f"{path} and {found[name]} have the same name: names must differ")
        found[name] = path
    return found


def _load(path: str | os.PathLike[str]) -> Dataset:
    """Read a data set with labels; its nominal columns are encoded, and no column is left out."""
    data = load(path)
    if data.Y is None:
        raise ValueError(f"{path} has no labels: the file must identify the label columns")
    if hasattr(data.X, "columns"):
        numbers = [str(name) for name in data.X.select_dtypes("number")]
        encoder = FeatureEncoder(number=numbers, dense=True)
        data = replace(data, X=encoder.fit_transform(data.X))
    return data


def _source(name: str, path: str) -> Source:
    data = _load(path)
    assert data.Y is not None
    folds = FOLDS if data.train is None or data.test is None else 1
    if folds > len(data.Y):
        raise ValueError(f"{path} has {len(data.Y)} rows: {FOLDS} folds need at least {FOLDS}")
    numbers = data.X.nnz if sparse.issparse(data.X) else data.X.size
    return Source(name, path, folds, int(numbers) * data.Y.shape[1])
