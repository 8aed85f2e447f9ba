"""Label factors, with P and the cardinality distribution d of each.

P has shape (n, m, S), where ``P[r, i, s - 1]`` is p(y_i = 1, s labels in all) of row r, and d has
shape (n, S + 1), where ``d[r, s]`` is the probability of s labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.validation._arrays import check_same_rows, first_index, place, real_array
from fgfm._utils.validation._probabilities import sparse_marginals, tolerance

__all__ = [
    "CARDINALITY_AXES",
    "DISTRIBUTION_AXES",
    "check_cardinality_matrix",
    "check_cardinality_shape",
    "check_distribution_count",
    "check_distribution_shape",
    "check_distributions",
    "check_factors",
    "check_parts",
    "distribution_array",
    "part_list",
    "raise_excess_mass",
]

Real = npt.NDArray[Any]
CARDINALITY_AXES = ("row", "label", "cardinality")
DISTRIBUTION_AXES = ("row", "cardinality")


def check_cardinality_matrix(P: Any, name: str = "P") -> Real:
    """Convert P to an (n, m, S) array with S <= m; its values are checked when they are read."""
    array = real_array(P, name, CARDINALITY_AXES)
    check_cardinality_shape(array.shape, name)
    return array


def check_cardinality_shape(shape: tuple[int, ...], name: str) -> None:
    """Raise unless (n, m, S) has S <= m."""
    if shape[2] > shape[1]:
        raise ValueError(
            f"{name} has shape {shape}: {shape[1]} labels cannot have a cardinality "
            f"of {shape[2]}; the last axis must not be longer than the one before"
        )


def raise_excess_mass(P: Real, row: int, name: str, first_row: int) -> NoReturn:
    """Raise for a row of P in which a label, or all sets together, have a probability over 1."""
    where = place(name, (first_row + row,))
    p = P[row].sum(axis=1, dtype=np.float64)  # (m,)
    i = int(np.argmax(p))
    if p[i] > 1.0 + tolerance(P):
        raise ValueError(
            f"{where[:-1]}, {i}] sums to {p[i]:.6g} over cardinalities: "
            "the probability of a label must not exceed 1"
        )
    d_0 = 1.0 - (P[row].sum(axis=0, dtype=np.float64) / np.arange(1, P.shape[2] + 1)).sum()
    raise ValueError(
        f"{where} implies d_0 = {d_0:.3g}: the probabilities of 1 to {P.shape[2]} labels, "
        "d_s = sum_i p_is / s, must not sum to more than 1"
    )


def distribution_array(d: Any, name: str, n: int, S: int) -> Real:
    """Convert d to an (n, S + 1) array; its values are checked when they are read."""
    array = real_array(d, name, DISTRIBUTION_AXES)
    check_distribution_shape(array.shape, name, n, S)
    return array


def check_distribution_shape(shape: tuple[int, ...], name: str, n: int, S: int) -> None:
    """Raise unless a distribution has the shape that matches a P of shape (n, m, S)."""
    if shape != (n, S + 1):
        raise ValueError(
            f"{name} has shape {shape}: with a P of {n} rows and {S} cardinalities "
            f"it must have shape {(n, S + 1)}, for 0 to {S} labels"
        )


def check_distribution_count(distributions: Any, count: int) -> None:
    """Raise unless `distributions` is a list with one distribution for each of `count` factors."""
    if hasattr(distributions, "ndim") or not hasattr(distributions, "__len__"):
        raise TypeError(
            f"distributions is {type(distributions).__name__}: "
            "it must be a list with the distribution of each factor"
        )
    if len(distributions) != count:
        raise ValueError(
            f"distributions has {len(distributions)} entries and Ps has {count}: "
            "there must be one distribution for each factor"
        )


def check_distributions(distributions: Any, parts: Sequence[Real]) -> list[Real] | None:
    """Validate the distribution of each factor, (n, S_f + 1); return None for None."""
    if distributions is None:
        return None
    check_distribution_count(distributions, len(parts))
    for f, P in enumerate(parts):
        if sparse.issparse(P):
            raise ValueError(
                f"distributions is given and Ps[{f}] is a sparse matrix: its marginals determine "
                "the distribution of each label, so distributions must be None"
            )
    return [
        distribution_array(d, f"distributions[{f}]", len(P), P.shape[2])
        for f, (d, P) in enumerate(zip(distributions, parts, strict=True))
    ]


def part_list(Ps: Any) -> list[Any]:
    """Return the P of each factor from a list of them, or from an array with one more axis."""
    is_array = hasattr(Ps, "ndim")
    if is_array and Ps.ndim != 4:
        raise TypeError(
            f"Ps is an array of shape {tuple(Ps.shape)}: "
            "it must be a list with the P of each factor"
        )
    if isinstance(Ps, (str, bytes)) or not (is_array or hasattr(Ps, "__len__")):
        raise TypeError(f"Ps is {type(Ps).__name__}: it must be a list with the P of each factor")
    # The array API standard does not define iteration.
    parts = [Ps[f, ...] for f in range(Ps.shape[0])] if is_array else list(Ps)
    if not parts:
        raise ValueError("Ps is empty: there must be at least one factor")
    return parts


def check_parts(Ps: Any, *, allow_sparse: bool = False) -> list[Any]:
    """Validate the P of each factor; all must have the same rows.

    With `allow_sparse` a part may also be a sparse matrix of marginals, which is returned as CSR.
    """
    parts = [
        sparse_marginals(P, f"Ps[{f}]")
        if allow_sparse and sparse.issparse(P)
        else check_cardinality_matrix(P, f"Ps[{f}]")
        for f, P in enumerate(part_list(Ps))
    ]
    check_same_rows([P.shape[0] for P in parts], [f"Ps[{f}]" for f in range(len(parts))])
    return parts


def check_factors(factors: Any, sizes: Sequence[int]) -> list[npt.NDArray[np.int64]]:
    """Validate label factors, which must partition the labels 0 .. m - 1.

    Parameters
    ----------
    factors : sequence of sequences of int
        The labels of each factor.
    sizes : sequence of int
        The number of labels that each factor must have.

    Returns
    -------
    list of ndarray
        The factors as integer arrays.
    """
    if isinstance(factors, (str, bytes)) or not hasattr(factors, "__len__"):
        raise TypeError(
            f"factors is {type(factors).__name__}: it must be a sequence of sequences of label "
            "indices"
        )
    if len(factors) != len(sizes):
        raise ValueError(
            f"factors has {len(factors)} entries and Ps has {len(sizes)}: "
            "there must be one P for each factor"
        )
    checked: list[npt.NDArray[np.int64]] = []
    for f, (factor, size) in enumerate(zip(factors, sizes, strict=True)):
        labels = np.asarray(factor)
        if labels.ndim != 1 or labels.dtype.kind not in "iu":
            raise TypeError(
                f"factors[{f}] is {factor!r}: a factor must be a flat sequence of label indices"
            )
        if len(labels) != size:
            raise ValueError(
                f"factors[{f}] has {len(labels)} labels and Ps[{f}] has {size}: "
                "the sizes must match"
            )
        checked.append(labels.astype(np.int64))
    _check_partition(checked)
    return checked


def _check_partition(factors: Sequence[npt.NDArray[np.int64]]) -> None:
    """Raise unless every label from 0 to m - 1 is in exactly one factor."""
    sizes = [len(factor) for factor in factors]
    m = sum(sizes)
    flat = np.concatenate(factors) if factors else np.empty(0, dtype=np.int64)
    owner = np.repeat(np.arange(len(sizes)), sizes)  # (m,) the factor of each entry of flat
    outside = (flat < 0) | (flat >= m)
    if outside.any():
        at = first_index(outside)[0]
        raise ValueError(
            f"factors[{owner[at]}] holds label {flat[at]}: with {m} labels in all, "
            f"indices must run from 0 to {m - 1}"
        )
    count = np.bincount(flat, minlength=m)
    if (count > 1).any():
        label = first_index(count > 1)[0]
        first, second = owner[flat == label][:2]
        held = f"factors[{first}] and factors[{second}] both hold label {label}"
        if first == second:
            held = f"factors[{first}] holds label {label} twice"
        raise ValueError(
            f"{held} and no factor holds label {first_index(count == 0)[0]}: "
            "every label must be in exactly one factor"
        )
