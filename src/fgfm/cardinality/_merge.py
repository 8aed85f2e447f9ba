"""P and d of all labels from those of independent label factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.blocks import row_blocks
from fgfm._utils.names import check_same_index
from fgfm._utils.validation import (
    check_distribution_count,
    check_distributions,
    check_partition,
    check_parts,
    check_same_rows,
    clip_probabilities,
    part_list,
    real_array,
    unit_rows,
)
from fgfm.cardinality._coherence import recover_distribution

Floats = npt.NDArray[np.float64]


class MergedFactors(NamedTuple):
    """P and d of all labels, the result of `merge_factors`."""

    P: Floats  # (n, m, S)
    d: Floats  # (n, S + 1)


def merge_factors(
    Ps: Sequence[Any], factors: Any, distributions: Sequence[Any] | None = None
) -> MergedFactors:
    r"""Merge the P of independent label factors into the P of all labels.

    Steps 1 to 4 of Algorithm 1 of Gasse and Aussem (2016). For a factor k with :math:`p^k, d^k`,
    and the factors before it with :math:`p', d'`, labels i in either,

    .. math::

        p_{i, s_1 + s_2} \mathrel{+}= p'_{i s_1} d^k_{s_2}, \qquad
        p_{i, s_1 + s_2} \mathrel{+}= p^k_{i s_1} d'_{s_2}, \qquad
        d_{s_1 + s_2} \mathrel{+}= d'_{s_1} d^k_{s_2}.

    Parameters
    ----------
    Ps : sequence of array-likes of shape (n, m_f, S_f)
        The P of each factor.
    factors : sequence of sequences of int
        The labels of each factor, a partition of 0 .. m - 1.
    distributions : sequence of array-likes of shape (n, S_f + 1), optional
        The distribution of the number of labels in each factor. By default it is computed from the
        P of the factor; otherwise it is used as given_d, even if P does not agree with it.

    Returns
    -------
    MergedFactors
        P (n, m, S) and d (n, S + 1), with S the sum of all S_f, and labels in the order of their
        indices.

    Notes
    -----
    This takes O(m^3) per row if the factors are small. Use it if the P of all labels is needed;
    ``fgfm.decision.from_factors`` makes the same decisions faster, without it.

    References
    ----------
    Gasse, M. and Aussem, A. (2016). F-measure Maximization in Multi-Label Classification with
    Conditionally Independent Label Subsets. ECML PKDD 2016. doi:10.1007/978-3-319-46128-1_39

    Examples
    --------
    Label 1 alone, and labels 0 and 2 of which exactly one is present:

    >>> P, d = merge_factors([[[[0.5]]], [[[0.75], [0.25]]]], [[1], [0, 2]])
    >>> P[0]
    array([[0.375, 0.375],
           [0.   , 0.5  ],
           [0.125, 0.125]])
    >>> d
    array([[0. , 0.5, 0.5]])
    """
    parts = check_parts(part_list(Ps))
    n, names = len(parts[0]), [f"Ps[{f}]" for f in range(len(parts))]
    sizes = [P.shape[1] for P in parts]
    labels = np.concatenate(check_partition(factors, sum(sizes), sizes=sizes))  # (m,)
    given_d = None
    if distributions is not None:
        check_distribution_count(distributions, len(parts))
        given_d = check_distributions(distributions, parts)

    m, S = len(labels), sum(P.shape[2] for P in parts)
    merged = MergedFactors(np.empty((n, m, S)), np.empty((n, S + 1)))
    for rows in row_blocks(n, 8 * m * S):
        # Step 1: no labels, whose number is 0.
        P, d = np.empty((rows.stop - rows.start, 0, 0)), np.ones((rows.stop - rows.start, 1))
        for f, part in enumerate(parts):
            P_f = clip_probabilities(part[rows], names[f], rows.start).astype(np.float64)
            if given_d is None:  # step 2
                d_f = recover_distribution(P_f, part[rows], names[f], rows.start)
            else:
                d_f = unit_rows(given_d[f][rows], f"distributions[{f}]", rows.start)
            P, d = _fold(P, d, P_f, d_f)
        merged.P[rows, labels] = P
        merged.d[rows] = d
    return merged


def merge_distributions(distributions: Sequence[Any]) -> Floats:
    r"""Compute the distribution of the number of labels from those of independent factors.

    .. math:: d_s = \sum_{s_1 + .. + s_n = s} \; \prod_f d^f_{s_f}.

    Parameters
    ----------
    distributions : sequence of array-likes of shape (n, S_f + 1)
        The probabilities of 0, 1, .. S_f labels in each factor. Each row must sum to 1 up to
        rounding, and is normalised.

    Returns
    -------
    ndarray of shape (n, S + 1)
        The probabilities of 0, 1, .. S labels in total, with S the sum of all S_f.

    Examples
    --------
    >>> merge_distributions([[[0.5, 0.5]], [[0.0, 1.0]]])
    array([[0. , 0.5, 0.5]])
    """
    check_distribution_count(distributions)
    if len(distributions) == 0:
        raise ValueError("distributions is empty: there must be at least one factor")
    names = [f"distributions[{f}]" for f in range(len(distributions))]
    check_same_index(**dict(zip(names, distributions, strict=True)))
    parts = [
        real_array(d, name, ("row", "cardinality"))
        for d, name in zip(distributions, names, strict=True)
    ]
    n = check_same_rows([len(d) for d in parts], names)
    merged = np.empty((n, 1 + sum(d.shape[1] - 1 for d in parts)))  # (n, S + 1)
    for rows in row_blocks(n, 8 * merged.shape[1]):
        # In pairs, so that long distributions are convolved with long ones. Rows come last.
        level = [
            np.ascontiguousarray(unit_rows(d[rows], name, rows.start).T)  # (S_f + 1, rows)
            for d, name in zip(parts, names, strict=True)
        ]
        while len(level) > 1:
            level = [
                convolve(*level[k : k + 2]) if k + 1 < len(level) else level[k]
                for k in range(0, len(level), 2)
            ]
        merged[rows] = level[0].T
    return merged


def convolve(first: Floats, second: Floats) -> Floats:
    """Return the distribution of a sum of independent numbers, with distributions along axis 0."""
    if len(first) < len(second):
        first, second = second, first
    total = np.zeros((len(first) + len(second) - 1, first.shape[1]))
    for j, weight in enumerate(second):
        total[j : j + len(first)] += first * weight
    return total


def _fold(P: Floats, d: Floats, P_f: Floats, d_f: Floats) -> tuple[Floats, Floats]:
    """Merge one more factor: steps 3 and 4 of Algorithm 1 of Gasse and Aussem (2016)."""
    m, S, S_f = P.shape[1], P.shape[2], P_f.shape[2]
    folded = np.zeros((len(P), m + P_f.shape[1], S + S_f))  # (rows, m + m_f, S + S_f)
    folded_d = np.zeros((len(P), S + S_f + 1))  # (rows, S + S_f + 1)
    for s in range(S_f + 1):
        folded[:, :m, s : s + S] += P * d_f[:, s, None, None]
        folded_d[:, s : s + S + 1] += d * d_f[:, s, None]
    for s in range(1, S_f + 1):
        folded[:, m:, s - 1 : s + S] += P_f[:, :, s - 1, None] * d[:, None, :]
    return folded, folded_d
