"""Validate the docstrings of all public names with numpydoc.

``numpydoc lint`` works file by file and cannot tell which names of private modules are public.
This script follows ``__all__`` of the public modules, and checks each function, class and public
method by the rules under [tool.numpydoc_validation] in pyproject.toml.
"""

from __future__ import annotations

import inspect
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

from numpydoc.validate import validate

import fgfm

ROOT = Path(__file__).resolve().parent.parent


def public_objects() -> dict[str, Any]:
    """Return every public function, class and method of fgfm under its importable name."""
    found: dict[str, Any] = {}
    modules = [name for name in fgfm.__all__ if inspect.ismodule(getattr(fgfm, name))]
    for module in ["fgfm", *(f"fgfm.{name}" for name in modules)]:
        for name in import_module(module).__all__:
            value = getattr(import_module(module), name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found[f"{module}.{name}"] = value
            if inspect.isclass(value):
                found |= {f"{module}.{name}.{method}": None for method in _methods(value)}
    return found


def _methods(cls: type[Any]) -> list[str]:
    """Return the public methods and properties that a class of fgfm defines itself or inherits."""
    own = {
        name
        for base in cls.__mro__
        if base.__module__.startswith("fgfm.")
        for name in vars(base)
        if not name.startswith("_")
    }
    # NamedTuple fields and set_*_request have no docstring of ours.
    return sorted(
        name
        for name in own
        if (inspect.isfunction(getattr(cls, name)) or isinstance(getattr(cls, name), property))
    )


def main() -> None:
    """Print every violation; exit with 1 if there is one."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"]
    ignored = set(settings["checks"]) - {"all"}
    failed = False
    for name, value in sorted(public_objects().items()):
        # named tuples and protocols document attributes, not parameters of a constructor
        unused = {"PR01"} if hasattr(value, "_fields") or hasattr(value, "_is_protocol") else set()
        for code, message in validate(name)["errors"]:
            if code not in ignored | unused:
                failed = True
                print(f"{name}: {code} {message}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
