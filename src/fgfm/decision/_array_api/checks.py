"""Values that are refused: looked for on the device, told apart on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fgfm._utils.validation import check_labels, check_probabilities, refuse_mass, unit_rows
from fgfm.decision._array_api.space import Space, to_host

__all__ = ["read_group", "read_labels", "read_mass", "read_units"]

Array = Any


def read_mass(
    space: Space, raw: Array, name: str, first_row: int, *, given: bool
) -> tuple[Array, Array]:
    """Give a block of P, (n, m, S), checked, and its distribution d_1 .. d_S, (n, S).

    With a `given` distribution that of P may have any sum.
    """
    P, d = read_group(space, raw[:, None, :, :], [name], first_row, given=given)
    return P[:, 0, :, :], d[:, 0, :]


def read_group(
    space: Space, raw: Array, names: Sequence[str], first_row: int, *, given: bool
) -> tuple[Array, Array]:
    """Give the P of several factors of one shape, (n, F, m, S), and their d, (n, F, S)."""
    xp = space.xp
    P = space.floats(raw)
    wrong = ~((-space.slack <= P) & (1.0 + space.slack >= P))
    P = xp.clip(P, 0.0, 1.0)
    over = xp.any(xp.sum(P, axis=3) > 1.0 + space.slack, axis=2)  # (n, F)
    d = xp.sum(P, axis=2) / space.upto(P.shape[3])  # (n, F, S)
    if not given:
        over = over | (xp.sum(d, axis=2) > 1.0 + space.slack)
    if any(space.fetch(xp.any(wrong), xp.any(over))):
        host, full = to_host(raw), to_host(over)
        for f, name in enumerate(names):
            check_probabilities(host[:, f], name, first_row)
        for at in np.flatnonzero(full.any(axis=0)).tolist():
            refuse_mass(host[:, at], int(full[:, at].argmax()), names[at], first_row)
    return P, d


def read_units(space: Space, raw: Array, name: str, first_row: int) -> Array:
    """Give rows that are distributions, checked, with a sum of 1."""
    xp = space.xp
    d = space.floats(raw)
    wrong = xp.any(~((d >= -space.slack) & (d <= 1.0 + space.slack)))
    d = xp.clip(d, 0.0, 1.0)
    total = xp.sum(d, axis=1)
    off = xp.any(~(xp.abs(total - 1.0) <= space.slack))
    if any(space.fetch(wrong, off)):
        unit_rows(to_host(raw), name, first_row)
    return d / total[:, None]


def read_labels(space: Space, raw: Array, name: str, first_row: int) -> Array:
    """Give labels, checked to be 0 or 1, as floats."""
    xp = space.xp
    values = space.floats(raw)
    (wrong,) = space.fetch(xp.any((values != 0.0) & (values != 1.0)))
    if wrong:
        check_labels(to_host(raw), name, first_row)
    return values
