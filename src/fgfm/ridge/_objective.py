r"""The penalised log-likelihoods of many problems on the same rows.

Problem b has the rows ``Z``, (G, q), perhaps one more column of its own, the weight N[g, b, k] of
class k in row g, and one column of weights per class with weights of its own: C = 1 for two
classes, C = K - 1 beside a reference class with the logit 0, or C = K. With
:math:`\eta = Z \theta_b` its objective is

.. math::

    \sum_g \Big( N_{gb\cdot} \log \sum_k e^{\eta_{gk}} - \sum_k N_{gbk} \eta_{gk} \Big)
    + \lambda_b \sum_{j \ge first} |\theta_{jb}|^2

One product with the rows, sparse or dense, serves the columns of all problems. Everything else is
computed problem by problem in a fixed order, so that (with sparse rows) no bit of a result depends
on the other problems of a batch. Arrays may be tensors on a device (`_arrays`), where the order of
sums is PyTorch's.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm.ridge._arrays import Floats, Integers, contiguous, namespace
from fgfm.ridge._preconditioner import break_even

__all__ = ["Objectives", "ProblemRows", "column_sums", "dots", "logits", "probabilities"]

_TINY = 1e-300  # keeps the curvature of a column of zeros positive


class ProblemRows(NamedTuple):
    """The rows that B problems have in common."""

    Z: Any  # (G, q), dense or CSR, or a tensor: the constant, then the columns
    weight: Floats  # (G,), or (G, B) where the problems weight the rows differently
    extra: Floats | None  # (G, B): one more column for each problem
    n_folds: int = 1  # each has problems of its own


def column_sums(values: Floats) -> Floats:
    """Sum over the first axis, every column separately and in the order of the rows."""
    from fgfm._kernels import add_columns

    if not isinstance(values, np.ndarray):
        return values.sum(axis=0)
    sums = np.empty(values.shape[1:])
    add_columns(_as_columns(values), sums.reshape(-1))
    return sums


def dots(A: Floats, B: Floats) -> Floats:
    """Return the scalar product of two arrays (q, B, C) for each problem, (B,)."""
    from fgfm._kernels import multiply_columns

    if not isinstance(A, np.ndarray):
        return (A * B).sum(axis=(0, 2))
    sums = np.empty(A.shape[1:])
    multiply_columns(_as_columns(A), _as_columns(B), sums.reshape(-1))
    return np.asarray(sums.sum(axis=1))


def _as_columns(values: Floats) -> Floats:
    """Return a C-contiguous array with two axes, the first as it is."""
    return np.ascontiguousarray(values).reshape(len(values), -1)


def logits(Z: Any, extra: Floats | None, theta: Floats) -> Floats:
    """Multiply the rows by weights (q, B, C), those of the extra column last; (G, B, C)."""
    r = Z.shape[1]
    weights = contiguous(theta[:r]).reshape(r, -1)
    product = Csr.of(Z).multiply(weights) if sparse.issparse(Z) else Z @ weights
    eta = product.reshape(-1, *theta.shape[1:])
    if extra is not None:
        eta += extra[:, :, None] * theta[r]
    return eta


class Csr(NamedTuple):
    """Sparse rows as the kernels take them."""

    data: npt.NDArray[Any]
    indices: npt.NDArray[np.uint32]
    indptr: npt.NDArray[np.int64]

    @classmethod
    def of(cls, Z: Any) -> Csr:
        """Return the arrays of a CSR matrix."""
        indices = Z.indices.astype(np.int32, copy=False).view(np.uint32)
        return cls(Z.data, indices, Z.indptr.astype(np.int64))

    def single(self) -> Csr:
        """Return the same in single precision."""
        return self._replace(data=self.data.astype(np.float32))

    def multiply(self, V: Floats) -> Floats:
        """Return the product with columns, each by itself and in the order of the entries."""
        from fgfm._kernels import multiply_rows

        product = np.empty((len(self.indptr) - 1, V.shape[1]))
        multiply_rows(self, V, product)
        return product


def probabilities(eta: Floats, reference: bool) -> tuple[Floats, Floats]:
    """Return the probabilities (G, B, C) and the log-sum-exp of the logits (G, B).

    With `reference` there is one more class, with the logit 0, whose probability is left out.
    """
    xp = namespace(eta)
    if reference and eta.shape[2] == 1:
        small = xp.exp(-xp.abs(eta))
        mass = 1.0 + small
        log_mass = xp.clip(eta, 0.0, None) + xp.log(mass)
        return xp.where(eta < 0.0, small, 1.0) / mass, log_mass[:, :, 0]
    top = xp.amax(eta, axis=2, keepdims=True)  # (G, B, 1)
    if reference:
        top = xp.clip(top, 0.0, None)
    prob = xp.exp(eta - top)
    mass = prob.sum(axis=2, keepdims=True)
    if reference:
        mass += xp.exp(-top)
    prob /= mass
    return prob, (top + xp.log(mass))[:, :, 0]


class Objectives:
    """The objectives of B problems and their derivatives, as functions of theta (q, B, C).

    Parameters
    ----------
    rows : ProblemRows
        Features and weights of the rows.
    counts : ndarray of shape (G, B, C)
        Weight of each class in each row, without the reference class.
    first : int
        First penalised row of theta.
    reference : bool
        Whether there is a reference class, with the logit 0.
    """

    def __init__(self, rows: ProblemRows, counts: Floats, first: int, reference: bool) -> None:
        xp = namespace(counts)
        self.Z, weight, self.extra, n_folds = rows
        self.weight = weight.reshape(len(weight), -1)  # (G, 1) or (G, B)
        self.mass = self.weight.sum(axis=0)  # (1,) or (B,)
        self.counts = counts
        self.first = first
        self.reference = reference
        # products after which the first inverse of a problem pays, and a replacement
        self.break_even = tuple(break_even(self.Z, n_folds, again) for again in (False, True))
        # p (1 - p) <= 1/4: the largest curvature for any probabilities, (q, B, 1)
        squares = self.Z.multiply(self.Z) if sparse.issparse(self.Z) else self.Z * self.Z
        bound = (0.25 * (squares.T @ weight) + _TINY).reshape(self.Z.shape[1], -1, 1)
        self.bound = bound * xp.ones_like(counts[:1, :, :1])
        if self.extra is not None:
            last = 0.25 * column_sums(self.weight * self.extra**2) + _TINY
            self.bound = xp.concatenate([self.bound, last[None, :, None]])
        # The same scale for all features; the constant and the extra column may exceed it.
        largest = xp.amax(bound[1:], axis=0)  # (1, 1) or (B, 1)
        self.flat_scale = xp.maximum(self.bound, largest)
        self.flat_scale[1 : len(bound)] = largest
        self.sparse_rows: tuple[Csr, ...] = ()  # Z and its transpose, in double and in single
        if sparse.issparse(self.Z):
            both = Csr.of(self.Z), Csr.of(self.Z.T.tocsr())
            self.sparse_rows = *both, *(rows.single() for rows in both)

    def take(self, some: Integers) -> Objectives:
        """Return the objectives of some of the problems, in their order."""
        if len(some) == self.counts.shape[1]:
            return self
        part = self.take_for_products(some)
        if len(self.mass) > 1:
            part.weight, part.mass = self.weight[:, some], self.mass[some]
        part.counts = self.counts[:, some]
        part.flat_scale = self.flat_scale[:, some]
        return part

    def take_for_products(self, some: Integers) -> Objectives:
        """Return some of the problems without copying what only values and gradients need."""
        part = copy.copy(self)
        part.extra = None if self.extra is None else self.extra[:, some]
        part.bound = self.bound[:, some]
        return part

    def evaluate(self, eta: Floats, theta: Floats, penalty: Floats) -> tuple[Floats, Floats]:
        """Return the values (B,) and the probabilities (G, B, C)."""
        prob, log_mass = probabilities(eta, self.reference)
        linear = self.counts * eta
        linear = linear[:, :, 0] if linear.shape[2] == 1 else linear.sum(axis=2)
        value = column_sums(self.weight * log_mass - linear)
        return value + penalty * dots(theta[self.first :], theta[self.first :]), prob

    def multiply_transposed(self, U: Floats) -> Floats:
        """Multiply the transposed rows by an array (G, B, C)."""
        flat = contiguous(U).reshape(len(U), -1)
        product = self.sparse_rows[1].multiply(flat) if self.sparse_rows else self.Z.T @ flat
        result = product.reshape(-1, *U.shape[1:])
        if self.extra is None:
            return result
        return namespace(U).concatenate([result, column_sums(self.extra[:, :, None] * U)[None]])

    def gradient(self, prob: Floats, theta: Floats, penalty: Floats) -> Floats:
        """Return the gradients (q, B, C)."""
        result = self.multiply_transposed(self.weight[:, :, None] * prob - self.counts)
        result[self.first :] += 2.0 * penalty[:, None] * theta[self.first :]
        return result
