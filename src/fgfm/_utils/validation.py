"""Checks of what users pass in, and the sentences that they read when it is wrong.

A message names the argument, the offending value and its place, and the rule.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = [
    "CARDINALITY_AXES",
    "DISTRIBUTION_AXES",
    "check_axes",
    "check_beta",
    "check_cardinality_matrix",
    "check_cardinality_shape",
    "check_choice",
    "check_count",
    "check_distribution_shape",
    "check_distributions",
    "check_factors",
    "check_flag",
    "check_labels",
    "check_one_each",
    "check_one_weight_each",
    "check_parts",
    "check_probabilities",
    "check_same_rows",
    "check_stored_probabilities",
    "check_zero_division",
    "clip_probabilities",
    "count_parts",
    "distribution_array",
    "first_index",
    "label_sets",
    "place",
    "real_array",
    "refuse_mass",
    "row_weights",
    "sparse_marginals",
    "stored_row",
    "tolerance",
    "unit_rows",
]

Real = npt.NDArray[Any]
CARDINALITY_AXES = ("row", "label", "cardinality")
DISTRIBUTION_AXES = ("row", "cardinality")


def tolerance(array: Real) -> float:
    """Give how far a probability, or a sum of them, may be off by rounding.

    Integers and booleans become float64 where they are computed with.
    """
    precise = array.dtype.kind != "f" or np.finfo(array.dtype).eps < 1e-10
    return 1e-9 if precise else 1e-5


def place(name: str, index: Sequence[int]) -> str:
    """Write the place of an array element as Python does.

    Examples
    --------
    >>> place("proba", (17, 3))
    'proba[17, 3]'
    """
    return f"{name}[{', '.join(str(int(i)) for i in index)}]"


def stored_row(csr: Any, at: int) -> int:
    """Give the row of a stored element of a CSR matrix."""
    return int(np.searchsorted(csr.indptr, at, side="right")) - 1


def first_index(wrong: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    """Give the index of the first True in C order."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))


def real_array(value: Any, name: str, axes: Sequence[str]) -> Real:
    """Give `value` as an array of real numbers with one dimension per name in `axes`.

    float32 and float64 are kept; booleans, integers and other floats are kept too, and become
    float64 where they are computed with, block by block.
    """
    if sparse.issparse(value):
        raise TypeError(f"{name} is a sparse matrix: it must be a dense array")
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: fill in what is masked first")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} is ragged: its rows must have the same length") from None
    if array.dtype.kind == "O" and hasattr(value, "to_numpy"):
        array = _frame_values(value, array)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} has dtype {array.dtype}: it must hold real numbers (float32 or float64)"
        )
    check_axes(array.shape, name, axes)
    return array


def sparse_marginals(value: Any, name: str) -> Any:
    """Give marginals in a sparse matrix as CSR; its values are checked where they are read."""
    if value.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} has dtype {value.dtype}: it must hold real numbers (float32 or float64)"
        )
    if value.ndim != 2 or value.shape[1] == 0:
        raise ValueError(
            f"{name} has shape {value.shape}: it must have 2 dimensions (row, label) "
            "and at least one label"
        )
    if value.format in ("csr", "csc"):
        _check_compressed(value, name)
    return value.tocsr()


def _check_compressed(matrix: Any, name: str) -> None:
    """Raise unless the arrays of CSR or CSC agree: without a check they are read as they are.

    SciPy's ``check_format`` would replace arrays of the matrix that it is called on.
    """
    indices, indptr = matrix.indices, matrix.indptr
    majors, minors = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    stored = min(len(matrix.data), len(indices))
    if (
        len(indptr) != majors + 1
        or indptr[0] != 0
        or indptr[-1] > stored
        or (indptr[1:] < indptr[:-1]).any()
    ):
        raise ValueError(
            f"{name}.indptr is damaged: it must have {majors + 1} numbers, from 0 to at most "
            f"{stored}, none below the one before"
        )
    indices = indices[: int(indptr[-1])]
    if len(indices) and not (indices.min() >= 0 and indices.max() < minors):
        at = first_index((indices < 0) | (indices >= minors))
        raise ValueError(
            f"{place(f'{name}.indices', at)} is {indices[at]!s}: with shape {matrix.shape} "
            f"indices must run from 0 to {minors - 1}"
        )


def check_axes(shape: tuple[int, ...], name: str, axes: Sequence[str]) -> None:
    """Raise unless there is one dimension per name in `axes`, and no empty one but the rows."""
    if len(shape) != len(axes):
        raise ValueError(
            f"{name} has shape {shape}: it must have {len(axes)} dimensions ({', '.join(axes)})"
        )
    for size, axis in zip(shape[1:], axes[1:], strict=True):
        if size == 0:
            raise ValueError(f"{name} has shape {shape}: it must have at least one {axis}")


def check_probabilities(array: Real, name: str, first_row: int = 0) -> None:
    """Raise unless every element lies in [0, 1], up to rounding."""
    wrong = _no_probability(array)
    if wrong.any():
        index = first_index(wrong)
        where = place(name, (first_row + index[0], *index[1:]))
        raise ValueError(f"{where} is {array[index]!s}: probabilities must lie in [0, 1]")


def check_stored_probabilities(csr: Any, name: str, first_row: int = 0) -> None:
    """Raise unless every stored element lies in [0, 1], up to rounding."""
    wrong = _no_probability(csr.data)
    if wrong.any():
        at = first_index(wrong)[0]
        where = place(name, (first_row + stored_row(csr, at), csr.indices[at]))
        raise ValueError(f"{where} is {csr.data[at]!s}: probabilities must lie in [0, 1]")


def _no_probability(array: Real) -> npt.NDArray[np.bool_]:
    slack = tolerance(array)
    return np.asarray(~((array >= -slack) & (array <= 1.0 + slack)))


def refuse_mass(P: Real, row: int, name: str, first_row: int) -> None:
    """Raise for a row of P with a label, or with sets, of a probability over 1."""
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


def clip_probabilities(array: Real, name: str, first_row: int = 0) -> Real:
    """Check probabilities, and remove what rounding left outside [0, 1]."""
    check_probabilities(array, name, first_row)
    return np.clip(array, 0.0, 1.0)


def unit_rows(block: Real, name: str, first_row: int = 0) -> npt.NDArray[np.float64]:
    """Check that rows are distributions, and make them sum to 1 beyond the input's precision."""
    weights: npt.NDArray[np.float64] = clip_probabilities(block, name, first_row).astype(
        np.float64
    )
    total: npt.NDArray[np.float64] = weights.sum(axis=1)
    wrong = ~(np.abs(total - 1.0) <= tolerance(block))
    if wrong.any():
        row = first_index(wrong)[0]
        raise ValueError(
            f"{place(name, (first_row + row,))} sums to {total[row]:g}: "
            "the probabilities of a row must sum to 1"
        )
    return weights / total[:, None]


def check_labels(block: Real, name: str, first_row: int = 0) -> None:
    """Raise unless every element is 0 or 1."""
    wrong = (block != 0) & (block != 1)
    if wrong.any():
        index = first_index(wrong)
        where = place(name, (first_row + index[0], *index[1:]))
        raise ValueError(f"{where} is {block[index]!s}: labels must be 0 or 1")


def label_sets(
    value: Any, name: str, axes: Sequence[str] = ("row", "label"), *, allow_flat: bool = False
) -> Any:
    """Give 0/1 labels, checked: booleans, or CSR with the ones as its only entries.

    With `allow_flat` one label may come as a flat array; the answer has two dimensions anyway.
    """
    if sparse.issparse(value):
        return _sparse_label_sets(value, name, axes, allow_flat)
    flat = allow_flat and np.ndim(value) == 1
    array = real_array(value, name, axes[:1] if flat else axes)
    check_labels(array, name)
    labels = array == 1
    return labels[:, None] if flat else labels


def _sparse_label_sets(value: Any, name: str, axes: Sequence[str], allow_flat: bool) -> Any:
    if value.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {value.dtype}: it must hold real numbers (0 or 1)")
    flat = allow_flat and value.ndim == 1
    if not flat and (value.ndim != 2 or value.shape[1] == 0):
        raise ValueError(
            f"{name} has shape {value.shape}: it must have 2 dimensions ({', '.join(axes)}) "
            f"and at least one {axes[1]}"
        )
    if flat:
        value = value.reshape((value.shape[0], 1))
    labels = sparse.csr_array(value, copy=True)  # (n, m)
    labels.sum_duplicates()  # entries in row order, each once
    labels.eliminate_zeros()
    wrong = labels.data != 1
    if wrong.any():
        at = first_index(wrong)[0]
        index = (stored_row(labels, at), labels.indices[at])
        where = place(name, index[:1] if flat else index)
        raise ValueError(f"{where} is {labels.data[at]!s}: labels must be 0 or 1")
    return labels


def _frame_values(frame: Any, values: Real) -> Real:
    """Give a data frame of mixed or nullable columns as floats; a missing value becomes NaN."""
    if any(isinstance(value, (str, bytes)) for value in values.ravel()):
        return values  # pandas would read numbers out of texts
    try:
        if hasattr(frame, "iloc"):
            return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
        return values.astype(np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        return values  # refused by its dtype, with the sentence that arrays get


def check_cardinality_matrix(P: Any, name: str = "P") -> Real:
    """Give P as an (n, m, S) array with S <= m; its values are checked where they are read."""
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


def check_same_rows(counts: Sequence[int], names: Sequence[str]) -> int:
    """Give the common number of rows."""
    for count, name in zip(counts, names, strict=True):
        if count != counts[0]:
            raise ValueError(
                f"{name} has {count} rows and {names[0]} has {counts[0]}: "
                "they must have the same number of rows"
            )
    return counts[0]


def row_weights(sample_weight: Any, n: int, beside: str) -> npt.NDArray[np.float64]:
    """Give one weight per row, checked: as many as `beside` has rows; 1 where none are given."""
    if sample_weight is None:
        return np.ones(n)
    weight = real_array(sample_weight, "sample_weight", ("row",)).astype(np.float64)
    check_same_rows([n, len(weight)], [beside, "sample_weight"])
    wrong = ~((weight >= 0.0) & np.isfinite(weight))
    if wrong.any():
        index = first_index(wrong)
        raise ValueError(
            f"{place('sample_weight', index)} is {weight[index]!s}: "
            "weights must be finite and not negative"
        )
    if not weight.any():
        raise ValueError("sample_weight is zero in every row: one weight must be positive")
    return weight


def check_one_weight_each(columns: int, sets: int) -> None:
    """Raise unless there is one probability for each label set."""
    if columns != sets:
        raise ValueError(
            f"proba has {columns} columns and labelsets has {sets} rows: "
            "there must be one probability for each label set"
        )


def check_factors(factors: Any, sizes: Sequence[int]) -> list[npt.NDArray[np.int64]]:
    """Give the label indices of each factor; together they must partition 0 .. m - 1.

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
    m = sum(sizes)
    flat = np.concatenate(checked) if checked else np.empty(0, dtype=np.int64)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    outside = (flat < 0) | (flat >= m)
    if outside.any():
        at = first_index(outside)[0]
        raise ValueError(
            f"factors[{owner[at]}] holds label {flat[at]}: with {m} labels in all, "
            f"indices must run from 0 to {m - 1}"
        )
    seen = np.zeros(m, dtype=np.int64)
    np.add.at(seen, flat, 1)
    if (seen > 1).any():
        label = first_index(seen > 1)[0]
        first, second = owner[flat == label][:2]
        held = f"factors[{first}] and factors[{second}] both hold"
        if first == second:
            held = f"factors[{first}] holds twice"
        raise ValueError(
            f"{held} label {label} and no factor holds label {first_index(seen == 0)[0]}: "
            "every label must be in exactly one factor"
        )
    return checked


def distribution_array(d: Any, name: str, n: int, S: int) -> Real:
    """Give d as an (n, S + 1) array; its values are checked where they are read."""
    array = real_array(d, name, DISTRIBUTION_AXES)
    check_distribution_shape(array.shape, name, n, S)
    return array


def check_distribution_shape(shape: tuple[int, ...], name: str, n: int, S: int) -> None:
    """Raise unless a distribution has the shape that goes with P of (n, m, S)."""
    if shape != (n, S + 1):
        raise ValueError(
            f"{name} has shape {shape}: with a P of {n} rows and {S} cardinalities "
            f"it must have shape {(n, S + 1)}, for 0 to {S} labels"
        )


def check_one_each(distributions: Any, count: int) -> None:
    """Raise unless there is a list with a distribution for each of so many factors."""
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
    """Give the distribution of each factor, (n, S_f + 1), or None where none are given."""
    if distributions is None:
        return None
    check_one_each(distributions, len(parts))
    for f, P in enumerate(parts):
        if sparse.issparse(P):
            raise ValueError(
                f"distributions is given and Ps[{f}] is a sparse matrix: marginals tell the "
                "distribution of each label, so it must be left out"
            )
    return [
        distribution_array(d, f"distributions[{f}]", len(P), P.shape[2])
        for f, (d, P) in enumerate(zip(distributions, parts, strict=True))
    ]


def count_parts(Ps: Any) -> int:
    """Give the number of P in a list, or in an array with one more axis; there must be one."""
    if hasattr(Ps, "ndim") and Ps.ndim != 4:
        raise TypeError(
            f"Ps is an array of shape {tuple(Ps.shape)}: "
            "it must be a list with the P of each factor"
        )
    if isinstance(Ps, (str, bytes)) or not (hasattr(Ps, "ndim") or hasattr(Ps, "__len__")):
        raise TypeError(f"Ps is {type(Ps).__name__}: it must be a list with the P of each factor")
    count: int = Ps.shape[0] if hasattr(Ps, "ndim") else len(Ps)
    if count == 0:
        raise ValueError("Ps is empty: there must be at least one factor")
    return count


def check_parts(Ps: Any, *, allow_sparse: bool = False) -> list[Any]:
    """Give the P of each factor; they must have the same rows, and there must be one.

    With `allow_sparse` one may be a sparse matrix of marginals, given in CSR.
    """
    count_parts(Ps)
    parts = [
        sparse_marginals(P, f"Ps[{f}]")
        if allow_sparse and sparse.issparse(P)
        else check_cardinality_matrix(P, f"Ps[{f}]")
        for f, P in enumerate(Ps)
    ]
    check_same_rows([P.shape[0] for P in parts], [f"Ps[{f}]" for f in range(len(parts))])
    return parts


def _number(value: Any, name: str, rule: str) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {value!r}: it must be {rule}")
    return float(value)


def check_beta(beta: Any) -> float:
    """Give beta as a float; powers of it must not overflow."""
    rule = "a number greater than 0 (from 1e-50 to 1e50)"
    number = _number(beta, "beta", rule)
    if not 1e-50 <= number <= 1e50:
        raise ValueError(f"beta is {number!r}: it must be {rule}")
    return number


def check_zero_division(zero_division: Any) -> float:
    """Give the worth of an empty decision for an empty truth as a float in [0, 1]."""
    rule = "a number in [0, 1]"
    number = _number(zero_division, "zero_division", rule)
    if not (0.0 <= number <= 1.0) or math.isnan(number):
        raise ValueError(f"zero_division is {number!r}: it must be {rule}")
    return number


def check_flag(value: Any, name: str) -> bool:
    """Give a flag as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}: it must be True or False")
    return bool(value)


def check_count(value: Any, name: str, least: int = 0) -> int:
    """Give a number of things as an int, `least` or more."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} is {value!r}: it must be an integer, {least} or more")
    return int(value)


def check_choice(value: Any, name: str, choices: tuple[Any, ...]) -> None:
    """Raise unless a setting is one of some names, or None where that is among them."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise ValueError(f"{name} is {value!r}: it must be one of {', '.join(map(repr, choices))}")
