"""Marginal probabilities of rows, dense or with few stored labels per row, in one layout."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = ["Entries", "best_entries", "dense_entries", "padded_entries", "sparse_entries"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Entries(NamedTuple):
    """Probabilities of K labels per row.

    A sparse matrix is stored by rows of equal length: the stored entries of each row, then padding
    with probability 0 and the label number m, which does not exist. So are lists of candidates,
    whose labels are their positions.

    Attributes
    ----------
    p : ndarray of shape (n, K)
        The probabilities.
    labels : ndarray of shape (n, K) or None
        The label of each entry; None if column j is label j.
    m : int
        Number of labels.
    cardinality : ndarray of shape (n, S + 1) or None
        The distribution of the number of labels by a further model, if there is one.
    """

    p: Floats
    labels: Integers | None
    m: int
    cardinality: Floats | None = None

    def take(self, rows: Any) -> Entries:
        """Return some of the rows."""
        labels, d = (None if x is None else x[rows] for x in (self.labels, self.cardinality))
        return Entries(self.p[rows], labels, self.m, d)

    def repeat(self, counts: Integers) -> Entries:
        """Return each row as often as its count says."""
        return self.take(np.repeat(np.arange(len(counts)), counts))

    def with_p(self, p: Floats) -> Entries:
        """Return the same entries with other probabilities; padding stays impossible."""
        if self.labels is not None:
            p = np.where(self.labels < self.m, p, 0.0)
        return self._replace(p=p)

    def as_one_label(self) -> Entries:
        """Return all stored entries as those of one label."""
        if self.labels is None:
            return Entries(self.p, np.zeros(self.p.shape, dtype=np.int64), 1)
        return Entries(self.p, np.where(self.labels < self.m, 0, 1), 1)

    def by_label(self, values: npt.NDArray[Any]) -> Floats:
        """Return the sums of values (n, K) over the entries of each label, (m,)."""
        if self.labels is None:
            return np.asarray(values.sum(axis=0))
        total = np.bincount(self.labels.ravel(), weights=values.ravel(), minlength=self.m + 1)
        return np.asarray(total[: self.m], dtype=np.float64)

    def of_label(self, parameters: Floats) -> Floats:
        """Return the parameter (m,) of the label of each entry, to broadcast with (n, K)."""
        if self.labels is None:
            return parameters
        return np.append(parameters, 0.0)[self.labels]

    def choose(self, Y: Any) -> Floats:
        """Return the labels (n, m), dense or CSR, at the entries, as (n, K) of 0 and 1."""
        if self.labels is None:
            return np.asarray(Y.toarray() if sparse.issparse(Y) else Y, dtype=np.float64)
        rows, columns = np.nonzero(self.labels < self.m)
        chosen = np.zeros(self.p.shape)
        found = Y[rows, self.labels[rows, columns]]
        chosen[rows, columns] = np.asarray(found.todense() if sparse.issparse(found) else found)
        return chosen

    def to_labels(self, chosen: npt.NDArray[np.int8], kind: Any) -> Any:
        """Return chosen entries (n, K) as labels (n, m) of a kind, as in `to_matrix`."""
        if self.labels is None:
            return chosen
        if kind is list:
            return self.to_lists(chosen)
        at = self.labels[chosen != 0]  # in increasing order in each row
        ends = np.append(0, np.count_nonzero(chosen, axis=1).cumsum())
        return kind((np.ones(len(at), dtype=np.int8), at, ends), shape=(len(chosen), self.m))

    def to_matrix(self, kind: Any) -> Any:
        """Return the probabilities (n, m): an array, or `kind`, a class of CSR or `list`."""
        if self.labels is None:
            return self.p
        if kind is list:
            return self.to_lists(self.p)
        rows, columns = np.nonzero(self.labels < self.m)
        values = self.p[rows, columns]
        return kind((values, (rows, self.labels[rows, columns])), shape=(len(self.p), self.m))

    def counts(self) -> Integers:
        """Return the numbers (n,) of the stored entries of rows."""
        if self.labels is None:
            return np.full(len(self.p), self.m)
        return np.asarray((self.labels < self.m).sum(axis=1))

    def to_lists(self, values: npt.NDArray[Any]) -> list[Any]:
        """Return values (n, K) without padding, an array for each row."""
        return [row[:count] for row, count in zip(values, self.counts().tolist(), strict=True)]


def best_entries(gain: Floats, least: int, most: int) -> npt.NDArray[np.bool_]:
    """Return which entries (n, K) of each row are chosen: those of positive gain, best first.

    Each row gets at least `least` and at most `most` entries.
    """
    if least == 0 and most >= gain.shape[1]:
        return gain > 0.0
    if least == most == 1:
        return np.asarray(gain.argmax(axis=1)[:, None] == np.arange(gain.shape[1]))
    order = np.argsort(-gain, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(gain.shape[1])[None], axis=1)
    return (rank < least) | ((gain > 0.0) & (rank < most))


def dense_entries(p: npt.NDArray[Any]) -> Entries:
    """Return the entries of an array of probabilities (n, m)."""
    return Entries(np.asarray(p, dtype=np.float64), None, p.shape[1])


def sparse_entries(csr: Any) -> Entries:
    """Return the stored entries of a canonical CSR matrix (n, m)."""
    return padded_entries(
        csr.data.astype(np.float64), csr.indices, np.diff(csr.indptr), csr.shape[1]
    )


def padded_entries(values: Any, labels: Any, counts: Any, m: int | None = None) -> Entries:
    """Return the entries of rows of some lengths, one after the other, of m labels.

    Without m the entries of a row are as many labels, by their positions.
    """
    K = max(1, int(counts.max(initial=0)))
    m = K if m is None else m
    inside = np.arange(K) < counts[:, None]  # (n, K)
    p = np.zeros(inside.shape, dtype=values.dtype)
    at = np.full(inside.shape, m, dtype=np.int64)
    p[inside] = values
    at[inside] = np.nonzero(inside)[1] if labels is None else labels
    return Entries(p, at, m)
