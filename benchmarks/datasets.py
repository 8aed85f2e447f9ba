"""Read real data sets from the folder named by ``FGFM_DATA``; they are not part of the project."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.model_selection import KFold
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from fgfm.io import FeatureEncoder

__all__ = ["FOLDER", "Split", "load", "read"]

FOLDER = Path(os.environ.get("FGFM_DATA", Path(__file__).parents[2] / "shared" / "data"))


class _Data(NamedTuple):
    """The arrays of a file; the standard split, if there is one."""

    X: Any
    Y: npt.NDArray[np.int64]
    train: Any
    test: Any


class Split(NamedTuple):
    """Training and test rows of a data set."""

    X_train: Any
    Y_train: npt.NDArray[np.int64]
    X_test: Any
    Y_test: npt.NDArray[np.int64]


def read(name: str) -> tuple[Any, npt.NDArray[np.int64]]:
    """Read the features and labels of all rows of a data set."""
    data = _read(name)
    return data.X, data.Y


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
    return Split(X_train, data.Y[train], X_test, data.Y[test])


def _read(name: str) -> _Data:
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist: FGFM_DATA must name the folder of the data sets"
        )
    with np.load(path) as arrays:
        if "X" in arrays:
            X = arrays["X"].astype(np.float64)
        else:
            parts = tuple(arrays[f"X_{part}"] for part in ("data", "indices", "indptr"))
            X = sparse.csr_array(parts, shape=tuple(arrays["X_shape"]))
        if "nominal_categories_json" in arrays:
            X = _with_categories(X, arrays)
        Y = arrays["Y"].astype(np.int64)
        return _Data(X, Y, arrays.get("train_idx"), arrays.get("test_idx"))


def _with_categories(X: Any, arrays: Any) -> Any:
    """Return the features with an indicator of each category in the place of its code."""
    frame = pd.DataFrame(X, columns=arrays["feature_names"].tolist())
    nominal = json.loads(str(arrays["nominal_categories_json"]))
    for name, codes in nominal.items():
        texts = {float(code): str(value) for value, code in codes.items()}
        frame[name] = pd.Categorical(frame[name].map(texts))
    numbers = [name for name in frame if name not in nominal]
    return FeatureEncoder(number=numbers, dense=True).fit_transform(frame)
