"""Label sets with probabilities: draws of each row, or sets that all rows share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.blocks import run_blocks
from fgfm._utils.validation import check_labels, check_one_weight_each, real_array, unit_rows
from fgfm.decision._factors import OneRowOfFactors
from fgfm.decision._marginals import Marginals
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._problem import DenseProblem

__all__ = ["Joint", "Samples"]

Real = npt.NDArray[Any]


class LabelSets(DenseProblem):
    """Rows of which every label set that can occur is given."""

    def proba(self, rows: slice) -> Real:
        """Return the marginals of some rows, (rows, m)."""
        raise NotImplementedError

    def largest(self) -> int:
        """Return the largest number of labels in a set, at least 1."""
        raise NotImplementedError

    def P(self, rows: slice, S: int) -> Real:
        """Return P of some rows, (rows, m, S)."""
        raise NotImplementedError

    def marginals(self) -> Marginals:
        marginals = np.empty(self.shape)

        def read_block(rows: slice) -> None:
            np.minimum(self.proba(rows), 1.0, out=marginals[rows])

        run_blocks(self.shape[0], self.row_bytes, 1, read_block)
        return Marginals(marginals)

    def as_one_row(self, threads: int = 1) -> OneRowOfFactors:
        """Return the rows as the factors of one row, without impossible labels."""
        n, m = self.shape
        S = self.largest()

        def read_block(rows: slice) -> tuple[Real, Real]:
            P = self.P(rows, S)
            possible = np.asarray(P.any(axis=2))
            return P[possible], possible

        blocks = run_blocks(n, 8 * (self.row_bytes + m * S), threads, read_block)
        return OneRowOfFactors.of_possible_labels(blocks, S)


class Samples(LabelSets):
    """Draws of the label set of each row, of shape (n, T, m)."""

    def __init__(self, samples: Any) -> None:
        self._samples = real_array(samples, "samples", ("row", "draw", "label"))
        n, T, m = self._samples.shape
        self.shape = n, m
        self.row_bytes = T * m

    def _draws(self, rows: slice) -> Real:
        """Return the draws of some rows, (rows, T, m), valid."""
        draws = self._samples[rows]
        check_labels(draws, "samples", rows.start)
        return draws

    def decide_block(
        self, decision: Decision, objective: Objective, constraints: Any, rows: slice
    ) -> None:
        labels, expected_f = decision.labels[rows], decision.expected_f[rows]
        draws = np.require(self._draws(rows), np.uint8, ["C", "W"])
        arguments = (np.arange(self.shape[1]), *objective.kernel_arguments, labels, expected_f)
        objective.measure.kernels["samples"](draws, *arguments, constraints)

    def proba(self, rows: slice) -> Real:
        share: Real = self._draws(rows).sum(axis=1) / self._samples.shape[1]
        return share

    def largest(self) -> int:
        n = self.shape[0]
        sizes = run_blocks(
            n, 8 * self.row_bytes, 1, lambda rows: self._draws(rows).sum(axis=2).max(initial=1)
        )
        return int(max(sizes))

    def P(self, rows: slice, S: int) -> Real:
        draws = self._samples[rows].astype(np.float64)  # (rows, T, m)
        has_size = draws.sum(axis=2)[:, :, None] == np.arange(1, S + 1)  # (rows, T, S)
        P: Real = draws.transpose(0, 2, 1) @ has_size.astype(np.float64) / draws.shape[1]
        return P


class Joint(LabelSets):
    """Label sets that all rows share, and their probabilities in each row.

    `proba` is (n, L); `labelsets` is a sparse matrix of ones, (L, m), valid.
    """

    def __init__(self, proba: Any, labelsets: Any) -> None:
        self._proba = real_array(proba, "proba", ("row", "label set"))
        self._sets = sparse.csr_array(labelsets)
        n, L = self._proba.shape
        check_one_weight_each(L, self._sets.shape[0])
        self.shape = n, int(self._sets.shape[1])
        self.row_bytes = 8 * L
        self._sizes = np.diff(self._sets.indptr)  # (L,)
        self._cardinalities = np.unique(self._sizes[self._sizes > 0])  # those that occur

    def _weights(self, rows: slice) -> Real:
        """Return the probabilities of the label sets in some rows, (rows, L), valid."""
        return unit_rows(self._proba[rows], "proba", rows.start)

    def decide_block(
        self, decision: Decision, objective: Objective, constraints: Any, rows: slice
    ) -> None:
        labels, expected_f = decision.labels[rows], decision.expected_f[rows]
        s = self._cardinalities  # (Q,)
        column = np.where(self._sizes > 0, np.searchsorted(s, self._sizes), -1)  # (L,)
        objective.measure.kernels["joint"](
            self._sets.indptr.astype(np.int64),
            self._sets.indices.astype(np.int64),
            column.astype(np.int64),
            s.astype(np.float64),
            np.arange(self.shape[1]),
            self._weights(rows),
            *objective.kernel_arguments,
            labels,
            expected_f,
            constraints,
        )

    def proba(self, rows: slice) -> Real:
        marginals: Real = self._weights(rows) @ self._sets
        return marginals

    def largest(self) -> int:
        return int(self._sizes.max(initial=1))

    def P(self, rows: slice, S: int) -> Real:
        weights = self._weights(rows)  # (rows, L)
        P = np.zeros((len(weights), self.shape[1], S))
        for s in self._cardinalities:
            at = np.flatnonzero(self._sizes == s)
            P[:, :, s - 1] = weights[:, at] @ self._sets[at]
        return P
