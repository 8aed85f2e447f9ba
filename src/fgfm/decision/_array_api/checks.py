"""Validation on the device; the error messages are built on the host.

One transfer per block shows whether any value is wrong. Only then the block is copied to the host,
where the functions of `fgfm._utils.validation` raise the same errors as for NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fgfm._utils.validation import check_labels, check_probabilities, raise_excess_mass, unit_rows
from fgfm.decision._array_api.backend import Backend, to_host

__all__ = ["read_cardinalities", "read_distribution", "read_factors", "read_labels"]

Array = Any


def read_cardinalities(
    backend: Backend, raw: Array, name: str, first_row: int, *, any_mass: bool
) -> tuple[Array, Array]:
    """Validate a block of P, (n, m, S); return it with its distribution d_1 .. d_S, (n, S).

    With `any_mass` the sum of d may exceed 1, since the user gave another distribution.
    """
    P, d = read_factors(backend, raw[:, None, :, :], [name], first_row, any_mass=any_mass)
    return P[:, 0, :, :], d[:, 0, :]


def read_factors(
    backend: Backend, raw: Array, names: Sequence[str], first_row: int, *, any_mass: bool
) -> tuple[Array, Array]:
    """Validate the P of factors of one shape, (n, F, m, S); return it with their d, (n, F, S)."""
    xp = backend.xp
    P = backend.floats(raw)
    wrong = ~((-backend.slack <= P) & (1.0 + backend.slack >= P))  # True for NaN
    P = xp.clip(P, 0.0, 1.0)
    over = xp.any(xp.sum(P, axis=3) > 1.0 + backend.slack, axis=2)  # (n, F)
    d = xp.sum(P, axis=2) / backend.one_to(P.shape[3])  # (n, F, S), d_s = sum_i p_is / s
    if not any_mass:
        over = over | (xp.sum(d, axis=2) > 1.0 + backend.slack)
    if any(backend.fetch(xp.any(wrong), xp.any(over))):
        host, over_host = to_host(raw), to_host(over)
        for f, name in enumerate(names):
            check_probabilities(host[:, f], name, first_row)
        for f in np.flatnonzero(over_host.any(axis=0)).tolist():
            raise_excess_mass(host[:, f], int(over_host[:, f].argmax()), names[f], first_row)
    return P, d


def read_distribution(backend: Backend, raw: Array, name: str, first_row: int) -> Array:
    """Validate rows that are distributions; return them rescaled to sum to 1."""
    xp = backend.xp
    d = backend.floats(raw)
    wrong = xp.any(~((d >= -backend.slack) & (d <= 1.0 + backend.slack)))
    d = xp.clip(d, 0.0, 1.0)
    total = xp.sum(d, axis=1)
    off = xp.any(~(xp.abs(total - 1.0) <= backend.slack))
    if any(backend.fetch(wrong, off)):
        unit_rows(to_host(raw), name, first_row)
    return d / total[:, None]


def read_labels(backend: Backend, raw: Array, name: str, first_row: int) -> Array:
    """Validate 0/1 labels; return them as floats."""
    xp = backend.xp
    values = backend.floats(raw)
    (wrong,) = backend.fetch(xp.any((values != 0.0) & (values != 1.0)))
    if wrong:
        check_labels(to_host(raw), name, first_row)
    return values
