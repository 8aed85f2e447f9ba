"""Read real data sets from the folder named by ``FGFM_DATA``; they are not part of the project."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.model_selection import KFold
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from fgfm.io import Dataset, FeatureEncoder
from fgfm.io import load as load_file

__all__ = ["FOLDER", "Split", "load", "read"]

FOLDER = Path(os.environ.get("FGFM_DATA", Path(__file__).parents[2] / "shared" / "data"))


class Split(NamedTuple):
    """Training and test rows of a data set."""

    X_train: Any
    Y_train: npt.NDArray[np.int64]
    X_test: Any
    Y_test: npt.NDArray[np.int64]


def read(name: str) -> tuple[Any, npt.NDArray[np.int64]]:
    """Read the features and labels of all rows of a data set."""
    data = _read(name)
    return data.X, np.asarray(data.Y).astype(np.int64)


def load(name: str, seed: int = 0) -> Split:
    """Read a data set, with features scaled by its training rows.

    The split is the standard one; without one a fifth of the rows are test rows. Dense features
    get mean 0 and variance 1, sparse ones are divided by their largest absolute value.
    """
    data = _read(name)
    train, test = data.train, data.test
    if train is None or test is None:
        train, test = next(KFold(5, shuffle=True, random_state=seed).split(data.X))
    scaler = MaxAbsScaler() if sparse.issparse(data.X) else StandardScaler()
    X_train = scaler.fit_transform(data.X[train].astype(np.float64))
    X_test = scaler.transform(data.X[test].astype(np.float64))
    Y = np.asarray(data.Y).astype(np.int64)
    return Split(X_train, Y[train], X_test, Y[test])


def _read(name: str) -> Dataset:
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist: FGFM_DATA must name the folder of the data sets"
        )
    data = load_file(path)
    if hasattr(data.X, "columns"):  # nominal columns
        numbers = [str(name) for name in data.X.select_dtypes("number")]
        encoder = FeatureEncoder(number=numbers, dense=True)
        data = replace(data, X=encoder.fit_transform(data.X))
    return data
