"""Where to draw labels: each factor in a circle of its own, its labels at graph distances.

Everything is deterministic: the same graph gives the same picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import shortest_path

__all__ = ["factor_layout"]

Floats = npt.NDArray[np.float64]

_GAP = 0.5  # between circles, where two labels of a factor are about 1 apart
_ANGLES = np.arange(0.0, 2.0 * np.pi, np.pi / 18.0)
_STEPS = 200


def factor_layout(
    graph: Any, factors: Sequence[npt.NDArray[Any]], aspect: float = 1.3
) -> tuple[Floats, Floats, Floats]:
    """Give places of labels, (m, 2), and centres and radii of the circles around factors.

    Parameters
    ----------
    graph : sparse array of shape (m, m)
        The edges, symmetric.
    factors : sequence of ndarray
        The labels of each factor.
    aspect : float, default=1.3
        Width of the whole over its height, about.

    Returns
    -------
    tuple of ndarray
        Places, centres and radii.
    """
    radii = np.array([0.65 * np.sqrt(len(factor)) + 0.1 for factor in factors])
    centres = _pack(radii + _GAP / 2.0, aspect)
    places = np.zeros((graph.shape[0], 2))
    for factor, centre, radius in zip(factors, centres, radii, strict=True):
        inside = _unit_disc(graph[factor][:, factor])
        places[factor] = centre + (radius - 0.3) * inside if len(factor) > 1 else centre
    return places, centres, radii


def _unit_disc(graph: Any) -> Floats:
    """Place connected nodes so that distances are those of the graph, within a unit disc.

    Stress majorisation (Gansner, Koren and North, 2004) from a circle, or from classical scaling
    where the graph has a shape to be seen.
    """
    k = graph.shape[0]
    turn = 2.0 * np.pi * np.arange(k) / k + np.pi / 2.0
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
    return places[(between >= radii + radius - 1e-9).all(axis=1)]
