"""Draws of the label set."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.blocks import run_blocks
from fgfm._utils.validation import check_labels, real_array
from fgfm.decision._factors import OneRowOfFactors
from fgfm.decision._marginals import Marginals
from fgfm.decision._objective import Objective
from fgfm.decision._problem import DenseProblem

__all__ = ["Samples"]

Real = npt.NDArray[Any]


class Samples(DenseProblem):
    """Draws of the label set of each row, of shape (n, T, m)."""

    def __init__(self, samples: Any) -> None:
        self._samples = real_array(samples, "samples", ("row", "draw", "label"))
        n, T, m = self._samples.shape
        self.shape = n, m
        self.row_bytes = T * m

    def _draws(self, rows: slice) -> Real:
        """Return the draws of some rows, valid."""
        draws = self._samples[rows]
        check_labels(draws, "samples", rows.start)
        return draws

    def decide_block(
        self, rows: slice, objective: Objective, constraints: Any, labels: Real, expected_f: Real
    ) -> None:
        """Decide some of the rows."""
        draws = np.require(self._draws(rows), np.uint8, ["C", "W"])
        arguments = (np.arange(self.shape[1]), *objective.kernel_arguments, labels, expected_f)
        objective.measure.kernels["samples"](draws, *arguments, constraints)

    def marginals(self) -> Marginals:
        """Return the shares of the draws that have each label."""
        n, T, m = self._samples.shape
        marginals = np.empty((n, m))

        def read_block(rows: slice) -> None:
            np.divide(self._draws(rows).sum(axis=1), T, out=marginals[rows])

        run_blocks(n, T * m * self._samples.itemsize, 1, read_block)
        return Marginals(marginals)

    def as_one_row(self, threads: int = 1) -> OneRowOfFactors:
        """Return the rows as the factors of one row, without impossible labels."""
        n, T, m = self._samples.shape
        size = np.empty((n, T), dtype=np.int64)  # of each draw

        def read_sizes(rows: slice) -> None:
            np.sum(self._draws(rows), axis=2, out=size[rows], dtype=np.int64)

        run_blocks(n, T * m * self._samples.itemsize, threads, read_sizes)
        S = int(size.max(initial=1))
        s = np.arange(1, S + 1)

        def read_block(rows: slice) -> tuple[Real, Real]:
            has_size = (size[rows, :, None] == s).astype(np.float64)  # (rows, T, S)
            draws = self._samples[rows].astype(np.float64).transpose(0, 2, 1)  # (rows, m, T)
            P = draws @ has_size / T  # (rows, m, S)
            possible = np.asarray(P.any(axis=2))
            return P[possible], possible

        blocks = run_blocks(n, 8 * (T * (m + S) + m * S), threads, read_block)
        return OneRowOfFactors.of_possible_labels(blocks, S)
