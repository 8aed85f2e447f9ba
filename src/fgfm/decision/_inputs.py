"""The steps that all five public functions share, for every type of array.

Each function has two routes: one for NumPy arrays and all that converts to them, which also
decides the blocks of Dask arrays, and one for arrays of PyTorch, CuPy and JAX.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fgfm._utils.rows import as_frames
from fgfm._utils.validation import check_average
from fgfm.decision._array_api.libraries import describe, is_array_api, library_of
from fgfm.decision._averages import Route
from fgfm.decision._dask import any_dask, decide_columns_lazily, decide_lazily
from fgfm.decision._objective import Decision, Objective

__all__ = ["check_array_types", "decide", "is_flat"]


def decide(
    arrays: Mapping[str, Any],
    objective: Objective,
    average: Any,
    with_numpy: Route,
    with_array_api: Callable[[], Route],
    columns: Any = None,
    **shared: Any,
) -> Decision:
    """Decide with the implementation for the given average and type of arrays.

    Parameters
    ----------
    arrays : mapping of str to array-like
        The arrays with one entry per row, by the name of the argument.
    objective : Objective
        What is maximised.
    average : {"samples", "macro", "micro"}
        Whether a problem is a row, a label, or the batch.
    with_numpy : Route
        The implementations, called as ``f(*arrays, objective=objective, **shared)``.
    with_array_api : callable
        Returns the implementations for arrays of PyTorch, CuPy and JAX.
    columns : sequence, default=None
        The column names of the labels, if the first array is a data frame.
    **shared : object
        Further arguments of the implementations, the same for all rows.

    Returns
    -------
    Decision
        Of the same array type as the first array.
    """
    check_average(average)
    is_device_array = check_array_types(arrays)
    values = list(arrays.values())
    if is_flat(values[0]):
        average = "macro"  # one label, whatever the average
    if objective.limits is not None:
        objective.limits.check_problem(average, objective.measure, flat=is_flat(values[0]))
    if not is_device_array and any_dask(*values):
        decision = _decide_dask(arrays, average, with_numpy, objective=objective, **shared)
        return _squeezed(decision) if is_flat(values[0]) else decision
    route = with_array_api() if is_device_array else with_numpy
    decision = route.decide(average, *values, objective=objective, **shared)
    if is_device_array and shared.get("logits"):
        from fgfm.decision._marginals_array_api import with_input_dtype

        decision = with_input_dtype(decision, values[0])
    if is_device_array and objective.limits is not None:
        from fgfm.decision._array_api.host import constrain_on_host

        decision = constrain_on_host(decision, values, objective, with_numpy.samples, shared)
    if objective.nonempty:
        smallest = "the empty set" if objective.limits is None else "the smallest allowed set"
        _warn_about_impossible_problems(decision.expected_f, average, smallest)
    if is_flat(values[0]):
        decision = _squeezed(decision)
    if is_flat(values[0]):
        columns = [getattr(values[0], "name", None)]
    return Decision(*as_frames(*decision, values[0], columns, average))


def is_flat(value: Any) -> bool:
    """Return True for 1-D arrays, series, and lists of numbers."""
    if hasattr(value, "ndim"):  # a nested tensor of PyTorch has no shape
        return bool(value.ndim == 1)
    if hasattr(value, "shape"):
        return len(value.shape) == 1
    return isinstance(value, (list, tuple)) and len(value) > 0 and np.ndim(value[0]) == 0


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


def _decide_dask(arrays: Mapping[str, Any], average: str, route: Route, **shared: Any) -> Decision:
    """Build a lazy decision."""
    if average == "samples":
        return decide_lazily(route.samples, arrays, **shared)
    if average == "macro":
        return decide_columns_lazily(route, arrays, **shared)
    name = next(name for name, value in arrays.items() if any_dask(value))
    raise TypeError(
        f"{name} is a Dask array: average='micro' decides all rows together, so it must be an "
        f"array in memory; use {name}.compute()"
    )


def _squeezed(decision: Decision) -> Decision:
    """Return the decision of one label as 1-D labels and a scalar."""
    return Decision(decision.labels[:, 0], decision.expected_f[0])


def _warn_about_impossible_problems(expected_f: Any, average: str, smallest: str) -> None:
    """Warn about problems with d_0 = 1 under nonempty=True."""
    if is_array_api(expected_f):
        from fgfm.decision._array_api.backend import first_nan

        count, first = first_nan(expected_f)
    else:
        impossible = np.flatnonzero(np.isnan(expected_f))
        count, first = len(impossible), impossible[0] if len(impossible) else 0
    if not count:
        return
    problem = "row" if average == "samples" else "label"
    what = f"{problem}s without probability for a non-empty label set"
    which = f": {count}, the first is {problem} {first}; they get {smallest} and"
    if average == "macro":
        what = "labels without probability in any row"
    if average == "micro":
        what, which = "no label has a probability in any row", ": the decision is empty, with"
    warnings.warn(
        f"{what}, although nonempty=True{which} expected_f NaN", UserWarning, stacklevel=4
    )
