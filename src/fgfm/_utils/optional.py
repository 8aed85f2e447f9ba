"""Import of optional dependencies."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_optional(module: str, purpose: str, extra: str) -> Any:
    """Import a module, or raise an ImportError that says how to install it.

    Examples
    --------
    >>> import_optional("no_such_library.core", "drawing", "plot")
    Traceback (most recent call last):
        ...
    ImportError: drawing needs no_such_library: pip install 'fgfm[plot]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise ImportError(f"{purpose} needs {library}: pip install 'fgfm[{extra}]'") from error
