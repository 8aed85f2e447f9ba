"""Do G tests suit the features? Few levels, and strata with rows in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm.factors._counts import combine, encode

__all__ = ["is_discrete", "rows_in_populated_strata"]

_POPULATED = 5  # rows that make a stratum populated


def is_discrete(X: Any, max_levels: int) -> bool:
    """Tell whether each column holds whole numbers or names, and few different ones."""
    values = X.data if sparse.issparse(X) else np.asarray(X)
    if values.dtype.kind == "f" and not bool((values == np.floor(values)).all()):
        return False
    if values.dtype.kind == "O" and any(
        isinstance(v, (float, np.floating)) and not float(v).is_integer() for v in values.flat
    ):
        return False
    return bool((encode(X).levels <= max_levels).all())


def rows_in_populated_strata(X: Any, boundaries: Sequence[npt.NDArray[np.int64]]) -> float:
    """Give the share of rows whose stratum has five rows at least, averaged over boundaries."""
    columns = encode(X)
    n = columns.codes(0).shape[0]
    shares = []
    for boundary in boundaries:
        chosen = [(columns.codes(int(j)), int(columns.levels[j])) for j in boundary]
        codes, count = combine(chosen, n)
        sizes = np.bincount(codes, minlength=count)
        shares.append(float(sizes[sizes >= _POPULATED].sum()) / max(1, n))
    return float(np.mean(shares)) if shares else 1.0
