"""The real data sets: read from the folder that ``FGFM_DATA`` names, never part of the project."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.real.splits import Split, load_split

__all__ = ["FOLDER", "Split", "load"]

FOLDER = Path(os.environ.get("FGFM_DATA", Path(__file__).parents[2] / "shared" / "data"))


def load(name: str) -> Split:
    """Read a data set in its standard split, features scaled by its training rows."""
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(
            f"{name}.npz is not there: FGFM_DATA must name the folder of the data sets"
        )
    return load_split(path)
