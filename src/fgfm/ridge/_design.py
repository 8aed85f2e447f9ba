"""The rows that models are fitted to: equal ones grouped, centred, rotated; and their folds.

Everything here depends on X and on the column that may be appended to it, not on the target: it is
made once and serves all targets.
"""

from __future__ import annotations

import numbers
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.model_selection import KFold

from fgfm._utils.parallel import Shared

__all__ = ["Design", "Fold", "Grouped", "Part", "group_rows", "make_folds"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NEWTON_LIMIT = 300  # up to here (columns * (classes - 1)) a Hessian is formed and factorised
_TURNED_ROWS = (
    1024  # up to here weights are turned into the span of dense rows, if that is smaller
)
# Numbers in a sparse X that is made dense (128 MB), and in the products of columns two by two.
_DENSE_LIMIT = 1 << 24
_PAIRS_LIMIT = 1 << 20
_PAIRED_COLUMNS = 24  # with more, a matrix product per pair of classes is as fast
_KEPT = 16  # extra columns whose groups are kept: targets that share one come together


class Fold(NamedTuple):
    """The rows to train on, and those to judge by."""

    train: Integers
    test: Integers


class Grouped(NamedTuple):
    """Distinct rows, and what leads back from them to the columns of X."""

    Z: Any  # (G, q): the constant, then the columns, centred, perhaps rotated; or CSR
    pairs: Floats  # (G, q (q + 1) / 2): its columns two by two; empty where that is too much
    of_row: Integers  # (n,): the group of each row
    mean: Floats  # (p,): what was subtracted
    basis: Floats | None  # (q - 1, p): the rotation

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Give weights (J, p) and intercepts (J,) for the columns as they came."""
        weights = theta[1:].T  # (J, q - 1)
        if self.basis is not None:
            weights = weights @ self.basis
        return weights, theta[0] - weights @ self.mean


class Part:
    """The groups that some rows belong to.

    Parameters
    ----------
    groups : Grouped
        All groups.
    weight : ndarray of shape (n,)
        Weights of all rows.
    rows : ndarray of shape (m,) or slice
        The rows.
    whole : bool, default=False
        Keep the groups of other rows too, with the weight 0: all groups need no copy.
    """

    def __init__(self, groups: Grouped, weight: Floats, rows: Any, whole: bool = False) -> None:
        self.groups = groups
        self.rows = rows
        G = groups.Z.shape[0]
        total = np.bincount(groups.of_row[rows], weight[rows], minlength=G).astype(np.float64)
        self.kept = np.arange(G) if whole else np.flatnonzero(total)  # (K,)
        self.weight = total[self.kept]
        self.Z = groups.Z if len(self.kept) == G else groups.Z[self.kept]


def group_rows(columns: Iterable[npt.NDArray[Any]], n: int) -> Integers | None:
    """Give each row the number of its group of equal rows, or None where few rows are equal.

    One column after the other splits the groups that there are. It ends as soon as there are more
    than n / 2 of them: continuous columns cost one sort, not p.
    """
    of_row = np.zeros(n, dtype=np.int64)
    for column in columns:
        values, code = np.unique(column, return_inverse=True)
        if len(values) == 1:
            continue
        # below n^2, for n values and n groups at most
        values, of_row = np.unique(of_row * len(values) + code, return_inverse=True)
        if 2 * len(values) > n:
            return None
    return of_row


def _pairs(Z: Floats) -> Floats:
    G, q = Z.shape
    if q > _PAIRED_COLUMNS or G * q * (q + 1) // 2 > _PAIRS_LIMIT:
        return np.empty((0, 0))
    j, i = np.tril_indices(q)
    return np.ascontiguousarray(Z[:, j] * Z[:, i])


class Design(Shared):
    """The features, seen as the two solvers need them; threads may share it.

    A copy on another machine makes its own groups, for all jobs there.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, p)
        Features, finite float64.
    weight : ndarray of shape (n,)
        Weights of the rows, positive.
    centred : bool
        Whether columns may be shifted: so it is where the intercept is not penalised. It spares
        the Hessian the large entries that a far-off mean gives it.
    """

    def __init__(self, X: Any, weight: Floats, *, centred: bool) -> None:
        self.X = X
        self.weight = weight
        self.centred = centred
        self.n, self.p = X.shape
        self.is_sparse = sparse.issparse(X)
        self._begin()

    def _begin(self) -> None:
        """Begin without what is made when it is asked for."""
        self._base: tuple[Floats, Integers | None] | None = None
        self._grouped: dict[int | None, tuple[Any, Grouped]] = {}
        self._sparse: Grouped | None = None
        self._parts: weakref.WeakValueDictionary[tuple[int, int, bool], Part] = (
            weakref.WeakValueDictionary()
        )
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def suits_newton(self, n_logits: int, extra: Floats | None) -> bool:
        """Tell whether a model of so many logits is small enough for second derivatives."""
        p = self.p + (extra is not None)
        small = (min(p, self.n) + 1) * n_logits <= NEWTON_LIMIT
        return small and (not sparse.issparse(self.X) or self.n * p <= _DENSE_LIMIT)

    def grouped(self, extra: Floats | None) -> Grouped:
        """Give the distinct rows of X, made dense, with `extra` as its last column."""
        key = None if extra is None else id(extra)
        with self._lock:
            if key not in self._grouped:
                # extra is kept: its id stays taken
                self._grouped[key] = extra, self._group(extra)
                old = [k for k in self._grouped if k is not None]
                for k in old[: len(old) - _KEPT]:
                    del self._grouped[k]
            return self._grouped[key][1]

    def sparse_rows(self) -> Grouped:
        """Give the rows of a sparse X, as they came but for the constant."""
        with self._lock:
            if self._sparse is None:
                one = sparse.csr_array(np.ones((self.n, 1)))
                Z = sparse.hstack([one, sparse.csr_array(self.X)], format="csr")
                Z.sum_duplicates()  # columns come in order, too
                self._sparse = Grouped(
                    Z, np.empty((0, 0)), np.arange(self.n), np.zeros(self.p), None
                )
            return self._sparse

    def part(self, groups: Grouped, rows: Integers, whole: bool = False) -> Part:
        """Give the groups of the rows of a fold: one copy, as long as somebody uses it."""
        key = id(groups.Z), id(rows), whole  # a part holds both, so that they stay taken
        with self._lock:
            part = self._parts.get(key)
            if part is None:
                part = self._parts[key] = Part(groups, self.weight, rows, whole)
            return part

    def mean(self, X: Floats) -> Floats:
        """Give what is subtracted from each column."""
        if not self.centred:
            return np.zeros(X.shape[1])
        return np.asarray(np.average(X, axis=0, weights=self.weight))

    def _group(self, extra: Floats | None) -> Grouped:
        if self._base is None:
            dense = self.X.toarray() if sparse.issparse(self.X) else self.X
            self._base = dense, group_rows(dense.T, self.n)
        dense, of_row = self._base
        if of_row is not None and extra is not None:
            of_row = group_rows((of_row, extra), self.n)
        X = dense if extra is None else np.column_stack([dense, extra])
        mean = self.mean(X)
        if of_row is None:
            of_row = np.arange(self.n)
        else:
            first = np.empty(int(of_row.max()) + 1, dtype=np.int64)
            first[of_row[::-1]] = np.arange(self.n)[::-1]
            X = X[first]
        columns = X - mean if len(X) > 1 else np.zeros_like(X)  # (G, p)
        basis = None
        if _TURNED_ROWS >= len(columns) < columns.shape[1]:
            # Turning the weights changes neither their length nor the logits: G columns suffice.
            left, size, basis = np.linalg.svd(columns, full_matrices=False)
            columns = left * size
        Z = np.empty((len(columns), columns.shape[1] + 1))
        Z[:, 0] = 1.0
        Z[:, 1:] = columns
        return Grouped(Z, _pairs(Z), of_row, mean, basis)


def _check_fold(train: Any, test: Any, at: int, n: int, place: Integers) -> Fold:
    rows = []
    for name, part in (("train", train), ("test", test)):
        index = np.asarray(part)
        if index.dtype == bool and index.shape == (n,):
            index = np.flatnonzero(index)
        if index.ndim != 1 or (len(index) and index.dtype.kind not in "iu"):
            raise TypeError(f"cv: the {name} rows of fold {at} are no flat array of row indices")
        if len(index) and not (-n <= index.min() and index.max() < n):
            raise ValueError(
                f"cv: the {name} rows of fold {at} run from {index.min()} to {index.max()}; "
                f"with {n} rows, indices must run from 0 to {n - 1}"
            )
        kept = place[index.astype(np.int64)]
        kept = kept[kept >= 0]
        if len(kept) == 0:
            raise ValueError(
                f"cv: fold {at} has no {name} row of positive weight; it must have one at least"
            )
        rows.append(kept)
    return Fold(rows[0], rows[1])


def _check_folds(splits: Iterable[Any], n: int, place: Integers) -> list[Fold]:
    folds = [_check_fold(train, test, f, n, place) for f, (train, test) in enumerate(splits)]
    if not folds:
        raise ValueError("cv is empty: it must give one fold at least")
    return folds


def make_folds(
    cv: Any, random_state: Any, X: Any, rows: Integers, n: int
) -> Callable[[npt.NDArray[Any]], list[Fold]]:
    """Give the function from a target to its folds; all indices count the kept rows.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        What the user passed. An int makes shuffled folds, the same for all targets, and no more
        than there are rows. A splitter sees the kept rows only; the indices of an iterable count
        all rows.
    random_state : int, RandomState instance or None
        Shuffles the folds that an int makes.
    X : ndarray or CSR of shape (n_kept, p)
        Features of the kept rows.
    rows : ndarray of shape (n_kept,)
        The rows that are kept, those of positive weight.
    n : int
        Number of all rows.

    Returns
    -------
    callable
        From y of shape (n_kept,) to a list of folds.
    """
    kept = np.arange(len(rows))
    if isinstance(cv, (numbers.Integral, np.integer)) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv is {cv}: it must be 2 folds or more")
        splits = min(int(cv), len(rows))
        shared: list[Fold] = []
        if splits > 1:
            splitter = KFold(splits, shuffle=True, random_state=random_state)
            shared = [Fold(train, test) for train, test in splitter.split(kept)]
        return lambda y: shared
    if hasattr(cv, "split") and not isinstance(cv, str):
        return lambda y: _check_folds(cv.split(X, y), len(rows), kept)
    if isinstance(cv, str) or not isinstance(cv, Iterable):
        raise TypeError(
            f"cv is {cv!r}: it must be a number of folds, a scikit-learn splitter, or an iterable "
            "of (train, test) row indices"
        )
    place = np.full(n, -1, dtype=np.int64)
    place[rows] = kept
    given = _check_folds(cv, n, place)
    return lambda y: given
