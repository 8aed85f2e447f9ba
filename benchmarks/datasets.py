"""The real data sets: read from the folder that ``FGFM_DATA`` names, never part of the project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = ["FOLDER", "Split", "load"]

FOLDER = Path(os.environ.get("FGFM_DATA", Path(__file__).parents[2] / "shared" / "data"))


class Split(NamedTuple):
    """A data set in its standard split; features scaled."""

    X_train: Any
    Y_train: npt.NDArray[np.int64]
    X_test: Any
    Y_test: npt.NDArray[np.int64]


def load(name: str) -> Split:
    """Read a data set, and scale its features by its training rows.

    Dense features get mean 0 and variance 1. Sparse ones are divided by their largest value, and
    stay sparse.
    """
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(
            f"{name}.npz is not there: FGFM_DATA must name the folder of the data sets"
        )
    with np.load(path, allow_pickle=False) as stored:
        Y = stored["Y"].astype(np.int64)
        train, test = stored["train_idx"], stored["test_idx"]
        if "X_data" in stored:
            parts = (stored["X_data"], stored["X_indices"], stored["X_indptr"])
            X = sparse.csr_matrix(parts, shape=tuple(stored["X_shape"])).astype(np.float64)
            largest = abs(X[train]).max(axis=0).toarray().ravel()
            scale = np.divide(1.0, largest, out=np.ones_like(largest), where=largest > 0.0)
            X = (X @ sparse.diags(scale)).tocsr()
        else:
            X = (stored["X_onehot"] if "X_onehot" in stored else stored["X"]).astype(np.float64)
            spread = X[train].std(axis=0)
            X = (X - X[train].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return Split(X[train], Y[train], X[test], Y[test])
