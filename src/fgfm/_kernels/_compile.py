"""Decorators that compile kernels with numba: cached on disk, releasing the GIL.

Numba invalidates a cached kernel when the file that defines it changes, but not when a function
that it calls from *another* file does. A fingerprint of all kernel sources is therefore part of
the name under which each kernel is cached, so that machine code of older sources is never used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

__all__ = ["compiled", "compiled_extremes", "compiled_sums", "entry_point", "entry_point_sums"]

Function = TypeVar("Function", bound=Callable[..., Any])


def _fingerprint(package: Path) -> str:
    """Return a digest of the kernel sources and of the file that defines `Rules`."""
    digest = hashlib.sha256()
    quadrature = package / "decision" / "_quadrature.py"
    for source in [quadrature, *sorted((package / "_kernels").glob("*.py"))]:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


_FINGERPRINT = _fingerprint(Path(__file__).parent.parent)


def _compile(function: Function, **options: Any) -> Function:
    function.__qualname__ += f"-{_FINGERPRINT}"
    njit: Any = numba.njit  # its annotations lack the options for wrappers
    decorate = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)
    return cast(Function, decorate(function))


def entry_point(function: Function) -> Function:
    """Compile a kernel that Python calls.

    Parameters
    ----------
    function : callable
        A function in the subset of Python that numba supports.

    Returns
    -------
    callable
        The compiled function (the function itself under ``NUMBA_DISABLE_JIT=1``).
    """
    return _compile(function)


def entry_point_sums(function: Function) -> Function:
    """Compile a kernel that Python calls and whose sums may be reordered; see `compiled_sums`.

    Parameters
    ----------
    function : callable
        A function in the subset of Python that numba supports.

    Returns
    -------
    callable
        The compiled function (the function itself under ``NUMBA_DISABLE_JIT=1``).
    """
    return _compile(function, fastmath={"reassoc", "contract"})


def compiled(function: Function) -> Function:
    """Compile a function that only kernels call, with strict IEEE arithmetic.

    It cannot be called from Python: the wrapper that converts its arguments is omitted, which
    saves a third of the compilation time.

    Parameters
    ----------
    function : callable
        A function in the subset of Python that numba supports.

    Returns
    -------
    callable
        The compiled function (the function itself under ``NUMBA_DISABLE_JIT=1``).
    """
    return _compile(function, no_cpython_wrapper=True)


def compiled_sums(function: Function) -> Function:
    """Compile a function whose sums may be reordered, so that they use vector registers.

    Nothing else is relaxed: NaN and infinities are respected, and the same input gives the same
    bits for any partition of the rows into blocks.

    Parameters
    ----------
    function : callable
        A function in the subset of Python that numba supports.

    Returns
    -------
    callable
        The compiled function (the function itself under ``NUMBA_DISABLE_JIT=1``).
    """
    return _compile(function, no_cpython_wrapper=True, fastmath={"reassoc", "contract"})


def compiled_extremes(function: Function) -> Function:
    """Compile a function that finds extremes of values that are not NaN, in vector registers.

    Parameters
    ----------
    function : callable
        A function in the subset of Python that numba supports.

    Returns
    -------
    callable
        The compiled function (the function itself under ``NUMBA_DISABLE_JIT=1``).
    """
    return _compile(function, no_cpython_wrapper=True, fastmath={"nnan", "nsz"})
