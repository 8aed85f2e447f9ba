"""Row and column operations on arrays, sparse matrices, and pandas and polars data frames.

Features keep their type, since a base learner may select columns by name or read categories.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse


def frame_library(value: Any) -> str | None:
    """Return "pandas" or "polars" for a data frame or series, None for anything else."""
    library = type(value).__module__.partition(".")[0]
    return library if library in ("pandas", "polars") else None


def n_rows(X: Any) -> int:
    """Return the number of rows."""
    if not hasattr(X, "shape") and not hasattr(X, "__len__"):
        X = np.asarray(X)
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: slice | npt.NDArray[np.int64]) -> Any:
    """Return some rows of X, as the same type."""
    library = frame_library(X)
    if library == "pandas":
        return X.iloc[rows]
    if library is None and not sparse.issparse(X):
        X = np.asarray(X)
    return X[rows]


def take_param_rows(params: dict[str, Any], rows: npt.NDArray[np.int64], n: int) -> dict[str, Any]:
    """Return the arguments of a fit for some of n rows; those of length n are indexed."""

    def per_row(value: Any) -> bool:
        return (
            hasattr(value, "__len__") and not isinstance(value, (str, dict)) and n_rows(value) == n
        )

    return {k: take_rows(v, rows) if per_row(v) else v for k, v in params.items()}


def on_all_rows(
    values: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], n: int
) -> npt.NDArray[np.float64]:
    """Return values (n, K) of all n rows: those given for `rows`, and NaN for the others."""
    if len(rows) == n:
        return values
    expanded = np.full((n, values.shape[1]), np.nan)
    expanded[rows] = values
    return expanded


def as_frames(
    labels: Any, expected_f: Any, like: Any, columns: Any, average: str
) -> tuple[Any, Any]:
    """Return decided labels and expectations as data frames or series of the library of `like`.

    Parameters
    ----------
    labels : ndarray of shape (n, m) or (n,)
        Decided labels; flat ones become a series.
    expected_f : ndarray or float
        Their expectations: of rows or labels, which become a series, or of a batch.
    like : object
        A data frame or series with the rows; with anything else nothing is converted.
    columns : sequence or None
        Names of the labels; of flat labels the name of the series alone, or the classes if there
        are expectations for each of them.
    average : {"samples", "macro", "weighted", "micro"}
        Whether the expectations are those of rows or of labels.

    Returns
    -------
    tuple
        Labels and expectations.
    """
    library = frame_library(like)
    if library is None:
        return labels, expected_f
    flat = np.ndim(labels) == 1
    name = "labels" if np.ndim(expected_f) or not flat else columns[0]
    if library == "pandas":
        import pandas as pd

        if flat:
            labels = pd.Series(labels, index=like.index, name=name)
        else:
            labels = pd.DataFrame(labels, index=like.index, columns=columns)
        if np.ndim(expected_f):
            index = labels.index if average == "samples" else columns if flat else labels.columns
            expected_f = pd.Series(expected_f, index=index, name="expected_f")
        return labels, expected_f
    import polars as pl

    labels = pl.Series(name, labels) if flat else _polars_frame(labels, columns)
    return labels, pl.Series("expected_f", expected_f) if np.ndim(expected_f) else expected_f


def frame_maker(X: Any, caller: str) -> Callable[[npt.NDArray[Any], list[Any]], Any]:
    """Return a function from values and column names to a data frame with the rows of X.

    It makes a polars data frame if X is one, otherwise a pandas data frame, with the index of X if
    there is one.
    """
    library = frame_library(X)
    if library == "polars":
        return _polars_frame
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            f"{caller} returns a pandas data frame, and pandas is not installed: "
            "pip install pandas, or call predict"
        ) from error
    index = X.index if library == "pandas" else None
    return lambda values, columns: pd.DataFrame(values, index=index, columns=columns)


def _polars_frame(values: npt.NDArray[Any], columns: Any) -> Any:
    """Return a polars data frame with the rows and columns of an array."""
    import polars as pl

    # Without `orient`, polars guesses from the memory layout which axis has the rows.
    schema = None if columns is None else [str(name) for name in columns]
    return pl.DataFrame(values, schema=schema, orient="row")
