"""Sums of columns, each by itself and from the first row to the last.

NumPy adds one column in another order than several, and BLAS in yet others: here a column has the
same sum, to the last bit, whatever is beside it.
"""

from __future__ import annotations

from fgfm._kernels._compile import entry_point

__all__ = ["add_columns", "multiply_columns"]


@entry_point
def add_columns(values, sums):
    """Set ``sums[j]`` to the sum of ``values[:, j]``."""
    n, k = values.shape
    for j in range(k):
        sums[j] = 0.0
    for i in range(n):
        for j in range(k):
            sums[j] += values[i, j]


@entry_point
def multiply_columns(left, right, sums):
    """Set ``sums[j]`` to the scalar product of ``left[:, j]`` and ``right[:, j]``."""
    n, k = left.shape
    for j in range(k):
        sums[j] = 0.0
    for i in range(n):
        for j in range(k):
            sums[j] += left[i, j] * right[i, j]
