"""Limits of the decided label sets: constraints and sizes, for the labels of an input."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._kernels import Constraints as KernelConstraints
from fgfm._utils.validation import check_count
from fgfm.decision._constraints import Constraints, LabelNumbers
from fgfm.decision._measures import Measure

Integers = npt.NDArray[np.int64]
_NO_CONSTRAINTS = Constraints()


class Limits(NamedTuple):
    """What the decided label sets must satisfy: their sizes, and further constraints."""

    min_labels: int
    max_labels: int | None
    constraints: Constraints
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
        if constraints is not None and not isinstance(constraints, Constraints):
            raise TypeError(
                f"constraints is {constraints!r}: it must be a fgfm.decision.Constraints or None"
            )
        if min_labels == 0 and max_labels is None and constraints in (None, _NO_CONSTRAINTS):
            return None
        # the default columns of pandas are numbers
        named = names is not None and any(isinstance(name, str) for name in names)
        own = tuple(names) if named else None
        return cls(min_labels, max_labels, constraints or _NO_CONSTRAINTS, own)

    def check_problem(self, average: str, measure: Measure, *, flat: bool = False) -> None:
        """Raise unless the limits are possible: constraints need rows that are decided alone."""
        only_sizes = self.constraints == _NO_CONSTRAINTS and not flat
        if (average != "samples" and not only_sizes) or not measure.has_limits:
            other = f"average={average!r}" if measure.has_limits else f"measure={measure.name!r}"
            if flat:
                other = "1-D probabilities, those of a binary classifier"
            raise ValueError(
                "min_labels, max_labels and constraints limit the F-optimal label set of a row: "
                f"they cannot be combined with {other}"
            )

    def for_labels(self, m: int, *, nonempty: bool, sparse: bool) -> Any:
        """Return the constraints on sets of m labels as the object that the kernels take.

        Raises ValueError if no set satisfies them.
        """
        labels = LabelNumbers(m, self.names)
        constraints = self.constraints.numbered(m, self.names)
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
        for g, members in enumerate(filter(None, constraints.groups)):
            group[list(members)] = g
            if any(status[i] > 0 for i in members):  # the others are excluded
                status[[i for i in members if status[i] == 0]] = -1
        cost = np.zeros(m if constraints.costs else 0)  # (m,)
        for label, number in (constraints.costs or {}).items():
            cost[label] = number
        self._check_sizes(status, group, labels, nonempty)
        return KernelConstraints(*self.sizes(m), status, cost, group, parent)

    def sizes(self, m: int) -> tuple[int, int]:
        """Return the least and the largest number of labels of a row with m labels."""
        if self.min_labels > m:
            raise ValueError(f"min_labels is {self.min_labels}, but there are {m} labels")
        return self.min_labels, m if self.max_labels is None else min(self.max_labels, m)

    def _check_sizes(
        self, status: npt.NDArray[np.int8], group: Integers, labels: LabelNumbers, nonempty: bool
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
        least, _ = self.sizes(labels.m)
        if least > capacity:
            raise ValueError(
                f"min_labels is {least}, but the constraints allow at most {capacity} labels"
            )
        if nonempty and capacity == 0:
            raise ValueError(
                "nonempty=True excludes the empty set, but the constraints forbid every label"
            )


def _status(
    constraints: Constraints, parent: Integers, labels: LabelNumbers
) -> npt.NDArray[np.int8]:
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
