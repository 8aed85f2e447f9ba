"""Macro and micro decisions with limits on the number of labels of a row; one class per row.

Macro is maximised by coordinate ascent, row by row, and bounded by weak duality: the difference is
the ``gap`` of the decision. Problems of a few rows are solved exactly. Micro is exact by greed
(docs/design.md, "Budgets").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm import _kernels
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
_COLUMN = 14  # numbers that describe a column
_TINY, _ENLARGED = 2.0**-900, 2.0**600  # tiny probabilities, and what they are multiplied by
_CLOSED = 1e-13  # the rounding error of a bound


class _NotProbabilityError(Exception):
    """A value is not in [0, 1], or the sum of a row is not 1."""


class _Found(NamedTuple):
    """A decision: what is chosen, and what bounds it."""

    chosen: Real  # classes (n,), or marks of entries
    multiplier: Floats  # (n,)
    columns: Floats  # (m, 14), as BudgetColumn of the kernels
    filled: Real  # labels of rows that store too few
    expected_f: Floats  # (m,)
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """The distance to the bound."""
        gap = self.bound - self.value
        return gap if gap > _CLOSED else 0.0


class _Rows:
    """What is decided: the probabilities of n rows and m columns, and the limits of a row."""

    least = most = 1
    weighted = False

    def __init__(self, objective: Objective, shape: tuple[int, int]) -> None:
        self.objective, self.shape = objective, shape
        self.parameters = (*objective.kernel_arguments, rules(objective.beta))

    def ascend(self, slope: Floats, loss: Floats) -> tuple[Real, Floats, Floats, Real]:
        """Decide by ascent from gains ``slope * p - loss``."""
        raise NotImplementedError

    def evaluate(self, chosen: Real, multiplier: Floats, columns: Floats) -> tuple[Floats, Floats]:
        """Return the expected F of each column, and the bound of its value less multipliers."""
        raise NotImplementedError

    def search(self, weight: Floats) -> tuple[Real, Real] | None:
        """Return the best decision of a small problem and the sizes of its columns, or None."""
        return None

    def marks_of_best(self, proba: Real, weight: Floats) -> Real | None:
        """Return the marks of the best decision of a small dense problem, or None."""
        marks = np.zeros(self.shape, dtype=np.int8)
        limits = self.least, min(self.most, self.shape[1])
        given = (np.asarray(proba, dtype=np.float64), *self.parameters, *limits, weight)
        return marks if _kernels.native.search_all(*given, marks) else None

    def weights(self, columns: Floats) -> Floats:
        """Return the weight of each column in the value."""
        mean = columns[:, 0]
        if self.weighted and mean.any():
            return np.asarray(mean / mean.sum())
        return np.full(len(mean), 0.0 if self.weighted else 1.0 / len(mean))

    def found(self, chosen: Real, multiplier: Floats, columns: Floats, filled: Real) -> _Found:
        """Evaluate a decision."""
        expected_f, bounds = self.evaluate(chosen, multiplier, columns)
        value = float(self.weights(columns) @ np.nan_to_num(expected_f))
        rows = np.maximum(self.most * multiplier, self.least * multiplier).sum()
        return _Found(
            chosen, multiplier, columns, filled, expected_f, value, float(rows + bounds.sum())
        )

    def evaluate_blocks(
        self, work: Callable[[slice, Floats, Floats], None]
    ) -> tuple[Floats, Floats]:
        """Evaluate blocks of columns, in threads."""
        m = self.shape[1]
        expected_f, bounds = np.empty(m), np.empty(m)

        def run(labels: slice) -> None:
            work(labels, expected_f[labels], bounds[labels])

        run_blocks(m, 1 << 18, self.objective.threads, run)
        return expected_f, bounds


def _best(rows: _Rows) -> _Found:
    """Decide from several starts, as many as the problem is small; then search small ones."""
    n, m = rows.shape
    best = rows.found(*rows.ascend(np.ones(m), np.zeros(m)))
    if best.gap == 0.0:
        return best
    mean = best.columns[:, 0]
    slope = 1.0 / (1.0 + mean)
    small = n * m <= _FEW
    starts = []
    if small or (best.gap > _WIDE_GAP and m <= _FEW_COLUMNS):
        starts = [(slope, np.zeros(m)), (slope, 0.5 * slope)]
        # Rows that no column wants cost least in one column together: in that of the least F.
        for column in np.argsort(np.nan_to_num(best.expected_f), kind="stable")[:_FEW_STARTS]:
            loss = 0.3 * slope
            loss[column] = 0.0
            starts.append((slope, loss))
    for start in starts if small else starts[:_LONG_STARTS]:
        other = rows.found(*rows.ascend(*start))
        bound = min(best.bound, other.bound)
        if other.value > best.value * (1.0 + 1e-13):
            best = other
        best = best._replace(bound=bound)
    exact = rows.search(rows.weights(best.columns)) if best.gap > 0.0 else None
    if exact is not None:
        columns = best.columns.copy()
        columns[:, 5] = exact[1]
        other = rows.found(exact[0], best.multiplier, columns, best.filled)
        best = other if other.value > best.value * (1.0 + 1e-13) else best
        best = best._replace(bound=best.value)
    return best


class _ClassRows(_Rows):
    """One class for each row."""

    def __init__(self, proba: Real, tolerance: float, objective: Objective) -> None:
        super().__init__(objective, proba.shape)
        self.proba, self.tolerance = proba, tolerance

    def ascend(self, slope: Floats, loss: Floats) -> tuple[Real, Floats, Floats, Real]:
        """Decide by ascent."""
        n, m = self.shape
        classes, multiplier, columns = np.empty(n, np.int32), np.empty(n), np.empty((m, _COLUMN))
        results = classes, multiplier, columns
        beta2, zero_division, _, rule = self.parameters
        given = self.proba, self.tolerance, beta2, zero_division, rule, slope, loss
        if not _kernels.native.decide_classes(*given, *results):
            raise _NotProbabilityError
        return *results, classes[:0]

    def evaluate(self, chosen: Real, multiplier: Floats, columns: Floats) -> tuple[Floats, Floats]:
        """Evaluate the columns."""
        beta2, zero_division, _, rule = self.parameters

        def work(labels: slice, expected_f: Floats, bounds: Floats) -> None:
            given = self.proba, chosen, multiplier, columns, beta2, zero_division, rule
            _kernels.native.evaluate_classes(*given, labels.start, expected_f, bounds)

        return self.evaluate_blocks(work)

    def search(self, weight: Floats) -> tuple[Real, Real] | None:
        """Search a small problem."""
        marks = self.marks_of_best(self.proba, weight)
        return (
            None if marks is None else (marks.argmax(axis=1).astype(np.int32), marks.sum(axis=0))
        )


class _LimitedRows(_Rows):
    """Several labels for each row, between limits."""

    def __init__(self, objective: Objective, shape: tuple[int, int], weighted: bool) -> None:
        super().__init__(objective, shape)
        self.weighted = weighted
        self.least, self.most = _limits(objective, shape[1])


class _DenseRows(_LimitedRows):
    def __init__(self, proba: Real, objective: Objective, weighted: bool) -> None:
        super().__init__(objective, proba.shape, weighted)
        self.proba = proba

    def ascend(self, slope: Floats, loss: Floats) -> tuple[Real, Floats, Floats, Real]:
        """Decide by ascent."""
        n, m = self.shape
        results = np.zeros((n, m), np.int8), np.empty(n), np.empty((m, _COLUMN))
        given = (*self.parameters, self.weighted, self.least, self.most, slope, loss)
        _kernels.native.limit_dense_rows(self.proba, *given, *results)
        return *results, results[0][:0, 0]

    def evaluate(self, chosen: Real, multiplier: Floats, columns: Floats) -> tuple[Floats, Floats]:
        """Evaluate the columns."""

        def work(labels: slice, expected_f: Floats, bounds: Floats) -> None:
            given = self.proba, chosen, multiplier, columns, *self.parameters
            _kernels.native.evaluate_dense_columns(*given, labels.start, expected_f, bounds)

        return self.evaluate_blocks(work)

    def search(self, weight: Floats) -> tuple[Real, Real] | None:
        """Search a small problem."""
        marks = self.marks_of_best(self.proba, weight)
        return None if marks is None else (marks, marks.sum(axis=0))


class _SparseRows(_LimitedRows):
    def __init__(self, csr: Any, objective: Objective, weighted: bool) -> None:
        super().__init__(objective, csr.shape, weighted)
        self.data = csr.data
        self.labels = csr.indices.astype(np.int32)
        self.indptr = csr.indptr.astype(np.int64)
        # The entries column by column: the transpose of their positions
        positions = (np.arange(csr.nnz), csr.indices, csr.indptr)
        columns = sparse.csr_array(positions, shape=csr.shape).tocsc()
        self.order, self.places = columns.data, columns.indices.astype(np.int32)
        self.ends = columns.indptr.astype(np.int64)

    def ascend(self, slope: Floats, loss: Floats) -> tuple[Real, Floats, Floats, Real]:
        """Decide by ascent."""
        n, m = self.shape
        missing = int(np.maximum(self.least - np.diff(self.indptr), 0).sum())
        results = np.zeros(len(self.data), np.int8), np.empty(n), np.empty((m, _COLUMN))
        filled = np.empty(missing, np.int32)
        given = (*self.parameters, self.weighted, self.least, self.most, slope, loss)
        _kernels.native.limit_csr_rows(
            self.data, self.labels, self.indptr, *given, *results, filled
        )
        return *results, filled

    def evaluate(self, chosen: Real, multiplier: Floats, columns: Floats) -> tuple[Floats, Floats]:
        """Evaluate the columns."""
        data, marks = self.data[self.order], chosen[self.order]
        floor = max(0.0, -float(multiplier.min(initial=0.0)))

        def work(labels: slice, expected_f: Floats, bounds: Floats) -> None:
            ends = self.ends[labels.start : labels.stop + 1]
            part = slice(ends[0], ends[-1])
            _kernels.native.evaluate_csc_columns(
                data[part],
                self.places[part],
                ends - ends[0],
                marks[part],
                multiplier,
                floor,
                columns[labels],
                *self.parameters,
                expected_f,
                bounds,
            )

        return self.evaluate_blocks(work)

    def found(self, chosen: Real, multiplier: Floats, columns: Floats, filled: Real) -> _Found:
        """Evaluate a decision; negative multipliers may bound it less closely than 0."""
        found = super().found(chosen, multiplier, columns, filled)
        if self.least and multiplier.min(initial=0.0) < 0.0:
            other = super().found(chosen, np.maximum(multiplier, 0.0), columns, filled)
            found = found._replace(bound=min(found.bound, other.bound))
        return found


def maximise_classes(
    proba: Real, tolerance: float, objective: Objective
) -> tuple[npt.NDArray[np.int64], Floats, float] | None:
    """Decide one class for each row of probabilities, (n, C).

    Returns the classes (n,), the expected F of each class (C,), and the gap; or None if a value is
    not in [0, 1], or the sum of a row differs from 1 by more than `tolerance`.
    """
    try:
        best = _best(_ClassRows(proba, tolerance, objective))
    except _NotProbabilityError:
        return None
    return best.chosen.astype(np.int64), best.expected_f, best.gap


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
    dense = isinstance(valid, np.ndarray)
    if average == "micro":
        return _decide_micro(valid, objective, least, most)
    small = not dense and n * m <= _MOST_DENSE[least > 0]
    if dense or small:
        entries = np.ascontiguousarray(valid if dense else valid.toarray())
        best = _best(_DenseRows(entries, objective, average == "weighted"))
        labels = best.chosen if dense else type(valid)(best.chosen)
    else:
        best = _best(_SparseRows(valid, objective, average == "weighted"))
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
    _kernels.native.mark_top(data, indptr, least, most, marks)
    sizes = np.diff(indptr)
    missing = np.maximum(least - sizes, 0)
    first, others = np.flatnonzero(marks == 2), np.flatnonzero((marks == 1) & (data > 0.0))
    others = others[np.argsort(-data[others], kind="stable")]
    forced = len(first) + int(missing.sum())
    sequence = np.concatenate(
        [np.sort(data[first])[::-1], np.zeros(forced - len(first)), data[others]]
    )
    count, expected_f = _kernels.native.decide_prefix(
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
