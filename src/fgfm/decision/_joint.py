"""`from_joint`: decisions from the probabilities of label sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import decide_joint_rows
from fgfm._utils.blocks import run_blocks
from fgfm._utils.names import check_same_names, column_names
from fgfm._utils.rows import frame_library
from fgfm._utils.validation import check_one_weight_each, label_sets, real_array, unit_rows
from fgfm.decision._averages import Route, decide_possible_entries
from fgfm.decision._constraints import Constraints
from fgfm.decision._inputs import check_array_types, decide
from fgfm.decision._limits import Limits
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
    min_labels: int = 0,
    max_labels: int | None = None,
    constraints: Constraints | None = None,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from the probabilities of whole label sets.

    Maximises :math:`\sum_l w_l F_\beta(y^l, h)` over all label sets h, not only the given ones.

    Parameters
    ----------
    labelsets : array-like, sparse matrix or data frame of shape (L, m)
        The label sets that can occur, 0 or 1, including the empty set if it can occur.
    proba : array-like or data frame of shape (n, L)
        Their probabilities. Each row must sum to 1. Column names of a data frame must be the index
        of `labelsets`, if pandas has not numbered one of them.
    beta : float, default=1.0
        Recall is considered `beta` times as important as precision.
    zero_division : float, default=1.0
        The value of 0/0, an empty decision where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Condition on the true set not being empty, for the decision and its expectation. A row that
        is certainly empty contradicts this condition: it gets the empty set, an expectation of
        NaN, and a warning.
    average : {"samples", "macro", "micro"}, default="samples"
        The F-measure to maximise: of each row; of each label over all rows; or of all entries
        together. Rows are independent of each other. `zero_division` and `nonempty` apply to each
        problem: row, label, or batch.
    min_labels, max_labels : int, default=0 and None
        The least and the largest number of labels to decide for; None is no limit. With
        `min_labels` of 1 or more the empty set is not allowed, but expectations are not
        conditioned as with `nonempty`.
    constraints : Constraints, default=None
        Further constraints on the label sets: labels that are required, forbidden, exclude each
        other or imply each other, and costs of labels. ``expected_f`` does not include the costs.
    n_jobs : int, default=None
        The number of threads, as in joblib. It does not change the result.

    Returns
    -------
    Decision
        ``labels`` of shape (n, m) and ``expected_f`` of shape (n,), of shape (m,) for
        ``average="macro"``, a number for ``"micro"``.

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
    columns = getattr(labelsets, "columns", None)
    if frame_library(labelsets) == "pandas":
        rows = labelsets.index.to_numpy(dtype=object)
        check_same_names(column_names(proba), rows, "proba", "labelsets.index")
    limits = Limits.checked(min_labels, max_labels, constraints, columns)
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs, limits=limits)
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
    weights = real_array(proba, "proba", ("row", "label set"))
    check_one_weight_each(weights.shape[1], labelsets.shape[0])
    return weights


def _decide_rows(proba: Any, labelsets: Any, objective: Objective) -> Decision:
    """Decide each row from probabilities, (n, L), of label sets, (L, m)."""
    labelsets = sparse.csr_array(labelsets)
    proba = _read(proba, labelsets)
    L, m = labelsets.shape
    size = np.diff(labelsets.indptr)  # (L,)
    s = np.unique(size[size > 0])  # (Q,) the cardinalities that occur
    column = np.where(size > 0, np.searchsorted(s, size), -1)  # (L,)
    constraints = objective.constraints(m)
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
        parameters = (*objective.kernel_arguments, *decision.at(rows), constraints)
        decide_joint_rows(*arguments, weights, *parameters)

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
