"""Where to draw labels: each factor in a circle of its own, its labels at graph distances.

Labels without any edge stand in rows below. Everything is deterministic: the same graph gives the
same picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import shortest_path

__all__ = ["factor_layout"]

Floats = npt.NDArray[np.float64]

# In units of about the distance of two labels of a factor:
_GAP = 0.3  # between circles
_RIM = 0.35  # between the labels and their circle
_ROOM = 0.45  # height of a label and its name
_ROW = 0.7  # height of a row of labels without any edge
_LETTER = 0.095
_ANGLES = np.arange(0.0, 2.0 * np.pi, np.pi / 18.0)
_STEPS = 200


def factor_layout(
    graph: Any,
    factors: Sequence[npt.NDArray[Any]],
    letters: npt.NDArray[Any] | None = None,
    aspect: float = 1.3,
) -> tuple[Floats, Floats, Floats]:
    """Give places of labels, (m, 2), and centres and radii of the circles around factors.

    Parameters
    ----------
    graph : sparse array of shape (m, m)
        The edges, symmetric.
    factors : sequence of ndarray
        The labels of each factor.
    letters : ndarray of shape (m,), optional
        Lengths of the names that must find room; by default 5 each.
    aspect : float, default=1.3
        Width of the whole over its height, about.

    Returns
    -------
    tuple of ndarray
        Places, centres and radii.
    """
    letters = np.full(graph.shape[0], 5) if letters is None else letters
    widths = np.clip(_LETTER * letters, 0.5, 2.0)  # (m,)
    sizes = np.array([len(factor) for factor in factors])
    radii = np.where(sizes > 1, 0.6 * np.sqrt(sizes) + 0.15, 0.35)
    several = np.flatnonzero(sizes > 1)
    centres = np.zeros((len(factors), 2))
    centres[several] = _pack(radii[several] + _GAP / 2.0, aspect)
    low, high = np.zeros(2), np.zeros(2)
    if len(several):
        low = (centres - radii[:, None])[several].min(axis=0)
        high = (centres + radii[:, None])[several].max(axis=0)
    alone = np.flatnonzero(sizes == 1)
    column = 0.2 + max([0.5, *(float(widths[factors[int(k)][0]]) for k in alone)])
    centres[alone] = _rows(len(alone), column, low, high, aspect)
    places = np.zeros((graph.shape[0], 2))
    for factor, centre, radius in zip(factors, centres, radii, strict=True):
        places[factor] = centre
        if len(factor) > 1:
            inside = (radius - _RIM) * _unit_disc(graph[factor][:, factor])
            places[factor] += _make_room(inside, widths[factor], radius - _RIM)
    return places, centres, radii


def _rows(count: int, wide: float, low: Floats, high: Floats, aspect: float) -> Floats:
    """Give places in rows below a box, as wide as it is or as the aspect asks for."""
    width = max(high[0] - low[0], np.sqrt(aspect * count * wide * _ROW))
    columns = max(1, min(count, int(width / wide)))
    row, column = np.divmod(np.arange(count), columns)
    x = (low[0] + high[0]) / 2.0 + wide * (column - (columns - 1) / 2.0)
    return np.column_stack([x, low[1] - _GAP - _ROW * (row + 0.5)])


def _make_room(places: Floats, widths: Floats, radius: float) -> Floats:
    """Push labels apart whose names would overlap, within a disc."""
    room = np.full((len(places), len(places), 2), _ROOM)  # an ellipse for each pair
    room[:, :, 0] = (widths[:, None] + widths) / 2.0
    for _ in range(_STEPS):
        apart = places[:, None] - places  # (k, k, 2)
        distance = np.linalg.norm(apart / room, axis=2)
        np.fill_diagonal(distance, np.inf)
        push = np.maximum(0.0, 1.0 - distance) / np.maximum(distance, 1e-3)
        if not push.any():
            break
        places = places + 0.25 * (push[:, :, None] * apart).sum(axis=1)
        far = np.linalg.norm(places, axis=1, keepdims=True)
        places = places * np.minimum(1.0, radius / np.maximum(far, 1e-9))
    return places


def _unit_disc(graph: Any) -> Floats:
    """Place connected nodes so that distances are those of the graph, within a unit disc.

    Stress majorisation (Gansner, Koren and North, 2004) from a circle, or from classical scaling
    where the graph has a shape to be seen.
    """
    k = graph.shape[0]
    turn = np.pi - 2.0 * np.pi * np.arange(k) / k  # two of them side by side
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    if k < 4:
        return circle
    distance = shortest_path(graph.astype(float), directed=False, unweighted=True)  # (k, k)
    off = ~np.eye(k, dtype=bool)
    places = circle
    if distance.max() > 1.0:
        centred = np.eye(k) - 1.0 / k
        _, vectors = np.linalg.eigh(-0.5 * centred @ distance**2 @ centred)
        leading = vectors[:, :-3:-1]
        signs = np.sign(leading[np.abs(leading).argmax(axis=0), [0, 1]])
        places = np.sqrt(k) * leading * signs + 0.05 * circle
    weight = np.zeros((k, k))
    weight[off] = distance[off] ** -2.0
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.inv(laplacian + 1.0 / k)  # up to a shift, which is taken out below
    for _ in range(_STEPS):
        between = np.linalg.norm(places[:, None] - places, axis=2)  # (k, k)
        pull = np.zeros((k, k))
        pull[off] = -(weight * distance)[off] / np.maximum(between[off], 1e-9)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        places = inverse @ (pull @ places)
        places -= places.mean(axis=0)
    return np.asarray(places / np.linalg.norm(places, axis=1).max())


def _pack(radii: Floats, aspect: float) -> Floats:
    """Give centres of circles that do not overlap: large ones first, each near the middle."""
    centres = np.zeros((len(radii), 2))
    placed: list[int] = []
    free = np.zeros((1, 2))  # where a circle of this radius could go
    radius = np.nan
    for k in np.argsort(-radii, kind="stable"):
        if placed and radii[k] != radius:
            around = [_tangents(centres[j], radii[j] + radii[k]) for j in placed]
            free = _free(np.concatenate(around), radii[k], centres[placed], radii[placed])
        radius = radii[k]
        far = (free[:, 0] / aspect) ** 2 + free[:, 1] ** 2
        centres[k] = free[np.lexsort((-free[:, 1], far.round(9)))[0]]
        placed.append(int(k))
        around_it = _tangents(centres[k], 2.0 * radius)
        free = np.concatenate(
            [
                _free(free, radius, centres[[k]], radii[[k]]),
                _free(around_it, radius, centres[placed], radii[placed]),
            ]
        )
    return centres


def _tangents(centre: Floats, distance: float) -> Floats:
    return np.asarray(centre + distance * np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)]))


def _free(places: Floats, radius: float, centres: Floats, radii: Floats) -> Floats:
    """Keep the places where a circle meets none of the others."""
    between = np.linalg.norm(places[:, None] - centres, axis=2)
    return np.asarray(places[(between >= radii + radius - 1e-9).all(axis=1)])
