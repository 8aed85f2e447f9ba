"""Layout of the label graph: a disc for each factor, rows for labels without edges.

Within a disc, distances follow the number of edges between labels. The layout is deterministic:
the same graph always gives the same plot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import shortest_path

__all__ = ["Layout", "factor_layout"]

Floats = npt.NDArray[np.float64]

# Lengths in units of about the distance between two labels of a factor.
_GAP = 0.3  # between discs
_RIM = 0.35  # between the labels and the rim of their disc
_LABEL_HEIGHT = 0.45  # of a label with its name
_ROW_HEIGHT = 0.7  # of a row of labels without edges
_LETTER_WIDTH = 0.095
_ANGLES = np.arange(0.0, 2.0 * np.pi, np.pi / 18.0)
_STEPS = 200


class Layout(NamedTuple):
    """Positions of labels and discs."""

    labels: Floats  # (m, 2)
    centres: Floats  # (factors, 2)
    radii: Floats  # (factors,)

    def extent(self) -> tuple[Floats, Floats]:
        """Return the lower left and the upper right corner of all discs."""
        radii = self.radii[:, None]
        return (self.centres - radii).min(axis=0), (self.centres + radii).max(axis=0)


def factor_layout(
    graph: Any,
    factors: Sequence[npt.NDArray[Any]],
    lengths: npt.NDArray[Any] | None = None,
    aspect: float = 1.3,
) -> Layout:
    """Compute positions of labels, and centres and radii of the discs of factors.

    Parameters
    ----------
    graph : sparse array of shape (m, m)
        The edges, symmetric.
    factors : sequence of ndarray
        The labels of each factor.
    lengths : ndarray of shape (m,), optional
        Numbers of letters of the names to place; by default 5 each.
    aspect : float, default=1.3
        Approximate width of the layout over its height.

    Returns
    -------
    Layout
        Positions, centres and radii.
    """
    lengths = np.full(graph.shape[0], 5) if lengths is None else lengths
    widths = np.clip(_LETTER_WIDTH * lengths, 0.5, 2.0)  # (m,)
    sizes = np.array([len(factor) for factor in factors])
    # The area of a disc grows with its labels, and with names longer than a unit.
    areas = np.array([np.maximum(1.0, widths[factor]).sum() for factor in factors])
    radii = np.where(sizes > 1, 0.6 * np.sqrt(areas) + 0.15, 0.35)
    several = np.flatnonzero(sizes > 1)
    centres = np.zeros((len(factors), 2))
    centres[several] = _pack_discs(radii[several] + _GAP / 2.0, aspect)
    low, high = np.zeros(2), np.zeros(2)
    if len(several):
        low, high = Layout(np.empty((0, 2)), centres[several], radii[several]).extent()
    single = np.flatnonzero(sizes == 1)
    column = 0.2 + max([0.5, *(float(widths[factors[int(k)][0]]) for k in single)])
    centres[single] = _rows_below(len(single), column, low, high, aspect)
    places = np.zeros((graph.shape[0], 2))
    for factor, centre, radius in zip(factors, centres, radii, strict=True):
        places[factor] = centre
        if len(factor) > 1:
            inside = (radius - _RIM) * _unit_disc_layout(graph[factor][:, factor])
            places[factor] += _separate_names(inside, widths[factor], radius - _RIM)
    return Layout(places, centres, radii)


def _rows_below(
    count: int, column_width: float, low: Floats, high: Floats, aspect: float
) -> Floats:
    """Return positions in rows below a box, as wide as the box or as the aspect requires."""
    width = max(high[0] - low[0], np.sqrt(aspect * count * column_width * _ROW_HEIGHT))
    columns = max(1, min(count, int(width / column_width)))
    row, column = np.divmod(np.arange(count), columns)
    x = (low[0] + high[0]) / 2.0 + column_width * (column - (columns - 1) / 2.0)
    return np.column_stack([x, low[1] - _GAP - _ROW_HEIGHT * (row + 0.5)])


def _separate_names(places: Floats, widths: Floats, radius: float) -> Floats:
    """Move labels apart whose names would overlap, within a disc."""
    room = np.full((len(places), len(places), 2), _LABEL_HEIGHT)  # an ellipse for each pair
    room[:, :, 0] = (widths[:, None] + widths) / 2.0
    for _ in range(_STEPS):
        apart = places[:, None] - places  # (k, k, 2)
        distance = np.linalg.norm(apart / room, axis=2)
        np.fill_diagonal(distance, np.inf)
        push = np.maximum(0.0, 1.0 - distance) / np.maximum(distance, 1e-3)
        if not push.any():
            break
        places = places + 0.25 * (push[:, :, None] * apart).sum(axis=1)
        from_centre = np.linalg.norm(places, axis=1, keepdims=True)
        places = places * np.minimum(1.0, radius / np.maximum(from_centre, 1e-9))
    return places


def _unit_disc_layout(graph: Any) -> Floats:
    """Place connected nodes in a unit disc, at distances like those in the graph.

    Stress majorisation (Gansner, Koren and North, 2004): minimise the sum over pairs of
    w_ij (|x_i - x_j| - d_ij)^2 with graph distances d and weights d^-2, by repeatedly solving
    L x_new = L(x) x. It starts from a circle, or from classical scaling if the graph is not
    complete.
    """
    k = graph.shape[0]
    turn = np.pi - 2.0 * np.pi * np.arange(k) / k  # two nodes are side by side
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    if k < 4:
        return circle
    distance = shortest_path(graph.astype(float), directed=False, unweighted=True)  # (k, k)
    off_diagonal = ~np.eye(k, dtype=bool)
    places = circle
    if distance.max() > 1.0:
        # Classical scaling: leading eigenvectors of -J d^2 J / 2, with signs fixed.
        centring = np.eye(k) - 1.0 / k
        _, vectors = np.linalg.eigh(-0.5 * centring @ distance**2 @ centring)
        leading = vectors[:, :-3:-1]
        signs = np.sign(leading[np.abs(leading).argmax(axis=0), [0, 1]])
        places = np.sqrt(k) * leading * signs + 0.05 * circle
    weight = np.zeros((k, k))
    weight[off_diagonal] = distance[off_diagonal] ** -2.0
    laplacian = np.diag(weight.sum(axis=1)) - weight
    # Adding 1/k makes the Laplacian regular; it only affects shifts, which are removed below.
    inverse = np.linalg.inv(laplacian + 1.0 / k)
    for _ in range(_STEPS):
        between = np.linalg.norm(places[:, None] - places, axis=2)  # (k, k)
        pull = np.zeros((k, k))
        pull[off_diagonal] = -(weight * distance)[off_diagonal] / np.maximum(
            between[off_diagonal], 1e-9
        )
        np.fill_diagonal(pull, -pull.sum(axis=1))
        places = inverse @ (pull @ places)
        places -= places.mean(axis=0)
    return np.asarray(places / np.linalg.norm(places, axis=1).max())


def _pack_discs(radii: Floats, aspect: float) -> Floats:
    """Return centres of discs that do not overlap: largest first, each as central as possible.

    Candidates are positions that touch a disc placed before, at angles of 10 degrees.
    """
    centres = np.zeros((len(radii), 2))
    placed: list[int] = []
    free = np.zeros((1, 2))  # positions at which a disc of this radius fits
    radius = np.nan
    for k in np.argsort(-radii, kind="stable"):
        if placed and radii[k] != radius:
            around = [_tangent(centres[j], radii[j] + radii[k]) for j in placed]
            free = _fitting(np.concatenate(around), radii[k], centres[placed], radii[placed])
        radius = radii[k]
        from_centre = (free[:, 0] / aspect) ** 2 + free[:, 1] ** 2
        centres[k] = free[np.lexsort((-free[:, 1], from_centre.round(9)))[0]]
        placed.append(int(k))
        new = _tangent(centres[k], 2.0 * radius)
        free = np.concatenate(
            [
                _fitting(free, radius, centres[[k]], radii[[k]]),
                _fitting(new, radius, centres[placed], radii[placed]),
            ]
        )
    return centres


def _tangent(centre: Floats, distance: float) -> Floats:
    """Return positions on a circle."""
    return np.asarray(centre + distance * np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)]))


def _fitting(places: Floats, radius: float, centres: Floats, radii: Floats) -> Floats:
    """Return the positions at which a disc overlaps none of the others."""
    between = np.linalg.norm(places[:, None] - centres, axis=2)
    return np.asarray(places[(between >= radii + radius - 1e-9).all(axis=1)])
