"""Optional dependencies, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["import_optional"]


def import_optional(library: str, needed_by: str, extra: str) -> Any:
    """Import an optional library, or raise an error that says how to install it.

    Parameters
    ----------
    library : str
        Name of the module.
    needed_by : str
        What needs the library, such as "LabelGraphDisplay"; the message begins with it.
    extra : str
        The extra of fgfm that installs the library.

    Returns
    -------
    module
        The module.

    Examples
    --------
    >>> import_optional("nonsense", "this example", "plot")
    Traceback (most recent call last):
        ...
    ImportError: this example needs nonsense: pip install 'fgfm[plot]'
    """
    try:
        return import_module(library)
    except ImportError as error:
        raise ImportError(
            f"{needed_by} needs {library.partition('.')[0]}: pip install 'fgfm[{extra}]'"
        ) from error
