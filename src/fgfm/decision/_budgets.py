"""Macro and micro decisions with limits on the number of labels of a row; one class per row.

Macro is maximised by coordinate ascent, row by row, and bounded by weak duality: the difference is
the ``gap`` of the decision. One class per row is the limits 1 and 1. Micro is exact by greed
(docs/design.md, "Budgets").
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import native
from fgfm._utils.blocks import BLOCK_BYTES, run_blocks
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._quadrature import rules

__all__ = ["decide_limited", "maximise_classes"]

Real = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
_STRIP = 4  # columns that are evaluated at once, at least
_SAMPLED_ROWS = 1 << 14  # at least, of those that a long problem is started from
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
    gains: Any  # of adding a row to each column
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
    """Probabilities of n rows and m columns, dense in C order or CSR, and the limits of a row."""

    def __init__(
        self,
        proba: Any,
        objective: Objective,
        limits: tuple[int, int],
        weighted: bool = False,
    ) -> None:
        self.proba, self.objective, self.limits = proba, objective, limits
        self.weighted = weighted
        parameters = objective.kernel_argument, rules(objective.beta), *limits
        self.task = native.BudgetTask(*parameters, weighted)
        n, m = proba.shape
        if isinstance(proba, np.ndarray):
            self.entries = proba.reshape(-1), None, np.arange(0, n * m + 1, max(m, 1))[: n + 1]
            return
        self.entries = proba.data, proba.indices.astype(np.int32), proba.indptr.astype(np.int64)
        # The entries column by column: the transpose of their positions
        positions = (np.arange(proba.nnz), proba.indices, proba.indptr)
        columns = sparse.csr_array(positions, shape=proba.shape).tocsc()
        self.order, self.places = columns.data, columns.indices.astype(np.int32)
        self.ends = columns.indptr.astype(np.int64)

    def column_entries(self, labels: slice, marks: Real, own: Any) -> tuple[Any, ...]:
        """Return the probabilities of some columns, their rows, where each begins, and marks."""
        n, m = self.proba.shape
        if isinstance(self.proba, np.ndarray):
            if not hasattr(own, "columns"):
                shape = labels.stop - labels.start, n
                own.columns = np.empty(shape, self.proba.dtype), np.empty(shape, np.int8)
            columns, chosen = (array[: labels.stop - labels.start] for array in own.columns)
            native.transpose(self.proba[:, labels], columns)
            native.transpose(marks.reshape(n, m)[:, labels], chosen)
            return columns.reshape(-1), None, n * np.arange(len(columns) + 1), chosen.reshape(-1)
        ends = self.ends[labels.start : labels.stop + 1]
        order = self.order[ends[0] : ends[-1]]
        places = self.places[ends[0] : ends[-1]]
        return self.proba.data[order], places, ends - ends[0], marks[order]

    def evaluate(
        self, columns: list[Any], marks: Real, multiplier: Floats
    ) -> tuple[Floats, Floats]:
        """Return the weighted expected F of each column, and the bounds of the columns."""
        value, bounds = np.empty((2, len(columns)))
        own = threading.local()  # work space of a thread

        def work(labels: slice) -> None:
            data, places, ends, chosen = self.column_entries(labels, marks, own)
            results = multiplier, value[labels], bounds[labels]
            native.evaluate_budget(
                self.task, columns[labels], data, places, ends, chosen, *results
            )

        column_bytes = min(16 * self.proba.shape[0], BLOCK_BYTES // _STRIP)
        run_blocks(len(columns), column_bytes, self.objective.threads, work)
        return value, bounds

    def bound(self, bounds: Floats, multiplier: Floats) -> float:
        """Return the bound of all rows and columns."""
        least, most = self.limits
        return float(np.maximum(most * multiplier, least * multiplier).sum() + bounds.sum())

    def decide(self, gains: Any) -> tuple[list[Any], Real, Floats]:
        """Decide by ascent from gains of columns, which become those of the decision.

        Returns columns, marks and multipliers.
        """
        marks, multiplier = np.zeros(len(self.entries[0]), np.int8), np.empty(self.proba.shape[0])
        columns = native.decide_budget(self.task, *self.entries, gains, marks, multiplier)
        return columns, marks, multiplier

    def ascend(self, gains: Any) -> _Ascent:
        """Decide and evaluate."""
        columns, marks, multiplier = self.decide(gains)
        value, bounds = self.evaluate(columns, marks, multiplier)
        bound = self.bound(bounds, multiplier)
        if self.entries[1] is not None and multiplier.min(initial=0.0) < 0.0:
            # Entries that are not stored bound the thresholds: 0 may bound more closely
            positive = np.maximum(multiplier, 0.0)
            bound = min(bound, self.bound(self.evaluate(columns, marks, positive)[1], positive))
        fields = ("mean", "none", "present", "weight", "count")
        mean, none, present, weight, count = (
            np.array([getattr(column, name) for column in columns]) for name in fields
        )
        if self.objective.nonempty:
            empty = np.where(present > 0.0, 0.0, np.nan)
        else:
            empty = self.objective.zero_division * none
        with np.errstate(invalid="ignore", divide="ignore"):
            expected_f = np.where(count > 0.0, value / weight / present, empty)
        if not self.objective.nonempty:
            expected_f[(count > 0.0) & (weight == 0.0)] = 0.0  # no row can have the label
        weight = mean if self.weighted else np.ones_like(mean)
        total = float(weight @ np.nan_to_num(expected_f) / (weight.sum() or 1.0))
        return _Ascent(marks, gains, mean, expected_f, total, bound)

    def first_gains(self) -> Any:
        """Return gains to start from: the probabilities, or those that a sample ends with."""
        n, m = self.proba.shape
        gains = native.GainTable(np.ones(m), np.zeros(m))
        if n >= 4 * _SAMPLED_ROWS and self.entries[1] is None:
            step = n // _SAMPLED_ROWS
            sample = self.proba[step // 2 :: step]
            _Rows(sample, self.objective, self.limits, self.weighted).decide(gains)
        return gains


def _best(rows: _Rows) -> _Ascent:
    """Decide from several starts, as many as the problem is small."""
    n, m = rows.proba.shape
    best = rows.ascend(rows.first_gains())
    if best.gap == 0.0:
        return best
    small = n * m <= _FEW
    if not small and (best.gap <= _WIDE_GAP or m > _FEW_COLUMNS):
        return best
    slope = 1.0 / (1.0 + best.mean)
    losses = [np.zeros(m), 0.5 * slope]
    # Rows that no column wants cost least in one column together: in that of the least F.
    for column in np.argsort(np.nan_to_num(best.expected_f), kind="stable")[:_FEW_STARTS]:
        losses.append(0.3 * slope)
        losses[-1][column] = 0.0
    for loss in losses if small else losses[:_LONG_STARTS]:
        other = rows.ascend(native.GainTable(slope, loss))
        bound = min(best.bound, other.bound)
        if other.value > best.value * (1.0 + 1e-13):
            best = other
        best = best._replace(bound=bound)
    return best


def maximise_classes(
    proba: Real, objective: Objective, weighted: bool
) -> tuple[npt.NDArray[np.int64], Floats, float]:
    """Decide one class for each row of probabilities, (n, C).

    Returns the classes (n,), the expected F of each class (C,), and the gap.
    """
    rows = _Rows(proba, objective, (1, 1), weighted)
    best = _best(rows)
    classes = np.flatnonzero(best.chosen.view(np.bool_)).astype(np.int64, copy=False)
    classes -= rows.entries[2][:-1]
    return classes, best.expected_f, best.gap


def decide_limited(
    problem: Any, objective: Objective, limits: tuple[int, int], average: str
) -> Decision:
    """Decide all rows together: their columns ("macro", "weighted"), or all entries ("micro").

    Each row of the problem has the least and the largest number of labels of `limits`.
    """
    marginals = problem.marginals()
    if average == "micro" and marginals is not problem:
        raise ValueError(
            "min_labels and max_labels with average='micro' need independent labels: only "
            "from_marginals has them"
        )
    (n, m), (least, most) = problem.shape, limits
    valid = _with_digits(marginals.valid(), objective, average)
    if average == "micro":
        return _decide_micro(valid, objective, least, most)
    dense = isinstance(valid, np.ndarray)
    parameters = objective, limits, average == "weighted"
    if dense or n * m <= _MOST_DENSE[least > 0]:
        best = _best(_Rows(np.ascontiguousarray(valid if dense else valid.toarray()), *parameters))
        chosen = best.chosen.reshape(n, m)
        return Decision(chosen if dense else type(valid)(chosen), best.expected_f, best.gap)
    rows = _Rows(valid, *parameters)
    if least > np.diff(valid.indptr).min(initial=m):
        free = rows.ascend(rows.first_gains())
        rows = _Rows(_padded(valid, least, free.gains.loss[:m]), *parameters)
    best = _best(rows)
    return Decision(_marked(rows.proba, best.chosen), best.expected_f, best.gap)


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


def _padded(csr: Any, least: int, cost: Any) -> Any:
    """Store zeros in rows with fewer than `least` entries, in the columns of the least cost."""
    sizes = np.diff(csr.indptr)
    rows = np.flatnonzero(sizes < least)
    cheapest = np.argsort(cost, kind="stable")[: 2 * least - 1]  # a row has `least` of them free
    entries = sparse.csr_array((np.ones(csr.nnz, np.int8), csr.indices, csr.indptr), csr.shape)
    free = entries[rows][:, cheapest].toarray() == 0
    free &= np.cumsum(free, axis=1) <= (least - sizes[rows])[:, None]
    at, column = np.nonzero(free)
    row = np.concatenate([np.repeat(np.arange(csr.shape[0]), sizes), rows[at]])
    label = np.concatenate([csr.indices, cheapest[column].astype(csr.indices.dtype)])
    data = np.concatenate([csr.data, np.zeros(len(at), csr.data.dtype)])
    return type(csr)((data, (row, label)), shape=csr.shape)


def _marked(csr: Any, marks: Real) -> Any:
    """Return marks of the entries as CSR."""
    labels = type(csr)((marks, csr.indices, csr.indptr), shape=csr.shape, copy=True)
    labels.eliminate_zeros()
    labels.sort_indices()
    return labels


def _decide_micro(valid: Any, objective: Objective, least: int, most: int) -> Decision:
    """Decide all entries together: the best number of entries in the order of greed.

    The `least` most probable labels of each row come first, then those up to `most`, from the most
    probable one on.
    """
    n, m = valid.shape
    dense = isinstance(valid, np.ndarray)
    entries = valid if dense else _padded(valid, least, np.zeros(m))
    data = np.asarray(entries.reshape(-1) if dense else entries.data, dtype=np.float64)
    starts = np.arange(0, n * m, m) if dense else entries.indptr[:-1]
    sizes = np.full(n, m) if dense else np.diff(entries.indptr)
    # The rank of each entry in its row
    order = np.lexsort((-data, np.repeat(np.arange(n), sizes)))
    rank = np.arange(len(data)) - np.repeat(starts, sizes)
    first = order[rank < least]
    others = order[(rank >= least) & (rank < most) & (data[order] > 0.0)]
    sequence = np.concatenate(
        [first[np.argsort(-data[first], kind="stable")], others[np.argsort(-data[others])]]
    )
    count, expected_f = native.decide_prefix(
        data, data[sequence], len(first), objective.kernel_argument, rules(objective.beta)
    )
    chosen = np.zeros(len(data), np.int8)
    chosen[sequence[: max(count, len(first))]] = 1
    return Decision(chosen.reshape(n, m) if dense else _marked(entries, chosen), expected_f)
