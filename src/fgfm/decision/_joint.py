"""Probabilities of label sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.blocks import run_blocks
from fgfm._utils.validation import check_one_weight_each, real_array, unit_rows
from fgfm.decision._factors import OneRowOfFactors
from fgfm.decision._marginals import Marginals
from fgfm.decision._objective import Objective
from fgfm.decision._problem import DenseProblem

__all__ = ["Joint"]

Real = npt.NDArray[Any]


class Joint(DenseProblem):
    """Label sets that all rows share, and their probabilities in each row.

    Parameters
    ----------
    proba : array-like of shape (n, L)
        The probabilities of the label sets.
    labelsets : sparse matrix of shape (L, m)
        The label sets: ones, valid.
    """

    def __init__(self, proba: Any, labelsets: Any) -> None:
        self._proba = real_array(proba, "proba", ("row", "label set"))
        self._sets = sparse.csr_array(labelsets)
        n, L = self._proba.shape
        check_one_weight_each(L, self._sets.shape[0])
        self.shape = n, int(self._sets.shape[1])
        self.row_bytes = 8 * L
        self._sizes = np.diff(self._sets.indptr)  # (L,)

    def _weights(self, rows: slice) -> Real:
        """Return the probabilities of the label sets in some rows, (rows, L), valid."""
        return unit_rows(self._proba[rows], "proba", rows.start)

    def decide_block(
        self, rows: slice, objective: Objective, constraints: Any, labels: Real, expected_f: Real
    ) -> None:
        """Decide some of the rows."""
        s = np.unique(self._sizes[self._sizes > 0])  # (Q,) the cardinalities that occur
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

    def marginals(self) -> Marginals:
        """Return the marginals."""
        marginals = np.empty(self.shape)

        def read_block(rows: slice) -> None:
            np.minimum(self._weights(rows) @ self._sets, 1.0, out=marginals[rows])

        run_blocks(self.shape[0], self.row_bytes, 1, read_block)
        return Marginals(marginals)

    def as_one_row(self, threads: int = 1) -> OneRowOfFactors:
        """Return the rows as the factors of one row, without impossible labels."""
        n, m = self.shape
        S = int(self._sizes.max(initial=1))
        cardinalities = np.unique(self._sizes[self._sizes > 0])
        sets_of_size = [(s, np.flatnonzero(self._sizes == s)) for s in cardinalities]

        def read_block(rows: slice) -> tuple[Real, Real]:
            weights = self._weights(rows)  # (rows, L)
            P = np.zeros((len(weights), m, S))
            for s, at in sets_of_size:
                P[:, :, s - 1] = weights[:, at] @ self._sets[at]
            possible = np.asarray(P.any(axis=2))
            return P[possible], possible

        blocks = run_blocks(n, 2 * self.row_bytes + 8 * m * S, threads, read_block)
        return OneRowOfFactors.of_possible_labels(blocks, S)
