"""Averages: which entries of the (n, m) label matrix are decided together.

Rows are independent of each other. ``"samples"`` is one problem per row. ``"macro"`` is one per
label, over its column; its entries are independent, so that the marginals determine it.
``"micro"`` is one problem over all entries: F-GFM, in which every row is a factor (or several, if
its labels come in factors). See docs/design.md, "Averages".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import decide_factor_rows
from fgfm._utils.blocks import run_blocks
from fgfm._utils.validation import check_probabilities, raise_excess_mass, tolerance
from fgfm.decision._marginals_dense import DenseMarginals, decide_dense_columns
from fgfm.decision._marginals_sparse import decide_csr_columns
from fgfm.decision._objective import Decision, Objective, run_kernel

__all__ = [
    "Route",
    "RowFactors",
    "decide_batch",
    "decide_columns",
    "decide_possible_entries",
    "decide_rows_as_factors",
    "raise_excess_factor",
    "rows_as_factors",
]

Real = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]


def decide_columns(marginals: Any, objective: Objective) -> Decision:
    """Decide each label over the rows.

    Parameters
    ----------
    marginals : DenseMarginals or CSR matrix
        The probabilities, (n, m). Those in CSR must be valid and in canonical order.
    objective : Objective
        What is maximised.

    Returns
    -------
    Decision
        With the expectation of each label.
    """
    if sparse.issparse(marginals):
        return decide_csr_columns(marginals, objective)
    if not isinstance(marginals, DenseMarginals):
        marginals = DenseMarginals(marginals)
    return decide_dense_columns(marginals, objective)


def decide_rows_as_factors(
    parts: Sequence[Real],
    members: Sequence[Integers],
    distributions: Sequence[Real] | None,
    names: Sequence[str],
    objective: Objective,
) -> Decision:
    """Decide all rows together from the P of the factors of each row.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n, m_f, S_f)
        The P of each factor.
    members : sequence of ndarray of shape (m_f,)
        The labels of each factor.
    distributions : sequence of ndarray of shape (n, S_f + 1), or None
        The distributions of the factors, valid, if they do not come from P.
    names : sequence of str
        The name of each P in error messages.
    objective : Objective
        What is maximised.

    Returns
    -------
    Decision
        With the expectation of the batch.
    """
    n, m = len(parts[0]), sum(map(len, members))
    if n == 0:
        return Decision(np.zeros((0, m), dtype=np.int8), objective.value_without_labels)
    batch = rows_as_factors(parts, members, distributions, m)

    def check() -> None:
        for P, name in zip(parts, names, strict=True):
            check_probabilities(P, name)

    slack = max(tolerance(P) for P in parts)
    decision, factor = decide_batch(batch, (n, m), slack, objective, check)
    if factor >= 0:
        raise_excess_factor(factor, parts, distributions, names)
    return decision


def decide_possible_entries(
    n: int,
    m: int,
    S: int,
    row_bytes: int,
    cardinalities: Callable[[slice], Real],
    objective: Objective,
) -> Decision:
    """Decide all rows together, from P that is computed by blocks of rows.

    Labels that are impossible in a row are not kept.

    Parameters
    ----------
    n, m, S : int
        The numbers of rows and labels, and the largest cardinality of a row.
    row_bytes : int
        The work space of `cardinalities` for one row.
    cardinalities : callable
        Returns P, (rows, m, S), for a slice of rows; without errors but rounding.
    objective : Objective
        What is maximised.

    Returns
    -------
    Decision
        With the expectation of the batch.
    """

    def read(rows: slice) -> tuple[Real, Real]:
        P = cardinalities(rows)
        possible = np.asarray(P.any(axis=2))  # (rows, m)
        return P[possible], possible

    blocks = run_blocks(n, row_bytes + 8 * m * S, objective.threads, read)
    if not any(len(P) for P, _ in blocks):
        labels = np.zeros((n, m), dtype=np.int8)
        return Decision(labels, objective.value_without_labels)
    possible = np.concatenate([possible for _, possible in blocks])  # (n, m)
    sizes = np.count_nonzero(possible, axis=1)
    sizes = sizes[sizes > 0]  # rows without a possible label change no product
    batch = RowFactors(
        np.concatenate([P for P, _ in blocks]).reshape(-1),
        None,
        sizes,
        np.full(len(sizes), S),
        np.flatnonzero(possible),
        len(sizes),
    )
    decision, _ = decide_batch(batch, (n, m), 1e-9, objective, lambda: None)
    return decision


class RowFactors(NamedTuple):
    """The factors of all rows, as the factors of one problem.

    Attributes
    ----------
    values : ndarray of shape (sum of m_f S_f,)
        P of all factors, one after the other.
    d : ndarray of shape (sum of S_f + 1,), or None
        Their distributions, if they do not come from P.
    sizes, depths : ndarray of int
        m_f and S_f of each factor.
    entries : ndarray of int
        The number of each label among the n m entries of the label matrix.
    n_multiple : int
        The number of factors before those of one label, whose P are marginals.
    """

    values: Real
    d: Real | None
    sizes: Integers
    depths: Integers
    entries: Integers
    n_multiple: int

    @property
    def kernel_shape(self) -> tuple[Integers, Integers, Integers, int]:
        """The sizes of the factors as the kernels take them."""
        return self.sizes, self.depths, self.entries, self.n_multiple


def rows_as_factors(
    parts: Sequence[Real],
    members: Sequence[Integers],
    distributions: Sequence[Real] | None,
    m: int,
) -> RowFactors:
    """Return the factors of all rows, row by row, those of one label last."""
    n = len(parts[0])
    start = m * np.arange(n)[:, None]  # (n, 1) the number of the first entry of each row
    several = _several(parts, distributions)
    groups = [several, [f for f in range(len(parts)) if f not in several]]
    groups = [group for group in groups if group]
    return RowFactors(
        _joined([_by_rows([parts[f] for f in group]) for group in groups]),
        None if distributions is None else _by_rows([distributions[f] for f in several]),
        np.concatenate([np.tile([parts[f].shape[1] for f in group], n) for group in groups]),
        np.concatenate([np.tile([parts[f].shape[2] for f in group], n) for group in groups]),
        np.concatenate(
            [(start + np.concatenate([members[f] for f in group])).ravel() for group in groups]
        ),
        n * len(several),
    )


def _several(parts: Sequence[Real], distributions: Sequence[Real] | None) -> list[int]:
    """Return the factors that are not marginals: of several labels, or with a distribution."""
    return [f for f, P in enumerate(parts) if distributions is not None or P.shape[1] > 1]


def raise_excess_factor(
    factor: int,
    parts: Sequence[Real],
    distributions: Sequence[Real] | None,
    names: Sequence[str],
) -> NoReturn:
    """Raise for a factor of `rows_as_factors` that has too much probability."""
    several = _several(parts, distributions)
    row, at = divmod(factor, len(several))
    raise_excess_mass(parts[several[at]], row, names[several[at]], 0)


def decide_batch(
    batch: RowFactors,
    shape: tuple[int, int],
    slack: float,
    objective: Objective,
    check: Callable[[], None],
) -> tuple[Decision, int]:
    """Decide all entries of a label matrix of some shape.

    Returns the decision, and the number of a factor with too much probability, or -1.
    """
    labels, expected_f = np.zeros(shape, dtype=np.int8), np.empty(1)
    d = batch.d
    if d is None:  # computed by the kernel
        d = np.empty(int((batch.depths[: batch.n_multiple] + 1).sum()))
    chosen = labels.reshape(1, -1)
    arguments = (
        d.reshape(1, -1),
        batch.d is not None,
        *batch.kernel_shape,
        slack,
        *objective.kernel_arguments,
        objective.rules,
        chosen,
        expected_f,
    )
    values = batch.values.reshape(1, -1)
    row, factor = run_kernel(decide_factor_rows, values, arguments, chosen, check)
    return Decision(labels, expected_f[0]), factor if row >= 0 else -1


def _joined(arrays: Sequence[Real]) -> Real:
    """Concatenate arrays; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _by_rows(arrays: Sequence[Real]) -> npt.NDArray[np.float64]:
    """Return the values of several arrays (n, ..), row by row, as a flat array."""
    n = len(arrays[0])
    if len(arrays) == 1:  # without a copy where possible
        return np.ascontiguousarray(arrays[0], dtype=np.float64).reshape(-1)
    flat = [array.reshape(n, -1) for array in arrays]
    return np.concatenate(flat, axis=1, dtype=np.float64).reshape(-1)


class Route(NamedTuple):
    """The implementations of a public function for one kind of arrays.

    Attributes
    ----------
    samples : callable
        Decides each row.
    marginals : callable
        Returns what `columns` takes.
    micro : callable
        Decides all entries together.
    columns : callable
        Decides each label from the marginals.
    """

    samples: Callable[..., Decision]
    marginals: Callable[..., Any]
    micro: Callable[..., Decision]
    columns: Callable[..., Decision] = decide_columns

    def decide(self, average: str, *arrays: Any, objective: Objective, **shared: Any) -> Decision:
        """Decide from the arrays for one of the averages."""
        if average == "macro":
            return self.columns(self.marginals(*arrays, **shared), objective)
        implementation = self.samples if average == "samples" else self.micro
        return implementation(*arrays, objective=objective, **shared)
