"""Lazy decisions on Dask arrays, one task per block of rows.

Rows are decided independently of each other, so that any chunks of rows will do. The other axes
are rechunked to one chunk each, because a decision needs all labels of a row.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from operator import attrgetter
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
    rows = arrays[name].chunks[:1]
    if average != "samples":
        problem = "1-D probabilities" if arrays[name].ndim == 1 else f"average={average!r}"
        raise TypeError(
            f"{name} is a Dask array: {problem} decides all rows together, so it must be an array "
            f"in memory; use {name}.compute()"
        )
    lazy = {name: _array_with_rows(value, name) for name, value in arrays.items()}
    _check_unknown_chunks(lazy)
    no_rows = _problem_without_rows(kind, lazy, objective, shared)
    # Block b has the rows of block b of each array, and the number of the first of them.
    parts = [array.from_array(np.cumsum([0, *rows[0][:-1]]), chunks=1)]
    for value in lazy.values():
        labels = dict.fromkeys(range(1, value.ndim), -1)
        unknown = any(map(math.isnan, value.chunks[0]))
        parts.append(value.rechunk(labels if unknown else {0: rows[0], **labels}))
    decided = array.blockwise(
        _decide_block,
        "i",
        *[each for part in parts for each in (part, "ijkl"[: part.ndim])],
        kind=kind,
        objective=objective,
        shared=delayed(dict(shared), traverse=False),
        align_arrays=False,
        dtype=object,
        meta=np.empty(0, dtype=object),
    )
    labels = decided.map_blocks(
        attrgetter("labels"),
        new_axis=1,
        chunks=(*rows, (no_rows.shape[1],)),
        meta=no_rows.no_labels(),
    )
    return Decision(labels, decided.map_blocks(attrgetter("expected_f"), meta=np.empty(0)))


def _array_with_rows(value: Any, name: str) -> Any:
    """Return a Dask array whose first axis can be split into blocks."""
    from dask import array

    if sparse.issparse(value):
        raise TypeError(
            f"{name} is a sparse matrix, beside a Dask array: it must be a Dask array too, of "
            "blocks in CSR"
        )
    if not any_dask(value):
        value = array.from_array(np.asarray(value), chunks=-1)
    if value.ndim == 0:
        raise ValueError(f"{name} has shape (): its first axis must be that of the rows")
    if any(math.isnan(n) for n in value.shape[1:]):
        raise ValueError(
            f"{name} has shape {value.shape}: only the number of rows may be unknown; call its "
            "compute_chunk_sizes()"
        )
    return value


def _check_unknown_chunks(arrays: Mapping[str, Any]) -> None:
    """Raise unless arrays have the same rows, as far as their numbers are known."""
    unknown = [name for name, a in arrays.items() if math.isnan(a.shape[0])]
    if unknown and (
        len(unknown) < len(arrays) or len({a.numblocks[0] for a in arrays.values()}) > 1
    ):
        raise ValueError(
            f"the numbers of rows in the blocks of {unknown[0]} are not known, so that the other "
            "arrays cannot be split alike: call its compute_chunk_sizes()"
        )


def _problem_without_rows(
    kind: type[Problem], arrays: Mapping[str, Any], objective: Objective, shared: Mapping[str, Any]
) -> Problem:
    """Return the problem of no rows, which shows types; it validates all shapes and limits."""
    empty = []
    for a in arrays.values():
        make = np.empty
        if sparse.issparse(a._meta):
            make = sparse.csr_matrix if sparse.isspmatrix(a._meta) else sparse.csr_array
        empty.append(make((0, *a.shape[1:]), dtype=a.dtype))
    try:
        problem = kind.read(*empty, **shared)
        objective.constraints(problem.shape[1], sparse=problem.is_sparse)
    except ValueError as error:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in arrays.items())
        error.add_note(f"raised for arrays without rows; with all rows the shapes are: {shapes}")
        raise
    if not any(math.isnan(a.shape[0]) for a in arrays.values()):
        check_same_rows([len(a) for a in arrays.values()], list(arrays))
    return problem


def _decide_block(
    first: Any, *parts: Any, kind: type[Problem], objective: Objective, shared: Mapping[str, Any]
) -> Decision:
    """Decide one block of rows, of which the first has the number `first`, or NaN."""
    arrays = []
    for part in parts:
        while isinstance(part, list):  # one level for each axis of labels, of one block
            (part,) = part
        arrays.append(part)
    try:
        return kind.read(*arrays, **shared).decide_rows(objective)
    except ValueError as error:
        if first[0]:
            where = "is not known" if math.isnan(first[0]) else f"is row {first[0]:.0f}"
            error.add_note(f"rows are counted from the first of their block, which {where}")
        raise
