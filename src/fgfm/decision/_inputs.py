"""From the arguments of a public function to a problem, and from its decision to the same type.

Lists, masked arrays, data frames and whatever NumPy converts become problems of NumPy arrays; so
do the blocks of Dask arrays. Arrays of PyTorch, CuPy and JAX become problems of these libraries.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from fgfm._utils.rows import as_frames
from fgfm._utils.validation import check_choice, is_flat
from fgfm.decision._array_api import describe, is_array_api, library_of
from fgfm.decision._dask import any_dask, decide_lazily
from fgfm.decision._floors import check_floors, warn_about_floors
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._problem import AVERAGES, Problem, decide

__all__ = ["check_array_types", "decide_arrays"]


def decide_arrays(
    kind: type[Problem],
    arrays: Mapping[str, Any],
    objective: Objective,
    average: Any,
    columns: Any = None,
    **shared: Any,
) -> Decision:
    """Decide from arrays of any type; return a decision of the type of the first one.

    `kind` is the class of the problem for NumPy arrays; `arrays` have one entry per row, by the
    name of the argument; `columns` are the names of the labels, if the first array is a frame;
    `shared` are further arguments of the problem, the same for all rows.
    """
    check_choice(average, "average", AVERAGES)
    first = next(iter(arrays.values()))
    is_numpy = set(map(type, arrays.values())) == {np.ndarray}
    on_device = not is_numpy and check_array_types(arrays)
    flat = is_flat(first)
    if flat:
        average = "macro"  # one label, whatever the average
    if objective.limits is not None:
        objective.limits.check_problem(average, objective.measure, flat=flat)
        if average != "samples" and (on_device or any_dask(*arrays.values())):
            raise TypeError(
                f"min_labels and max_labels with average={average!r} decide all rows together: "
                "pass a NumPy array or a sparse matrix"
            )
    missed = shared.get("missed", arrays.get("missed"))
    place = None
    if objective.floors is not None or missed is not None:
        check_floors(objective, average, missed, flat=flat)
        if on_device:  # these problems are decided on the host
            from fgfm.decision._array_api.backend import copy_to_host

            place, arrays, shared = copy_to_host(arrays, shared)
            on_device = False
    if on_device:
        kind = getattr(import_module(f"{kind.__module__}_array_api"), kind.__name__)
    if not (is_numpy or on_device) and any_dask(*arrays.values()):
        decision = decide_lazily(kind, arrays, objective, average, shared)
    else:
        decision = decide(kind.read(*arrays.values(), **shared), objective, average)
        if objective.floors is not None:
            warn_about_floors(objective, average, flat=flat)
        if objective.nonempty:
            _warn_about_impossible_problems(decision.expected_f, average, objective)
    if flat:
        decision = Decision(decision.labels[:, 0], decision.expected_f[0])
        columns = [getattr(first, "name", None)]
    if place is not None:
        labels = place.xp.asarray(decision.labels, device=place.device)
        return Decision(labels, place.array(decision.expected_f), decision.gap)
    if is_numpy:
        return decision
    return Decision(*as_frames(*decision, first, columns, average), decision.gap)


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


def _warn_about_impossible_problems(expected_f: Any, average: str, objective: Objective) -> None:
    """Warn about problems with d_0 = 1 under nonempty=True."""
    if is_array_api(expected_f):
        from fgfm.decision._array_api.backend import first_nan

        count, first = first_nan(expected_f)
    else:
        impossible = np.flatnonzero(np.isnan(expected_f))
        count, first = len(impossible), impossible[0] if len(impossible) else 0
    if not count:
        return
    smallest = "the empty set" if objective.limits is None else "the smallest allowed set"
    problem = "row" if average == "samples" else "label"
    which = f": {count}, the first is {problem} {first}; they get {smallest} and"
    if average == "samples":
        what = "rows without probability for a non-empty label set"
    elif average == "micro":
        what, which = "no label has a probability in any row", ": the decision is empty, with"
    else:
        what = "labels without probability in any row"
    warnings.warn(
        f"{what}, although nonempty=True{which} expected_f NaN", UserWarning, stacklevel=4
    )
