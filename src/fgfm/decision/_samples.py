"""`from_samples`: decisions from draws of the label set."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgfm._utils.blocks import run_blocks
from fgfm._utils.validation import check_labels, real_array
from fgfm.decision._array_api.backend import common_backend, read_array
from fgfm.decision._array_api.checks import read_labels
from fgfm.decision._array_api.columns import Columns, decide_columns, rank_candidates
from fgfm.decision._array_api.selection import decide_blocks
from fgfm.decision._inputs import decide
from fgfm.decision._objective import Decision, Objective, empty_decision

__all__ = ["from_samples"]

_AXES = ("row", "draw", "label")


def from_samples(
    samples: Any,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
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
    n_jobs : int, default=None
        The number of threads, as in joblib. It does not change the result.

    Returns
    -------
    Decision
        ``labels`` of shape (n, m) and ``expected_f`` of shape (n,).

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
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs)
    return decide({"samples": samples}, objective, _decide_numpy, _decide_array_api)


def _decide_numpy(samples: Any, objective: Objective) -> Decision:
    from fgfm._kernels.cardinalities import decide_sample_rows

    samples = real_array(samples, "samples", _AXES)
    n, T, m = samples.shape
    members = np.arange(m)
    decision = empty_decision(n, m)

    def decide_block(rows: slice) -> None:
        block = samples[rows]
        check_labels(block, "samples", rows.start)
        draws = np.require(block, np.uint8, ["C", "W"])
        decide_sample_rows(draws, members, *objective.kernel_arguments, *decision.at(rows))

    run_blocks(n, T * m, objective.threads, decide_block)
    return decision


def _decide_array_api(samples: Any, objective: Objective) -> Decision:
    samples, xp = read_array(samples, "samples", _AXES)
    backend = common_backend([samples], ["samples"], xp)
    objective = backend.representable(objective)
    n, T, m = samples.shape
    beta2 = objective.beta2

    def decide_block(rows: slice) -> tuple[Any, Any]:
        draws = read_labels(backend, samples[rows, ...], "samples", rows.start)  # (n, T, m)
        s = xp.sum(draws, axis=2)  # (n, T)
        is_nonempty = s > 0.0
        present = backend.count_true(is_nonempty, 1) / T
        empty = (1.0 - present) * objective.empty_value
        p = xp.sum(draws, axis=1) / T
        weighted = xp.sum(draws * s[:, :, None], axis=1) / T  # (n, m) E[y_i s]
        candidates = rank_candidates(backend, p, weighted, xp.max(s, axis=1), empty, objective)
        order = candidates.order
        where = xp.broadcast_to(order[:, None, :], (*s.shape, order.shape[1]))
        # One column per draw t: Delta_ik = (1 + beta^2) / T sum_t y_i^t / (beta^2 s_t + k).
        columns = Columns(
            xp.take_along_axis(draws, where, axis=2),
            beta2 * s,
            backend.floats(is_nonempty) * ((1.0 + beta2) / T),
            False,
        )
        return decide_columns(backend, columns, candidates, empty, present, objective)

    return decide_blocks(backend, n, m, m * (4 * T + 40) * backend.itemsize, decide_block)
