"""How the rows of a table are decided: by an objective, or by a fitted decider."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.data._errors import DataError
from fgfm.data._label_columns import label_order
from fgfm.data._options import TextFormat
from fgfm.data._probability_reader import ProbabilityReader
from fgfm.decision import from_marginals
from fgfm.decision._marginals import Marginals
from fgfm.decision._objective import Objective
from fgfm.decision._problem import decide

__all__ = ["OBJECTIVE", "DecideSettings", "Rule", "make_rule"]


class DecideSettings(NamedTuple):
    """The arguments of `decide` that apply to each file."""

    beta: float = 1.0
    zero_division: float = 1.0
    nonempty: bool = False
    average: str = "samples"
    measure: str = "f"
    logits: bool = False
    min_labels: int = 0
    max_labels: int | None = None
    constraints: Any = None
    decider: Any = None
    ids: tuple[str, ...] = ()
    format: str | None = None
    text: TextFormat = TextFormat()
    output_format: str | None = None
    separator: str = ";"
    wide: bool = False

    @property
    def content(self) -> str:
        """What the values of the table are."""
        logits = self.logits if self.decider is None else self.decider.logits
        return "logits" if logits else "probabilities"

    def average_for(self, m: int) -> str:
        """Return the average that m labels are decided for; one label is a binary classifier."""
        if self.decider is None:
            return "macro" if m == 1 else self.average
        return self.decider.average if self.decider.multilabel_ else "macro"


# The settings that a decider has itself, with their defaults.
_OWN = DecideSettings._fields.index("decider")
OBJECTIVE = dict(list(DecideSettings._field_defaults.items())[:_OWN])


class Rule(NamedTuple):
    """How the rows of a table are decided.

    `decide` returns the labels (n, m) of a block, and the expected F-measures of its problems;
    None if a block has none. Rows have an expected F-measure if the average is "samples".
    """

    names: list[str]  # of the labels in the output
    together: bool  # whether all rows of the table are decided together; else each by itself
    average: str  # that is decided for
    decide: Callable[[Any], tuple[Any, npt.NDArray[np.float64] | None]]


def make_rule(settings: DecideSettings, reader: ProbabilityReader, n_jobs: int | None) -> Rule:
    """Return the rule for an open table; one with a single label is of a binary classifier."""
    names = reader.label_names
    average = settings.average_for(len(names))
    if settings.decider is not None:
        names = _check_labels(settings.decider, reader)
        decider = copy.copy(settings.decider).set_params(n_jobs=n_jobs)
        return Rule(names, False, average, _decider_rule(decider))
    objective = Objective.checked(
        settings.beta,
        settings.zero_division,
        settings.nonempty,
        n_jobs,
        settings.min_labels,
        settings.max_labels,
        settings.constraints,
        names if reader.has_names else None,
        settings.measure,
    )
    if objective.limits is not None:
        objective.limits.check_problem(average, objective.measure)
    if average != "samples":
        return Rule(names, True, average, lambda p: _decide_together(p, settings, average, n_jobs))
    return Rule(
        names,
        False,
        average,
        lambda p: decide(Marginals.read(p, settings.logits), objective, "samples"),
    )


def _decide_together(
    proba: Any, settings: DecideSettings, average: str, n_jobs: int | None
) -> tuple[Any, npt.NDArray[np.float64]]:
    labels, expected_f = from_marginals(
        proba,
        beta=settings.beta,
        zero_division=settings.zero_division,
        nonempty=settings.nonempty,
        measure=settings.measure,
        average=average,
        logits=settings.logits,
        n_jobs=n_jobs,
    )
    return labels, np.atleast_1d(expected_f)


def _decider_rule(decider: Any) -> Callable[[Any], Any]:
    """Return the rule of a decider, in which a row does not depend on other rows."""
    if not decider.multilabel_:  # a binary classifier, of any two classes
        return lambda p: ((decider.predict(p) == decider.classes_[-1])[:, None], None)
    if decider.average == "samples":
        return lambda p: decider.decide(p)
    return lambda p: (decider.predict(p), None)


def _check_labels(decider: Any, reader: ProbabilityReader) -> list[str]:
    """Raise unless the table has the labels of the decider; return their names."""
    found, m = reader.label_names, decider.n_features_in_
    named = vars(decider)
    expected = named.get("label_names_in_", named.get("feature_names_in_"))
    names = found if expected is None else [str(name) for name in expected]
    if reader.has_names and expected is not None:
        label_order(found, names, "the decider", reader.source, ["ids"])
        for name, other in zip(found, names, strict=True):
            if name != other:
                raise DataError(
                    f"the decider has {other!r} in its place: the labels must be in the same "
                    "order",
                    source=reader.source,
                    column=name,
                )
    if len(found) != m:
        raise DataError(
            f"the number of labels is {len(found)}: it must be {m}, that of the decider",
            source=reader.source,
        )
    return names
