"""Multi-class decisions: one class for each row, of largest expected macro or micro F."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.blocks import float_block
from fgfm._utils.rows import frame_library
from fgfm._utils.validation import (
    check_choice,
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
from fgfm.decision._factors import Layout, OneRowOfFactors
from fgfm.decision._objective import Decision, Objective

__all__ = ["counted_classes", "from_classes", "read_classes"]

Real = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]


def from_classes(
    proba: Any,
    *,
    average: str = "macro",
    labels: Any = None,
    beta: float = 1.0,
    zero_division: float = 1.0,
    logits: bool = False,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide one class for each row: multi-class classification with the F-measure.

    Rows are independent of each other, and each has exactly one class. By default this maximises
    the mean over the classes of :math:`E[F_\beta]`, where F of a class compares the rows that have
    it with the rows that are decided for it. Rows compete: the most probable class of each row,
    which maximises accuracy, leaves rare classes with few rows or none.

    With ``average="micro"`` some classes count, and the others are a background: relations and
    "no relation", intents and "none". F compares the rows of classes that count with the rows
    that are decided for one; a hit is the same class.

    Parameters
    ----------
    proba : array-like or data frame of shape (n, C)
        The probability of each class, as from ``predict_proba``. Each row sums to 1.
    average : {"macro", "weighted", "micro"}, default="macro"
        The F-measure to maximise: the mean over classes, this mean weighted by the expected
        number of rows of each class, or that of the rows of all classes in `labels` together.
    labels : sequence, optional
        With "micro", and only there: the classes that count, by their column, or the name of it if
        `proba` is a data frame; not all of them.
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
        bounds how much larger the (weighted) mean of ``expected_f`` could be: mostly less than
        1e-3 for 1000 rows and more. With "micro", ``expected_f`` is one number, and ``gap`` is 0.

    See Also
    --------
    from_marginals : Any number of labels for each row.

    Notes
    -----
    "macro" and "weighted": row after row is read its best class until none can be improved, then
    the result is evaluated exactly and bounded by weak duality. "micro" is exact: if k rows are
    decided for their most probable class that counts, of probability :math:`p_i`, then

    .. math:: E[F_\beta] = (1 + \beta^2) \sum_i p_i \, E\bigl[1 / (\beta^2 (1 + S_{-i}) + k)\bigr],

    where :math:`S_{-i}` is the number of other rows with a class that counts. The other rows get
    their most probable class of the background. All rows of a batch are decided together.

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

    Relations 1 and 2, and no relation, which is the most probable class of the last row:

    >>> proba = [[0.1, 0.8, 0.1], [0.3, 0.1, 0.6], [0.55, 0.45, 0.0]]
    >>> decision = fgfm.decision.from_classes(proba, average="micro", labels=[1, 2])
    >>> decision.labels, round(decision.expected_f, 4)
    (array([1, 2, 1]), 0.7059)
    """
    objective = Objective.checked(beta, zero_division, False, n_jobs)
    check_choice(average, "average", ("macro", "weighted", "micro"))
    logits = check_flag(logits, "logits")
    if any_dask(proba) or hasattr(proba, "to_dask_array"):
        raise TypeError(
            f"proba is a {describe(proba)}: from_classes decides all rows together, so it must be "
            "in memory; use proba.compute()"
        )
    place = place_of({"proba": proba}) if is_foreign(proba) else None
    values = read_classes(to_host(proba) if place else proba, "proba", logits)
    n, m = values.shape
    names = list(proba.columns) if frame_library(proba) else range(m)
    counted = counted_classes(labels, average, names, "proba")
    classes: Real
    expected_f: Any
    if n == 0:
        empty = objective.zero_division
        classes, gap = np.zeros(0, np.int64), 0.0
        expected_f = np.full(m, empty) if counted is None else empty
    elif counted is None:
        classes, expected_f, gap = maximise_classes(values, objective, average == "weighted")
    else:
        classes, expected_f, gap = _maximise_micro(values, counted, objective)
    if place:
        return place.give_back(Decision(classes, expected_f, gap))
    return Decision(*_as_series(classes, expected_f, proba), gap)


def counted_classes(labels: Any, average: str, classes: Any, owner: str) -> Integers | None:
    """Return the positions of the classes that count for "micro"; None for other averages.

    `classes` are all classes, in the order of columns, and `owner` is the argument that has them.
    """
    if average != "micro":
        if labels is not None:
            raise ValueError(
                f"labels is given and average is {average!r}: the classes that count are those of "
                "average='micro'"
            )
        return None
    if labels is None:
        raise ValueError(
            "average is 'micro' and labels is None: it must list the classes that count; with all "
            "classes the micro F-measure is the accuracy"
        )
    if isinstance(labels, str) or np.ndim(labels) != 1 or not len(labels):
        raise ValueError(f"labels is {labels!r}: it must be a list of the classes that count")
    number = {name: column for column, name in enumerate(classes)}
    positions = []
    for i, label in enumerate(labels):
        column = number.get(label)
        if column is None or column in positions:
            known = ", ".join(map(repr, list(classes)[:5])) + ", ..." * (len(classes) > 5)
            problem = "it is no class of" if column is None else "it is there already; classes of"
            raise ValueError(f"labels[{i}] is {label!r}: {problem} {owner}: {known}")
        positions.append(column)
    if len(positions) == len(classes):
        raise ValueError(
            f"labels lists all {len(classes)} classes of {owner}: one or more must be left out, "
            "for the rows that are decided for no class that counts"
        )
    return np.sort(positions)


def _maximise_micro(
    proba: Real, counted: Integers, objective: Objective
) -> tuple[Integers, float, float]:
    """Decide one class for each row by the micro F of some classes.

    A row is a factor: its label is the most probable class that counts, and its cardinality is
    whether it has any of them. Returns the classes (n,), the expected F, and the gap 0.
    """
    n, m = proba.shape
    others = np.setdiff1d(np.arange(m), counted)
    inside, outside = proba[:, counted], proba[:, others]
    best = inside.argmax(axis=1)
    d = np.stack([part.sum(axis=1, dtype=np.float64) for part in (outside, inside)], axis=1)
    total = d.sum(axis=1, keepdims=True)  # 1 but for rounding
    p = inside[np.arange(n), best] / total[:, 0]
    ones = np.ones(n, dtype=np.int64)
    layout = Layout(ones, ones, np.arange(n), n)
    problem = OneRowOfFactors(p, (d / total).reshape(1, -1), layout, n, 1e-9)
    chosen, expected_f = problem.decide_rows(objective)
    classes = np.where(chosen[0] > 0, counted[best], others[outside.argmax(axis=1)])
    return classes, float(expected_f[0]), 0.0


def read_classes(proba: Any, name: str, logits: bool) -> Real:
    """Return class probabilities whose rows sum to 1, from an argument of some name."""
    read = real_array(proba, name, ("row", "class"))
    if logits:
        return _softmax(read, name)
    values = float_block(read)
    if not (values.min(initial=0.0) >= 0.0 and values.max(initial=0.0) <= 1.0):  # or NaN
        check_marginals(read, name, (0, 0))
        values = np.clip(values, 0.0, 1.0)  # of rounding errors
    total = values @ np.ones(values.shape[1], dtype=values.dtype)
    wrong = ~(np.abs(total - 1.0) <= max(tolerance(read), 1e-6))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{place(name, (row,))} sums to {total[row]:g}: the probabilities of the classes "
            "of a row must sum to 1"
        )
    return values


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


def _as_series(labels: Real, expected_f: Any, like: Any) -> tuple[Any, Any]:
    """Return classes and expectations as series of the library of a data frame, by name."""
    library, several = frame_library(like), np.ndim(expected_f) > 0
    if library == "pandas":
        import pandas as pd

        names = like.columns.take(labels).to_numpy()
        if several:
            expected_f = pd.Series(expected_f, index=like.columns, name="expected_f")
        return pd.Series(names, index=like.index, name=like.columns.name), expected_f
    if library == "polars":
        import polars as pl

        names = np.array(like.columns, dtype=object)[labels]
        if several:
            expected_f = pl.Series("expected_f", expected_f)
        return pl.Series("class", names.tolist(), dtype=pl.String), expected_f
    return labels, expected_f
