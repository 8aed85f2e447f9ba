"""The steps that all five public functions share, for every type of array.

Each function has two implementations: one for NumPy arrays and all that converts to them, which
also decides the blocks of Dask arrays, and one for arrays of PyTorch, CuPy and JAX.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fgfm.decision._array_api.libraries import describe, is_array_api, library_of
from fgfm.decision._dask import any_dask, decide_lazily
from fgfm.decision._objective import Decision, Objective

__all__ = ["check_array_types", "decide"]


def decide(
    arrays: Mapping[str, Any],
    objective: Objective,
    with_numpy: Callable[..., Decision],
    with_array_api: Callable[..., Decision],
    columns: Any = None,
    **shared: Any,
) -> Decision:
    """Decide with the implementation for the given type of arrays.

    Parameters
    ----------
    arrays : mapping of str to array-like
        The arrays with one entry per row, by the name of the argument.
    objective : Objective
        What is maximised.
    with_numpy, with_array_api : callable
        The two implementations, called as ``f(*arrays, objective=objective, **shared)``.
    columns : sequence, default=None
        The column names of the labels, if the first array is a pandas data frame.
    **shared : object
        Further arguments of the implementations, the same for all rows.

    Returns
    -------
    Decision
        Of the same array type as the first array.
    """
    is_device_array = check_array_types(arrays)
    values = list(arrays.values())
    if is_device_array:
        decision = with_array_api(*values, objective=objective, **shared)
        if objective.limits is not None:
            from fgfm.decision._array_api.host import constrain_on_host

            decision = constrain_on_host(decision, values, objective, with_numpy, shared)
    elif any_dask(*values):
        return decide_lazily(with_numpy, arrays, objective=objective, **shared)
    else:
        decision = with_numpy(*values, objective=objective, **shared)
    if objective.nonempty:
        _warn_about_impossible_rows(decision.expected_f, objective)
    if library_of(values[0]) == "pandas":
        return _as_frame(decision, values[0].index, columns)
    return decision


def check_array_types(arrays: Mapping[str, Any]) -> bool:
    """Raise for arrays of several libraries, lists of arrays, and data frames of Dask.

    Returns True if the arrays are of PyTorch, CuPy or JAX, and False if NumPy can convert them.
    """
    others = [name for name, value in arrays.items() if not is_array_api(value)]
    if 0 < len(others) < len(arrays):
        name = next(name for name in arrays if name not in others)
        raise TypeError(
            f"{others[0]} is a {describe(arrays[others[0]])} and {name} is a "
            f"{describe(arrays[name])}: they must be of one library"
        )
    for name in others:
        value = arrays[name]
        if isinstance(value, (list, tuple)):
            _check_list(value, name)
        elif hasattr(value, "to_dask_array"):
            raise TypeError(
                f"{name} is a Dask data frame: it must be a Dask array; "
                f"use {name}.to_dask_array(lengths=True)"
            )
    return not others


def _check_list(value: Any, name: str) -> None:
    """Raise for a list with arrays of PyTorch, CuPy or JAX: NumPy would copy them to the host."""
    while isinstance(value, (list, tuple)) and value:
        for item in {type(item): item for item in value}.values():  # one item of each type
            if is_array_api(item):
                raise TypeError(
                    f"{name} is a list with arrays of {library_of(item)}: "
                    "it must be one array; stack them"
                )
        value = value[0]


def _warn_about_impossible_rows(expected_f: Any, objective: Objective) -> None:
    """Warn about rows with d_0 = 1 under nonempty=True."""
    if is_array_api(expected_f):
        from fgfm.decision._array_api.backend import first_nan

        count, first = first_nan(expected_f)
    else:
        impossible = np.flatnonzero(np.isnan(expected_f))
        count, first = len(impossible), impossible[0] if len(impossible) else 0
    if count:
        smallest = "the empty set" if objective.limits is None else "the smallest allowed set"
        warnings.warn(
            "rows without probability for a non-empty label set, although nonempty=True: "
            f"{count}, the first is row {first}; they get {smallest} and expected_f NaN",
            UserWarning,
            stacklevel=4,
        )


def _as_frame(decision: Decision, index: Any, columns: Any) -> Decision:
    """Convert a decision to a pandas data frame and a series."""
    import pandas as pd

    return Decision(
        pd.DataFrame(decision.labels, index=index, columns=columns),
        pd.Series(decision.expected_f, index=index, name="expected_f"),
    )
