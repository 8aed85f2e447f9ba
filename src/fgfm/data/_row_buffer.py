"""Rows that are read in blocks, as one array."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["RowBuffer"]

_GROWTH = 8  # an array that is full grows by this part of its length


class RowBuffer:
    """Collect blocks of rows in one array, without a second copy of it.

    A full array grows in place: the allocator moves the pages of large arrays, not their bytes.
    A dense array has by default the type of the first block.
    """

    def __init__(self, n_columns: int, dtype: Any = None) -> None:
        self.rows = 0  # so far
        self._shape = n_columns
        self._dtype = dtype
        self._array: Any = None
        self._parts: list[Any] = []  # sparse blocks
        self._ids: list[Any] = []  # pyarrow.Table

    def append(self, block: Any, ids: Any = None) -> None:
        """Add rows, and their id columns as a pyarrow.Table; all blocks are dense, or none is."""
        if ids is not None:
            self._ids.append(ids)
        end = self.rows + block.shape[0]
        if sparse.issparse(block):
            self._parts.append(block)
        else:
            if self._array is None:
                self._array = np.empty((0, self._shape), self._dtype or block.dtype)
            if end > len(self._array):
                length = max(end, len(self._array) + len(self._array) // _GROWTH)
                self._array.resize((length, self._shape), refcheck=False)
            self._array[self.rows : end] = block
        self.rows = end

    def array(self) -> Any:
        """Return all rows, dense or as CSR; no more can be added."""
        if self._parts:
            parts, self._parts = self._parts, []
            return sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]
        if self._array is None:
            return np.empty((0, self._shape), self._dtype or np.float64)
        self._array.resize((self.rows, self._shape), refcheck=False)
        return self._array

    def ids(self) -> Any:
        """Return the id columns of all rows as a pyarrow.Table, or None if there are none."""
        if not self._ids:
            return None
        from pyarrow import concat_tables

        return concat_tables(self._ids)
