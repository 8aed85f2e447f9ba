"""Validation of user input.

Functions named ``check_*`` raise if a value breaks a rule; some also return it in a common type.
Functions named after a thing (`real_array`, `label_sets`, ...) convert and validate. Every error
message names the argument, the offending value with its position, and the rule.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.names import check_same_index

Real = npt.NDArray[Any]
Labels = npt.NDArray[np.bool_]

CARDINALITY_AXES = ("row", "label", "cardinality")  # of P
DISTRIBUTION_AXES = ("row", "cardinality")  # of d
AVERAGES = ("samples", "macro", "weighted", "micro")
# Sums of squares of weights, and their inverses, are far from overflow.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-15, 1e15


# Parameters: numbers, flags, counts and choices


def _number(value: Any, name: str, rule: str, low: float, high: float) -> float:
    """Return a number from `low` to `high` as a float."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {value!r}: it must be {rule}")
    if not low <= float(value) <= high:
        raise ValueError(f"{name} is {float(value)!r}: it must be {rule}")
    return float(value)


def check_beta(beta: Any) -> float:
    """Return beta as a float in the range in which beta^4 neither overflows nor underflows."""
    if type(beta) is float and 1e-50 <= beta <= 1e50:
        return beta
    return _number(beta, "beta", "a number greater than 0 (from 1e-50 to 1e50)", 1e-50, 1e50)


def check_zero_division(
    value: Any, name: str = "zero_division", *, allow_nan: bool = False
) -> float:
    """Return a number in [0, 1], such as the value of 0/0, as a float; NaN where it is allowed."""
    if type(value) is float and 0.0 <= value <= 1.0:
        return value
    if allow_nan and isinstance(value, numbers.Real) and value != value:
        return float("nan")
    return _number(value, name, "a number in [0, 1]" + " or NaN" * allow_nan, 0.0, 1.0)


def check_positive(value: Any, name: str) -> float:
    """Return a positive number as a float."""
    rule = "a finite number greater than 0"
    return _number(value, name, rule, np.nextafter(0.0, 1.0), np.finfo(float).max)


def check_fraction(value: Any, name: str) -> float:
    """Return a number strictly between 0 and 1 as a float."""
    rule = "a number greater than 0 and less than 1"
    return _number(value, name, rule, np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0))


def check_flag(value: Any, name: str) -> bool:
    """Return a flag as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}: it must be True or False")
    return bool(value)


def resolve_nonempty(nonempty: Any, auto: bool) -> bool:
    """Return the flag `nonempty` of an estimator, with "auto" replaced by what `fit` found."""
    if isinstance(nonempty, str) and nonempty == "auto":
        return auto
    if not isinstance(nonempty, (bool, np.bool_)):
        raise TypeError(f"nonempty is {nonempty!r}: it must be 'auto', True or False")
    return bool(nonempty)


def check_count(value: Any, name: str, least: int = 0) -> int:
    """Return a count as an int that is not smaller than `least`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} is {value!r}: it must be an integer, {least} or more")
    return int(value)


def check_average_of(
    average: Any, name: str, flat: bool, choices: tuple[Any, ...] = (*AVERAGES, "binary", None)
) -> Any:
    """Return the average of labels called `name`; those of a binary classifier are one column."""
    check_choice(average, "average", choices)
    if average == "binary" and not flat:
        raise ValueError(
            f"average is 'binary' and {name} is not flat: several labels have the average "
            f"{', '.join(map(repr, AVERAGES[:-1]))} or {AVERAGES[-1]!r}"
        )
    return "macro" if average == "binary" or (flat and average == "samples") else average


def check_choice(value: Any, name: str, choices: tuple[Any, ...]) -> None:
    """Raise unless a parameter is one of some strings, or None where that is among them."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise ValueError(f"{name} is {value!r}: it must be one of {', '.join(map(repr, choices))}")


# Arrays: dtype, shape, number of rows, weights of rows


def place(name: str, index: Sequence[int]) -> str:
    """Format the position of an array element as Python does.

    Examples
    --------
    >>> place("proba", (17, 3))
    'proba[17, 3]'
    """
    return f"{name}[{', '.join(str(int(i)) for i in index)}]"


def first_index(wrong: Labels) -> tuple[int, ...]:
    """Return the index of the first True in C order."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))


def first_entry(matrix: Any, wrong: Labels) -> tuple[int, int, Any]:
    """Return the row, the column and the value of the first wrong entry of an array or CSR.

    `wrong` has the shape of an array, or of the stored entries of a CSR matrix.
    """
    if isinstance(matrix, np.ndarray):
        row, column = first_index(wrong)
        return row, column, matrix[row, column]
    position = int(np.argmax(wrong))
    row = int(np.searchsorted(matrix.indptr, position, side="right")) - 1
    return row, int(matrix.indices[position]), matrix.data[position]


def raise_first(
    values: Any, wrong: Labels, name: str, first: int | Sequence[int], rule: str
) -> None:
    """Raise for the first wrong element of an array, or stored one of CSR, if there is one.

    `first` is the index of the first element of the values in the whole array, or its row.
    """
    if not wrong.any():
        return
    if sparse.issparse(values):
        *index, value = first_entry(values, wrong)
    else:
        index = list(first_index(wrong))
        value = values[tuple(index)]
    start = [first] if isinstance(first, int) else list(first)
    start += [0] * (len(index) - len(start))
    where = place(name, [s + i for s, i in zip(start, index, strict=True)])
    raise ValueError(f"{where} is {value!s}: {rule}")


def real_array(value: Any, name: str, axes: Sequence[str]) -> Real:
    """Convert `value` to an array of real numbers with one dimension per name in `axes`.

    The dtype is kept, also where it is neither float32 nor float64: blocks of rows are converted
    to float64 when they are computed with.
    """
    if sparse.issparse(value):
        raise TypeError(f"{name} is a sparse matrix: it must be a dense array")
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: fill the masked values first")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} is ragged: its rows must have the same length") from None
    if array.dtype.kind == "O" and hasattr(value, "to_numpy"):
        array = _frame_values(value, array)
    if array.dtype.kind in "OUST":
        check_no_text(array, name)
    if array.dtype.kind not in "fiub":
        check_real(array.dtype, name)
    if array.ndim != len(axes) or 0 in array.shape[1:]:
        check_axes(array.shape, name, axes)
    return array


def _frame_values(frame: Any, values: Real) -> Real:
    """Convert a data frame of mixed or nullable columns to floats; missing values become NaN."""
    if any(isinstance(value, (str, bytes)) for value in values.ravel()):
        return values  # pandas would parse numbers from strings
    try:
        if hasattr(frame, "iloc"):
            return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
        return values.astype(np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        return values  # check_real raises on its dtype, with the same message as for arrays


def check_no_text(array: Real, name: str) -> None:
    """Raise for the first element that is text, such as "0.5" from a table."""
    for index, element in np.ndenumerate(array):
        if isinstance(element, (str, bytes)):
            where = place(name, index) if index else name
            raise TypeError(
                f"{name} has dtype {array.dtype}: it must hold real numbers (float32 or float64), "
                f"and {where} is the text {str(element)!r}; convert it with {name}.astype(float)"
            )


def check_real(dtype: Any, name: str, expected: str = "float32 or float64") -> None:
    """Raise unless a NumPy dtype is boolean, integer or real floating point."""
    if dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {dtype}: it must hold real numbers ({expected})")


def check_numbered_columns(frame: Any, name: str) -> None:
    """Raise if the columns of a data frame are the numbers 0, 1, .. in another order."""
    names = [*map(str, getattr(frame, "columns", ()))]
    numbers = [*map(str, range(len(names)))]
    if names != numbers and sorted(names) == sorted(numbers):
        column = next(i for i, number in enumerate(numbers) if names[i] != number)
        raise ValueError(
            f"column {column} of {name} is {frame.columns[column]!r}: the columns must be in the "
            "order 0, 1, .. of the numbers"
        )


def is_flat(value: Any) -> bool:
    """Return True for 1-D arrays, series, and lists of numbers."""
    if hasattr(value, "ndim"):  # a nested tensor of PyTorch has no shape
        return bool(value.ndim == 1)
    if hasattr(value, "shape"):
        return len(value.shape) == 1
    return isinstance(value, (list, tuple)) and len(value) > 0 and np.ndim(value[0]) == 0


def check_axes(shape: tuple[int, ...], name: str, axes: Sequence[str]) -> None:
    """Raise unless there is one dimension per name in `axes`, all but the first non-empty."""
    if len(shape) != len(axes):
        raise ValueError(
            f"{name} has shape {shape}: it must have {len(axes)} dimensions ({', '.join(axes)})"
        )
    for size, axis in zip(shape[1:], axes[1:], strict=True):
        if size == 0:
            raise ValueError(f"{name} has shape {shape}: it must have at least one {axis}")


def check_same_rows(counts: Sequence[int], names: Sequence[str]) -> int:
    """Return the common number of rows; raise if there are several."""
    for count, name in zip(counts, names, strict=True):
        if count != counts[0]:
            raise ValueError(
                f"{name} has {count} rows and {names[0]} has {counts[0]}: "
                "they must have the same number of rows"
            )
    return counts[0]


def row_weights(sample_weight: Any, n: int, beside: str) -> npt.NDArray[np.float64]:
    """Validate one weight for each of the n rows of `beside`; return ones for None."""
    if sample_weight is None:
        return np.ones(n)
    weight = real_array(sample_weight, "sample_weight", ("row",)).astype(np.float64)
    check_same_rows([n, len(weight)], [beside, "sample_weight"])
    wrong = ~((weight >= 0.0) & np.isfinite(weight))
    raise_first(weight, wrong, "sample_weight", 0, "weights must be finite and not negative")
    if not weight.any():
        raise ValueError("sample_weight is zero in every row: one weight must be positive")
    largest = float(weight.max())
    if not _LEAST_WEIGHT <= largest <= _MOST_WEIGHT:
        raise ValueError(
            f"{place('sample_weight', first_index(weight == largest))} is {largest!s}: the "
            f"largest weight must lie between {_LEAST_WEIGHT:.0e} and {_MOST_WEIGHT:.0e}, since "
            "weight 2 is a row twice"
        )
    return weight


# Labels, 0 or 1, dense or sparse


def check_labels(block: Real, name: str, first_row: int = 0) -> None:
    """Raise unless every element is 0 or 1; `first_row` is the number of the block's first row."""
    raise_first(block, (block != 0) & (block != 1), name, first_row, "labels must be 0 or 1")


def label_sets(
    value: Any, name: str, axes: Sequence[str] = ("row", "label"), *, allow_flat: bool = False
) -> Any:
    """Validate 0/1 labels; return booleans, or CSR that stores the ones only.

    With `allow_flat` a 1-D array is one label; the returned array is 2-D in any case.
    """
    is_sparse = sparse.issparse(value)
    flat = allow_flat and (value.ndim if is_sparse else np.ndim(value)) == 1
    if not is_sparse:
        check_label_columns(value, name)
        array = real_array(value, name, axes[:1] if flat else axes)
        check_labels(array, name)
        return (array == 1)[:, None] if flat else array == 1
    check_real(value.dtype, name, "0 or 1")
    check_axes(value.shape, name, axes[:1] if flat else axes)
    labels = sparse.csr_array(value.reshape((-1, 1)) if flat else value, copy=True)  # (n, m)
    labels.sum_duplicates()  # also sorts the entries of each row
    labels.eliminate_zeros()
    wrong = labels.data != 1
    if wrong.any():
        *index, value_there = first_entry(labels, wrong)
        where = place(name, index[:1] if flat else index)
        raise ValueError(f"{where} is {value_there!s}: labels must be 0 or 1")
    return labels


def check_label_columns(frame: Any, name: str) -> None:
    """Raise for a column of a data frame that has no labels, such as one of ids."""
    names = list(frame.columns) if hasattr(frame, "columns") else []
    for column, label in enumerate(names):
        values = np.asarray(frame.iloc[:, column] if hasattr(frame, "iloc") else frame[label])
        known = [value for value in values.tolist() if value is not None]
        wrong = [value for value in known if value not in (0, 1, -1) and value == value]
        # Another value among labels is reported with its place; a column of such values is none.
        if len(wrong) > 0.5 * len(known) or any(isinstance(value, str) for value in wrong):
            raise ValueError(
                f"column {label!r} of {name} holds {wrong[0]!r}: labels must be 0 or 1; drop the "
                "columns that are not labels"
            )


# Probabilities, dense or sparse, and rows of probabilities that sum to 1

_UNIT = "probabilities must lie in [0, 1]"


def tolerance(array: Real) -> float:
    """Return the rounding error that is allowed for a probability, or a sum of them.

    It depends on the precision of the array's dtype. Integers and booleans are computed with as
    float64.
    """
    if array.dtype.kind != "f" or array.dtype.itemsize > 4:
        return 1e-9
    return 1e-5 if array.dtype.itemsize == 4 else 1e-3


def _outside_unit_interval(array: Real) -> Labels:
    slack = tolerance(array)
    return np.asarray(~((array >= -slack) & (array <= 1.0 + slack)))  # True for NaN


def check_probabilities(
    values: Any, name: str, first: int | Sequence[int] = 0, hint: str = ""
) -> None:
    """Raise unless every element, or stored one of CSR, lies in [0, 1], up to rounding.

    `first` is the index of the first element, or its row, in the array that `values` are part of.
    """
    wrong = _outside_unit_interval(_stored(values))
    raise_first(values, wrong, name, first, _UNIT + f"; {hint}" * bool(hint))


def check_marginals(block: Real, name: str, first: Sequence[int]) -> None:
    """Raise unless every element lies in [0, 1], up to rounding; recognise logits."""
    wrong = _outside_unit_interval(block)
    if wrong.any():
        rule = _UNIT
        if (block < -0.1).any():  # far beyond rounding, and no percentages
            rule += "; these look like logits: apply a sigmoid, or pass logits=True"
        raise_first(block, wrong, name, first, rule)


def check_finite(values: Any, name: str, kind: str) -> None:
    """Raise if an element of an array, or a stored one of CSR, is NaN or infinite."""
    raise_first(values, ~np.isfinite(_stored(values)), name, 0, f"{kind} must be finite numbers")


def _stored(values: Any) -> Real:
    """Return the elements of an array, or the stored ones of CSR."""
    stored: Real = values.data if sparse.issparse(values) else values
    return stored


def check_logits(block: Real, name: str, first: Sequence[int]) -> None:
    """Raise if an element is NaN; `first` is the index of the first element of the block."""
    raise_first(block, np.isnan(block), name, first, "logits must be numbers")


def clip_probabilities(array: Real, name: str, first_row: int = 0) -> Real:
    """Validate probabilities, and clip rounding errors to [0, 1]."""
    check_probabilities(array, name, first_row)
    return np.clip(array, 0.0, 1.0)


def unit_rows(block: Real, name: str, first_row: int = 0) -> npt.NDArray[np.float64]:
    """Validate rows that are distributions, and rescale them to sum to 1 in float64."""
    weights = clip_probabilities(block, name, first_row).astype(np.float64, order="C")
    total = weights.sum(axis=1)
    wrong = ~(np.abs(total - 1.0) <= tolerance(block))
    if wrong.any():
        row = first_index(wrong)[0]
        raise ValueError(
            f"{place(name, (first_row + row,))} sums to {total[row]:g}: "
            "the probabilities of a row must sum to 1"
        )
    return np.asarray(weights / total[:, None])


def stacked_classes(proba: Any, name: str = "proba", *, logits: bool = False) -> Any:
    """Return marginals (n, m) from a list of m arrays (n, 2), the probabilities of both classes.

    This is what ``predict_proba`` of scikit-learn's forests and trees returns. Anything else is
    returned unchanged, except for 3-D arrays: the order of their axes cannot be known. A list with
    `logits` is an error, since its elements are probabilities.
    """
    nested = getattr(proba, "is_nested", False)  # the shape of such tensors cannot be read
    axes = () if nested else tuple(getattr(proba, "shape", ()))
    if len(axes) == 3 and axes[2] == 2:
        raise ValueError(
            f"{name} has shape {axes}: it must have 2 dimensions (row, label); if its axes are "
            f"(label, row, class), as in np.array(predict_proba(X)), pass {name}[:, :, 1].T or "
            f"the list itself, and if they are (row, label, class), pass {name}[:, :, 1]"
        )
    is_list = isinstance(proba, (list, tuple)) and len(proba) > 0
    if not (is_list and isinstance(proba[0], np.ndarray) and proba[0].ndim == 2):
        return proba
    if logits:
        raise ValueError(
            f"logits is True and {name} is a list of arrays, the class probabilities of each "
            "label: pass logits as one array (n, m), or the list without logits=True"
        )
    proba = [np.asarray(block) for block in proba]
    for i, block in enumerate(proba):
        where, shape = place(name, (i,)), block.shape
        if len(shape) == 2 and shape[1] == 1:
            raise ValueError(
                f"{where} has shape {shape}: label {i} had one class in training, and its "
                f"probabilities do not show whether that is 0 or 1; replace it by an array of "
                f"shape {(shape[0], 2)}, by the estimator's classes_[{i}]"
            )
        if shape != (len(proba[0]), 2):
            raise ValueError(
                f"{where} has shape {shape}: in a list with the class probabilities of each label "
                f"all must have shape {(len(proba[0]), 2)}"
            )
        check_real(block.dtype, where)
        unit_rows(block, where)
    return np.stack([block[:, 1] for block in proba], axis=1)


def sparse_marginals(value: Any, name: str) -> Any:
    """Convert a sparse matrix of marginals to CSR; its values are checked when they are read."""
    check_real(value.dtype, name)
    check_axes(value.shape, name, ("row", "label"))
    if value.format in ("csr", "csc"):
        _check_compressed(value, name)
    return value.tocsr()


def _check_compressed(matrix: Any, name: str) -> None:
    """Raise unless ``indptr`` and ``indices`` of CSR or CSC are consistent.

    Users may have changed them in place, and the kernels do not check bounds. SciPy's
    ``check_format`` is not used, because it replaces arrays of the matrix that it is called on.
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
            f"{name}.indptr is invalid: it must have {majors + 1} entries, from 0 to at most "
            f"{stored}, none smaller than the one before"
        )
    indices = indices[: int(indptr[-1])]
    rule = f"with shape {matrix.shape} indices must run from 0 to {minors - 1}"
    raise_first(indices, (indices < 0) | (indices >= minors), f"{name}.indices", 0, rule)


# Label factors, with P and the cardinality distribution d of each: P has shape (n, m, S), where
# P[r, i, s - 1] is p(y_i = 1, s labels in all) of row r, and d has shape (n, S + 1), where d[r, s]
# is the probability of s labels.


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
            f"of {shape[2]}; the last axis starts at s = 1 (there is no column for s = 0) and "
            "must not be longer than the one before"
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
    check_numbered_columns(d, name)
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


def check_distribution_count(distributions: Any, count: int | None = None) -> None:
    """Raise unless `distributions` is a list with one distribution for each of `count` factors."""
    if hasattr(distributions, "ndim") or not hasattr(distributions, "__len__"):
        raise TypeError(
            f"distributions is {type(distributions).__name__}: "
            "it must be a list with the distribution of each factor"
        )
    if count is not None and len(distributions) != count:
        raise ValueError(
            f"distributions has {len(distributions)} entries and Ps has {count}: "
            "there must be one distribution for each factor"
        )


def check_distributions(distributions: Sequence[Any], parts: Sequence[Real]) -> list[Real]:
    """Validate the distribution of each factor, (n, S_f + 1)."""
    for f, P in enumerate(parts):
        if sparse.issparse(P):
            raise ValueError(
                f"distributions is given and Ps[{f}] is a sparse matrix: its marginals determine "
                "the distribution of each label, so distributions must be None"
            )
    check_same_index(**{f"distributions[{f}]": d for f, d in enumerate(distributions)})
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


def check_parts(Ps: Sequence[Any], *, allow_sparse: bool = False) -> list[Any]:
    """Validate the P of each factor of a list; all must have the same rows.

    With `allow_sparse` a part may also be a sparse matrix of marginals, which is returned as CSR.
    """
    parts = [
        sparse_marginals(P, f"Ps[{f}]")
        if allow_sparse and sparse.issparse(P)
        else check_cardinality_matrix(P, f"Ps[{f}]")
        for f, P in enumerate(Ps)
    ]
    check_same_rows([P.shape[0] for P in parts], [f"Ps[{f}]" for f in range(len(parts))])
    return parts


def check_partition(
    factors: Any, m: int, *, sizes: Sequence[int] | None = None, names: Any = None
) -> list[npt.NDArray[np.int64]]:
    """Validate label factors, which must partition the labels 0 .. m - 1.

    Parameters
    ----------
    factors : sequence of sequences of int or str
        The labels of each factor.
    m : int
        The number of labels.
    sizes : sequence of int, optional
        The number of labels in the P of each factor.
    names : sequence, optional
        The names of the labels, which may stand for their numbers.

    Returns
    -------
    list of ndarray
        The numbers of the labels of each factor.
    """
    if isinstance(factors, (str, bytes)) or not hasattr(factors, "__len__"):
        raise TypeError(
            f"factors is {factors!r}: it must be a partition of the labels (a list of lists)"
        )
    if sizes is not None and len(factors) != len(sizes):
        raise ValueError(
            f"factors has {len(factors)} entries and Ps has {len(sizes)}: "
            "there must be one P for each factor"
        )
    number = {} if names is None else {str(name): i for i, name in enumerate(names)}
    checked = [_label_numbers(factor, f, number) for f, factor in enumerate(factors)]
    for f, labels in enumerate(checked):
        if sizes is not None and len(labels) != sizes[f]:
            raise ValueError(
                f"factors[{f}] has {len(labels)} labels and Ps[{f}] has {sizes[f]}: "
                "the sizes must match"
            )
        if not len(labels):
            raise ValueError(f"factors[{f}] is empty: a factor must have at least one label")
    flat = np.concatenate([np.empty(0, dtype=np.int64), *checked])
    owner = np.repeat(np.arange(len(checked)), [*map(len, checked)])  # of each entry of flat
    outside = (flat < 0) | (flat >= m)
    if outside.any():
        position = first_index(outside)[0]
        raise ValueError(
            f"factors[{owner[position]}] holds label {flat[position]}: with {m} labels in all, "
            f"indices must run from 0 to {m - 1}"
        )
    count = np.bincount(flat, minlength=m)
    if (count == 1).all():
        return checked
    absent = "".join(
        f"{i}" if names is None else f"{i} ({names[i]!r})" for i in np.flatnonzero(count == 0)[:1]
    )
    wrong = f"factors leaves out label {absent}"
    if (count > 1).any():
        label = first_index(count > 1)[0]
        first, second = owner[flat == label][:2]
        wrong = f"factors[{first}] and factors[{second}] both hold label {label}"
        if first == second:
            wrong = f"factors[{first}] holds label {label} twice"
        wrong += f" and no factor holds label {absent}" if absent else ""
    raise ValueError(f"{wrong}: every label must be in exactly one factor")


def _label_numbers(factor: Any, f: int, number: dict[str, int]) -> npt.NDArray[np.int64]:
    """Return the numbers of the labels of ``factors[f]``; `number` maps names to numbers."""
    if not isinstance(factor, (str, bytes)) and hasattr(factor, "__len__"):
        labels = factor
        if any(isinstance(label, str) for label in labels):
            labels = [number.get(x, x) if isinstance(x, str) else x for x in labels]
            unknown = next((label for label in labels if isinstance(label, str)), None)
            if unknown is not None:
                reason = "there is no such label" if number else "the labels have no names"
                raise ValueError(f"factors[{f}] holds label {unknown!r}: {reason}")
        array = np.asarray(labels, dtype=None if len(labels) else np.int64)
        if array.ndim == 1 and array.dtype.kind in "iu":
            return array.astype(np.int64)
    raise TypeError(f"factors[{f}] is {factor!r}: a factor must be a list of label numbers")
