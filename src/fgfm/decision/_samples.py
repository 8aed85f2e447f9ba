"""`from_samples`: decisions from draws of the label set."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._kernels import decide_sample_rows
from fgfm._utils.blocks import run_blocks
from fgfm._utils.validation import check_labels, real_array
from fgfm.decision._averages import Route, decide_possible_entries
from fgfm.decision._constraints import Constraints
from fgfm.decision._inputs import decide
from fgfm.decision._limits import Limits
from fgfm.decision._objective import Decision, Objective, empty_decision

__all__ = ["from_samples"]


def from_samples(
    samples: Any,
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
    r"""Decide from draws of the label set, from any sampler.

    Maximises the mean of :math:`F_\beta(y^t, h)` over the draws :math:`y^1 .. y^T` of a row, over
    all label sets h, not only those drawn.

    Parameters
    ----------
    samples : array-like of shape (n, T, m)
        T draws of m labels for each row, 0 or 1.
    beta : float, default=1.0
        Recall is considered `beta` times as important as precision.
    zero_division : float, default=1.0
        The value of 0/0, an empty decision where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Ignore empty draws. A row with empty draws only gets the empty set, an expectation of NaN,
        and a warning.
    average : {"samples", "macro", "micro"}, default="samples"
        The F-measure to maximise: of each row; of each label over all rows; or of all entries
        together. Draws of different rows are taken to be independent. `zero_division` and
        `nonempty` apply to each problem: row, label, or batch.
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
    from_joint : Decisions from label sets with probabilities.

    Examples
    --------
    >>> import fgfm
    >>> draws = [[[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 0, 1]]]
    >>> labels, expected_f = fgfm.decision.from_samples(draws)
    >>> labels
    array([[1, 0, 0]], dtype=int8)
    >>> expected_f.round(4)
    array([0.5833])
    """
    limits = Limits.checked(min_labels, max_labels, constraints)
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs, limits=limits)
    return decide({"samples": samples}, objective, average, _ROUTE, _array_api_route)


def _read(samples: Any) -> npt.NDArray[Any]:
    return real_array(samples, "samples", ("row", "draw", "label"))


def _decide_rows(samples: Any, objective: Objective) -> Decision:
    samples = _read(samples)
    n, T, m = samples.shape
    members = np.arange(m)
    constraints = objective.constraints(m)
    decision = empty_decision(n, m)

    def decide_block(rows: slice) -> None:
        block = samples[rows]
        check_labels(block, "samples", rows.start)
        draws = np.require(block, np.uint8, ["C", "W"])
        arguments = (members, *objective.kernel_arguments, *decision.at(rows), constraints)
        decide_sample_rows(draws, *arguments)

    run_blocks(n, T * m, objective.threads, decide_block)
    return decision


def _marginals(samples: Any) -> npt.NDArray[np.float64]:
    samples = _read(samples)
    n, T, m = samples.shape
    marginals = np.empty((n, m))

    def read_block(rows: slice) -> None:
        check_labels(samples[rows], "samples", rows.start)
        np.divide(samples[rows].sum(axis=1), T, out=marginals[rows])

    run_blocks(n, T * m * samples.itemsize, 1, read_block)
    return marginals


def _decide_batch(samples: Any, objective: Objective) -> Decision:
    samples = _read(samples)
    n, T, m = samples.shape
    size = np.empty((n, T), dtype=np.int64)  # of each draw

    def read_sizes(rows: slice) -> None:
        check_labels(samples[rows], "samples", rows.start)
        np.sum(samples[rows], axis=2, out=size[rows], dtype=np.int64)

    run_blocks(n, T * m * samples.itemsize, objective.threads, read_sizes)
    S = int(size.max(initial=1))
    s = np.arange(1, S + 1)

    def cardinalities(rows: slice) -> npt.NDArray[np.float64]:
        has_size = (size[rows, :, None] == s).astype(np.float64)  # (rows, T, S)
        draws = samples[rows].astype(np.float64).transpose(0, 2, 1)  # (rows, m, T)
        P: npt.NDArray[np.float64] = draws @ has_size / T
        return P

    return decide_possible_entries(n, m, S, 8 * T * (m + S), cardinalities, objective)


def _array_api_route() -> Route:
    from fgfm.decision._samples_array_api import ROUTE

    return ROUTE


_ROUTE = Route(_decide_rows, _marginals, _decide_batch)
