"""Building blocks of the array API implementations, for PyTorch, CuPy and JAX.

They compute the same as `fgfm._kernels`, following the array API standard: each step is an
operation on a whole block of rows, on the device that holds the arrays. The implementations
themselves are beside the others of the same problem, such as
`fgfm.decision._marginals_array_api`. This file tells the library of an array, without importing
any.
"""

from __future__ import annotations

from typing import Any

__all__ = ["describe", "is_array_api", "library_of"]

LIBRARIES = frozenset({"array_api_strict", "cupy", "cupyx", "jax", "jaxlib", "torch"})


def is_array_api(value: Any) -> bool:
    """Return True for arrays of PyTorch, CuPy, JAX and array-api-strict."""
    return any(_package(base) in LIBRARIES for base in type(value).__mro__)


def library_of(value: Any) -> str:
    """Return the name of the package that defines the type of a value."""
    return _package(type(value))


def describe(value: Any) -> str:
    """Describe a value by library and type for an error message, as in "torch Tensor"."""
    library, kind = library_of(value), type(value).__name__
    return kind if library == "builtins" else f"{library} {kind}"


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]
