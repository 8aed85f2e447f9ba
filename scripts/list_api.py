"""Print the public names of the package, with the signatures of functions and methods.

A test compares the output with ``tests/api.txt``, so that no name, argument or default changes by
accident. After a change that is meant: ``python scripts/list_api.py > tests/api.txt``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import fgfm


def list_api() -> Iterator[str]:
    """Yield a line for each public name, by module, without fgfm.torch, which needs PyTorch."""
    names = sorted(module.name for module in iter_modules(fgfm.__path__))
    names = [name for name in names if not name.startswith("_") and name != "torch"]
    seen = set()
    for name in ["fgfm", *(f"fgfm.{name}" for name in names)]:
        module = import_module(name)
        for public in sorted(module.__all__):
            value = getattr(module, public)
            signature = _signature(value) if callable(value) else f": {type(value).__name__}"
            yield f"{name}.{public}{signature}"
            if inspect.isclass(value) and value not in seen:
                seen.add(value)
                yield from _list_class(f"{name}.{public}", value)


def _list_class(name: str, value: type) -> Iterator[str]:
    """Yield the public members that the package defines, inherited ones among them."""
    members = {
        public: member
        for public, member in _own_members(value).items()
        # scikit-learn adds set_fit_request and the like.
        if not public.startswith("_") and not re.fullmatch(r"set_\w+_request", public)
    }
    for public, member in sorted(members.items()):
        function = getattr(member, "__func__", member)
        signature = _signature(function) if inspect.isfunction(function) else ""
        yield f"{name}.{public}{signature}"


def _own_members(value: type) -> dict[str, object]:
    """Return what the classes of the package among the bases define."""
    bases = [base for base in reversed(value.__mro__) if base.__module__.startswith("fgfm.")]
    return {name: member for base in bases for name, member in vars(base).items()}


def _signature(value: object) -> str:
    """Return the parameters and their defaults, without types, unless they are scikit-learn's."""
    if inspect.isclass(value) and not {"__init__", "__new__"} & _own_members(value).keys():
        return ""
    try:
        signature = inspect.signature(value)
    except ValueError:  # of an exception, or compiled
        return ""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))


if __name__ == "__main__":
    print("\n".join(list_api()))
