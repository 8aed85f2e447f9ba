"""Numbers and dates without missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from fgfm.data._dates import DATE_PARTS, date_features
from fgfm.data._typed import TypedColumns

__all__ = ["NumberColumns", "hstack"]


class NumberColumns:
    """Encode numbers and dates: medians in place of missing values, and indicators of these."""

    def fit(self, columns: TypedColumns, *, scale: bool) -> NumberColumns:
        """Learn medians, missing values and, if wanted, scales from training rows.

        The numbers come first, then the features of dates. The medians of sparse numbers are 0
        where no value was missing.
        """
        self.first_days = np.array([_smallest(days) for days in columns.days.T])
        numbers = self._numbers(columns)
        n, k = numbers.shape
        if sparse.issparse(numbers):
            counts = np.bincount(numbers.indices[np.isnan(numbers.data)], minlength=k)
            gaps = np.flatnonzero(counts)
            self.medians = np.zeros(k)
            self.medians[gaps] = _medians(numbers[:, gaps].toarray())
        else:
            counts = np.isnan(numbers).sum(axis=0)
            self.medians = _medians(numbers)
        # The features of a date are missing together: one indicator is enough.
        first_date = columns.numbers.shape[1]
        is_indicated = np.arange(k) < first_date
        is_indicated[first_date :: len(DATE_PARTS)] = True
        self.missing = np.flatnonzero(is_indicated & (counts > 0))
        self.shares = counts[self.missing] / n
        self.scaler = None
        if scale and k:
            self.scaler = StandardScaler().fit(self._impute(numbers))
        return self

    def transform(self, columns: TypedColumns) -> Any:
        """Return the features of some rows, dense or CSR as the numbers are."""
        X = self._impute(self._numbers(columns))
        return X if self.scaler is None else self.scaler.transform(X)

    def _numbers(self, columns: TypedColumns) -> Any:
        """Return the numbers, and beside them the features of dates."""
        if not columns.days.shape[1]:
            return columns.numbers
        parts = date_features(columns.days, self.first_days)
        return hstack(columns.numbers, parts.astype(columns.numbers.dtype))

    def _impute(self, numbers: Any) -> Any:
        """Replace missing numbers by the medians, and append the indicators."""
        if sparse.issparse(numbers):
            at = np.flatnonzero(np.isnan(numbers.data))
            filled = numbers
            if len(at):
                filled = numbers.copy()
                filled.data[at] = self.medians[numbers.indices[at]]
                filled.eliminate_zeros()
            indicators = np.isnan(numbers[:, self.missing].toarray())
        else:
            gaps = np.isnan(numbers)
            filled = np.where(gaps, self.medians, numbers) if gaps.any() else numbers
            indicators = gaps[:, self.missing]
        if len(self.missing):
            filled = hstack(filled, indicators)
        return filled.astype(numbers.dtype, copy=False)


def hstack(X: Any, Z: Any) -> Any:
    """Return two matrices side by side; CSR if the first is."""
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([X, sparse.csr_array(Z)], dtype=X.dtype))
    return np.hstack([X, Z.toarray() if sparse.issparse(Z) else Z])


def _medians(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the median of each column without its missing values, 0 if all are missing."""
    out = np.zeros(values.shape[1])
    present = ~np.isnan(values).all(axis=0)
    if present.any():
        columns = values[:, present] if not present.all() else values
        with np.errstate(over="ignore"):
            found = np.nanmedian(columns, axis=0)
        if np.isinf(found).any():  # the sum of the middle two overflows
            found = 2.0 * np.nanmedian(columns / 2.0, axis=0)
        out[present] = found
    return out


def _smallest(days: npt.NDArray[np.float64]) -> float:
    return 0.0 if np.isnan(days).all() else float(np.nanmin(days))
