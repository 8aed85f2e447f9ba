"""Column sums whose bits do not depend on the other columns.

NumPy and BLAS add up one column in another order than several. Here each column is added up from
its first row to its last, so that a target has the same sums in any batch.
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
