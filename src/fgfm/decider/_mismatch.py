r"""Warn where validation rows show that probabilities and labels do not belong together.

The columns may be those of other labels, or of the absence of labels. With :math:`x_r` the logits
of one column and y one label, a logistic regression with slope a gains about

.. math:: a S - \tfrac{1}{2} a^2 I, \qquad S = \sum_r (x_r - \bar x)(y_r - \bar y), \qquad
          I = \bar y (1 - \bar y) \sum_r (x_r - \bar x)^2

in log-likelihood over a constant. Probabilities that are worth something gain much with a = 1/2,
reversed ones with a = -1/2; leave-one-out values of a model that knows nothing gain less than 1
nat with either.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from fgfm._utils.label_table import LabelTable
from fgfm.decider._entries import Entries
from fgfm.decider._inputs import Probabilities

__all__ = ["warn_about_mismatch"]

Floats = npt.NDArray[np.float64]

_EDGE = 1e-3
_SUM = 1e-5  # by which a sum may differ from 1
_EVIDENCE = 10.0  # nats
_ROWS = 2000  # for the comparison of all pairs of columns, at most
_LABELS = 2000
_SLOPES = (0.5, 0.25, 0.125)  # for pairs of columns, whose probabilities may be too sure
_LEAST_MASS = 1e-300
_LOOK = (
    "do the columns of X have the order of those of y, and the probabilities that labels are "
    "present?"
)


def warn_about_mismatch(
    rows: Probabilities, Y: Floats, weight: Floats, table: LabelTable, names: list[Any]
) -> None:
    """Warn if labels are more frequent where their probabilities are small, or fit others better.

    Parameters
    ----------
    rows : Probabilities
        Probabilities or scores of n rows.
    Y : ndarray of shape (n, K)
        The true labels at the entries, 0 or 1.
    weight : ndarray of shape (n,)
        Sample weights.
    table : LabelTable
        All true labels.
    names : list
        Names of the labels.
    """
    entries = rows.comparable()
    if table.form == "lists":
        entries = entries.as_one_label()
    elif table.form not in ("flat", "classes") and not rows.scores:
        _warn_about_classes(entries, Y)
    if table.observed is not None:
        weight = weight[:, None] * table.observed
    x = _logit(entries.p)
    w = np.broadcast_to(weight if weight.ndim == 2 else weight[:, None], x.shape)
    if entries.labels is not None:
        w = np.where(entries.labels < entries.m, w, 0.0)
    mass = np.maximum(entries.by_label(w), _LEAST_MASS)
    x = x - entries.of_label(entries.by_label(w * x) / mass)
    frequency = entries.by_label(w * Y) / mass
    y = Y - entries.of_label(frequency)
    score = entries.by_label(w * x * y)
    information = frequency * (1.0 - frequency) * entries.by_label(w * x * x)
    forward, reversed_ = 0.5 * score - information / 8.0, -0.5 * score - information / 8.0
    opposite = np.flatnonzero(reversed_ > _EVIDENCE + np.log(entries.m))
    if reversed_.sum() > max(_EVIDENCE + entries.m, forward.sum()):
        _warn("labels are more frequent where X says that they are improbable")
    elif len(opposite):
        shown = ", ".join(repr(names[j]) for j in opposite[:5])
        _warn(
            f"{len(opposite)} of {entries.m} labels are more frequent where X says that they are "
            f"improbable: {shown}{', ...' if len(opposite) > 5 else ''}"
        )
    elif 1 < entries.m <= _LABELS:
        _compare_columns(entries, table, weight, names)


def _warn_about_classes(entries: Entries, Y: Floats) -> None:
    """Warn if the probabilities of all rows sum to 1, and rows have several labels."""
    p = entries.p
    if entries.labels is not None or p.shape[1] < 2 or not (Y.sum(axis=1) > 1).any():
        return
    if (p == p[0]).all():  # which may sum to 1 by chance
        return
    if (np.abs(p[:4].sum(axis=1) - 1.0) <= _SUM).all() and (
        np.abs(p.sum(axis=1) - 1.0) <= _SUM
    ).all():
        warnings.warn(
            "all rows of X sum to 1, like the probabilities of classes that exclude each other, "
            "and rows of y have several labels: X must have a probability for each label",
            UserWarning,
            stacklevel=4,
        )


def _compare_columns(entries: Entries, table: LabelTable, weight: Floats, names: Any) -> None:
    """Warn if columns explain the labels of other columns, and not their own."""
    rows = slice(None, None, -(-len(entries.p) // _ROWS))
    p, Y = entries.take(rows).to_matrix(sparse.csr_array), table.labels[rows]
    p, Y = (part.toarray() if sparse.issparse(part) else part for part in (p, Y))
    w = np.broadcast_to(weight[rows].reshape(len(p), -1), p.shape)
    mass = np.maximum(w.sum(axis=0), _LEAST_MASS)
    frequency = (w * Y).sum(axis=0) / mass
    x = _logit(p)
    x = x - (w * x).sum(axis=0) / mass
    score = (w * (Y - frequency)).T @ x  # (y, x)
    information = (frequency * (1.0 - frequency))[:, None] * (w.T @ (x * x))
    gain = np.max([a * score - 0.5 * a * a * information for a in _SLOPES], axis=0)
    own = np.diag(gain)
    if (own == gain.max(axis=1)).all():
        return
    label, column = linear_sum_assignment(-gain)
    moved = np.flatnonzero(label != column)
    gained, lost = gain[label[moved], column[moved]].sum(), own[moved].sum()
    # The expectation of exp(gain) is 1 where a column says nothing: log(m!) is a bound by chance.
    chance = 2.0 * len(moved) * np.log(len(own))
    if gained - max(lost, 0.0) > _EVIDENCE + chance and lost < 0.5 * gained:
        j = moved[np.argmax(gain[label[moved], column[moved]] - own[moved])]
        _warn(
            f"columns of X explain the labels of other columns better than their own: column "
            f"{column[j]} those of {names[label[j]]!r}, column {label[j]} of y"
        )


def _logit(p: Floats) -> Floats:
    p = np.clip(p, _EDGE, 1.0 - _EDGE)
    return np.asarray(np.log(p) - np.log1p(-p))


def _warn(text: str) -> None:
    warnings.warn(f"{text}: {_LOOK}", UserWarning, stacklevel=5)
