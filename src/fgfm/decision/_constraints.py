"""`Constraints`: which label sets are allowed, and what labels cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fgfm._utils.text import near_match
from fgfm.decision._constraint_forms import (
    check_cycles,
    check_disjoint,
    check_groups,
    cost_mapping,
    group_tuples,
    label_tuple,
    pairs,
    parent_mapping,
)

__all__ = ["Constraints", "LabelNumbers"]


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
        normal = {
            "required": label_tuple(self.required, "required"),
            "forbidden": label_tuple(self.forbidden, "forbidden"),
            "groups": group_tuples(self.groups),
            "parents": parent_mapping(self.parents),
            "costs": cost_mapping(self.costs),
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
        check_disjoint(required, forbidden, labels.show)
        groups = [
            [*dict.fromkeys(labels.number(label, f"groups[{g}]") for label in group)]
            for g, group in enumerate(self.groups)
        ]
        check_groups(groups, required, labels.show)
        parent_of: dict[int, int] = {}
        for child, parent in pairs(self.parents).items():
            number = labels.number(child, "parents")
            if number in parent_of:
                raise ValueError(
                    f"constraints: parents has label {labels.show(number)} twice, by name and by "
                    "number"
                )
            parent_of[number] = labels.number(parent, "parents")
        check_cycles(parent_of, labels.show)
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
