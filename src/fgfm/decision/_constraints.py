"""Constraints on the decided label sets: the public class, and their translation to label numbers."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._kernels import Constraints as KernelConstraints
from fgfm._utils.text import listed
from fgfm._utils.validation import check_count

__all__ = ["Constraints", "Limits", "numbered"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, repr=False)
class Constraints:
    r"""Which label sets are allowed, and what labels cost.

    The decision functions then maximise

    .. math:: E[F_\beta(y, h)] - \sum_{i \in h} c_i

    over the label sets h that satisfy all constraints. They constrain the decision h, not the true
    set y: the probabilities stay as they are, also those of forbidden labels.

    Labels are numbers, from 0, or names where the probabilities have any: the columns of a data
    frame, or the labels of a classifier. A number is always a position, whatever the columns are
    called.

    Parameters
    ----------
    required : sequence of labels, default=()
        Labels that are in every set.
    forbidden : sequence of labels, default=()
        Labels that are in no set.
    groups : sequence of sequences of labels, default=()
        Groups of labels that exclude each other: at most one of each group is chosen. Groups have
        no label in common.
    parents : mapping of label to label, or sequence of length m, optional
        A hierarchy of labels: a label is chosen only if its parent is. Each label has at most one
        parent. A sequence has the parent of every label, None or -1 where there is none. Hierarchies
        cannot be combined with `groups`.
    costs : mapping of label to float, sequence of length m, or float, optional
        What choosing a label costs, in units of the F-measure, not less than 0; one number is the
        cost of every label.

    See Also
    --------
    from_marginals : Also takes ``min_labels`` and ``max_labels``.

    Examples
    --------
    >>> import fgfm
    >>> from fgfm.decision import Constraints
    >>> proba = [[0.9, 0.8, 0.7, 0.1]]
    >>> fgfm.decision.from_marginals(proba).labels
    array([[1, 1, 1, 0]], dtype=int8)
    >>> exclusive = Constraints(groups=[[0, 1], [2, 3]])
    >>> fgfm.decision.from_marginals(proba, constraints=exclusive).labels
    array([[1, 0, 1, 0]], dtype=int8)
    >>> tree = Constraints(parents={1: 3})
    >>> fgfm.decision.from_marginals(proba, constraints=tree).labels
    array([[1, 0, 1, 0]], dtype=int8)
    >>> Constraints(required=[2], forbidden=[2])
    Traceback (most recent call last):
        ...
    ValueError: constraints: label 2 is required and forbidden
    """

    required: Any = ()
    forbidden: Any = ()
    groups: Any = ()
    parents: Any = None
    costs: Any = None

    def __post_init__(self) -> None:
        normal = {
            "required": _label_tuple(self.required, "required"),
            "forbidden": _label_tuple(self.forbidden, "forbidden"),
            "groups": _group_tuples(self.groups),
            "parents": _parent_mapping(self.parents),
            "costs": _cost_mapping(self.costs),
        }
        for name, value in normal.items():
            object.__setattr__(self, name, value)
        _check_disjoint(self.required, self.forbidden, repr)
        if self.groups and self.parents:
            raise ValueError(
                "constraints: groups and parents cannot be combined; use one of them, or forbid "
                "labels"
            )
        _check_groups(self.groups, self.required, repr)
        _check_cycles(_pairs(self.parents), repr)

    def __repr__(self) -> str:
        given = [(field.name, getattr(self, field.name)) for field in fields(self)]
        texts = [f"{name}={value!r}" for name, value in given if value is not None and value != ()]
        return f"{type(self).__name__}({', '.join(texts)})"

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Constraints:
        """Create constraints from a mapping, such as a parsed JSON object.

        Parameters
        ----------
        mapping : mapping of str to object
            The parameters by their names. In JSON the keys of objects are text: where labels have
            no names, ``"3"`` is label 3.

        Returns
        -------
        Constraints
            The constraints.

        Examples
        --------
        >>> from fgfm.decision import Constraints
        >>> Constraints.from_mapping({"required": ["urgent"], "parents": {"cat": "animal"}})
        Constraints(required=('urgent',), parents={'cat': 'animal'})
        >>> Constraints.from_mapping({"require": ["urgent"]})
        Traceback (most recent call last):
            ...
        ValueError: constraints has the key 'require': the keys are 'required', 'forbidden', 'groups', 'parents', 'costs'
        """
        if not isinstance(mapping, Mapping):
            raise TypeError(f"constraints is {mapping!r}: it must be a mapping")
        known = [field.name for field in fields(cls)]
        for key in mapping:
            if key not in known:
                raise ValueError(f"constraints has the key {key!r}: the keys are {listed(known)}")
        return cls(**mapping)


# The forms of the parameters ---------------------------------------------------------------------


def _is_label(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    return isinstance(value, str) or (isinstance(value, numbers.Integral) and value >= 0)


def _label(value: Any, where: str) -> int | str:
    if not _is_label(value):
        raise TypeError(
            f"{where} has {value!r}: labels must be numbers, 0 or more, or names (text)"
        )
    return str(value) if isinstance(value, str) else int(value)


def _label_tuple(values: Any, name: str) -> tuple[int | str, ...]:
    where = f"constraints: {name}"
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"{where} is {values!r}: it must be a list of labels")
    return tuple(dict.fromkeys(_label(value, where) for value in values))


def _group_tuples(groups: Any) -> tuple[tuple[int | str, ...], ...]:
    if isinstance(groups, (str, bytes, Mapping)) or not isinstance(groups, Iterable):
        raise TypeError(f"constraints: groups is {groups!r}: it must be a list of lists of labels")
    return tuple(_label_tuple(group, f"groups[{g}]") for g, group in enumerate(groups))


def _parent_mapping(parents: Any) -> dict[int | str, int | str] | tuple[Any, ...] | None:
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


def _cost_mapping(costs: Any) -> dict[int | str, float] | tuple[float, ...] | float | None:
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
    if not (0.0 <= cost and math.isfinite(cost)):
        raise ValueError(f"constraints: {where} is {float(cost)!r}: {rule}")
    return float(cost)


def _pairs(parents: Any) -> dict[Any, Any]:
    """Return the parent of each label that has one."""
    if isinstance(parents, tuple):
        return {child: parent for child, parent in enumerate(parents) if parent is not None}
    return parents or {}


def _check_disjoint(required: Iterable[Any], forbidden: Iterable[Any], show: Any) -> None:
    """Raise if a label is required and forbidden."""
    excluded = set(forbidden)
    for label in required:
        if label in excluded:
            raise ValueError(f"constraints: label {show(label)} is required and forbidden")


def _check_groups(groups: Sequence[Sequence[Any]], required: Iterable[Any], show: Any) -> None:
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


def _check_cycles(parent_of: Mapping[Any, Any], show: Any) -> None:
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


# Translation to the labels of an input -----------------------------------------------------------


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
        near = difflib.get_close_matches(name, self._number, 1)
        return (
            f"there is no such label; did you mean {near[0]!r}?"
            if near
            else (f"there is no such label; the first ones are {listed([*self._number], 4)}")
        )

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
    _check_disjoint(required, forbidden, labels.show)
    groups = [
        [labels.number(label, f"groups[{g}]") for label in group]
        for g, group in enumerate(constraints.groups)
    ]
    _check_groups(groups, required, labels.show)
    pairs = [
        (labels.number(child, "parents"), labels.number(parent, "parents"))
        for child, parent in _pairs(constraints.parents).items()
    ]
    parent_of = dict(pairs)
    if len(parent_of) < len(pairs):
        twice = next(i for i, (child, _) in enumerate(pairs) if child in dict(pairs[:i]))
        raise ValueError(
            f"constraints: parents has label {labels.show(pairs[twice][0])} twice, by name and by "
            "number"
        )
    _check_cycles(parent_of, labels.show)
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
    """Return 1 for required labels and their ancestors, -1 for forbidden ones and their descendants.

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
