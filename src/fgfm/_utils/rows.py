"""Rows and columns of features of any kind: arrays, sparse matrices, pandas and polars frames.

A base learner may select columns by name or read categories: it gets the kind that the user gave.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = ["append_column", "frame_library", "n_rows", "on_all_rows", "take_rows"]

_COLUMN = "number of labels"


def frame_library(value: Any) -> str | None:
    """Give "pandas" or "polars" for a data frame or series of theirs, None for anything else."""
    library = type(value).__module__.partition(".")[0]
    return library if library in ("pandas", "polars") else None


def n_rows(X: Any) -> int:
    """Give the number of rows."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: slice | npt.NDArray[np.int64]) -> Any:
    """Give some rows of X, of the same kind as X."""
    library = frame_library(X)
    if library == "pandas":
        return X.iloc[rows]
    if library is None and not sparse.issparse(X):
        X = np.asarray(X)
    return X[rows]


def on_all_rows(
    values: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], n: int
) -> npt.NDArray[np.float64]:
    """Give values of some rows a place among all n, with NaN for the others."""
    if len(rows) == n:
        return values
    everywhere = np.full((n, values.shape[1]), np.nan)
    everywhere[rows] = values
    return everywhere


def append_column(X: Any, values: float | npt.NDArray[np.float64]) -> Any:
    """Give X with one more column, the last; in a data frame it has a name that is not taken."""
    n = n_rows(X)
    column = np.broadcast_to(np.asarray(values, dtype=np.float64), (n,))
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_array(column[:, None])], format="csr")
    library = frame_library(X)
    if library is None:
        return np.column_stack([X, column])
    name = _free_name(list(X.columns))
    if library == "polars":
        import polars as pl

        return X.with_columns(pl.Series(name, column))
    appended = X.copy(deep=False)
    appended[name] = column
    return appended


def _free_name(taken: list[Any]) -> Any:
    """Give a name for one more column: of text, unless the others are not."""
    if not any(isinstance(name, str) for name in taken):
        return 1 + max((n for n in taken if isinstance(n, (int, np.integer))), default=-1)
    name = _COLUMN
    while name in taken:
        name += "_"
    return name
