"""`Constraints`: which label sets are allowed, and what labels cost."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fgfm._utils.text import listed

__all__ = [
    "Constraints",
    "check_cycles",
    "check_disjoint",
    "check_groups",
    "near_match",
    "pairs",
]


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
        parent. A sequence has the parent of every label, None or -1 where there is none.
        Hierarchies cannot be combined with `groups`.
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
    array([[1, 1, 1, 1]], dtype=int8)
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
        check_disjoint(self.required, self.forbidden, repr)
        if self.groups and self.parents:
            raise ValueError(
                "constraints: groups and parents cannot be combined; use one of them, or forbid "
                "labels"
            )
        check_groups(self.groups, self.required, repr)
        check_cycles(pairs(self.parents), repr)

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
        ValueError: constraints: there is no 'require'; did you mean 'required'?
        """
        if not isinstance(mapping, Mapping):
            raise TypeError(f"constraints is {mapping!r}: it must be a mapping")
        known = [field.name for field in fields(cls)]
        for key in mapping:
            if key not in known:
                raise ValueError(
                    f"constraints: there is no {key!r}; {near_match(str(key), known)}"
                )
        return cls(**mapping)


# The forms of the parameters ---------------------------------------------------------------------


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
    number = float(cost)
    if not (number >= 0.0 and math.isfinite(number)):
        raise ValueError(f"constraints: {where} is {number!r}: {rule}")
    return number


def near_match(name: str, known: Sequence[str]) -> str:
    """Return the end of a message about an unknown name: a similar one, or the first ones."""
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {listed(known, 4)}"


def pairs(parents: Any) -> dict[Any, Any]:
    """Return the parent of each label that has one."""
    if isinstance(parents, tuple):
        return {child: parent for child, parent in enumerate(parents) if parent is not None}
    return parents or {}


def check_disjoint(required: Iterable[Any], forbidden: Iterable[Any], show: Any) -> None:
    """Raise if a label is required and forbidden."""
    excluded = set(forbidden)
    for label in required:
        if label in excluded:
            raise ValueError(f"constraints: label {show(label)} is required and forbidden")


def check_groups(groups: Sequence[Sequence[Any]], required: Iterable[Any], show: Any) -> None:
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


def check_cycles(parent_of: Mapping[Any, Any], show: Any) -> None:
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
