"""Checks of loaded models whose arrays are indexed by compiled code without bounds checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["check_loaded"]


def check_loaded(model: Any) -> None:
    """Raise ValueError if a part of a loaded model could make compiled code leave its arrays.

    Parameters
    ----------
    model : object
        What a file contains, before any of its methods is called.
    """
    for part in _parts(model):
        if sparse.issparse(part):
            _check_sparse(part)


def _parts(model: Any) -> Iterator[Any]:
    """Yield every object in a model once: items of containers and values of attributes."""
    pending, seen = [model], {}
    while pending:
        value = pending.pop()
        if id(value) in seen or isinstance(value, (str, bytes, int, float, type)):
            continue
        seen[id(value)] = value  # keeps it alive, so that its id is not used again
        yield value
        if isinstance(value, dict):
            pending.extend(value.keys())
            pending.extend(value.values())
        elif isinstance(value, (list, tuple, set)):
            pending.extend(value)
        elif isinstance(value, np.ndarray) and value.dtype == object:
            pending.extend(value.ravel().tolist())
        pending.extend(getattr(value, "__dict__", {}).values())


def _check_sparse(matrix: Any) -> None:
    """Raise ValueError unless all indices of a CSR or CSC matrix are valid."""
    if matrix.format not in ("csr", "csc"):
        raise ValueError(f"a sparse matrix has format {matrix.format}: it must be csr or csc")
    matrix.check_format(full_check=True)
