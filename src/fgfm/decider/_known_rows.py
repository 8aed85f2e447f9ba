"""Recognise rows that were used in `fit`, in any order, from digests of rows.

What is kept is small: the number of rows, the sum of their digests, and the smallest digests, with
up to three copies. Digests are of rounded values: copies in single precision are recognised.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import bdtrc

from fgfm.decider._entries import Entries, dense_entries, sparse_entries
from fgfm.decider._inputs import on_host

__all__ = ["check_new_rows", "feature_entries", "known_rows", "row_digests"]

Digests = npt.NDArray[np.uint64]

_KEPT = 16384  # digests
_FEWEST = 6  # rows that show that others are known: fewer may be equal by chance
_LEVEL = 1e-4  # probability that independent rows are refused since they are often equal
_MANY = 4  # values of a row that identify it though each is rounded more


def row_digests(entries: Entries, Y: Any) -> Digests:
    """Return one digest per row of some values and of its labels Y (n, m), dense or CSR."""
    # The first factors are the same for any number of labels, as lists have different ones.
    a, b = (
        np.random.default_rng(seed).integers(2**64, size=size, dtype=np.uint64)
        for seed, size in enumerate((entries.m + 1, Y.shape[1]))
    )
    bits = _rounded(entries.p)  # (n, K)
    factors = a[: entries.m] if entries.labels is None else a[entries.labels]
    return _mix((_mix(bits) * factors).sum(axis=1) + Y.astype(np.uint64) @ b)


def _rounded(values: npt.NDArray[np.float64]) -> Digests:
    """Return values (n, K) as integers, rounded to 24 bits, or to 12 where rows have several."""
    with np.errstate(over="ignore"):
        single = np.where(np.isnan(values), np.nan, values).astype(np.float32) + np.float32(0.0)
    bits = single.view(np.uint32).astype(np.uint64)  # -0.0 is 0.0, as which padding counts
    return bits if values.shape[1] < _MANY else (bits + np.uint64(2**11)) >> np.uint64(12)


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
        digests = [hashlib.blake2b(_text(row).encode(), digest_size=8).digest() for row in rows]
        values = np.frombuffer(b"".join(digests), np.uint8).reshape(len(rows), 8)
    return dense_entries(values.reshape(len(values), -1))


def _text(row: Any) -> str:
    """Return a row as a text, with its floats in single precision."""
    values = row if isinstance(row, (list, tuple)) else [row]
    is_float = (float, np.floating)
    return repr([float(np.float32(v)) if isinstance(v, is_float) else v for v in values])


def known_rows(digests: Digests) -> Digests:
    """Return what `check_new_rows` needs of the rows of `fit`."""
    values, counts = np.unique(digests, return_counts=True)
    kept = np.repeat(values[:_KEPT], np.minimum(counts[:_KEPT], 3))
    last = values[_KEPT - 1] if len(values) > _KEPT else np.uint64(2**64 - 1)
    return np.concatenate([kept, np.array([last, len(digests), digests.sum()], np.uint64)])


def check_new_rows(known: Digests, digests: Digests) -> None:
    """Raise if the rows are those of `fit`, or if more of them are than chance explains.

    If all rows are drawn independently, the two rows of a value that occurs twice among all n + N
    are one of `fit` and a new one with probability 2 n N / ((n + N) (n + N - 1)).
    """
    kept, (last, n, total) = known[:-3], known[-3:]
    N = len(digests)
    compared = digests[digests <= last]
    values, of_fit = np.unique(kept, return_counts=True)
    new_values, of_new = np.unique(compared, return_counts=True)
    all_values = np.union1d(values, new_values)
    a, b = np.zeros((2, len(all_values)), dtype=np.int64)
    a[np.searchsorted(all_values, values)] = of_fit
    b[np.searchsorted(all_values, new_values)] = of_new
    pairs, apart = int((a + b == 2).sum()), int(((a == 1) & (b == 1)).sum())
    size = int(n) + N
    share = 2.0 * int(n) * N / (size * (size - 1.0))
    too_many = apart >= _FEWEST and bdtrc(apart - 1, pairs, share) <= _LEVEL
    if digests.sum() == total or too_many:
        count = int(np.isin(compared, values).sum())
        rows = (
            f"{count:,} of {N:,}"
            if len(compared) == N
            else f"{count:,} of {len(compared):,} compared"
        )
        raise ValueError(
            f"X and y have rows that were used in fit ({rows}): a guarantee needs rows kept "
            "apart, which neither the model nor the decider was fitted to. Split them off first, "
            "as sklearn.model_selection.train_test_split does"
        )
