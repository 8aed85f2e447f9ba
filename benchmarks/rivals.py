"""Published algorithms in plain NumPy, one row at a time, to compare with.

Each takes the arguments of the corresponding function of `fgfm.decision` for one row, and returns
the label set and its expected F1, with 0/0 = 1. They are vectorised as well as NumPy allows: a
ratio to a slow implementation would be meaningless.

References
----------
Ye, N., Chai, K. M. A., Lee, W. S. and Chieu, H. L. (2012). Optimizing F-Measures: A Tale of Two
Approaches. ICML 2012.

Dembczynski, K., Waegeman, W., Cheng, W. and Huellermeier, E. (2011). An Exact Algorithm for
F-Measure Maximization. NIPS 2011.

Gasse, M. and Aussem, A. (2016). F-measure Maximization in Multi-Label Classification with
Conditionally Independent Label Subsets. ECML PKDD 2016. doi:10.1007/978-3-319-46128-1_39
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

__all__ = [
    "Choice",
    "algorithm_1",
    "algorithm_1_and_gfm",
    "gfm",
    "pypi_gfm",
    "tuned_algorithm_1",
    "ye_recursion",
]

Floats = npt.NDArray[np.float64]


class Choice(NamedTuple):
    """A label set, as sorted indices, and its expected F1."""

    labels: npt.NDArray[np.int64]
    expected_f: float


def ye_recursion(p: Floats) -> Choice:
    """Decide from the marginals of independent labels in O(m^2): Ye et al. (2012).

    With the labels in order of falling p, the best set of size k holds the first k. Its value is

        f(k) = sum_j C_k(j) 2 j s_k(k + j),
        C_k(j) = p(j of the first k labels are present),
        s_k(a) = E[1 / (a + number of the other labels that are present)].

    C_k follows from C_(k-1), and all of them are stored; s_m(a) = 1 / a, and backwards
    s_(k-1)(a) = p_k s_k(a + 1) + (1 - p_k) s_k(a).
    """
    m = len(p)
    order = np.argsort(-p, kind="stable")
    q = p[order]
    C = [np.ones(1)]
    for k in range(m):
        longer = np.empty(k + 2)
        np.multiply(C[k], 1.0 - q[k], out=longer[:-1])
        longer[-1] = 0.0
        longer[1:] += C[k] * q[k]
        C.append(longer)
    j = np.arange(m + 1.0)
    f = np.empty(m + 1)
    f[0] = C[m][0]  # 0/0 = 1: the value of the empty set is the probability that y is empty
    s = 1.0 / np.arange(1.0, 2 * m + 1.0)  # s[a - 1] is s_k(a)
    for k in range(m, 0, -1):
        f[k] = 2.0 * np.dot(C[k][1:] * j[1 : k + 1], s[k : 2 * k])
        change = s[1 : 2 * k - 1] - s[: 2 * k - 2]  # smaller k need a up to 2 (k - 1) only
        change *= q[k - 1]
        s[: 2 * k - 2] += change
    best = int(np.argmax(f))
    return Choice(np.sort(order[:best]), float(f[best]))


def algorithm_1(Ps: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Fold the P of independent factors, each (m_f, S_f), into the P of all labels: Algorithm 1.

    A fold is a sum of shifted copies. Returns P transposed, (S, m), with the labels in the order
    of the factors, and d, (S + 1,).
    """
    whole = np.zeros((0, 0))  # (S, labels folded in so far)
    d_whole = np.ones(1)
    for P in Ps:
        m_f, S_f = P.shape
        S, labels = whole.shape
        d = np.empty(S_f + 1)
        d[1:] = P.sum(axis=0) / np.arange(1, S_f + 1)
        d[0] = 1.0 - d[1:].sum()
        folded = np.zeros((S + S_f, labels + m_f))
        for s in range(S_f + 1):
            folded[s : s + S, :labels] += d[s] * whole
        for s in range(S_f):
            folded[s : s + S + 1, labels:] += np.outer(d_whole, P[:, s])
        whole, d_whole = folded, np.convolve(d_whole, d)
    return whole, d_whole


def tuned_algorithm_1(Ps: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Compute the same as `algorithm_1`, with matrix products.

    With s first, a fold is a product of windows of S_f + 1 neighbouring rows with d of the factor.
    """
    m, S = (sum(P.shape[axis] for P in Ps) for axis in (0, 1))
    edge = max(P.shape[1] for P in Ps)  # rows of zeros below s = 0 and above S
    whole = np.zeros((edge + S + 1 + edge, m))
    folded = np.zeros_like(whole)
    d_whole = np.ones(1)
    labels = 0  # folded in so far
    for P in Ps:
        m_f, S_f = P.shape
        s = np.arange(1, S_f + 1)
        d = np.empty(S_f + 1)
        d[1:] = P.sum(axis=0) / s
        d[0] = 1.0 - d[1:].sum()
        first, last = edge, edge + len(d_whole) + S_f
        windows = sliding_window_view(whole[first - S_f : last, :labels], S_f + 1, axis=0)
        np.matmul(windows, d[::-1].copy(), out=folded[first:last, :labels])
        new = folded[:, labels : labels + m_f]
        new[:] = 0.0
        for t in s:
            new[first + t : last - S_f + t] += np.outer(d_whole, P[:, t - 1])
        d_whole = np.convolve(d_whole, d)
        whole, folded = folded, whole
        labels += m_f
    return whole[edge + 1 : edge + 1 + S], d_whole


def gfm(P: Floats, d_0: float) -> Choice:
    """Decide from P transposed, (S, m), by GFM: the k largest of Delta_.k for every k."""
    S, m = P.shape
    k = np.arange(1.0, m + 1.0)
    Delta = (2.0 / np.add.outer(k, np.arange(1.0, S + 1.0))) @ P  # (k, i)
    largest_first = np.sort(Delta, axis=1)[:, ::-1]
    value = np.tril(largest_first).sum(axis=1)
    best = int(np.argmax(value))
    if value[best] <= d_0:
        return Choice(np.empty(0, dtype=np.int64), d_0)
    chosen = np.argsort(-Delta[best], kind="stable")[: best + 1]
    return Choice(np.sort(chosen), float(value[best]))


def algorithm_1_and_gfm(
    Ps: Sequence[Floats], factors: Sequence[Sequence[int]], tuned: bool = True
) -> Choice:
    """Decide from the P of independent factors, each (m_f, S_f), in O(m^3), as published."""
    P, d = tuned_algorithm_1(Ps) if tuned else algorithm_1(Ps)
    choice = gfm(P, float(d[0]))
    return Choice(np.sort(np.concatenate(factors)[choice.labels]), choice.expected_f)


def pypi_gfm(m: int) -> Callable[[Floats, float], npt.NDArray[Any]] | None:
    """Return ``gfm(p, p_0)`` of example-wise-f1-maximizer, or None if it is not installed.

    Its matrix of weights is computed once for all rows, as in the package itself.
    """
    try:
        from example_wise_f1_maximizer import meta_estimator
    except ImportError:
        return None
    w = meta_estimator.create_gfm_weight_matrix(m)

    def decide(p: Floats, p_0: float) -> npt.NDArray[Any]:
        chosen: npt.NDArray[Any] = meta_estimator.gfm(p, p_0, w)
        return chosen

    return decide
