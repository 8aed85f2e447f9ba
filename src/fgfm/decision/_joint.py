"""`from_joint`: decisions from the probabilities of label sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import decide_joint_rows
from fgfm._utils.blocks import run_blocks
from fgfm._utils.validation import check_one_weight_each, label_sets, real_array, unit_rows
from fgfm.decision._averages import Route, decide_possible_entries
from fgfm.decision._inputs import check_array_types, decide
from fgfm.decision._objective import Decision, Objective, empty_decision

__all__ = ["from_joint"]


def from_joint(
    labelsets: Any,
    proba: Any,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    average: str = "samples",
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from the probabilities of whole label sets.

    Maximises :math:`\sum_l w_l F_\beta(y^l, h)` over all label sets h, not only the given ones.

    Parameters
    ----------
    labelsets : array-like, sparse matrix or data frame of shape (L, m)
        The label sets that can occur, 0 or 1, including the empty set if it can occur.
    proba : array-like or data frame of shape (n, L)
        Their probabilities. Each row must sum to 1.
    beta : float, default=1.0
        Recall is considered `beta` times as important as precision.
    zero_division : float, default=1.0
        The value of 0/0, an empty decision where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Condition on the true set not being empty, for the decision and its expectation. A row that
        is certainly empty contradicts this condition: it gets the empty set, an expectation of
        NaN, and a warning.
    n_jobs : int, default=None
        The number of threads, as in joblib. It does not change the result.

    Returns
    -------
    Decision
        ``labels`` of shape (n, m) and ``expected_f`` of shape (n,).

    See Also
    --------
    from_samples : Decisions from draws of the label set.

    Examples
    --------
    >>> import fgfm
    >>> labelsets = [[1, 0, 0], [0, 1, 0], [1, 1, 1]]
    >>> labels, expected_f = fgfm.decision.from_joint(labelsets, [[0.5, 0.3, 0.2]])
    >>> labels
    array([[1, 1, 0]], dtype=int8)
    >>> expected_f.round(4)
    array([0.6933])
    """
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs)
    columns = getattr(labelsets, "columns", None)
    if not check_array_types({"labelsets": labelsets, "proba": proba}):
        # All rows share the label sets: they are converted once, also from a Dask array.
        sets = label_sets(labelsets, "labelsets", ("label set", "label"))
        labelsets = sparse.csr_array(sets)  # (L, m)
    return decide(
        {"proba": proba},
        objective,
        average,
        _ROUTE,
        _array_api_route,
        columns=columns,
        labelsets=labelsets,
    )


def _read(proba: Any, labelsets: Any) -> npt.NDArray[Any]:
    proba = real_array(proba, "proba", ("row", "label set"))
    check_one_weight_each(proba.shape[1], labelsets.shape[0])
    return proba


def _decide_rows(proba: Any, labelsets: Any, objective: Objective) -> Decision:
    """Decide each row from probabilities, (n, L), of label sets, (L, m) in CSR."""
    proba = _read(proba, labelsets)
    L, m = labelsets.shape
    size = np.diff(labelsets.indptr)  # (L,)
    s = np.unique(size[size > 0])  # (Q,) the cardinalities that occur
    column = np.where(size > 0, np.searchsorted(s, size), -1)  # (L,)
    decision = empty_decision(len(proba), m)
    arguments = (
        labelsets.indptr.astype(np.int64),
        labelsets.indices.astype(np.int64),
        column.astype(np.int64),
        s.astype(np.float64),
        np.arange(m),
    )

    def decide_block(rows: slice) -> None:
        weights = unit_rows(proba[rows], "proba", rows.start)
        decide_joint_rows(*arguments, weights, *objective.kernel_arguments, *decision.at(rows))

    run_blocks(len(proba), L * 8, objective.threads, decide_block)
    return decision


def _marginals(proba: Any, labelsets: Any) -> npt.NDArray[np.float64]:
    proba = _read(proba, labelsets)
    marginals = np.empty((len(proba), labelsets.shape[1]))

    def read_block(rows: slice) -> None:
        weights = unit_rows(proba[rows], "proba", rows.start)
        np.minimum(weights @ labelsets, 1.0, out=marginals[rows])

    run_blocks(len(proba), proba.shape[1] * 8, 1, read_block)
    return marginals


def _decide_batch(proba: Any, labelsets: Any, objective: Objective) -> Decision:
    proba = _read(proba, labelsets)
    L, m = labelsets.shape
    size = np.diff(labelsets.indptr)  # (L,)
    S = int(size.max(initial=1))
    sets_of_size = [(s, np.flatnonzero(size == s)) for s in np.unique(size[size > 0])]

    def cardinalities(rows: slice) -> npt.NDArray[np.float64]:
        weights = unit_rows(proba[rows], "proba", rows.start)  # (rows, L)
        P = np.zeros((len(weights), m, S))
        for s, at in sets_of_size:
            P[:, :, s - 1] = weights[:, at] @ labelsets[at]
        return P

    return decide_possible_entries(len(proba), m, S, 16 * L, cardinalities, objective)


def _array_api_route() -> Route:
    from fgfm.decision._joint_array_api import ROUTE

    return ROUTE


_ROUTE = Route(_decide_rows, _marginals, _decide_batch)
