"""Limits of the decided label sets: constraints and sizes, for the labels of an input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._kernels import Constraints as KernelConstraints
from fgfm._utils.validation import check_count
from fgfm.decision._constraints import (
    Constraints,
    check_cycles,
    check_disjoint,
    check_groups,
    near_match,
    pairs,
)

__all__ = ["Limits", "numbered"]

Integers = npt.NDArray[np.int64]


class _Labels:
    """Numbers and names of m labels."""

    def __init__(self, m: int, names: Sequence[Any] | None) -> None:
        self.m = m
        self.names = names
        self._number: dict[str, int] = {}
        for i, name in enumerate(names if names is not None else ()):
            self._number.setdefault(str(name), i)

    def number(self, label: int | str, where: str) -> int:
        """Return the number of a label."""
        if isinstance(label, str):
            if label in self._number:
                return self._number[label]
            if self.names is None and label.isdecimal():  # keys of JSON objects are text
                label = int(label)
            else:
                raise ValueError(f"constraints: {where} has label {label!r}: {self._hint(label)}")
        if label >= self.m:
            raise ValueError(
                f"constraints: {where} has label {label}: it must be less than the number of "
                f"labels, {self.m}"
            )
        return label

    def _hint(self, name: str) -> str:
        if self.names is None:
            return "the labels have no names here; use numbers"
        return f"there is no such label; {near_match(name, [*self._number])}"

    def show(self, i: int) -> str:
        """Return the number and name of a label for a message."""
        return f"{i}" if self.names is None else f"{i} ({str(self.names[i])!r})"


def numbered(constraints: Any, m: int, names: Sequence[Any] | None) -> Constraints | None:
    """Return the same constraints with label numbers in the place of names.

    Parameters
    ----------
    constraints : Constraints or None
        The constraints.
    m : int
        The number of labels.
    names : sequence or None
        The names of the labels.

    Returns
    -------
    Constraints or None
        With `parents` and `costs` as mappings.
    """
    if _checked(constraints) is None:
        return None
    labels = _Labels(m, names)
    for name in ("parents", "costs"):
        value = getattr(constraints, name)
        if isinstance(value, tuple) and len(value) != m:
            raise ValueError(
                f"constraints: {name} has {len(value)} elements: it must have one for each of "
                f"the {m} labels"
            )
    required, forbidden = (
        tuple(labels.number(label, name) for label in getattr(constraints, name))
        for name in ("required", "forbidden")
    )
    check_disjoint(required, forbidden, labels.show)
    groups = [
        [labels.number(label, f"groups[{g}]") for label in group]
        for g, group in enumerate(constraints.groups)
    ]
    check_groups(groups, required, labels.show)
    parent_of: dict[int, int] = {}
    for child, parent in pairs(constraints.parents).items():
        number = labels.number(child, "parents")
        if number in parent_of:
            raise ValueError(
                f"constraints: parents has label {labels.show(number)} twice, by name and by "
                "number"
            )
        parent_of[number] = labels.number(parent, "parents")
    check_cycles(parent_of, labels.show)
    costs = constraints.costs
    if isinstance(costs, dict):
        costs = {labels.number(label, "costs"): cost for label, cost in costs.items()}
    elif costs is not None:
        costs = dict(enumerate(np.broadcast_to(costs, m).tolist()))
    return Constraints(
        required=required,
        forbidden=forbidden,
        groups=groups,
        parents=parent_of or None,
        costs=costs or None,
    )


def _checked(constraints: Any) -> Constraints | None:
    if constraints is not None and not isinstance(constraints, Constraints):
        raise TypeError(
            f"constraints is {constraints!r}: it must be a fgfm.decision.Constraints or None"
        )
    return constraints


class Limits(NamedTuple):
    """What the decided label sets must satisfy: their sizes, and further constraints."""

    min_labels: int
    max_labels: int | None
    constraints: Constraints | None
    names: tuple[Any, ...] | None

    @classmethod
    def checked(
        cls, min_labels: Any, max_labels: Any, constraints: Any, names: Any = None
    ) -> Limits | None:
        """Validate the parameters that the public functions share; return None without limits.

        `names` are the names of the labels, if they have any.
        """
        min_labels = check_count(min_labels, "min_labels")
        if max_labels is not None:
            max_labels = check_count(max_labels, "max_labels", 1)
            if min_labels > max_labels:
                raise ValueError(
                    f"min_labels is {min_labels}: it must not be greater than max_labels, "
                    f"{max_labels}"
                )
        constraints = _checked(constraints)
        if min_labels == 0 and max_labels is None and constraints in (None, Constraints()):
            return None
        if names is not None and not any(isinstance(name, str) for name in names):
            names = None  # numbers, such as the default columns of pandas
        return cls(min_labels, max_labels, constraints, None if names is None else tuple(names))

    def for_labels(self, m: int, *, nonempty: bool, sparse: bool) -> Any:
        """Return the constraints on sets of m labels as the object that the kernels take.

        Raises ValueError if no set satisfies them.
        """
        labels = _Labels(m, self.names)
        constraints = numbered(self.constraints, m, self.names) or Constraints()
        if sparse and constraints.parents and constraints.costs and (self.min_labels or nonempty):
            # Which labels of probability 0 fill up a set at least cost is another problem.
            raise ValueError(
                "constraints: parents with costs, and min_labels or nonempty, need dense "
                "probabilities; these are sparse"
            )
        parent = np.full(m if constraints.parents else 0, -1)  # (m,)
        for child, above in (constraints.parents or {}).items():
            parent[child] = above
        status = _status(constraints, parent, labels)  # (m,)
        group = np.full(m if constraints.groups else 0, -1)  # (m,)
        for g, members in enumerate(constraints.groups):
            group[list(members)] = g
            if any(status[i] > 0 for i in members):  # the others are excluded
                status[[i for i in members if status[i] == 0]] = -1
        cost = np.zeros(m if constraints.costs else 0)  # (m,)
        for label, number in (constraints.costs or {}).items():
            cost[label] = number
        self._check_sizes(status, group, labels, nonempty)
        most = m if self.max_labels is None else self.max_labels
        return KernelConstraints(self.min_labels, most, status, cost, group, parent)

    def _check_sizes(
        self, status: npt.NDArray[np.int8], group: Integers, labels: _Labels, nonempty: bool
    ) -> None:
        """Raise if no set has an allowed number of labels."""
        required = np.flatnonzero(status > 0)
        if self.max_labels is not None and self.max_labels < len(required):
            names = ", ".join(map(labels.show, required[:5].tolist()))
            more = f" and {len(required) - 5} more" if len(required) > 5 else ""
            raise ValueError(
                f"max_labels is {self.max_labels}, but {len(required)} labels are required: "
                f"{names}{more}"
            )
        allowed = np.flatnonzero(status >= 0)
        capacity = len(allowed)
        if len(group):
            groups = group[allowed]
            capacity = int((groups < 0).sum()) + len(np.unique(groups[groups >= 0]))
        if self.min_labels > capacity:
            allow = "there are" if capacity == labels.m else "the constraints allow at most"
            raise ValueError(f"min_labels is {self.min_labels}, but {allow} {capacity} labels")
        if nonempty and capacity == 0:
            raise ValueError(
                "nonempty=True excludes the empty set, but the constraints forbid every label"
            )


def _status(constraints: Constraints, parent: Integers, labels: _Labels) -> npt.NDArray[np.int8]:
    """Return 1 for labels that are in every set, -1 for those that are in no set, else 0, (m,).

    Ancestors of required labels are required, and descendants of forbidden ones are forbidden.
    Raises ValueError for labels that are both.
    """
    forbidden = set(constraints.forbidden)
    status = np.zeros(labels.m, dtype=np.int8)
    status[list(forbidden)] = -1
    for child in constraints.parents or {}:  # labels below a forbidden one
        path, label = [], child
        while label >= 0 and status[label] == 0:
            path.append(label)
            label = int(parent[label])
        if label >= 0:
            status[path] = -1
    for child in constraints.required:
        label = child
        while label >= 0 and status[label] <= 0:
            if label in forbidden:
                raise ValueError(
                    f"constraints: label {labels.show(child)} is required, but "
                    f"{labels.show(label)}, which is above it in parents, is forbidden"
                )
            status[label] = 1
            label = int(parent[label]) if len(parent) else -1
    return status
