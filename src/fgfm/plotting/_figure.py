"""What all displays share: matplotlib when it is needed, and the names of the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["checked_names", "points_per_unit", "pyplot"]


def pyplot(name: str) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{name} needs matplotlib: pip install 'fgfm[plot]'") from error
    return plt


def checked_names(names: Sequence[str] | None, m: int) -> list[str]:
    if names is None:
        return [str(k) for k in range(m)]
    if len(names) != m:
        raise ValueError(f"label_names has {len(names)} names: it must have {m}, one per label")
    return [str(name) for name in names]


def points_per_unit(ax: Any) -> float:
    """Give the length of one data unit on paper, in points, for axes of equal aspect."""
    ax.apply_aspect()
    box = ax.get_window_extent()
    across = np.abs(np.diff(ax.get_xlim())[0]), np.abs(np.diff(ax.get_ylim())[0])
    scale = 72.0 / float(ax.figure.dpi)
    return float(min(box.width / across[0], box.height / across[1])) * scale
