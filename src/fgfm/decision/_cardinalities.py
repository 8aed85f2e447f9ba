"""`from_cardinalities`: GFM, decisions from p(y_i = 1, |y| = s)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._kernels import decide_cardinality_rows
from fgfm._utils.blocks import float_block, run_blocks
from fgfm._utils.validation import (
    check_cardinality_matrix,
    check_probabilities,
    clip_probabilities,
    distribution_array,
    raise_excess_mass,
    tolerance,
    unit_rows,
)
from fgfm.decision._averages import Route, decide_rows_as_factors
from fgfm.decision._constraints import Constraints
from fgfm.decision._inputs import decide
from fgfm.decision._limits import Limits
from fgfm.decision._objective import Decision, Objective, empty_decision, run_kernel

__all__ = ["decide_one_factor", "factor_marginals", "from_cardinalities"]

Real = npt.NDArray[Any]


def from_cardinalities(
    P: Any,
    *,
    distribution: Any = None,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    average: str = "samples",
    min_labels: int = 0,
    max_labels: int | None = None,
    constraints: Constraints | None = None,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from the joint probabilities of each label and the number of labels: GFM.

    Maximises :math:`E[F_\beta(y, h)]` over all label sets h, for arbitrary dependence between
    labels: with :math:`p_{is} = p(y_i = 1, |y| = s)`, the expectation for a set h of size k is

    .. math:: \sum_{i \in h} \Delta_{ik}, \qquad
        \Delta_{ik} = (1 + \beta^2) \sum_s \frac{p_{is}}{\beta^2 s + k},

    and for the empty set :math:`d_0 = 1 - \sum_s \frac1s \sum_i p_{is}` (times `zero_division`).

    Parameters
    ----------
    P : array-like of shape (n, m, S)
        ``P[r, i, s - 1]`` is the probability that row r has label i and s labels in all. S may be
        smaller than m where no larger set is possible.
    distribution : array-like of shape (n, S + 1), default=None
        The probabilities of 0 to S labels, if they come from a separate model; P need not agree
        with them (`fgfm.cardinality.is_coherent`). By default they are computed from P.
    beta : float, default=1.0
        Recall is considered `beta` times as important as precision.
    zero_division : float, default=1.0
        The value of 0/0, an empty decision where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Condition on the true set not being empty, for the decision and its expectation. A row of
        zeros contradicts this condition: it gets the empty set, an expectation of NaN, and a
        warning.
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
    fgfm.cardinality : Functions that compute P.

    Examples
    --------
    Exactly one of two labels, or all three:

    >>> import fgfm
    >>> P = [[[0.5, 0.0, 0.2], [0.3, 0.0, 0.2], [0.0, 0.0, 0.2]]]
    >>> labels, expected_f = fgfm.decision.from_cardinalities(P)
    >>> labels
    array([[1, 1, 0]], dtype=int8)
    >>> expected_f.round(4)
    array([0.6933])
    """
    limits = Limits.checked(min_labels, max_labels, constraints)
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs, limits=limits)
    arrays = {"P": P} if distribution is None else {"P": P, "distribution": distribution}
    return decide(arrays, objective, average, _ROUTE, _array_api_route)


def _read(P: Any, distribution: Any) -> tuple[Real, Real | None]:
    P = check_cardinality_matrix(P)
    n, _, S = P.shape
    if distribution is not None:
        distribution = distribution_array(distribution, "distribution", n, S)
    return P, distribution


def _decide_rows(P: Any, distribution: Any = None, *, objective: Objective) -> Decision:
    P, d = _read(P, distribution)
    return decide_one_factor(P, d, np.arange(P.shape[1]), objective, "P", "distribution")


def _marginals(P: Any, distribution: Any = None) -> Real:
    P, d = _read(P, distribution)
    if d is not None:
        unit_rows(d, "distribution")
    return factor_marginals(P, "P", any_mass=d is not None)


def _decide_batch(P: Any, distribution: Any = None, *, objective: Objective) -> Decision:
    P, d = _read(P, distribution)
    distributions = None if d is None else [unit_rows(d, "distribution")]
    return decide_rows_as_factors([P], [np.arange(P.shape[1])], distributions, ["P"], objective)


def decide_one_factor(
    P: Real,
    distribution: Real | None,
    members: npt.NDArray[np.int64],
    objective: Objective,
    name: str,
    distribution_name: str,
) -> Decision:
    """Decide from one P, (n, m, S); its i-th label is label ``members[i]``."""
    n, m, S = P.shape
    constraints = objective.constraints(m)
    decision = empty_decision(n, m)

    def decide_block(rows: slice) -> None:
        block = float_block(P[rows])
        if distribution is None:
            mass = np.full((2, len(block)), np.nan)  # NaN: the kernel computes it from P
        else:
            d = unit_rows(distribution[rows], distribution_name, rows.start)
            mass = np.stack([d[:, 0], d[:, 1:].sum(axis=1)])  # of the empty set, and of all others
        labels, expected_f = decision.at(rows)
        arguments = (
            mass,
            members,
            tolerance(block),
            *objective.kernel_arguments,
            labels,
            expected_f,
            constraints,
        )
        row, _ = run_kernel(
            decide_cardinality_rows,
            block,
            arguments,
            labels,
            lambda: check_probabilities(block, name, rows.start),
        )
        if row >= 0:
            raise_excess_mass(block, row, name, rows.start)

    run_blocks(n, m * S * P.itemsize, objective.threads, decide_block)
    return decision


def factor_marginals(P: Real, name: str, *, any_mass: bool) -> Real:
    """Return the marginals of a factor, (n, m), from P, (n, m, S).

    With `any_mass` the sum of d may exceed 1, since the user gave another distribution.
    """
    n, m, S = P.shape
    marginals = np.empty((n, m))
    s = np.arange(1, S + 1)

    def read_block(rows: slice) -> None:
        block = clip_probabilities(P[rows], name, rows.start)
        p = block.sum(axis=2, dtype=np.float64, out=marginals[rows])
        over = p.max(axis=1)
        if not any_mass:
            d = block.sum(axis=1, dtype=np.float64) / s  # (rows, S), d_s = sum_i p_is / s
            over = np.maximum(over, d.sum(axis=1))
        wrong = over > 1.0 + tolerance(block)
        if wrong.any():
            raise_excess_mass(block, int(wrong.argmax()), name, rows.start)
        np.minimum(p, 1.0, out=p)

    run_blocks(n, m * S * P.itemsize, 1, read_block)
    return marginals


def _array_api_route() -> Route:
    from fgfm.decision._cardinalities_array_api import ROUTE

    return ROUTE


_ROUTE = Route(_decide_rows, _marginals, _decide_batch)
