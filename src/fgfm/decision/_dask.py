"""Lazy decisions on Dask arrays, one task per block of rows.

Rows are decided independently of each other, so that any chunks of rows will do. The other axes
are rechunked to one chunk each, because a decision needs all labels of a row.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.validation import check_same_rows
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._problem import Problem


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
    from dask import array, delayed

    name = next(name for name, value in arrays.items() if any_dask(value))
    if average != "samples":
        problem = "1-D probabilities" if arrays[name].ndim == 1 else f"average={average!r}"
        raise TypeError(
            f"{name} is a Dask array: {problem} decides all rows together, so it must be an array "
            f"in memory; use {name}.compute()"
        )
    arrays = {name: _array_with_rows(a, name) for name, a in arrays.items()}
    _check_unknown_chunks(arrays)
    no_rows = _problem_without_rows(kind, arrays, objective, shared)
    rows = arrays[name].chunks[0]
    blocks = [_row_blocks(value, rows) for value in arrays.values()]
    starts = np.cumsum([0, *rows[:-1]]).tolist()  # NaN where not known
    # Named, so that the same arguments make the same tasks, which are computed once.
    options = {name: delayed(value, traverse=False) for name, value in shared.items()}
    decided = [
        delayed(_decide_block, pure=True)(kind, objective, start, *parts, **options)
        for start, *parts in zip(starts, *blocks, strict=True)
    ]
    meta = no_rows.no_labels()
    labels = [
        array.from_delayed(d.labels, (n, no_rows.shape[1]), meta=meta)
        for d, n in zip(decided, rows, strict=True)
    ]
    expected_f = [
        array.from_delayed(d.expected_f, (n,), meta=np.empty(0))
        for d, n in zip(decided, rows, strict=True)
    ]
    unknown = any(map(math.isnan, rows))
    return Decision(
        array.concatenate(labels, allow_unknown_chunksizes=unknown),
        array.concatenate(expected_f, allow_unknown_chunksizes=unknown),
    )


def _problem_without_rows(
    kind: type[Problem], arrays: Mapping[str, Any], objective: Objective, shared: Mapping[str, Any]
) -> Problem:
    """Return the problem of no rows, which shows types; it validates all shapes and limits."""
    try:
        problem = kind.read(*[_no_rows(a) for a in arrays.values()], **shared)
        objective.constraints(problem.shape[1], sparse=problem.is_sparse)
    except ValueError as error:
        shapes = ", ".join(f"{name} {np.shape(a)}" for name, a in arrays.items())
        error.add_note(f"raised for arrays without rows; with all rows the shapes are: {shapes}")
        raise
    counts = {name: n for name, a in arrays.items() if not math.isnan(n := np.shape(a)[0])}
    if counts:
        check_same_rows(list(counts.values()), list(counts))
    return problem


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


def _row_blocks(value: Any, rows: tuple[int, ...]) -> list[Any]:
    """Return the blocks of an array with the given chunks of rows, all other axes in one."""
    if not any_dask(value):
        from dask import array

        value = array.from_array(np.asarray(value), chunks=-1)
    chunks: dict[int, Any] = dict.fromkeys(range(1, value.ndim), -1)
    if value.chunks[0] != rows and not any(math.isnan(n) for n in rows):
        chunks[0] = rows
    return list(value.rechunk(chunks).to_delayed().ravel())


def _decide_block(
    kind: type[Problem], objective: Objective, start: float, *parts: Any, **shared: Any
) -> Decision:
    """Decide one block of rows, of which the first has the number `start`, or NaN."""
    try:
        return kind.read(*parts, **shared).decide_rows(objective)
    except ValueError as error:
        if start:
            where = "is not known" if math.isnan(start) else f"is row {start:.0f}"
            error.add_note(f"rows are counted from the first of their block, which {where}")
        raise
