"""The forms in which the parameters of `Constraints` are given, and contradictions in them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = [
    "check_cycles",
    "check_disjoint",
    "check_groups",
    "cost_mapping",
    "group_tuples",
    "label_tuple",
    "pairs",
    "parent_mapping",
]

Show = Callable[[Any], str]  # returns a label as messages show it


def _is_label(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    return isinstance(value, str) or (isinstance(value, numbers.Integral) and int(value) >= 0)


def _label(value: Any, where: str) -> int | str:
    if not _is_label(value):
        raise TypeError(
            f"{where} has {value!r}: labels must be numbers, 0 or more, or names (text)"
        )
    return str(value) if isinstance(value, str) else int(value)


def label_tuple(values: Any, name: str) -> tuple[int | str, ...]:
    """Return a list of labels as a tuple, each label once."""
    where = f"constraints: {name}"
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"{where} is {values!r}: it must be a list of labels")
    return tuple(dict.fromkeys(_label(value, where) for value in values))


def group_tuples(groups: Any) -> tuple[tuple[int | str, ...], ...]:
    """Return groups of labels as tuples."""
    if isinstance(groups, (str, bytes, Mapping)) or not isinstance(groups, Iterable):
        raise TypeError(f"constraints: groups is {groups!r}: it must be a list of lists of labels")
    return tuple(label_tuple(group, f"groups[{g}]") for g, group in enumerate(groups))


def parent_mapping(parents: Any) -> dict[int | str, int | str] | tuple[Any, ...] | None:
    """Return parents as a mapping of the labels that have one, or the parents of all labels."""
    where = "constraints: parents"
    if parents is None:
        return None
    if isinstance(parents, Mapping):
        return {
            _label(child, where): _parent(parent, f"the parent of {child!r}")
            for child, parent in parents.items()
            if parent is not None
        }
    if isinstance(parents, (str, bytes)) or not isinstance(parents, Iterable):
        raise TypeError(
            f"{where} is {parents!r}: it must be a mapping of label to parent, or the list of all "
            "parents"
        )
    return tuple(
        None if _is_absent(parent) else _parent(parent, f"parents[{child}]")
        for child, parent in enumerate(parents)
    )


def _is_absent(parent: Any) -> bool:
    return parent is None or (isinstance(parent, numbers.Integral) and parent == -1)


def _parent(parent: Any, where: str) -> int | str:
    if isinstance(parent, (list, tuple, set, frozenset, np.ndarray)):
        raise TypeError(f"constraints: {where} is {parent!r}: a label can have one parent only")
    return _label(parent, f"constraints: {where}")


def cost_mapping(costs: Any) -> dict[int | str, float] | tuple[float, ...] | float | None:
    """Return costs as a mapping, the costs of all labels, or one number."""
    if costs is None:
        return None
    if isinstance(costs, Mapping):
        return {
            _label(label, "constraints: costs"): _cost(cost, f"costs[{label!r}]")
            for label, cost in costs.items()
        }
    if isinstance(costs, Iterable) and not isinstance(costs, (str, bytes)):
        return tuple(_cost(cost, f"costs[{i}]") for i, cost in enumerate(costs))
    return _cost(costs, "costs")


def _cost(cost: Any, where: str) -> float:
    rule = "a cost must be a finite number, 0 or more"
    if isinstance(cost, (bool, np.bool_)) or not isinstance(cost, numbers.Real):
        raise TypeError(f"constraints: {where} is {cost!r}: {rule}")
    number = float(cost)
    if not (number >= 0.0 and math.isfinite(number)):
        raise ValueError(f"constraints: {where} is {number!r}: {rule}")
    return number


def pairs(parents: Any) -> dict[Any, Any]:
    """Return the parent of each label that has one."""
    if isinstance(parents, tuple):
        return {child: parent for child, parent in enumerate(parents) if parent is not None}
    return parents or {}


def check_disjoint(required: Iterable[Any], forbidden: Iterable[Any], show: Show) -> None:
    """Raise if a label is required and forbidden."""
    excluded = set(forbidden)
    for label in required:
        if label in excluded:
            raise ValueError(f"constraints: label {show(label)} is required and forbidden")


def check_groups(groups: Sequence[Sequence[Any]], required: Iterable[Any], show: Show) -> None:
    """Raise if groups overlap, or if two labels of one are required."""
    group_of: dict[Any, int] = {}
    for g, group in enumerate(groups):
        for label in group:
            if label in group_of:
                raise ValueError(
                    f"constraints: label {show(label)} is in groups[{group_of[label]}] and in "
                    f"groups[{g}]: groups must have no label in common"
                )
            group_of[label] = g
    first: dict[int, Any] = {}
    for label in required:
        if label in group_of:
            other = first.setdefault(group_of[label], label)
            if other != label:
                raise ValueError(
                    f"constraints: labels {show(other)} and {show(label)} are required, but "
                    f"groups[{group_of[label]}] allows one of them only"
                )


def check_cycles(parent_of: Mapping[Any, Any], show: Show) -> None:
    """Raise if a label is its own ancestor."""
    checked: set[Any] = set()
    for start in parent_of:
        path: dict[Any, None] = {}
        label = start
        while label in parent_of and label not in checked:
            if label in path:
                cycle = [*path][[*path].index(label) :]
                chain = " -> ".join(map(show, [*cycle, label]))
                raise ValueError(f"constraints: parents has the cycle {chain}")
            path[label] = None
            label = parent_of[label]
        checked.update(path)
