"""`from_factors`: F-GFM, decisions from the P of independent factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.validation import (
    check_distribution_count,
    check_distributions,
    check_factors,
    check_parts,
    part_list,
    unit_rows,
)
from fgfm.decision._averages import Route, decide_rows_as_factors
from fgfm.decision._cardinalities import decide_one_factor, factor_marginals
from fgfm.decision._constraints import Constraints
from fgfm.decision._factors_dense import decide_dense_factors, decide_singletons
from fgfm.decision._factors_sparse import (
    decide_sparse_factors,
    decide_sparse_rows_as_factors,
    side_by_side,
)
from fgfm.decision._inputs import decide
from fgfm.decision._limits import Limits
from fgfm.decision._marginals_sparse import valid_csr
from fgfm.decision._objective import Decision, Objective

__all__ = ["from_factors"]

Real = npt.NDArray[Any]


def from_factors(
    Ps: Sequence[Any],
    factors: Sequence[Sequence[int]],
    *,
    distributions: Sequence[Any] | None = None,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    average: str = "samples",
    min_labels: int = 0,
    max_labels: int | None = None,
    constraints: Constraints | None = None,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from the P of label factors that are independent of each other: F-GFM.

    Maximises :math:`E[F_\beta(y, h)]` over all label sets h for :math:`p(y) = \prod_f p(y_f)`,
    where the factors :math:`f` partition the labels and
    :math:`p^f_{is} = p(y_i = 1, |y_f| = s)` is given for each. The P of all labels, which the
    published algorithm computes in cubic time, is not formed.

    Parameters
    ----------
    Ps : list of array-like of shape (n, m_f, S_f), or sparse matrix of shape (n, m_f)
        The P of each factor, as for `from_cardinalities`. Many factors of one label can be given
        together, as a sparse matrix of their marginals; entries that it does not store are 0.
    factors : list of list of int
        The labels of each factor, in the order of its P, or of the columns of a sparse matrix.
        Every label is in exactly one factor.
    distributions : list of array-like of shape (n, S_f + 1), default=None
        The probabilities of 0 to S_f labels of each factor, if they come from separate models. By
        default they are computed from `Ps`.
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
        ``labels`` of shape (n, m), in CSR if one of `Ps` is a sparse matrix, and ``expected_f`` of
        shape (n,), of shape (m,) for ``average="macro"``, a number for ``"micro"``.

    See Also
    --------
    fgfm.cardinality.merge_factors : Compute the P of all labels.

    Examples
    --------
    Label 1 alone, and labels 0 and 2 of which exactly one is present:

    >>> import fgfm
    >>> P_alone = [[[0.5]]]
    >>> P_pair = [[[0.75], [0.25]]]
    >>> labels, expected_f = fgfm.decision.from_factors([P_alone, P_pair], [[1], [0, 2]])
    >>> labels
    array([[1, 1, 0]], dtype=int8)
    >>> expected_f.round(4)
    array([0.6875])

    Many factors of one label, few of them possible, and a pair: the labels are returned in CSR.

    >>> from scipy import sparse
    >>> alone = sparse.csr_array(([0.5, 0.9], ([0, 0], [7, 99_997])), shape=(1, 99_998))
    >>> labels, _ = fgfm.decision.from_factors(
    ...     [alone, P_pair], [range(99_998), [99_998, 99_999]]
    ... )
    >>> labels.shape, labels.indices.tolist()
    ((1, 100000), [7, 99997, 99998])
    """
    limits = Limits.checked(min_labels, max_labels, constraints)
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs, limits=limits)
    parts = part_list(Ps)
    arrays = {f"Ps[{f}]": P for f, P in enumerate(parts)}
    if distributions is not None:
        check_distribution_count(distributions, len(parts))
        arrays |= {f"distributions[{f}]": d for f, d in enumerate(distributions)}
    return decide(
        arrays,
        objective,
        average,
        _ROUTE,
        _array_api_route,
        n_factors=len(parts),
        factors=factors,
    )


class _Factors(NamedTuple):
    """The P of each factor, its labels, and its distribution if that does not come from P."""

    parts: list[Any]
    members: list[npt.NDArray[np.int64]]
    distributions: list[Real] | None

    @property
    def is_sparse(self) -> bool:
        """Whether one of the P is a sparse matrix of marginals."""
        return any(sparse.issparse(P) for P in self.parts)

    @property
    def names(self) -> list[str]:
        """The names of the P in error messages."""
        return [f"Ps[{f}]" for f in range(len(self.parts))]

    def valid_distributions(self) -> list[Real] | None:
        """Return the distributions, scaled to sum to 1."""
        if self.distributions is None:
            return None
        return [unit_rows(d, f"distributions[{f}]") for f, d in enumerate(self.distributions)]


def _read(arrays: Sequence[Any], n_factors: int, factors: Any) -> _Factors:
    """Validate the P of each factor, followed by their distributions, if any."""
    parts = check_parts(arrays[:n_factors], allow_sparse=True)
    members = check_factors(factors, [P.shape[1] for P in parts])
    return _Factors(parts, members, check_distributions(arrays[n_factors:] or None, parts))


def _decide_rows(*arrays: Any, n_factors: int, factors: Any, objective: Objective) -> Decision:
    read = _read(arrays, n_factors, factors)
    parts, members, distributions = read
    if read.is_sparse:
        return decide_sparse_factors(parts, members, objective)
    if len(parts) == 1:
        d = distributions[0] if distributions else None
        return decide_one_factor(parts[0], d, members[0], objective, "Ps[0]", "distributions[0]")
    if distributions is None and all(P.shape[1] == 1 for P in parts):
        return decide_singletons(parts, members, objective)
    return decide_dense_factors(parts, members, distributions, objective)


def _marginals(*arrays: Any, n_factors: int, factors: Any) -> Any:
    read = _read(arrays, n_factors, factors)
    any_mass = read.valid_distributions() is not None
    blocks = [
        valid_csr(P, name) if sparse.issparse(P) else factor_marginals(P, name, any_mass=any_mass)
        for P, name in zip(read.parts, read.names, strict=True)
    ]
    order = np.argsort(np.concatenate(read.members))  # (m,) the column of each label
    if not read.is_sparse:
        return np.concatenate(blocks, axis=1)[:, order]
    return side_by_side(blocks, order)


def _decide_batch(*arrays: Any, n_factors: int, factors: Any, objective: Objective) -> Decision:
    read = _read(arrays, n_factors, factors)
    if read.is_sparse:
        return decide_sparse_rows_as_factors(read.parts, read.members, objective)
    return decide_rows_as_factors(
        read.parts, read.members, read.valid_distributions(), read.names, objective
    )


def _array_api_route() -> Route:
    from fgfm.decision._factors_array_api import ROUTE

    return ROUTE


_ROUTE = Route(_decide_rows, _marginals, _decide_batch)
