"""The distribution of the number of independent labels."""

from __future__ import annotations

from fgfm._kernels._compile import entry_point

__all__ = ["poisson_binomial"]


@entry_point
def poisson_binomial(p, d):
    """Fill ``d[r, s]`` (n, S + 1) with the probability of s labels, independent with p (n, m).

    Convolution with one label after the other: positive terms only, O(m S) per row. S may be less
    than m; the row of d then sums to less than 1.
    """
    n, m = p.shape
    S = d.shape[1] - 1
    for r in range(n):
        d[r, 0] = 1.0
        for s in range(1, S + 1):
            d[r, s] = 0.0
        for i in range(m):
            for s in range(min(S, i + 1), 0, -1):
                d[r, s] = d[r, s] * (1.0 - p[r, i]) + d[r, s - 1] * p[r, i]
            d[r, 0] *= 1.0 - p[r, i]
