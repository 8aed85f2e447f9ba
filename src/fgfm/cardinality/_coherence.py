"""The distribution that P implies, and P that no joint distribution has."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._kernels import tilt
from fgfm._utils.blocks import row_blocks
from fgfm._utils.validation import (
    check_cardinality_matrix,
    clip_probabilities,
    distribution_array,
    first_index,
    raise_excess_mass,
    raise_first,
    tolerance,
    unit_rows,
)

Floats = npt.NDArray[np.float64]
Real = npt.NDArray[Any]

_ROUNDING = 1e-13  # inclusion probabilities whose sum is s up to this relative error are kept


def distribution(P: Any) -> Floats:
    r"""Recover the distribution of the number of labels from P.

    .. math:: d_s = \frac{1}{s} \sum_i p_{is}, \qquad d_0 = 1 - \sum_{s > 0} d_s.

    Parameters
    ----------
    P : array-like of shape (n, m, S)
        P[r, i, s - 1] = p(y_i = 1, |y| = s).

    Returns
    -------
    ndarray of shape (n, S + 1)
        The probabilities of 0, 1, .. S labels. If d_0 is negative by a rounding error, it is 0.

    Examples
    --------
    >>> distribution([[[0.5, 0.3], [0.0, 0.3]]])
    array([[0.2, 0.5, 0.3]])
    >>> distribution([[[0.5, 0.4], [0.3, 0.4]]])
    Traceback (most recent call last):
        ...
    ValueError: P[0] implies d_0 = -0.2: the probabilities of 1 to 2 labels, d_s = sum_i p_is / s,
    must not sum to more than 1
    """
    P = check_cardinality_matrix(P)  # (n, m, S)
    n, m, S = P.shape
    d = np.empty((n, S + 1))  # (n, S + 1)
    for rows in row_blocks(n, 8 * m * S):
        p = clip_probabilities(P[rows], "P", rows.start).astype(np.float64)
        d[rows] = recover_distribution(p, P[rows], "P", rows.start)
    return d


def is_coherent(P: Any, distribution: Any = None, *, tol: float = 1e-9) -> npt.NDArray[np.bool_]:
    r"""Return which rows of P are the P of some distribution of label sets.

    A joint distribution with the given P exists if and only if

    .. math:: 0 \le p_{is} \le d_s = \frac{1}{s} \sum_j p_{js}, \qquad \sum_{s > 0} d_s \le 1.

    For each s with :math:`d_s > 0` the :math:`q_i(s) = p_{is} / d_s` then lie in [0, 1] and sum to
    s, and any such numbers are the inclusion probabilities of some random set of s labels.

    Parameters
    ----------
    P : array-like of shape (n, m, S)
        P[r, i, s - 1] = p(y_i = 1, |y| = s). Any numbers are accepted.
    distribution : array-like of shape (n, S + 1), optional
        A distribution with which P must agree.
    tol : float, default=1e-9
        Absolute tolerance of each condition. Numbers in float32 need about 1e-5.

    Returns
    -------
    ndarray of shape (n,)
        Whether each row is coherent.

    Examples
    --------
    If exactly two of two labels are present, they have the same probability:

    >>> is_coherent([[[0.5, 0.3], [0.0, 0.3]], [[0.5, 0.3], [0.0, 0.2]]])
    array([ True, False])
    """
    P = check_cardinality_matrix(P)  # (n, m, S)
    n, m, S = P.shape
    if distribution is not None:
        distribution = distribution_array(distribution, "distribution", n, S)  # (n, S + 1)
    coherent = np.empty(n, dtype=np.bool_)  # (n,)
    for rows in row_blocks(n, 8 * m * S):
        p = P[rows].astype(np.float64)  # (rows, m, S)
        with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinities: not coherent
            d = _implied_distribution(p)  # (rows, S + 1)
            good = ((p >= -tol) & (p <= d[:, None, 1:] + tol)).all(axis=(1, 2)) & (d[:, 0] >= -tol)
            if distribution is not None:
                good &= (np.abs(d - distribution[rows]) <= tol).all(axis=1)
        coherent[rows] = good
    return coherent


def make_coherent(P: Any, distribution: Any = None) -> Floats:
    r"""Compute the coherent P that is closest to a given one.

    Separately fitted models of :math:`d_s` and :math:`q_i(s) = p(y_i = 1 \mid |y| = s)` result in
    :math:`p_{is} = d_s q_i(s)` whose q(s) need not sum to s. For each row and s, replace q by the
    q' that

    .. math::

        \text{minimises} \; \sum_i q'_i \log\frac{q'_i}{q_i}
        + (1 - q'_i) \log\frac{1 - q'_i}{1 - q_i}
        \quad \text{subject to} \; \sum_i q'_i = s,

    that is :math:`q'_i = \operatorname{sigmoid}(\operatorname{logit} q_i + c_s)`, and P by
    :math:`d_s q'_i(s)`. Labels with q = 0 have mass only if there are fewer than s others.

    Parameters
    ----------
    P : array-like of shape (n, m, S)
        P[r, i, s - 1], estimates of p(y_i = 1, |y| = s).
    distribution : array-like of shape (n, S + 1), optional
        The distribution d with which P must agree; q is P divided by d, clipped to [0, 1]. By
        default d and q are both computed from P; if the d_s with s > 0 sum to more than 1, they
        are scaled to sum to 1.

    Returns
    -------
    ndarray of shape (n, m, S)
        The coherent P. Where d_s > 0 and all p_is are 0, every label has d_s s / m. A row that is
        already coherent is unchanged.

    Examples
    --------
    >>> P = make_coherent([[[0.5, 0.3], [0.0, 0.2]]])
    >>> P[0]
    array([[0.5 , 0.25],
           [0.  , 0.25]])
    >>> make_coherent([[[0.3, 0.3], [0.3, 0.2]]], distribution=[[0.1, 0.5, 0.4]])[0]
    array([[0.25, 0.4 ],
           [0.25, 0.4 ]])
    """
    P = check_cardinality_matrix(P)  # (n, m, S)
    n, m, S = P.shape
    target = None
    if distribution is not None:
        target = distribution_array(distribution, "distribution", n, S)  # (n, S + 1)
    coherent = np.empty((n, m, S))  # (n, m, S)
    for rows in row_blocks(n, 8 * m * S):
        if target is None:
            _check_not_negative(P[rows], "P", rows.start)
            p = np.maximum(P[rows], 0.0).astype(np.float64)  # (rows, m, S)
            model_d = _implied_distribution(p)  # (rows, S + 1)
            d = model_d / np.maximum(1.0, model_d[:, 1:].sum(axis=1, keepdims=True))
        else:
            p = clip_probabilities(P[rows], "P", rows.start).astype(np.float64)
            d = model_d = unit_rows(target[rows], "distribution", rows.start)  # (rows, S + 1)
        _fill_coherent(p, model_d, d, coherent[rows])
    return coherent


def _fill_coherent(p: Floats, model_d: Floats, d: Floats, out: Floats) -> None:
    """Fill `out` with d_s q'_i(s), where q is p / model_d and q' is q tilted to sum s."""
    s = np.arange(1, p.shape[2] + 1)
    with np.errstate(over="ignore"):
        q = np.divide(
            p, model_d[:, None, 1:], out=np.zeros_like(p), where=model_d[:, None, 1:] > 0.0
        )
    np.minimum(q, 1.0, out=q)  # (rows, m, S)
    sums_to_s = np.abs(q.sum(axis=1) - s) <= _ROUNDING * s  # (rows, S)
    np.multiply(q, d[:, None, 1:], out=out)
    to_tilt = ~sums_to_s & (d[:, 1:] > 0.0)  # (rows, S)
    if not to_tilt.any():
        return
    tilted = np.empty_like(out)  # (rows, m, S)
    tilted_d = np.zeros(d.shape)  # (rows, S + 1), 0 where nothing has to be solved
    np.copyto(tilted_d[:, 1:], d[:, 1:], where=to_tilt)
    tilt(logit(q), tilted_d, tilted)  # if all labels are impossible, they share evenly
    np.copyto(out, tilted, where=to_tilt[:, None, :])


def recover_distribution(p: Floats, block: Real, name: str, first_row: int) -> Floats:
    """Return d of `p`, the validated `block` (rows, m, S) in float64; its mass must be at most 1.

    `name` and `first_row` of the block are for the error message.
    """
    d = _implied_distribution(p)  # (rows, S + 1)
    wrong = d[:, 0] < -tolerance(block)
    if wrong.any():
        raise_excess_mass(block, first_index(wrong)[0], name, first_row)
    np.maximum(d[:, 0], 0.0, out=d[:, 0])
    return d


def _implied_distribution(p: Floats) -> Floats:
    """Return d of P (rows, m, S), without validation: d_s = (1/s) sum_i p_is."""
    d = np.empty((p.shape[0], p.shape[2] + 1))  # (rows, S + 1)
    d[:, 1:] = p.sum(axis=1) / np.arange(1, p.shape[2] + 1)
    d[:, 0] = 1.0 - d[:, 1:].sum(axis=1)
    return d


def logit(p: Floats) -> Floats:
    """Return log(p / (1 - p)) as a C-contiguous array, infinite at 0 and 1: the kernels' input."""
    with np.errstate(divide="ignore"):
        return np.ascontiguousarray(np.log(p) - np.log1p(-p))


def _check_not_negative(block: Real, name: str, first_row: int) -> None:
    """Raise unless every element is finite and not negative, up to rounding."""
    wrong = ~((block >= -tolerance(block)) & np.isfinite(block))
    raise_first(block, wrong, name, first_row, "it must be finite and not negative")
