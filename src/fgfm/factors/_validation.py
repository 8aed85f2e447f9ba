"""Validation of arguments that several tests share."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.validation import check_same_rows, label_sets

__all__ = ["check_alpha", "check_labels"]


def check_alpha(alpha: Any) -> float:
    """Validate the level of a test, and return it as a float."""
    if isinstance(alpha, (bool, np.bool_)) or not isinstance(alpha, numbers.Real):
        raise TypeError(f"alpha is {alpha!r}: it must be a number in (0, 1)")
    if not 0.0 < float(alpha) < 1.0:
        raise ValueError(f"alpha is {alpha!r}: it must be a number in (0, 1)")
    return float(alpha)


def check_labels(Y: Any, n: int, name: str = "Y") -> npt.NDArray[np.bool_]:
    """Validate 0/1 labels of the n rows of X, and return them as a dense array of shape (n, m)."""
    labels = label_sets(Y, name, allow_flat=True)
    check_same_rows([n, labels.shape[0]], ["X", name])
    return np.asarray(labels.toarray() if sparse.issparse(labels) else labels, dtype=bool)
