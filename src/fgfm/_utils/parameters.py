"""Constructor parameters that are changed after `fit`: followed, or refused."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection
from typing import Any

import numpy as np

_SCALARS = (str, bytes, bool, int, float, complex, type(None))


def record_parameters(estimator: Any) -> None:
    """Keep what the parameters of an estimator are in `fit`."""
    params = estimator.get_params(deep=False)
    estimator._parameters_of_fit = {name: _text(value) for name, value in params.items()}


def check_parameters(estimator: Any, follows: Collection[str]) -> bool:
    """Return whether a parameter differs from what it was in `fit`.

    Raise if it is one that prediction does not follow.

    Examples
    --------
    >>> from fgfm import FDecider
    >>> p, y = [[0.9, 0.2], [0.1, 0.7]] * 10, [[1, 0], [0, 1]] * 10
    >>> decider = FDecider(average="macro").fit(p, y).set_params(beta=2.0)
    >>> decider.predict(p)
    Traceback (most recent call last):
        ...
    ValueError: beta is 2.0 and was 1.0 in fit, which used it: fit again
    """
    changed = False
    for name, before in estimator._parameters_of_fit.items():
        now = getattr(estimator, name)
        if _text(now) == before:
            continue
        changed = True
        if name in follows:
            continue
        raise ValueError(
            f"{name} is {_short(_text(now))} and was {_short(before)} in fit, which used it: fit "
            "again"
        )
    return changed


def _text(value: Any) -> str:
    """Return a text that differs where the value does, as far as that can be seen quickly."""
    if isinstance(value, _SCALARS):
        return repr(value)
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=False).items()
        nested = ", ".join(f"{name}={_text(part)}" for name, part in params if name != "verbose")
        return f"{type(value).__qualname__}({nested})"
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, np.ndarray):
        content = zlib.crc32(value.tobytes()) if value.dtype.kind in "biufc" else value
        return f"array of shape {value.shape}, {content}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    if hasattr(value, "random_sample"):  # a generator, whose state moves
        return type(value).__qualname__
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
