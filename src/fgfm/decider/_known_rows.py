"""Recognise rows that were used in `fit`, in any order, from digests of rows.

What is kept is small: the sum of the digests of all rows, and the smallest digests of rows that
occur once.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm.decider._entries import Entries, dense_entries, sparse_entries
from fgfm.decider._inputs import on_host

__all__ = ["check_new_rows", "feature_entries", "known_rows", "row_digests"]

Digests = npt.NDArray[np.uint64]

_KEPT = 1024  # digests
_FEWEST = 10  # rows that show that others are known: fewer may be equal by chance


def row_digests(entries: Entries, Y: Any) -> Digests:
    """Return one digest per row of some values and of its labels Y (n, m), dense or CSR."""
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(2**64, size=size, dtype=np.uint64) for size in (entries.m + 1, Y.shape[1])
    )
    bits = (entries.p + 0.0).view(np.uint64)  # (n, K); -0.0 becomes 0.0, as which padding counts
    factors = a[: entries.m] if entries.labels is None else a[entries.labels]
    return _mix((_mix(bits) * factors).sum(axis=1) + Y.astype(np.uint64) @ b)


def _mix(x: Digests) -> Digests:
    """Return a bijection of 64 bits that maps 0 to 0 and similar numbers to distant ones."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def feature_entries(X: Any) -> Entries:
    """Return features of any kind as numbers: a hash of its text for a row of other values."""
    if sparse.issparse(X):
        csr = X.tocsr().astype(np.float64)
        csr.sum_duplicates()
        return sparse_entries(csr)
    X = on_host(X)
    values = np.asarray(X) if hasattr(X, "__array__") else None
    if values is None or values.dtype.kind not in "biuf":
        rows = X if values is None else values.tolist()
        hashes = [hashlib.blake2b(repr(row).encode(), digest_size=6).hexdigest() for row in rows]
        values = np.array([int(text, 16) for text in hashes])
    return dense_entries(values.reshape(len(values), -1))


def known_rows(digests: Digests) -> Digests:
    """Return what `check_new_rows` needs of the rows of `fit`."""
    values, counts = np.unique(digests, return_counts=True)
    once = values[counts == 1]
    # Where rows are often equal, equal rows are no evidence.
    kept = once[:_KEPT] if len(once) > 0.9 * len(digests) else once[:0]
    return np.append(kept, digests.sum())


def check_new_rows(known: Digests, digests: Digests) -> None:
    """Raise if the rows are those of `fit`, or more than half of them are."""
    kept, total = known[:-1], known[-1]
    # The share among rows with small digests is an estimate of the share among all.
    comparable = digests[digests <= kept[-1]] if len(kept) else digests[:0]
    found = int(np.isin(comparable, kept).sum())
    if digests.sum() == total or (found >= _FEWEST and 2 * found > len(comparable)):
        raise ValueError(
            "X and y have rows that were used in fit: a guarantee needs rows kept apart, which "
            "neither the model nor the decider was fitted to. Split them off first, as "
            "sklearn.model_selection.train_test_split does"
        )
