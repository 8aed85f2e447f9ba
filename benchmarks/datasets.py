"""Read real data sets from the folder named by ``FGFM_DATA``; they are not part of the project."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.real.splits import Split, load_split

__all__ = ["FOLDER", "Split", "load"]

FOLDER = Path(os.environ.get("FGFM_DATA", Path(__file__).parents[2] / "shared" / "data"))


def load(name: str) -> Split:
    """Read a data set in its standard split, with features scaled by its training rows."""
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist: FGFM_DATA must name the folder of the data sets"
        )
    return load_split(path)
