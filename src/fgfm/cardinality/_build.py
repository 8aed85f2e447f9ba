"""P from joint distributions, samples, marginals and conditional probabilities."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import count_draws, largest_draw, tilt
from fgfm._utils.blocks import row_blocks
from fgfm._utils.names import check_same_index, check_same_names, column_names
from fgfm._utils.rows import frame_library
from fgfm._utils.validation import (
    check_cardinality_matrix,
    check_choice,
    check_labels,
    check_numbered_columns,
    check_same_rows,
    clip_probabilities,
    distribution_array,
    label_sets,
    real_array,
    unit_rows,
)
from fgfm.cardinality._coherence import logit
from fgfm.cardinality._merge import convolve

Floats = npt.NDArray[np.float64]
Real = npt.NDArray[Any]


def of_joint(labelsets: Any, proba: Any) -> Floats:
    r"""Compute P from the probabilities of whole label sets.

    For label sets :math:`y^1 .. y^L` with probabilities :math:`w_1 .. w_L`,

    .. math:: p_{is} = \sum_{l : |y^l| = s} w_l \, y^l_i.

    Parameters
    ----------
    labelsets : array-like or sparse matrix of shape (L, m)
        The possible label sets, 0 or 1. They need not be distinct.
    proba : array-like of shape (n, L)
        Their probabilities. Each row must sum to 1 up to rounding, and is normalised.

    Returns
    -------
    ndarray of shape (n, m, S)
        P, with S the size of the largest label set, and at least 1.

    Examples
    --------
    >>> P = of_joint([[0, 0], [1, 0], [1, 1]], [[0.2, 0.5, 0.3]])
    >>> P[0]
    array([[0.5, 0.3],
           [0. , 0.3]])
    """
    check_set_names(labelsets, proba)
    sets = label_sets(labelsets, "labelsets", ("label set", "label"))  # (L, m)
    if sets.shape[0] == 0:
        raise ValueError(f"labelsets has shape {sets.shape}: it must have at least one label set")
    return JointCardinalities(sets, proba).in_blocks()


def check_set_names(labelsets: Any, proba: Any) -> None:
    """Raise unless the columns of a frame of probabilities are the index of the label sets."""
    if frame_library(labelsets) == "pandas":
        rows = labelsets.index.to_numpy(dtype=object)
        check_same_names(column_names(proba), rows, "proba", "labelsets.index")


class LabelSetCardinalities:
    """P of label sets with probabilities, (n, m, S), computed for the rows that are indexed.

    ``masses(rows, P)`` are the probabilities that a row, of this P, has no label and some,
    (2, rows), and ``marginals(rows)`` its marginals, (rows, m).
    """

    shape: tuple[int, int, int]
    dtype = np.dtype(np.float64)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Floats:
        raise NotImplementedError

    def in_blocks(self) -> Floats:
        """Return P of all rows."""
        n, m, S = self.shape
        P = np.empty((n, m, S))
        for rows in row_blocks(n, 8 * m * S):
            P[rows] = self[rows]
        return P


class JointCardinalities(LabelSetCardinalities):
    """P of label sets that all rows share, booleans or CSR (L, m), and their probabilities."""

    def __init__(self, labelsets: Any, proba: Any) -> None:
        self._proba = real_array(proba, "proba", ("row", "label set"))  # (n, L)
        self._sets = sparse.csr_array(labelsets, dtype=np.float64)  # (L, m)
        columns, sets = self._proba.shape[1], self._sets.shape[0]
        if columns != sets:
            raise ValueError(
                f"proba has {columns} columns and labelsets has {sets} rows: "
                "there must be one probability for each label set"
            )
        size = np.diff(self._sets.indptr)  # (L,)
        self._is_empty = size == 0
        largest = int(size.max(initial=1))
        self.shape = len(self._proba), self._sets.shape[1], largest
        of_size = [(s, np.flatnonzero(size == s)) for s in np.unique(size[size > 0])]
        self._of_size = [(s, own, self._sets[own].T) for s, own in of_size]  # (m, number of sets)

    def _weights(self, rows: slice) -> Floats:
        return unit_rows(self._proba[rows], "proba", rows.start or 0)  # (rows, L)

    def __getitem__(self, rows: slice) -> Floats:
        w = self._weights(rows)
        P = np.zeros((len(w), *self.shape[1:]))
        for s, own, members in self._of_size:
            P[:, :, s - 1] = (members @ w[:, own].T).T
        return P

    def masses(self, rows: slice, P: Floats) -> Floats:
        w = self._weights(rows)
        masses = np.zeros((2, len(w)))
        for mass, sets in zip(masses, (self._is_empty, ~self._is_empty), strict=True):
            if sets.any():  # a sum would be in another order for a block of one row
                mass[:] = np.cumsum(w[:, sets], axis=1)[:, -1]
        return masses

    def marginals(self, rows: slice) -> Floats:
        return np.asarray(self._weights(rows) @ self._sets)


class SampleCardinalities(LabelSetCardinalities):
    """P of draws of the label sets of each row, (n, T, m)."""

    def __init__(self, samples: Any) -> None:
        self._samples = real_array(samples, "samples", ("row", "draw", "label"))
        n, T, m = self._samples.shape
        sizes = [largest_draw(self._draws(rows)) for rows in row_blocks(n, 8 * T * m)]
        self.shape = n, m, max(sizes, default=1)

    def _draws(self, rows: slice) -> npt.NDArray[np.uint8]:
        draws = self._samples[rows]
        if draws.dtype.itemsize == 1:
            draws = draws.view(np.uint8)
        if draws.dtype != np.uint8 or draws.max(initial=0) > 1:
            check_labels(self._samples[rows], "samples", rows.start or 0)
        return np.require(draws, np.uint8, ["C"])

    def __getitem__(self, rows: slice) -> Floats:
        draws = self._draws(rows)
        P = np.zeros((len(draws), *self.shape[1:]))
        count_draws(draws, P)
        return P

    def masses(self, rows: slice, P: Floats) -> Floats:
        T = self._samples.shape[1]
        present = P.sum(axis=1) @ (1.0 / np.arange(1, P.shape[2] + 1))  # up to rounding
        count = np.rint(T * present)
        return np.stack([(T - count) / T, count / T])

    def marginals(self, rows: slice) -> Floats:
        draws = self._samples[rows]
        return np.asarray(draws.sum(axis=1, dtype=np.float64) / draws.shape[1])


def of_samples(samples: Any) -> Floats:
    r"""Estimate P by relative frequencies in samples of the label set.

    For samples :math:`y^1 .. y^T` of the labels of a row,

    .. math:: p_{is} = \frac{1}{T} \sum_{t : |y^t| = s} y^t_i.

    Parameters
    ----------
    samples : array-like of shape (n, T, m)
        T samples of m labels for each row, 0 or 1.

    Returns
    -------
    ndarray of shape (n, m, S)
        P, with S the largest number of labels in any sample, and at least 1.

    Examples
    --------
    >>> P = of_samples([[[0, 0], [1, 0], [1, 0], [1, 1]]])
    >>> P[0]
    array([[0.5 , 0.25],
           [0.  , 0.25]])
    """
    return SampleCardinalities(samples).in_blocks()


def of_marginals(
    proba: Any, distribution: Any = None, *, method: Literal["tilt", "condition"] = "tilt"
) -> Floats:
    r"""Compute P from the marginal probability of each label, p_i = p(y_i = 1).

    Without a distribution of :math:`|y|` the labels are taken to be independent,

    .. math:: p_{is} = p_i \; p\Bigl(\sum_{j \ne i} y_j = s - 1\Bigr),

    and P is exact. With a distribution d, P is :math:`d_s \, q_i(s)`, and there are two methods to
    compute :math:`q_i(s) = p(y_i = 1 \mid |y| = s)`.

    "condition" conditions independent labels on their number,

    .. math:: q_i(s) = p_i \; p\Bigl(\sum_{j \ne i} y_j = s - 1\Bigr) \Big/ p\bigl(|y| = s\bigr).

    Among all distributions of y in which the number of labels has the distribution d, the one with
    this P is the closest to independent labels in relative entropy.

    "tilt" shifts all logits by the same number,

    .. math:: q_i(s) = \operatorname{sigmoid}(\operatorname{logit} p_i + c_s), \qquad
              \sum_i q_i(s) = s.

    It considers labels one at a time, which makes them less certain than they are if few are
    expected: of two labels with :math:`p_1 = 1/2, p_2 = 1/11`, given s = 1 the first is present
    with probability 10/11 by "condition", and 0.76 by "tilt".

    Labels with :math:`p_i = 0` have mass only where s exceeds the number of the others, and those
    with :math:`p_i = 1` lose mass only where s is smaller than their number.

    Parameters
    ----------
    proba : array-like of shape (n, m)
        The marginals.
    distribution : array-like of shape (n, S + 1), optional
        The probabilities of 0, 1, .. S labels, with S at most m. Each row must sum to 1 up to
        rounding, and is normalised.
    method : {"tilt", "condition"}, default="tilt"
        How to combine the marginals with the distribution; see above.

    Returns
    -------
    ndarray of shape (n, m, S)
        P; S = m without a distribution.

    Notes
    -----
    For independent labels, P is computed by divide and conquer: each half of the labels receives
    the distribution of the number of labels outside it, and passes it on convolved with that of
    its other half. This takes O(m^2 log m) per row. Removing one label at a time from the
    distribution of all labels would take O(m^2), but it subtracts and is unstable. "condition"
    takes O(m S^2) per row, "tilt" O(m S).

    Examples
    --------
    >>> of_marginals([[0.5, 0.2]])[0]
    array([[0.4, 0.1],
           [0.1, 0.1]])

    The same marginals, with at most one label at a time:

    >>> P = of_marginals([[0.5, 0.2]], distribution=[[0.4, 0.6]])
    >>> P[0].round(3)
    array([[0.4],
           [0.2]])
    >>> of_marginals([[0.5, 0.2]], distribution=[[0.4, 0.6]], method="condition")[0].round(3)
    array([[0.48],
           [0.12]])
    """
    check_choice(method, "method", ("tilt", "condition"))
    check_same_index(proba=proba, distribution=distribution)
    proba = real_array(proba, "proba", ("row", "label"))  # (n, m)
    n, m = proba.shape
    if distribution is None:
        P = np.empty((n, m, m))  # (n, m, m)
        for rows in row_blocks(n, 64 * m):
            p = clip_probabilities(proba[rows], "proba", rows.start).astype(np.float64)
            _fill_independent(np.ascontiguousarray(p.T), P[rows])
        return P
    check_numbered_columns(distribution, "distribution")
    d = real_array(distribution, "distribution", ("row", "cardinality"))  # (n, S + 1)
    if not 2 <= d.shape[1] <= m + 1:
        raise ValueError(
            f"distribution has shape {d.shape}: with {m} labels it must have 2 to {m + 1} "
            "columns, for 0, 1, .. labels"
        )
    check_same_rows([n, len(d)], ["proba", "distribution"])
    return _combined(proba, d, method)


def of_conditionals(proba: Any, distribution: Any) -> Floats:
    r"""Compute P from the probability of each label given the number of labels.

    For :math:`q_i(s) = p(y_i = 1 \mid |y| = s)` and :math:`d_s = p(|y| = s)`,

    .. math:: p_{is} = d_s \, q'_i(s), \qquad
              q'_i(s) = \operatorname{sigmoid}(\operatorname{logit} q_i(s) + c_s), \qquad
              \sum_i q'_i(s) = s.

    If the q(s) of separate models do not sum to s, they are tilted to do so, which is the smallest
    change in relative entropy.

    Parameters
    ----------
    proba : array-like of shape (n, m, S)
        ``proba[r, i, s - 1]`` is :math:`q_i(s)`. It has no effect where :math:`d_s = 0`.
    distribution : array-like of shape (n, S + 1)
        The probabilities of 0, 1, .. S labels. Each row must sum to 1 up to rounding, and is
        normalised.

    Returns
    -------
    ndarray of shape (n, m, S)
        P, coherent, with this distribution of the number of labels.

    See Also
    --------
    make_coherent : The same, given P = d q instead of q.

    Examples
    --------
    >>> q = [[[0.6, 0.9], [0.3, 0.9], [0.3, 0.4]]]  # the columns sum to 1.2 and 2.2
    >>> of_conditionals(q, [[0.2, 0.5, 0.3]])[0].round(3)
    array([[0.261, 0.255],
           [0.119, 0.255],
           [0.119, 0.089]])
    """
    proba = check_cardinality_matrix(proba, "proba")  # (n, m, S)
    return _combined(proba, distribution_array(distribution, "distribution", *proba.shape[::2]))


def _combined(proba: Real, d: Real, method: str = "tilt") -> Floats:
    """Return P of d (n, S + 1) and probabilities (n, m), or by tilting of (n, m, S)."""
    n, m, S = len(proba), proba.shape[1], d.shape[1] - 1
    P = np.empty((n, m, S))
    for rows in row_blocks(n, 8 * m * S):
        p = clip_probabilities(proba[rows], "proba", rows.start).astype(np.float64)
        logits = logit(p).reshape(*p.shape[:2], -1)  # (rows, m, S or 1)
        weights = np.ascontiguousarray(unit_rows(d[rows], "distribution", rows.start))
        tilt(logits, weights, P[rows], method == "condition")
    return P


def _fill_independent(p: Floats, P: Floats) -> None:
    """Fill P (rows, m, m) for independent labels with marginals p (m, rows).

    Rows are the last axis of all intermediate arrays, so that slices are contiguous.
    """
    m, rows = p.shape

    def half(low: int, high: int) -> int:
        return (low + high) // 2

    # A binary tree over the labels: inside[low, high] is the distribution of the number of labels
    # among low .. high - 1.
    inside: dict[tuple[int, int], Floats] = {}  # (high - low + 1, rows) each

    def collect(low: int, high: int) -> Floats:
        if high - low == 1:
            counts = np.stack([1.0 - p[low], p[low]])
        else:
            middle = half(low, high)
            counts = convolve(collect(low, middle), collect(middle, high))
        inside[low, high] = counts
        return counts

    # From the root to the leaves: `outside` is the distribution of the number of all other labels.
    def pass_down(low: int, high: int, outside: Floats) -> None:
        if high - low == 1:
            P[:, low, :] = (p[low] * outside).T  # p_is = p_i p(s - 1 of the others)
            return
        middle = half(low, high)
        pass_down(low, middle, convolve(outside, inside[middle, high]))
        pass_down(middle, high, convolve(outside, inside[low, middle]))

    collect(0, m)
    pass_down(0, m, np.ones((1, rows)))
