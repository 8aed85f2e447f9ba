"""Macro and micro decisions with limits on the number of labels of a row; one class per row.

Macro is maximised by coordinate ascent, row by row, and bounded by weak duality: the difference is
the ``gap`` of the decision. One class per row is the limits 1 and 1. Micro is exact by greed
(docs/design.md, "Budgets").
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import native
from fgfm._utils.blocks import run_blocks
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._quadrature import rules

__all__ = ["decide_limited", "maximise_classes"]

Real = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
_FEW = 1 << 13  # entries: such problems are started several times
_FEW_STARTS = 8
_LONG_STARTS = 4
_WIDE_GAP = 1e-3  # longer problems are started again where the gap is wider
_FEW_COLUMNS = 100  # more are not started again
# Cells of sparse problems that are decided as dense ones: few; more with a least number of labels,
# since entries that are not stored are not considered otherwise
_MOST_DENSE = 1 << 12, 1 << 20
_TINY, _ENLARGED = 2.0**-900, 2.0**600  # tiny probabilities, and what they are multiplied by
_CLOSED = 1e-13  # the rounding error of a bound


class _Ascent(NamedTuple):
    """A decision, and what bounds it."""

    chosen: Real  # marks of entries
    filled: Real  # labels of rows that store too few
    mean: Floats  # (m,), of the columns
    expected_f: Floats  # (m,)
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """The distance to the bound."""
        gap = self.bound - self.value
        return gap if gap > _CLOSED else 0.0


class _Rows:
    """Probabilities of n rows and m columns, dense, and the limits of a row."""

    def __init__(
        self,
        proba: Any,
        objective: Objective,
        limits: tuple[int, int],
        weighted: bool = False,
        tolerance: float = np.inf,
    ) -> None:
        self.proba, self.threads = proba, objective.threads
        self.shape = proba.shape
        self.least, self.most = limits
        self.weighted = weighted
        parameters = *objective.kernel_arguments, rules(objective.beta), *limits
        self.task = native.BudgetTask(*parameters, weighted, tolerance)

    def decide(self, *start: Floats) -> tuple[Any, Real, Floats, Real]:
        """Decide by ascent; return columns, marks, multipliers and labels of rows with too few.

        The columns are None if a value is not in [0, 1], or the sum of a row not 1.
        """
        marks, multiplier = np.zeros(self.shape, np.int8), np.empty(self.shape[0])
        columns = native.decide_budget_dense(self.task, self.proba, *start, marks, multiplier)
        return columns, marks, multiplier, np.empty(0, np.int32)

    def evaluate(self, labels: slice, columns: Any, *given: Any) -> None:
        """Fill in the expected F of some columns, and the bounds of their values."""
        marks, multiplier, *results = given
        native.evaluate_budget_dense(
            self.task, columns, self.proba, marks, multiplier, labels.start, *results
        )

    def evaluate_all(self, columns: Any, marks: Real, multiplier: Floats) -> tuple[Floats, float]:
        """Return the expected F of each column, and the bound of the value."""
        m = self.shape[1]
        expected_f, bounds = np.empty(m), np.empty(m)

        def work(labels: slice) -> None:
            self.evaluate(labels, columns, marks, multiplier, expected_f[labels], bounds[labels])

        run_blocks(m, 1 << 18, self.threads, work)
        rows = np.maximum(self.most * multiplier, self.least * multiplier)
        return expected_f, float(rows.sum() + bounds.sum())

    def ascend(self, slope: Floats, loss: Floats) -> _Ascent | None:
        """Decide by ascent from gains ``slope * p - loss``; return None if rows are not valid."""
        columns, marks, multiplier, filled = self.decide(slope, loss)
        if columns is None:
            return None
        expected_f, bound = self.evaluate_all(columns, marks, multiplier)
        mean = np.array(columns.mean)
        if isinstance(self, _SparseRows) and multiplier.min(initial=0.0) < 0.0:
            # Entries that are not stored bound the thresholds: 0 may bound more closely
            bound = min(bound, self.evaluate_all(columns, marks, np.maximum(multiplier, 0.0))[1])
        weight = mean if self.weighted else np.ones(len(mean))
        value = float(weight @ np.nan_to_num(expected_f) / (weight.sum() or 1.0))
        return _Ascent(marks, filled, mean, expected_f, value, bound)


class _SparseRows(_Rows):
    """The same in CSR."""

    def __init__(self, csr: Any, *parameters: Any) -> None:
        super().__init__(csr, *parameters)
        self.indptr = csr.indptr.astype(np.int64)
        # The entries column by column: the transpose of their positions
        positions = (np.arange(csr.nnz), csr.indices, csr.indptr)
        columns = sparse.csr_array(positions, shape=csr.shape).tocsc()
        self.order, self.places = columns.data, columns.indices.astype(np.int32)
        self.ends = columns.indptr.astype(np.int64)

    def decide(self, *start: Floats) -> tuple[Any, Real, Floats, Real]:
        """Decide by ascent."""
        data, indices = self.proba.data, self.proba.indices.astype(np.int32)
        missing = int(np.maximum(self.least - np.diff(self.indptr), 0).sum())
        marks, multiplier = np.zeros(len(data), np.int8), np.empty(self.shape[0])
        filled = np.empty(missing, np.int32)
        given = data, indices, self.indptr, *start
        columns = native.decide_budget_csr(self.task, *given, marks, multiplier, filled)
        return columns, marks, multiplier, filled

    def evaluate(self, labels: slice, columns: Any, *given: Any) -> None:
        """Evaluate some columns."""
        marks, multiplier, *results = given
        ends = self.ends[labels.start : labels.stop + 1]
        order = self.order[ends[0] : ends[-1]]
        places = self.places[ends[0] : ends[-1]]
        entries = self.proba.data[order], places, ends - ends[0], marks[order]
        native.evaluate_budget_csc(
            self.task, columns, *entries, multiplier, labels.start, *results
        )


def _best(rows: _Rows) -> _Ascent | None:
    """Decide from several starts, as many as the problem is small; None if rows are not valid."""
    n, m = rows.shape
    best = rows.ascend(np.ones(m), np.zeros(m))
    if best is None or best.gap == 0.0:
        return best
    small = n * m <= _FEW
    if not small and (best.gap <= _WIDE_GAP or m > _FEW_COLUMNS):
        return best
    slope = 1.0 / (1.0 + best.mean)
    starts = [(slope, np.zeros(m)), (slope, 0.5 * slope)]
    # Rows that no column wants cost least in one column together: in that of the least F.
    for column in np.argsort(np.nan_to_num(best.expected_f), kind="stable")[:_FEW_STARTS]:
        loss = 0.3 * slope
        loss[column] = 0.0
        starts.append((slope, loss))
    for start in starts if small else starts[:_LONG_STARTS]:
        other = rows.ascend(*start)
        assert other is not None
        bound = min(best.bound, other.bound)
        if other.value > best.value * (1.0 + 1e-13):
            best = other
        best = best._replace(bound=bound)
    return best


def maximise_classes(
    proba: Real, tolerance: float, objective: Objective, weighted: bool
) -> tuple[npt.NDArray[np.int64], Floats, float] | None:
    """Decide one class for each row of probabilities, (n, C).

    Returns the classes (n,), the expected F of each class (C,), and the gap; or None if a value is
    not in [0, 1], or the sum of a row differs from 1 by more than `tolerance`.
    """
    best = _best(_Rows(proba, objective, (1, 1), weighted, tolerance))
    if best is None:
        return None
    classes = np.flatnonzero(best.chosen.view(np.bool_)).astype(np.int64, copy=False)
    classes %= proba.shape[1]
    return classes, best.expected_f, best.gap


def _limits(objective: Objective, m: int) -> tuple[int, int]:
    """Return the least and the largest number of labels of a row."""
    limits = objective.limits
    assert limits is not None
    if limits.min_labels > m:
        raise ValueError(f"min_labels is {limits.min_labels}, but there are {m} labels")
    return limits.min_labels, m if limits.max_labels is None else min(limits.max_labels, m)


def decide_limited(problem: Any, objective: Objective, average: str) -> Decision:
    """Decide all rows together, each with a limited number of labels.

    Parameters
    ----------
    problem : Marginals or SparseMarginals
        The probabilities.
    objective : Objective
        What is maximised, with limits.
    average : {"macro", "weighted", "micro"}
        Whether columns or all entries are decided.

    Returns
    -------
    Decision
        With the gap.
    """
    from fgfm.decision._problem import decide

    n, m = problem.shape
    least, most = _limits(objective, m)
    if least == 0 and most == m:
        return decide(problem, objective._replace(limits=None), average)
    valid = _with_digits(problem.valid(), objective, average)
    if average == "micro":
        return _decide_micro(valid, objective, least, most)
    dense = isinstance(valid, np.ndarray)
    parameters = objective, (least, most), average == "weighted"
    if dense or n * m <= _MOST_DENSE[least > 0]:
        best = _best(_Rows(np.ascontiguousarray(valid if dense else valid.toarray()), *parameters))
        assert best is not None
        labels = best.chosen if dense else type(valid)(best.chosen)
    else:
        best = _best(_SparseRows(valid, *parameters))
        assert best is not None
        labels = _sparse_labels(valid, best.chosen, best.filled, least)
    return Decision(labels, best.expected_f, best.gap)


def _with_digits(valid: Any, objective: Objective, average: str) -> Any:
    """Return valid probabilities; under `nonempty`, those of impossibly rare labels are enlarged.

    Given that y is not 0, a common factor of probabilities below 2^-900 changes nothing, and
    products of them keep their digits.
    """
    if not objective.nonempty or not valid.size:
        return valid
    dense = isinstance(valid, np.ndarray)
    top = np.asarray(valid.max(axis=0) if dense else valid.max(axis=0).toarray()).reshape(-1)
    if average != "macro":  # columns are weighed against each other
        top = np.full_like(top, top.max())
    tiny = (top > 0.0) & (top < _TINY)
    if not tiny.any():
        return valid
    factor = np.where(tiny, _ENLARGED, 1.0)
    if dense:
        return valid * factor
    larger = valid.copy()
    larger.data *= factor[valid.indices]
    return larger


def _sparse_labels(csr: Any, chosen: Real, filled: Real, least: int) -> Any:
    """Return marks of entries, and the labels of rows with too few entries, as CSR."""
    n, m = csr.shape
    sizes = np.diff(csr.indptr)
    at = np.flatnonzero(chosen)
    row = np.concatenate(
        [np.repeat(np.arange(n), sizes)[at], np.repeat(np.arange(n), np.maximum(least - sizes, 0))]
    )
    column = np.concatenate([csr.indices[at], filled.astype(csr.indices.dtype)])
    labels = type(csr)((np.ones(len(row), np.int8), (row, column)), shape=(n, m))
    labels.sort_indices()
    return labels


def _decide_micro(valid: Any, objective: Objective, least: int, most: int) -> Decision:
    """Decide all entries together: the best number of entries in the order of greed.

    The `least` most probable labels of each row come first, then those up to `most`, from the most
    probable one on.
    """
    n, m = valid.shape
    dense = isinstance(valid, np.ndarray)
    csr = (
        sparse.csr_array(
            (valid.ravel(), np.tile(np.arange(m), n), np.arange(0, n * m + 1, m)), shape=(n, m)
        )
        if dense
        else valid
    )
    data, indptr = np.asarray(csr.data, dtype=np.float64), csr.indptr.astype(np.int64)
    marks = np.zeros(len(data), np.int8)
    native.mark_top(data, indptr, least, most, marks)
    sizes = np.diff(indptr)
    missing = np.maximum(least - sizes, 0)
    first, others = np.flatnonzero(marks == 2), np.flatnonzero((marks == 1) & (data > 0.0))
    others = others[np.argsort(-data[others], kind="stable")]
    forced = len(first) + int(missing.sum())
    sequence = np.concatenate(
        [np.sort(data[first])[::-1], np.zeros(forced - len(first)), data[others]]
    )
    count, expected_f = native.decide_prefix(
        data, sequence, forced, *objective.kernel_arguments, rules(objective.beta)
    )
    chosen = np.zeros(len(data), np.int8)
    chosen[first] = 1
    chosen[others[: max(0, count - forced)]] = 1
    if dense:
        return Decision(chosen.reshape(n, m), expected_f)
    filled = [
        np.setdiff1d(np.arange(min(m, least)), csr.indices[indptr[i] : indptr[i + 1]])[
            : missing[i]
        ]
        for i in np.flatnonzero(missing)
    ]
    labels = np.concatenate([np.empty(0, np.int64), *filled])
    return Decision(_sparse_labels(csr, chosen, labels, least), expected_f)
