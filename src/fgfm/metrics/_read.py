"""Read true and decided labels in all forms: matrices, flat arrays, classes, lists of names."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.names import check_same_index, check_same_names, column_names
from fgfm._utils.validation import check_average_of, check_same_rows, label_sets

__all__ = ["read_labels"]


def read_labels(tables: dict[str, Any], average: Any, **rows: Any) -> tuple[list[Any], Any]:
    """Validate true labels, and decided ones of the same shape.

    Parameters
    ----------
    tables : dict
        Labels by the names of their arguments, the true ones first: (n, m), 0 or 1; flat ones, 0
        or 1, or classes; or lists of the names of labels.
    average : str or None
        The average of the F-measure.
    **rows : object
        Further arguments of the caller, such as weights, that have the same rows.

    Returns
    -------
    list
        The labels (n, m): booleans, or CSR that stores the ones only.
    str or None
        The average: of one label it is "macro" where it was "samples" or "binary".
    """
    check_same_index(**tables, **rows)
    tables = _name_columns(tables)
    truth, y = next(iter(tables.items()))
    classes = _classes(list(tables.values()))
    if classes is not None:
        check_average_of(average, truth, flat=True)
        if average in ("samples", "binary"):
            raise ValueError(
                f"average is {average!r} and {truth} has {len(classes)} classes: it must be "
                "'macro', 'weighted' or 'micro', or compare one class with the others, as in "
                f"{truth} == {classes[-1].item()!r}"
            )
        check_same_rows([len(table) for table in tables.values()], list(tables))
        return [np.asarray(table)[:, None] == classes for table in tables.values()], average
    averaged = check_average_of(average, truth, np.ndim(y) == 1)
    for name, table in tables.items():
        check_same_names(column_names(table), column_names(y), name, truth)
    labels = [label_sets(table, name, allow_flat=True) for name, table in tables.items()]
    for (name, table), matrix in zip(tables.items(), labels, strict=True):
        if matrix.shape != labels[0].shape:
            raise ValueError(
                f"{name} has shape {np.shape(table)} and {truth} has {np.shape(y)}: "
                "they must have the same shape"
            )
    return labels, averaged


def _classes(tables: list[Any]) -> Any:
    """Return the sorted classes of flat arrays; None if they hold 0 and 1, or are not flat."""
    if any(sparse.issparse(table) or np.ndim(table) != 1 for table in tables):
        return None
    arrays = [np.asarray(table) for table in tables]
    text = all(isinstance(value, str) for a in arrays for value in a.tolist())
    if not text and not {a.dtype.kind for a in arrays} <= set("iu"):
        return None
    classes = np.unique(np.concatenate([a.astype(str) if text else a for a in arrays]))
    # Two numbers other than 0 and 1 are an error; so is -1, which often stands for "not known".
    return classes if len(classes) and (text or (len(classes) > 2 and classes[0] >= 0)) else None


def _name_columns(tables: dict[str, Any]) -> dict[str, Any]:
    """Return lists of names as CSR; anything else unchanged.

    The labels are the columns of a data frame among the tables, otherwise all names that occur.
    """
    lists = {name: _lists(table) for name, table in tables.items()}
    if not any(len(row) for rows in lists.values() for row in rows or []):
        return tables
    columns = {name: column_names(table) for name, table in tables.items()}
    known: Any = next((names for names in columns.values() if names is not None), None)
    if known is None:
        known = sorted({label for rows in lists.values() for row in rows or [] for label in row})
    number = {label: j for j, label in enumerate(known)}
    named: dict[str, Any] = {}
    for name, rows in lists.items():
        if rows is None:
            if columns[name] is None:
                other = next(name for name, rows in lists.items() if rows is not None)
                raise ValueError(
                    f"{name} has no names of labels and {other} lists them: all must be lists of "
                    "names, or data frames"
                )
            named[name] = tables[name]
            continue
        for i, row in enumerate(rows):
            unknown = [label for label in row if label not in number]
            if unknown:
                raise ValueError(
                    f"{name}[{i}] has the label {unknown[0]!r}: it is no column of the data frame"
                )
        sets = [sorted({number[label] for label in row}) for row in rows]
        flat = np.array([j for labels in sets for j in labels], dtype=np.int64)
        ends = np.cumsum([0, *map(len, sets)])
        ones = np.ones(len(flat), dtype=np.int8)
        named[name] = sparse.csr_array((ones, flat, ends), (len(sets), len(number)))
    return named


def _lists(value: Any) -> list[Any] | None:
    """Return the rows of lists or sets of names, empty ones included; None for other forms."""
    if isinstance(value, np.ndarray) and (value.dtype != object or value.ndim != 1):
        return None
    if hasattr(value, "to_list") and not hasattr(value, "columns"):  # a series
        value = value.to_list()
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) == 0:
        return None
    forms = (list, tuple, set, frozenset, np.ndarray)
    if not all(isinstance(row, forms) for row in value):
        return None
    return list(value) if all(isinstance(a, str) for row in value for a in row) else None
