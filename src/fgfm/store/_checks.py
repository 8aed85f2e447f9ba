"""Checks of loaded models whose arrays are indexed by compiled code without bounds checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from fgfm.store._trees import check_owner_of_trees

__all__ = ["check_loaded"]


def check_loaded(model: Any, *, trees: bool = True) -> None:
    """Raise ValueError if a part of a loaded model could make compiled code leave its arrays.

    Parameters
    ----------
    model : object
        What a file contains, before any of its methods is called.
    trees : bool
        Whether to check trees of scikit-learn.
    """
    pending, seen = [model], {}
    while pending:
        part = pending.pop()
        if id(part) in seen or isinstance(part, (str, bytes, int, float, type)):
            continue
        seen[id(part)] = part  # keeps it alive, so that its id is not used again
        children = _children(part)
        pending.extend(children)
        _check_attributes(part)
        _check_vocabulary(part)
        if trees:
            check_owner_of_trees(part, children)
        if sparse.issparse(part):
            _check_sparse(part)


def _children(value: Any) -> list[Any]:
    """Return the items of a container and the values of attributes."""
    children = list(getattr(value, "__dict__", {}).values())
    if isinstance(value, dict):
        children.extend(value.keys())
        children.extend(value.values())
    elif isinstance(value, (list, tuple, set)):
        children.extend(value)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        children.extend(value.ravel().tolist())
    return children


def _check_attributes(part: Any) -> None:
    """Raise ValueError if an attribute of an object hides a method of its class."""
    for name in getattr(part, "__dict__", {}):
        if callable(getattr(type(part), name, None)):
            raise ValueError(f"a {type(part).__name__} has an attribute in place of {name}()")


def _check_vocabulary(part: Any) -> None:
    """Raise ValueError unless the words of a vectorizer have the numbers 0, 1, ... of columns."""
    words = getattr(part, "__dict__", {}).get("vocabulary_", {})
    if not isinstance(words, dict) or set(words.values()) != set(range(len(words))):
        raise ValueError(f"the vocabulary of a {type(part).__name__} has no column for each word")


def _check_sparse(matrix: Any) -> None:
    """Raise ValueError unless all indices of a CSR or CSC matrix are valid."""
    if matrix.format not in ("csr", "csc"):
        raise ValueError(f"a sparse matrix has format {matrix.format}: it must be csr or csc")
    matrix.check_format(full_check=True)
