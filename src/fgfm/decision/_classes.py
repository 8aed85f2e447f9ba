"""Multi-class decisions: one class for each row, of largest expected macro F."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.blocks import float_block
from fgfm._utils.rows import frame_library
from fgfm._utils.validation import (
    check_flag,
    check_logits,
    check_marginals,
    place,
    real_array,
    tolerance,
)
from fgfm.decision._arrays import describe, is_foreign, place_of, to_host
from fgfm.decision._budgets import maximise_classes
from fgfm.decision._dask import any_dask
from fgfm.decision._objective import Decision, Objective

__all__ = ["from_classes", "read_classes"]

Real = npt.NDArray[Any]


def from_classes(
    proba: Any,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    logits: bool = False,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide one class for each row: multi-class classification with the macro F-measure.

    Maximises the mean over the classes of :math:`E[F_\beta]`, where F of a class compares the rows
    that have it with the rows that are decided for it. Rows are independent of each other, and
    each has exactly one class. Rows compete: the most probable class of each row, which maximises
    accuracy, leaves rare classes with few rows or none.

    Parameters
    ----------
    proba : array-like or data frame of shape (n, C)
        The probability of each class, as from ``predict_proba``. Each row sums to 1.
    beta : float, default=1.0
        Recall is considered `beta` times as important as precision.
    zero_division : float, default=1.0
        The value of 0/0, for a class that no row has and none is decided for, from 0 to 1.
    logits : bool, default=False
        Whether `proba` holds logits, of which the probabilities are the softmax.
    n_jobs : int, default=None
        The number of threads, as in joblib. It does not change the result.

    Returns
    -------
    Decision
        ``labels`` of shape (n,): the column of the class of each row, as 64-bit integers; for a
        data frame a series of column names with the same index. ``expected_f`` of shape (C,) is
        the expected F-measure of each class, for a data frame a series by column name. ``gap``
        bounds how much larger the mean of ``expected_f`` could be: mostly less than 1e-3 for 1000
        rows and more.

    See Also
    --------
    from_marginals : Any number of labels for each row.

    Notes
    -----
    Row after row is given its best class until none can be improved, then the result is evaluated
    exactly and bounded by weak duality. All rows of a batch are decided together.

    Examples
    --------
    The second class is never the most probable one:

    >>> import fgfm
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.7, 0.3], [0.55, 0.45]]
    >>> decision = fgfm.decision.from_classes(proba)
    >>> decision.labels
    array([0, 0, 1, 0, 1])
    >>> decision.expected_f.round(4), round(decision.gap, 4)
    (array([0.7259, 0.4409]), 0.0013)
    """
    objective = Objective.checked(beta, zero_division, False, n_jobs)
    logits = check_flag(logits, "logits")
    if any_dask(proba) or hasattr(proba, "to_dask_array"):
        raise TypeError(
            f"proba is a {describe(proba)}: from_classes decides all rows together, so it must be "
            "in memory; use proba.compute()"
        )
    place = place_of({"proba": proba}) if is_foreign(proba) else None
    given = real_array(to_host(proba) if place else proba, "proba", ("row", "class"))
    values = _softmax(given, "proba") if logits else float_block(given)
    n, m = values.shape
    found = maximise_classes(values, _sum_tolerance(given), objective) if values.size else None
    if found is None:  # no rows, or a value or a sum is wrong: an error, or a rounding error
        _check_classes(values, given, "proba")
        if n == 0:
            found = np.zeros(0, np.int64), np.full(m, objective.zero_division), 0.0
        else:
            found = maximise_classes(np.clip(values, 0.0, 1.0), np.inf, objective)
    assert found is not None
    labels, expected_f, gap = found
    if place:
        return Decision(place.array(labels), place.array(expected_f, place.dtype), gap)
    return Decision(*_as_series(labels, expected_f, proba), gap)


def read_classes(proba: Any, name: str, logits: bool) -> Real:
    """Return class probabilities whose rows sum to 1, from an argument of some name."""
    given = real_array(proba, name, ("row", "class"))
    if logits:
        return _softmax(given, name)
    values = float_block(given)
    _check_classes(values, given, name)
    return np.asarray(np.clip(values, 0.0, 1.0))


def _sum_tolerance(given: Real) -> float:
    """Return how far the sum of a row may be from 1."""
    return max(tolerance(given), 1e-6)


def _check_classes(values: Real, given: Real, name: str) -> None:
    """Raise unless values are probabilities, and those of each row sum to 1, up to rounding."""
    check_marginals(given, name, (0, 0))
    total = values @ np.ones(values.shape[1], dtype=values.dtype)
    wrong = ~(np.abs(total - 1.0) <= _sum_tolerance(given))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{place(name, (row,))} sums to {total[row]:g}: the probabilities of the classes "
            "of a row must sum to 1"
        )


def _softmax(logits: Real, name: str) -> Real:
    """Return probabilities of classes; infinite logits are certain or impossible classes."""
    check_logits(logits, name, (0, 0))
    values = logits.astype(np.float64)
    top = values.max(axis=1, keepdims=True, initial=-np.inf)
    certain = np.isposinf(top)
    with np.errstate(invalid="ignore"):
        values = np.where(certain, np.where(np.isposinf(values), 0.0, -np.inf), values - top)
    wrong = np.isneginf(top[:, 0])
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{place(name, (row,))} has only logits of -inf: one class must be possible"
        )
    np.exp(values, out=values)
    values /= values.sum(axis=1, keepdims=True)
    return values


def _as_series(labels: Real, expected_f: Real, like: Any) -> tuple[Any, Any]:
    """Return classes and expectations as series of the library of a data frame, by name."""
    library = frame_library(like)
    if library == "pandas":
        import pandas as pd

        classes = like.columns.take(labels)
        return (
            pd.Series(classes.to_numpy(), index=like.index, name=like.columns.name),
            pd.Series(expected_f, index=like.columns, name="expected_f"),
        )
    if library == "polars":
        import polars as pl

        names = np.array(like.columns, dtype=object)
        return pl.Series("class", names[labels].tolist(), dtype=pl.String), pl.Series(
            "expected_f", expected_f
        )
    return labels, expected_f
