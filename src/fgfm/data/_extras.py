"""Libraries that not everybody has: imported when they are needed, or missed in one sentence."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["need"]


def need(library: str, purpose: str, extra: str = "data") -> Any:
    """Import a library, or say what it is needed for and how to get it.

    Parameters
    ----------
    library : str
        The name of its module.
    purpose : str
        What it is needed for, as in "reading Parquet".
    extra : str, default="data"
        The extra of fgfm that brings it.

    Returns
    -------
    module
        The library.
    """
    try:
        return import_module(library)
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs {library.partition('.')[0]}: pip install 'fgfm[{extra}]'"
        ) from error
