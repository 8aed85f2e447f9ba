"""Lazy decisions on Dask arrays, one task per block of rows.

Rows are decided independently of each other, so that any chunks of rows will do. The other axes
are rechunked to one chunk each, because a decision needs all labels of a row.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.validation import check_same_rows
from fgfm.decision._marginals import Marginals
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._problem import Problem, decide

__all__ = ["any_dask", "decide_lazily"]


def any_dask(*values: Any) -> bool:
    """Return True if one of the values is a Dask array."""
    library = sys.modules.get("dask.array")  # None: no Dask array can exist
    return library is not None and any(isinstance(value, library.Array) for value in values)


def decide_lazily(
    kind: type[Problem],
    arrays: Mapping[str, Any],
    objective: Objective,
    average: str,
    shared: Mapping[str, Any],
) -> Decision:
    """Build a decision of Dask arrays, which share their tasks.

    `arrays` have the same rows, by the name of the argument; at least one is a Dask array, and the
    chunks of rows are those of the first one. `shared` are further arguments of the problem, the
    same for all blocks.
    """
    from dask import array

    name = next(name for name, value in arrays.items() if any_dask(value))
    if average == "micro":
        raise TypeError(
            f"{name} is a Dask array: average='micro' decides all rows together, so it must be an "
            f"array in memory; use {name}.compute()"
        )
    arrays = {name: _array_with_rows(a, name) for name, a in arrays.items()}
    _check_unknown_chunks(arrays)
    no_rows = _problem_without_rows(kind, arrays, objective, shared)
    m = no_rows.shape[1]
    if average == "samples":
        decide_rows = partial(decide, objective=objective, average=average)
        decided = _map_row_blocks(decide_rows, arrays, kind, shared)
        axis, new_axis = "row", {"label": m}
    else:
        to = {"new_axes": {"label": m}, "meta": _marginals(no_rows)}
        marginals = _map_row_blocks(_marginals, arrays, kind, shared, ("row", "label"), **to)
        n = marginals.shape[0]
        if math.isnan(n):
            raise ValueError(
                f"the number of rows of {name} is not known, and average={average!r} decides all "
                "rows of a label together: call its compute_chunk_sizes()"
            )
        marginals = marginals.rechunk({0: -1, 1: "auto"})
        decided = array.blockwise(
            _decide_columns,
            ("label",),
            marginals,
            ("row", "label"),
            objective=objective,
            meta=np.empty(0, dtype=object),
        )
        axis, new_axis = "label", {"row": n}
    to = {"new_axes": new_axis, "meta": no_rows.no_labels(), "token": "labels"}
    labels = array.blockwise(attrgetter("labels"), ("row", "label"), decided, (axis,), **to)
    to = {"meta": np.empty(0), "token": "expected_f"}
    expected_f = array.blockwise(attrgetter("expected_f"), (axis,), decided, (axis,), **to)
    return Decision(labels, expected_f)


def _problem_without_rows(
    kind: type[Problem],
    arrays: Mapping[str, Any],
    objective: Objective,
    shared: Mapping[str, Any],
) -> Problem:
    """Return the problem of no rows, which shows types; it validates all shapes and limits."""
    try:
        problem = kind.read(*[_no_rows(a) for a in arrays.values()], **shared)
        objective.constraints(problem.shape[1], sparse=problem.is_sparse)
    except ValueError as error:
        shapes = ", ".join(f"{name} {np.shape(a)}" for name, a in arrays.items())
        error.add_note(f"raised for arrays without rows; with all rows the shapes are: {shapes}")
        raise
    return problem


def _map_row_blocks(
    function: Callable[..., Any],
    arrays: Mapping[str, Any],
    kind: type[Problem],
    shared: Mapping[str, Any],
    axes: tuple[str, ...] = ("row",),
    **to: Any,
) -> Any:
    """Apply a function to the problems of blocks of rows; return a Dask array of its results."""
    from dask import array, delayed

    leading = next(a for a in arrays.values() if any_dask(a))
    row_counts = {name: n for name, a in arrays.items() if not math.isnan(n := np.shape(a)[0])}
    if row_counts:
        check_same_rows(list(row_counts.values()), list(row_counts))
    indexed: list[Any] = []
    for k, value in enumerate(arrays.values()):
        chunked = _rechunk(array, value, leading.chunks[0])
        indexed += [chunked, ("row", *(f"axis {axis} of {k}" for axis in range(1, chunked.ndim)))]
    starts = np.cumsum([0, *leading.chunks[0][:-1]])  # (blocks,) NaN where not known
    indexed += [array.from_array(starts, chunks=1), ("row",)]
    shared = {name: delayed(value, traverse=False) for name, value in shared.items()}
    to = {"meta": np.empty(0, dtype=object), **to, "align_arrays": False}
    return array.blockwise(
        _apply_to_block, axes, *indexed, function=function, kind=kind, **to, **shared
    )


def _array_with_rows(value: Any, name: str) -> Any:
    """Return a Dask or NumPy array whose first axis can be split into blocks."""
    if sparse.issparse(value):
        raise TypeError(
            f"{name} is a sparse matrix, beside a Dask array: it must be a Dask array too, of "
            "blocks in CSR"
        )
    if not any_dask(value):
        value = np.asarray(value)
    if value.ndim == 0:
        raise ValueError(f"{name} has shape (): its first axis must be that of the rows")
    if any(math.isnan(n) for n in value.shape[1:]):
        raise ValueError(
            f"{name} has shape {value.shape}: only the number of rows may be unknown; call its "
            "compute_chunk_sizes()"
        )
    return value


def _check_unknown_chunks(arrays: dict[str, Any]) -> None:
    """Raise unless arrays with unknown chunks have the same number of blocks."""
    unknown = [n for n, a in arrays.items() if any_dask(a) and any(map(math.isnan, a.chunks[0]))]
    if not unknown or len(arrays) == 1:
        return
    blocks = {a.numblocks[0] if any_dask(a) else None for a in arrays.values()}
    if len(blocks) > 1 or len(unknown) < len(arrays):
        raise ValueError(
            f"the numbers of rows in the blocks of {unknown[0]} are not known, so that the other "
            "arrays cannot be split alike: call its compute_chunk_sizes()"
        )


def _no_rows(value: Any) -> Any:
    """Return an array of the same type without rows."""
    if not any_dask(value):
        return np.asarray(value)[:0]
    if sparse.issparse(value._meta):
        kind = sparse.csr_matrix if sparse.isspmatrix(value._meta) else sparse.csr_array
        return kind((0, *value.shape[1:]), dtype=value.dtype)
    return np.empty((0, *value.shape[1:]), dtype=value.dtype)


def _rechunk(array: Any, value: Any, rows: tuple[int, ...]) -> Any:
    """Return a Dask array with the given chunks of rows, and one chunk along every other axis."""
    if not any_dask(value):
        value = array.from_array(np.asarray(value), chunks=-1)
    chunks: dict[int, Any] = dict.fromkeys(range(1, value.ndim), -1)
    if value.chunks[0] != rows and not any(math.isnan(n) for n in rows):
        chunks[0] = rows
    return value.rechunk(chunks)


def _apply_to_block(
    *blocks: Any, function: Callable[[Problem], Any], kind: type[Problem], **shared: Any
) -> Any:
    """Apply a function to one block of rows; the last block is the number of its first row."""
    *arrays, start = map(_only_block, blocks)
    try:
        return function(kind.read(*arrays, **shared))
    except ValueError as error:
        first = float(start[0])
        if first:
            where = "is not known" if math.isnan(first) else f"is row {first:.0f}"
            error.add_note(f"rows are counted from the first of their block, which {where}")
        raise


def _only_block(block: Any) -> Any:
    """Return a block, which blockwise puts in a list for each axis that is not in the output."""
    while isinstance(block, list):
        (block,) = block
    return block


def _marginals(problem: Problem) -> Any:
    return problem.marginals().valid()


def _decide_columns(block: Any, objective: Objective) -> Decision:
    """Decide for one block of labels."""
    return decide(Marginals.read(_only_block(block)), objective, "macro")
