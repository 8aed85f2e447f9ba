r"""P, the joint probabilities of each label and the number of labels: build, check, merge.

For m labels y with s = :math:`|y|`, and x implicit,

.. math::

    p_{is} = p(y_i = 1, |y| = s), \quad s = 1..S, \qquad
    d_s = p(|y| = s) = \frac{1}{s} \sum_i p_{is}, \quad d_0 = 1 - \sum_{s > 0} d_s.

``P[r, i, s - 1]`` is :math:`p_{is}` of row r, an array of shape (n, m, S); ``d[r, s]`` is
:math:`d_s`, of shape (n, S + 1). S may be smaller than m if no larger set is possible. P is all
that the expected F-measure of any label set depends on (Dembczynski et al., 2011).

References
----------
Dembczynski, K., Waegeman, W., Cheng, W. and Huellermeier, E. (2011). An Exact Algorithm for
F-Measure Maximization. NIPS 2011.

Gasse, M. and Aussem, A. (2016). F-measure Maximization in Multi-Label Classification with
Conditionally Independent Label Subsets. ECML PKDD 2016. doi:10.1007/978-3-319-46128-1_39
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.blocks import row_blocks
from fgfm._utils.validation import (
    check_cardinality_matrix,
    check_choice,
    check_distributions,
    check_factors,
    check_labels,
    check_parts,
    check_same_rows,
    clip_probabilities,
    distribution_array,
    first_index,
    label_sets,
    place,
    real_array,
    tolerance,
    unit_rows,
)

__all__ = [
    "MergedFactors",
    "distribution",
    "from_conditionals",
    "from_joint",
    "from_marginals",
    "from_samples",
    "is_coherent",
    "make_coherent",
    "merge_distributions",
    "merge_factors",
]

Floats = npt.NDArray[np.float64]
Real = npt.NDArray[Any]

_ROUNDING = 1e-13  # inclusion probabilities that sum to s this well are left alone


class MergedFactors(NamedTuple):
    """P and d of all labels together, as `merge_factors` gives them."""

    P: Floats  # (n, m, S)
    d: Floats  # (n, S + 1)


def from_joint(labelsets: Any, proba: Any) -> Floats:
    r"""Compute P from the probabilities of whole label sets.

    For label sets :math:`y^1 .. y^L` with probabilities :math:`w_1 .. w_L`,

    .. math:: p_{is} = \sum_{l : |y^l| = s} w_l \, y^l_i.

    Parameters
    ----------
    labelsets : array-like or sparse matrix of shape (L, m)
        The label sets that can occur, 0 or 1. They need not be distinct.
    proba : array-like of shape (n, L)
        Their probabilities. Each row must sum to 1, and is divided by its sum to remove what
        rounding left.

    Returns
    -------
    ndarray of shape (n, m, S)
        P, with S the size of the largest label set, and at least 1.

    Examples
    --------
    >>> P = from_joint([[0, 0], [1, 0], [1, 1]], [[0.2, 0.5, 0.3]])
    >>> P[0]
    array([[0.5, 0.3],
           [0. , 0.3]])
    """
    sets = label_sets(labelsets, "labelsets", ("label set", "label"))  # (L, m)
    if sets.shape[0] == 0:
        raise ValueError(f"labelsets has shape {sets.shape}: it must have at least one label set")
    sets = sets.astype(np.float64)
    proba = real_array(proba, "proba", ("row", "label set"))  # (n, L)
    if proba.shape[1] != sets.shape[0]:
        raise ValueError(
            f"proba has {proba.shape[1]} columns and labelsets has {sets.shape[0]} rows: "
            "there must be one probability for each label set"
        )
    size = np.asarray(sets.sum(axis=1), dtype=np.int64).ravel()  # (L,)
    n, m = proba.shape[0], sets.shape[1]
    P = np.zeros((n, m, max(1, int(size.max()))))  # (n, m, S)
    of_size = [(s, np.flatnonzero(size == s)) for s in np.unique(size[size > 0])]
    members = [(s, at, sets[at].T) for s, at in of_size]  # (m, number of sets of that size)
    for rows in row_blocks(n, 8 * (len(size) + m)):
        w = unit_rows(proba[rows], "proba", rows.start)  # (rows, L)
        for s, at, member in members:
            P[rows, :, s - 1] = (member @ w[:, at].T).T
    return P


def from_samples(samples: Any) -> Floats:
    r"""Estimate P by the frequencies among draws of label sets.

    For draws :math:`y^1 .. y^T` of the labels of a row,

    .. math:: p_{is} = \frac{1}{T} \sum_{t : |y^t| = s} y^t_i.

    Parameters
    ----------
    samples : array-like of shape (n, T, m)
        T draws of m labels for each row, 0 or 1.

    Returns
    -------
    ndarray of shape (n, m, S)
        P, with S the largest number of labels that any row drew, and at least 1.

    Examples
    --------
    >>> P = from_samples([[[0, 0], [1, 0], [1, 0], [1, 1]]])
    >>> P[0]
    array([[0.5 , 0.25],
           [0.  , 0.25]])
    """
    samples = real_array(samples, "samples", ("row", "draw", "label"))  # (n, T, m)
    n, draws, m = samples.shape
    size = np.zeros((n, draws), dtype=np.int64)  # (n, T)
    blocks = row_blocks(n, 8 * draws * m)
    for rows in blocks:
        check_labels(samples[rows], "samples", rows.start)
        size[rows] = np.count_nonzero(samples[rows], axis=2)
    S = max(1, int(size.max(initial=0)))
    P = np.zeros((n, m, S))  # (n, m, S)
    for rows in blocks:
        row, draw, label = np.nonzero(samples[rows])  # one of each per label drawn
        cell = (row * m + label) * S + size[rows][row, draw] - 1
        count = np.bincount(cell, minlength=P[rows].size)
        P[rows] = count.reshape(P[rows].shape) / draws
    return P


def from_marginals(
    proba: Any, distribution: Any = None, *, method: Literal["tilt", "condition"] = "tilt"
) -> Floats:
    r"""Compute P from the probability of each label alone, p_i = p(y_i = 1).

    Without a distribution of :math:`|y|` the labels are taken to be independent,

    .. math:: p_{is} = p_i \; p\Bigl(\sum_{j \ne i} y_j = s - 1\Bigr),

    and P is exact. With one, d, P is :math:`d_s \, q_i(s)`, and there are two ways to the
    :math:`q_i(s) = p(y_i = 1 \mid |y| = s)`.

    "condition" gives those of independent labels,

    .. math:: q_i(s) = p_i \; p\Bigl(\sum_{j \ne i} y_j = s - 1\Bigr) \Big/ p\bigl(|y| = s\bigr),

    so that P is that of the distribution of y nearest to independent labels, in relative entropy,
    among all in which the number of labels has the distribution d.

    "tilt" moves all logits by the same number,

    .. math:: q_i(s) = \operatorname{sigmoid}(\operatorname{logit} p_i + c_s), \qquad
              \sum_i q_i(s) = s.

    It looks at labels one by one, and leaves them less certain than they are where few are
    expected: of two labels with :math:`p_1 = 1/2, p_2 = 1/11`, the first is the one of s = 1 with
    probability 10/11 by "condition", and 0.76 by "tilt".

    Labels with :math:`p_i = 0` get mass only where s exceeds the number of the others, and those
    with :math:`p_i = 1` lose it only where s is less than their number.

    Parameters
    ----------
    proba : array-like of shape (n, m)
        The marginals.
    distribution : array-like of shape (n, S + 1), optional
        The probabilities of 0, 1, .. S labels, with S at most m. Each row must sum to 1, and is
        divided by its sum.
    method : {"tilt", "condition"}, default="tilt"
        How marginals and distribution are joined; see above.

    Returns
    -------
    ndarray of shape (n, m, S)
        P; S = m without a distribution.

    Notes
    -----
    For independent labels, divide and conquer: each half of the labels is handed the distribution
    of the number of labels outside it, and hands it on with its other half folded in. That is
    O(m^2 log m) a row. To take one label at a time out of the distribution of all would be O(m^2),
    but it subtracts, and is unstable. "condition" takes O(m S^2) a row, "tilt" O(m S).

    Examples
    --------
    >>> from_marginals([[0.5, 0.2]])[0]
    array([[0.4, 0.1],
           [0.1, 0.1]])

    The same marginals, and never two labels at once:

    >>> P = from_marginals([[0.5, 0.2]], distribution=[[0.4, 0.6]])
    >>> P[0].round(3)
    array([[0.4],
           [0.2]])
    >>> from_marginals([[0.5, 0.2]], distribution=[[0.4, 0.6]], method="condition")[0].round(3)
    array([[0.48],
           [0.12]])
    """
    check_choice(method, "method", ("tilt", "condition"))
    proba = real_array(proba, "proba", ("row", "label"))  # (n, m)
    n, m = proba.shape
    if distribution is None:
        P = np.empty((n, m, m))
        for rows in row_blocks(n, 64 * m):
            p = clip_probabilities(proba[rows], "proba", rows.start).astype(np.float64)
            _fill_independent(np.ascontiguousarray(p.T), P[rows])
        return P
    d = real_array(distribution, "distribution", ("row", "cardinality"))  # (n, S + 1)
    if not 2 <= d.shape[1] <= m + 1:
        raise ValueError(
            f"distribution has shape {d.shape}: with {m} labels it must have 2 to {m + 1} "
            "columns, for 0, 1, .. labels"
        )
    check_same_rows([n, len(d)], ["proba", "distribution"])
    return _tilted(proba, d) if method == "tilt" else _conditioned(proba, d)


def _conditioned(proba: Real, d: Real) -> Floats:
    """Give P of independent labels (n, m) given that their number has the distribution d."""
    from fgfm._kernels.condition import condition

    n, m, S = len(proba), proba.shape[1], d.shape[1] - 1
    P = np.empty((n, m, S))
    for rows in row_blocks(n, 8 * m * S):
        p = clip_probabilities(proba[rows], "proba", rows.start).astype(np.float64)
        condition(_logit(p), unit_rows(d[rows], "distribution", rows.start), P[rows])
    return P


def from_conditionals(proba: Any, distribution: Any) -> Floats:
    r"""Compute P from the probability of each label given the number of labels.

    For :math:`q_i(s) = p(y_i = 1 \mid |y| = s)` and :math:`d_s = p(|y| = s)`,

    .. math:: p_{is} = d_s \, q'_i(s), \qquad
              q'_i(s) = \operatorname{sigmoid}(\operatorname{logit} q_i(s) + c_s), \qquad
              \sum_i q'_i(s) = s:

    where the q(s) of separate models do not sum to s, they are tilted to do so, the smallest
    change in relative entropy.

    Parameters
    ----------
    proba : array-like of shape (n, m, S)
        ``proba[r, i, s - 1]`` is :math:`q_i(s)`. It does not matter where :math:`d_s = 0`.
    distribution : array-like of shape (n, S + 1)
        The probabilities of 0, 1, .. S labels. Each row must sum to 1, and is divided by its sum.

    Returns
    -------
    ndarray of shape (n, m, S)
        P, coherent, with this distribution of the number of labels.

    See Also
    --------
    make_coherent : The same from P, the product of both, instead of the conditionals.

    Examples
    --------
    >>> q = [[[0.6, 0.9], [0.3, 0.9], [0.3, 0.4]]]  # its columns sum to 1.2 and 2.2
    >>> from_conditionals(q, [[0.2, 0.5, 0.3]])[0].round(3)
    array([[0.261, 0.255],
           [0.119, 0.255],
           [0.119, 0.089]])
    """
    proba = check_cardinality_matrix(proba, "proba")  # (n, m, S)
    return _tilted(proba, distribution_array(distribution, "distribution", *proba.shape[::2]))


def _tilted(proba: Real, d: Real) -> Floats:
    """Give P of probabilities (n, m, S), or (n, m) for every s, and d (n, S + 1)."""
    from fgfm._kernels.tilt import tilt

    n, m, S = len(proba), proba.shape[1], d.shape[1] - 1
    P = np.empty((n, m, S))
    for rows in row_blocks(n, 8 * m * S):
        p = clip_probabilities(proba[rows], "proba", rows.start).astype(np.float64)
        tilt(
            _logit(p).reshape(*p.shape[:2], -1),
            unit_rows(d[rows], "distribution", rows.start),
            P[rows],
        )
    return P


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
        d; a d_0 below 0 by no more than rounding is 0.

    Examples
    --------
    >>> distribution([[[0.5, 0.3], [0.0, 0.3]]])
    array([[0.2, 0.5, 0.3]])
    >>> distribution([[[0.5, 0.4], [0.3, 0.4]]])
    Traceback (most recent call last):
        ...
    ValueError: P[0] implies d_0 = -0.2: the distribution of the number of labels must not exceed 1
    """
    P = check_cardinality_matrix(P)  # (n, m, S)
    n, m, S = P.shape
    d = np.empty((n, S + 1))  # (n, S + 1)
    for rows in row_blocks(n, 8 * m * S):
        p = clip_probabilities(P[rows], "P", rows.start).astype(np.float64)
        d[rows] = _recover(p, "P", tolerance(P), rows.start)
    return d


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
        The distribution of the number of labels in each factor. By default it is recovered from
        its P; one that is given is taken as it is, whether P agrees with it or not.

    Returns
    -------
    MergedFactors
        P (n, m, S) and d (n, S + 1), with S the sum of all S_f, and labels in the order of their
        indices.

    Notes
    -----
    O(m^3) a row when the factors are small. It is the way to the whole P, and the reference for
    ``fgfm.decision.from_factors``, which makes the same decision without it.

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
    parts = check_parts(Ps)
    n, names = len(parts[0]), [f"Ps[{f}]" for f in range(len(parts))]
    labels = np.concatenate(check_factors(factors, [P.shape[1] for P in parts]))  # (m,)
    given = check_distributions(distributions, parts)

    m, S = len(labels), sum(P.shape[2] for P in parts)
    merged = MergedFactors(np.empty((n, m, S)), np.empty((n, S + 1)))
    for rows in row_blocks(n, 8 * m * S):
        P, d = np.empty((rows.stop - rows.start, 0, 0)), np.ones((rows.stop - rows.start, 1))
        for f, part in enumerate(parts):
            P_f = clip_probabilities(part[rows], names[f], rows.start).astype(np.float64)
            if given is None:
                d_f = _recover(P_f, names[f], tolerance(part), rows.start)  # step 2
            else:
                d_f = unit_rows(given[f][rows], f"distributions[{f}]", rows.start)
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
        The probabilities of 0, 1, .. S_f labels in each factor. Each row must sum to 1, and is
        divided by its sum.

    Returns
    -------
    ndarray of shape (n, S + 1)
        The probabilities of 0, 1, .. S labels in all, with S the sum of all S_f.

    Examples
    --------
    >>> merge_distributions([[[0.5, 0.5]], [[0.0, 1.0]]])
    array([[0. , 0.5, 0.5]])
    """
    if isinstance(distributions, np.ndarray) or not hasattr(distributions, "__len__"):
        raise TypeError(
            f"distributions is {type(distributions).__name__}: "
            "it must be a list with the distribution of each factor"
        )
    if len(distributions) == 0:
        raise ValueError("distributions is empty: there must be at least one factor")
    names = [f"distributions[{f}]" for f in range(len(distributions))]
    parts = [
        real_array(d, name, ("row", "cardinality"))
        for d, name in zip(distributions, names, strict=True)
    ]
    n = check_same_rows([len(d) for d in parts], names)
    merged = np.empty((n, 1 + sum(d.shape[1] - 1 for d in parts)))
    for rows in row_blocks(n, 8 * merged.shape[1]):
        # two by two, so that long distributions meet long ones: rows come last, as _convolve wants
        level = [
            np.ascontiguousarray(unit_rows(d[rows], name, rows.start).T)
            for d, name in zip(parts, names, strict=True)
        ]
        while len(level) > 1:
            level = [
                _convolve(*level[at : at + 2]) if at + 1 < len(level) else level[at]
                for at in range(0, len(level), 2)
            ]
        merged[rows] = level[0].T
    return merged


def is_coherent(P: Any, distribution: Any = None, *, tol: float = 1e-9) -> npt.NDArray[np.bool_]:
    r"""Tell which rows of P some distribution of label sets has.

    A joint distribution with the given P exists if and only if

    .. math:: 0 \le p_{is} \le d_s = \frac{1}{s} \sum_j p_{js}, \qquad \sum_{s > 0} d_s \le 1 :

    for each s with :math:`d_s > 0` the :math:`q_i(s) = p_{is} / d_s` then lie in [0, 1] and sum to
    s, and any such numbers are the inclusion probabilities of some random set of s labels.

    Parameters
    ----------
    P : array-like of shape (n, m, S)
        P[r, i, s - 1] = p(y_i = 1, |y| = s). Any numbers are accepted.
    distribution : array-like of shape (n, S + 1), optional
        The distribution that P must agree with.
    tol : float, default=1e-9
        How far each condition may be missed. Numbers in float32 need about 1e-5.

    Returns
    -------
    ndarray of shape (n,)
        Whether each row is coherent.

    Examples
    --------
    Two labels at once cannot have different probabilities:

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
            d = _cardinalities(p)  # (rows, S + 1)
            good = ((p >= -tol) & (p <= d[:, None, 1:] + tol)).all(axis=(1, 2)) & (d[:, 0] >= -tol)
            if distribution is not None:
                good &= (np.abs(d - distribution[rows]) <= tol).all(axis=1)
        coherent[rows] = good
    return coherent


def make_coherent(P: Any, distribution: Any = None) -> Floats:
    r"""Find the coherent P that is nearest to a given one.

    Models of :math:`d_s` and of :math:`q_i(s) = p(y_i = 1 \mid |y| = s)` that were fitted apart
    from each other give a :math:`p_{is} = d_s q_i(s)` whose q(s) need not sum to s. For each row
    and s, replace q by the q' that

    .. math::

        \text{minimises} \; \sum_i q'_i \log\frac{q'_i}{q_i}
        + (1 - q'_i) \log\frac{1 - q'_i}{1 - q_i}
        \quad \text{subject to} \; \sum_i q'_i = s,

    that is :math:`q'_i = \operatorname{sigmoid}(\operatorname{logit} q_i + c_s)`, and P by
    :math:`d_s q'_i(s)`. Labels with q = 0 get mass only if there are fewer than s others.

    Parameters
    ----------
    P : array-like of shape (n, m, S)
        P[r, i, s - 1], estimates of p(y_i = 1, |y| = s).
    distribution : array-like of shape (n, S + 1), optional
        The d to agree with; q is P divided by it, cut to [0, 1]. By default d and q both come from
        P, and a d whose part over s > 0 sums to more than 1 is scaled to sum to 1.

    Returns
    -------
    ndarray of shape (n, m, S)
        The coherent P. Where d_s > 0 and all p_is are 0, every label gets d_s s / m. A row
        that is coherent already stays as it is.

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
    given = None
    if distribution is not None:
        given = distribution_array(distribution, "distribution", n, S)  # (n, S + 1)
    coherent = np.empty((n, m, S))  # (n, m, S)
    for rows in row_blocks(n, 8 * m * S):
        if given is None:
            _check_weights(P[rows], "P", rows.start)
            p = np.maximum(P[rows], 0.0).astype(np.float64)  # (rows, m, S)
            model = _cardinalities(p)  # (rows, S + 1)
            d = model / np.maximum(1.0, model[:, 1:].sum(axis=1, keepdims=True))
        else:
            p = clip_probabilities(P[rows], "P", rows.start).astype(np.float64)
            d = model = unit_rows(given[rows], "distribution", rows.start)  # (rows, S + 1)
        _fill_coherent(p, model, d, coherent[rows])
    return coherent


def _fill_coherent(p: Floats, model: Floats, d: Floats, out: Floats) -> None:
    """Fill ``out`` with d_s q'_i(s): q is p divided by the model's d, and q' is q with sum s."""
    s = np.arange(1, p.shape[2] + 1)
    with np.errstate(over="ignore"):
        q = np.divide(p, model[:, None, 1:], out=np.zeros_like(p), where=model[:, None, 1:] > 0.0)
    np.minimum(q, 1.0, out=q)  # (rows, m, S)
    sums_up = np.abs(q.sum(axis=1) - s) <= _ROUNDING * s  # (rows, S)
    np.multiply(q, d[:, None, 1:], out=out)
    wrong = ~sums_up & (d[:, 1:] > 0.0)
    if not wrong.any():
        return
    from fgfm._kernels.tilt import tilt

    tilted = np.empty_like(out)  # (rows, m, S)
    to_solve = np.zeros_like(d)  # (rows, S + 1) nothing is solved where this is 0
    np.copyto(to_solve[:, 1:], d[:, 1:], where=wrong)
    tilt(_logit(q), to_solve, tilted)  # labels that are all impossible share evenly
    np.copyto(out, tilted, where=wrong[:, None, :])


def _fill_independent(p: Floats, P: Floats) -> None:
    """Fill P (rows, m, m) for independent labels with marginals p (m, rows).

    Rows come last in all work space: the slices of a convolution are then contiguous.
    """
    m, rows = p.shape

    def half(low: int, high: int) -> int:
        return (low + high) // 2

    inside: dict[tuple[int, int], Floats] = {}  # (high - low + 1, rows) for each node of the tree

    def collect(low: int, high: int) -> Floats:
        if high - low == 1:
            counts = np.stack([1.0 - p[low], p[low]])
        else:
            middle = half(low, high)
            counts = _convolve(collect(low, middle), collect(middle, high))
        inside[low, high] = counts
        return counts

    def pass_down(low: int, high: int, outside: Floats) -> None:
        if high - low == 1:
            P[:, low, :] = (p[low] * outside).T
            return
        middle = half(low, high)
        pass_down(low, middle, _convolve(outside, inside[middle, high]))
        pass_down(middle, high, _convolve(outside, inside[low, middle]))

    collect(0, m)
    pass_down(0, m, np.ones((1, rows)))


def _convolve(first: Floats, second: Floats) -> Floats:
    """Give the distribution of a sum of independent numbers, each along axis 0."""
    if len(first) < len(second):
        first, second = second, first
    total = np.zeros((len(first) + len(second) - 1, first.shape[1]))
    for j, weight in enumerate(second):
        total[j : j + len(first)] += first * weight
    return total


def _fold(P: Floats, d: Floats, P_f: Floats, d_f: Floats) -> tuple[Floats, Floats]:
    """Fold one more factor in: steps 3 and 4 of Algorithm 1 of Gasse and Aussem (2016)."""
    before, S, S_f = P.shape[1], P.shape[2], P_f.shape[2]
    folded = np.zeros((len(P), before + P_f.shape[1], S + S_f))  # (rows, m' + m_f, S' + S_f)
    folded_d = np.zeros((len(P), S + S_f + 1))  # (rows, S' + S_f + 1)
    for s in range(S_f + 1):
        folded[:, :before, s : s + S] += P * d_f[:, s, None, None]
        folded_d[:, s : s + S + 1] += d * d_f[:, s, None]
    for s in range(1, S_f + 1):
        folded[:, before:, s - 1 : s + S] += P_f[:, :, s - 1, None] * d[:, None, :]
    return folded, folded_d


def _cardinalities(p: Floats) -> Floats:
    """Give d of P (rows, m, S), whatever its values."""
    d = np.empty((p.shape[0], p.shape[2] + 1))  # (rows, S + 1)
    d[:, 1:] = p.sum(axis=1) / np.arange(1, p.shape[2] + 1)
    d[:, 0] = 1.0 - d[:, 1:].sum(axis=1)
    return d


def _recover(p: Floats, name: str, slack: float, first_row: int) -> Floats:
    """Give d of P (rows, m, S); no row may have more mass than 1."""
    d = _cardinalities(p)  # (rows, S + 1)
    wrong = d[:, 0] < -slack
    if wrong.any():
        row = first_index(wrong)[0]
        raise ValueError(
            f"{place(name, (first_row + row,))} implies d_0 = {d[row, 0]:g}: "
            "the distribution of the number of labels must not exceed 1"
        )
    np.maximum(d[:, 0], 0.0, out=d[:, 0])
    return d


def _logit(p: Floats) -> Floats:
    """Give log(p / (1 - p)); infinite at 0 and 1, which the tilt knows how to read."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))


def _check_weights(block: Real, name: str, first_row: int) -> None:
    """Raise unless every element is finite and, up to rounding, not negative."""
    wrong = ~((block >= -tolerance(block)) & np.isfinite(block))
    if wrong.any():
        index = first_index(wrong)
        where = place(name, (first_row + index[0], *index[1:]))
        raise ValueError(f"{where} is {block[index]!s}: it must be finite and not negative")
