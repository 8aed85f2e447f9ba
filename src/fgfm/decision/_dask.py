"""Decisions on Dask arrays: nothing is computed until it is asked for, and then block by block.

A row is decided by itself, so that a block of rows is one task, whatever the other blocks are. The
labels of a row must lie together: other axes than that of the rows become one chunk.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.validation import check_same_rows
from fgfm.decision._dispatch import Decision

__all__ = ["any_lazy", "decide_lazily", "refuse_lazy_frame"]


def any_lazy(*values: Any) -> bool:
    """Tell whether there is a Dask array among values."""
    library = sys.modules.get("dask.array")  # without it nobody can have made one
    return library is not None and any(isinstance(value, library.Array) for value in values)


def refuse_lazy_frame(value: Any, name: str) -> None:
    """Raise for a data frame of Dask, which would be computed as a whole."""
    if hasattr(value, "to_dask_array"):
        raise TypeError(
            f"{name} is a data frame of Dask: it must be a Dask array, as "
            f"{name}.to_dask_array(lengths=True) gives"
        )


def decide_lazily(
    decide: Callable[..., Decision], arrays: Mapping[str, Any], **shared: Any
) -> Decision:
    """Give a decision made of Dask arrays.

    Parameters
    ----------
    decide : callable
        From blocks of the arrays, and what is shared, to a decision.
    arrays : mapping of str to array-like
        The arrays by their names, with the same rows. One of them, at least, is a Dask array: the
        first says where the rows are cut.
    **shared : object
        Further arguments of `decide`, the same for all blocks.

    Returns
    -------
    Decision
        ``labels`` and ``expected_f``, two Dask arrays that share their work.
    """
    from dask import array, delayed

    arrays = {name: _checked(a, name) for name, a in arrays.items()}
    leading = next(a for a in arrays.values() if any_lazy(a))
    _check_blocks(arrays)
    # Without rows a decision costs nothing: its arguments are checked, and it has the right types.
    try:
        empty = decide(*[_no_rows(a) for a in arrays.values()], **shared)
    except ValueError as error:
        shapes = ", ".join(f"{name} {np.shape(a)}" for name, a in arrays.items())
        error.add_note(f"found before any row was computed; with all rows: {shapes}")
        raise
    known = {name: n for name, a in arrays.items() if not math.isnan(n := np.shape(a)[0])}
    if known:
        check_same_rows(list(known.values()), list(known))
    cut = [_cut_rows(array, a, leading.chunks[0]) for a in arrays.values()]
    starts = np.cumsum([0, *leading.chunks[0][:-1]])  # (blocks,), NaN where it is not known
    indexed: list[Any] = []
    for k, a in enumerate(cut):
        indexed += [a, ("row", *(f"axis {axis} of {k}" for axis in range(1, a.ndim)))]
    indexed += [array.from_array(starts, chunks=1), ("row",)]
    decided = array.blockwise(
        _decide_block,
        ("row",),
        *indexed,
        decide=decide,
        align_arrays=False,
        meta=np.empty(0, dtype=object),
        **{name: delayed(value, traverse=False) for name, value in shared.items()},
    )
    labels = array.blockwise(
        _labels,
        ("row", "label"),
        decided,
        ("row",),
        new_axes={"label": empty.labels.shape[1]},
        meta=empty.labels,
    )
    expected_f = array.blockwise(_expected_f, ("row",), decided, ("row",), meta=empty.expected_f)
    return Decision(labels, expected_f)


def _checked(value: Any, name: str) -> Any:
    """Give an array whose rows can be cut, or raise."""
    if sparse.issparse(value):
        raise TypeError(
            f"{name} is a sparse matrix, beside a Dask array: it must be a Dask array too, of "
            "blocks in CSR"
        )
    if not any_lazy(value):
        value = np.asarray(value)
    if value.ndim == 0:
        raise ValueError(f"{name} has shape (): its first axis must be that of the rows")
    if any(math.isnan(n) for n in value.shape[1:]):
        raise ValueError(
            f"{name} has shape {value.shape}: only the number of rows may be unknown; call its "
            "compute_chunk_sizes()"
        )
    return value


def _check_blocks(arrays: dict[str, Any]) -> None:
    """Raise unless arrays whose numbers of rows are not known can be cut alike."""
    unknown = [n for n, a in arrays.items() if any_lazy(a) and any(map(math.isnan, a.chunks[0]))]
    if not unknown or len(arrays) == 1:
        return
    blocks = {a.numblocks[0] if any_lazy(a) else None for a in arrays.values()}
    if len(blocks) > 1 or len(unknown) < len(arrays):
        raise ValueError(
            f"the numbers of rows in the blocks of {unknown[0]} are not known, so that the others "
            "cannot be cut alike: call its compute_chunk_sizes()"
        )


def _no_rows(value: Any) -> Any:
    """Give an array of the same kind and without rows."""
    if not any_lazy(value):
        return np.asarray(value)[:0]
    if sparse.issparse(value._meta):
        kind = sparse.csr_matrix if sparse.isspmatrix(value._meta) else sparse.csr_array
        return kind((0, *value.shape[1:]), dtype=value.dtype)
    return np.empty((0, *value.shape[1:]), dtype=value.dtype)


def _cut_rows(array: Any, value: Any, rows: tuple[int, ...]) -> Any:
    """Give a Dask array with these chunks of rows, and one chunk along every other axis."""
    if not any_lazy(value):
        value = array.from_array(np.asarray(value), chunks=-1)
    chunks: dict[int, Any] = dict.fromkeys(range(1, value.ndim), -1)
    if value.chunks[0] != rows and not any(math.isnan(n) for n in rows):
        chunks[0] = rows
    return value.rechunk(chunks)


def _decide_block(*blocks: Any, decide: Callable[..., Decision], **shared: Any) -> Decision:
    """Decide for a block of rows; an axis that is left out comes as a list of its one chunk."""
    whole = []
    for block in blocks:
        while isinstance(block, list):
            (block,) = block
        whole.append(block)
    *whole, start = whole
    try:
        return decide(*whole, **shared)
    except ValueError as error:
        first = float(start[0])
        if first:
            where = "is not known" if math.isnan(first) else f"is row {first:.0f}"
            error.add_note(f"rows are counted from the first of their block, which {where}")
        raise


def _labels(decided: Decision) -> Any:
    return decided.labels


def _expected_f(decided: Decision) -> Any:
    return decided.expected_f
