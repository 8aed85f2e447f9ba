"""Newton's method for convex functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_SHORTEST = 1e-3  # part of a Newton step that is tried last


def newton(
    loss: Callable[[Floats], float],
    direction: Callable[[Floats], Floats],
    start: Floats,
    *,
    steps: int,
    tolerance: float,
) -> Floats:
    """Minimise a convex function; its value decreases with every step.

    Parameters
    ----------
    loss : callable
        Returns the value at a point.
    direction : callable
        Returns the Newton step from a point: minus the inverse Hessian times the gradient, perhaps
        with parameters on a bound left where they are.
    start : ndarray of shape (k,)
        The first point.
    steps : int
        Largest number of steps.
    tolerance : float
        A step that gains less is the last one.

    Returns
    -------
    ndarray of shape (k,)
        The last point. A step that would increase the value is halved until it does not.
    """
    point, value = start, loss(start)
    for _ in range(steps):
        step, size = direction(point), 1.0
        while (new := loss(point + size * step)) > value and size > _SHORTEST:
            size /= 2.0
        gain = value - new
        if gain > 0.0:
            point, value = point + size * step, new
        if gain < tolerance:
            break
    return point
