"""`Constraints`: which label sets are allowed, and what labels cost."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fgfm._utils.text import near_match


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
        Hierarchies cannot be combined with ``groups``.
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
        groups = _listed(self.groups, "groups", "a list of lists of labels")
        normal = {
            "required": _labels(self.required, "required"),
            "forbidden": _labels(self.forbidden, "forbidden"),
            "groups": tuple(_labels(group, f"groups[{g}]") for g, group in enumerate(groups)),
            "parents": None if self.parents is None else _parents(self.parents),
            "costs": None if self.costs is None else _costs(self.costs),
        }
        for name, value in normal.items():
            object.__setattr__(self, name, value)
        if self.groups and self.parents:
            raise ValueError(
                "constraints: groups and parents cannot be combined; use one of them, or forbid "
                "labels"
            )
        parent_of = dict(_pairs(self.parents))
        _check_contradictions(self.required, self.forbidden, self.groups, parent_of, repr)

    def __repr__(self) -> str:
        values = [(field.name, getattr(self, field.name)) for field in fields(self)]
        texts = [
            f"{name}={value!r}" for name, value in values if value is not None and value != ()
        ]
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

    def numbered(self, m: int, names: Sequence[Any] | None = None) -> Constraints:
        """Return the same constraints with label numbers in the place of names.

        Parameters
        ----------
        m : int
            The number of labels.
        names : sequence, optional
            The names of the labels.

        Returns
        -------
        Constraints
            With ``parents`` and ``costs`` as mappings.

        Examples
        --------
        >>> from fgfm.decision import Constraints
        >>> Constraints(required=["b"], costs=0.1).numbered(2, ["a", "b"])
        Constraints(required=(1,), costs={0: 0.1, 1: 0.1})
        """
        labels = LabelNumbers(m, names)
        for name in ("parents", "costs"):
            value = getattr(self, name)
            if isinstance(value, tuple) and len(value) != m:
                raise ValueError(
                    f"constraints: {name} has {len(value)} elements: it must have one for each of "
                    f"the {m} labels"
                )
        required, forbidden = (
            tuple(labels.number(label, name) for label in getattr(self, name))
            for name in ("required", "forbidden")
        )
        groups = [
            [*dict.fromkeys(labels.number(label, f"groups[{g}]") for label in group)]
            for g, group in enumerate(self.groups)
        ]
        parent_of: dict[int, int] = {}
        for child, parent in _pairs(self.parents):
            number = labels.number(child, "parents")
            if number in parent_of:
                raise ValueError(
                    f"constraints: parents has label {labels.show(number)} twice, by name and by "
                    "number"
                )
            parent_of[number] = labels.number(parent, "parents")
        _check_contradictions(required, forbidden, groups, parent_of, labels.show)
        costs = self.costs
        if isinstance(costs, dict):
            costs = {labels.number(label, "costs"): cost for label, cost in costs.items()}
        elif costs is not None:
            costs = dict(enumerate(np.broadcast_to(costs, m).tolist()))
        return Constraints(
            required=required,
            forbidden=forbidden,
            groups=groups,
            parents=parent_of or None,
            costs={label: cost for label, cost in (costs or {}).items() if cost > 0.0} or None,
        )


class LabelNumbers:
    """Numbers and names of m labels."""

    def __init__(self, m: int, names: Sequence[Any] | None) -> None:
        self.m = m
        self.names = names
        self._number: dict[str, int] = {}
        self._twice: set[str] = set()
        for i, name in enumerate(map(str, names if names is not None else ())):
            if self._number.setdefault(name, i) != i:
                self._twice.add(name)

    def number(self, label: int | str, where: str) -> int:
        """Return the number of a label."""
        if isinstance(label, str):
            if label in self._number and label not in self._twice:
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
        if name in self._twice:
            return "several labels have this name; use numbers"
        return f"there is no such label; {near_match(name, [*self._number])}"

    def show(self, i: int) -> str:
        """Return the number and name of a label for a message."""
        return f"{i}" if self.names is None else f"{i} ({str(self.names[i])!r})"


def _label(value: Any, where: str) -> int | str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
        raise TypeError(
            f"constraints: {where} has {value!r}: labels must be numbers, 0 or more, or names "
            "(text)"
        )
    return int(value)


def _listed(values: Any, where: str, rule: str = "a list of labels") -> Iterable[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"constraints: {where} is {values!r}: it must be {rule}")
    return values


def _labels(values: Any, where: str) -> tuple[int | str, ...]:
    """Return a list of labels as a tuple, each label once."""
    return tuple(dict.fromkeys(_label(value, where) for value in _listed(values, where)))


def _parents(parents: Any) -> dict[int | str, int | str] | tuple[int | str | None, ...]:
    """Return a mapping of the labels that have a parent, or the parents of all labels."""

    def parent(value: Any, where: str) -> int | str:
        if isinstance(value, (list, tuple, set, frozenset, np.ndarray)):
            raise TypeError(f"constraints: {where} is {value!r}: a label can have one parent only")
        return _label(value, where)

    if isinstance(parents, Mapping):
        return {
            _label(child, "parents"): parent(value, f"the parent of {child!r}")
            for child, value in parents.items()
            if value is not None
        }
    rule = "a mapping of label to parent, or the list of all parents"
    return tuple(
        None
        if value is None or (isinstance(value, numbers.Integral) and value == -1)
        else parent(value, f"parents[{child}]")
        for child, value in enumerate(_listed(parents, "parents", rule))
    )


def _pairs(parents: Any) -> Iterable[tuple[Any, Any]]:
    """Return each label that has a parent, and its parent."""
    if isinstance(parents, tuple):
        return [(child, parent) for child, parent in enumerate(parents) if parent is not None]
    return (parents or {}).items()


def _costs(costs: Any) -> dict[int | str, float] | tuple[float, ...] | float:
    """Return costs as a mapping, the costs of all labels, or one number."""

    def cost(value: Any, where: str) -> float:
        rule = "a cost must be a finite number, 0 or more"
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
            raise TypeError(f"constraints: {where} is {value!r}: {rule}")
        number = float(value)
        if not 0.0 <= number < math.inf:
            raise ValueError(f"constraints: {where} is {number!r}: {rule}")
        return number

    if isinstance(costs, Mapping):
        return {_label(i, "costs"): cost(value, f"costs[{i!r}]") for i, value in costs.items()}
    if isinstance(costs, Iterable) and not isinstance(costs, (str, bytes)):
        return tuple(cost(value, f"costs[{i}]") for i, value in enumerate(costs))
    return cost(costs, "costs")


def _check_contradictions(
    required: Sequence[Any],
    forbidden: Sequence[Any],
    groups: Sequence[Sequence[Any]],
    parent_of: Mapping[Any, Any],
    show: Callable[[Any], str],
) -> None:
    """Raise if no set satisfies the constraints, or if groups overlap."""
    excluded = set(forbidden)
    for label in required:
        if label in excluded:
            raise ValueError(f"constraints: label {show(label)} is required and forbidden")
    group_of: dict[Any, int] = {}
    for g, group in enumerate(groups):
        for label in group:
            if group_of.setdefault(label, g) != g:
                raise ValueError(
                    f"constraints: label {show(label)} is in groups[{group_of[label]}] and in "
                    f"groups[{g}]: groups must have no label in common"
                )
    first: dict[int, Any] = {}
    for label in required:
        other = first.setdefault(group_of[label], label) if label in group_of else label
        if other != label:
            raise ValueError(
                f"constraints: labels {show(other)} and {show(label)} are required, but "
                f"groups[{group_of[label]}] allows one of them only"
            )
    known: set[Any] = set()
    for start in parent_of:
        path: dict[Any, None] = {}
        label = start
        while label in parent_of and label not in known:
            if label in path:
                cycle = [*path][[*path].index(label) :]
                chain = " -> ".join(map(show, [*cycle, label]))
                raise ValueError(f"constraints: parents has the cycle {chain}")
            path[label] = None
            label = parent_of[label]
        known.update(path)
