"""Values that are refused: looked for on the device, told apart on the host."""

from __future__ import annotations

from typing import Any

from fgfm._arrays.space import Space, to_host
from fgfm._dispatch import refuse_mass
from fgfm._validation import check_labels, check_probabilities, unit_rows

__all__ = ["read_labels", "read_mass", "read_units"]

Array = Any


def read_mass(
    space: Space, raw: Array, name: str, first_row: int, *, given: bool
) -> tuple[Array, Array]:
    """Give a block of P, (n, m, S), checked, and its distribution d_1 .. d_S, (n, S).

    With a `given` distribution that of P may have any sum.
    """
    xp = space.xp
    P = space.floats(raw)
    wrong = xp.any(~((P >= -space.slack) & (P <= 1.0 + space.slack)))
    P = xp.clip(P, 0.0, 1.0)
    over = xp.sum(P, axis=2) > 1.0 + space.slack  # (n, m)
    over = xp.any(over, axis=1)
    d = xp.sum(P, axis=1) / space.upto(P.shape[2])[None, :]  # (n, S)
    if not given:
        over = over | (xp.sum(d, axis=1) > 1.0 + space.slack)
    bad, full = space.fetch(wrong, xp.any(over))
    if bad:
        check_probabilities(to_host(raw), name, first_row)
    if full:
        row = int(to_host(over).argmax())
        refuse_mass(to_host(raw), row, name, first_row)
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
