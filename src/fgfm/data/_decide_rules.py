"""How the rows of a table are decided: by an objective, or by a fitted decider."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.data._errors import DataError
from fgfm.data._probability_reader import ProbabilityReader
from fgfm.decision import from_marginals
from fgfm.decision._marginals import decide_marginals
from fgfm.decision._objective import Objective

__all__ = ["DecideSettings", "Rule", "make_rule"]


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
    delimiter: str | None = None
    output_format: str | None = None
    separator: str = ";"
    wide: bool = False

    @property
    def content(self) -> str:
        """What the values of the table are."""
        logits = self.logits if self.decider is None else self.decider.logits
        return "logits" if logits else "probabilities"


class Rule(NamedTuple):
    """How the rows of a table are decided.

    Attributes
    ----------
    names : list of str
        The names of the labels in the output.
    together : bool
        Whether all rows of the table are decided together; else each by itself.
    per_row : bool
        Whether each row has an expected F-measure.
    decide : callable
        Returns the labels (n, m) of a block, and the expected F-measures of its problems; None if
        a block has none.
    """

    names: list[str]
    together: bool
    per_row: bool
    decide: Callable[[Any], tuple[Any, npt.NDArray[np.float64] | None]]


def make_rule(settings: DecideSettings, reader: ProbabilityReader, n_jobs: int | None) -> Rule:
    """Return the rule for an open table.

    Parameters
    ----------
    settings : DecideSettings
        The objective, or the decider.
    reader : ProbabilityReader
        The table; one with a single label is that of a binary classifier.
    n_jobs : int or None
        The number of threads.

    Returns
    -------
    Rule
        The rule.
    """
    names = reader.label_names
    if settings.decider is not None:
        return _decider_rule(settings.decider, reader, n_jobs)
    average = "macro" if len(names) == 1 else settings.average
    if average != "samples":
        return Rule(
            names, True, False, lambda p: _decide_together(p, settings, average, n_jobs)
        )
    objective = Objective.checked(
        settings.beta, settings.zero_division, settings.nonempty, n_jobs, measure=settings.measure
    )
    return Rule(names, False, True, lambda p: decide_marginals(p, objective, settings.logits))


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


def _decider_rule(decider: Any, reader: ProbabilityReader, n_jobs: int | None) -> Rule:
    """Return the rule of a decider, in which a row does not depend on other rows."""
    names = _check_labels(decider, reader)
    decider = copy.copy(decider).set_params(n_jobs=n_jobs)
    if not decider.multilabel_:  # a binary classifier, of any two classes
        return Rule(names, False, False, lambda p: (_positive(decider.predict(p), decider), None))
    if decider.average == "samples":
        return Rule(names, False, True, decider.decide)
    return Rule(names, False, False, lambda p: (decider.predict(p), None))


def _positive(predicted: npt.NDArray[Any], decider: Any) -> npt.NDArray[np.int8]:
    return (predicted == decider.classes_[-1]).astype(np.int8)[:, None]


def _check_labels(decider: Any, reader: ProbabilityReader) -> list[str]:
    """Raise unless the table has the labels of the decider; return their names."""
    found, m = reader.label_names, decider.n_features_in_
    if len(found) != m:
        raise DataError(
            f"the number of labels is {len(found)}: it must be {m}, that of the decider",
            source=reader.source,
        )
    named = vars(decider)
    expected = named.get("label_names_in_", named.get("feature_names_in_"))
    if expected is None:
        return found
    names = [str(name) for name in expected]
    if reader.has_names:
        for one, other in zip(found, names, strict=True):
            if one != other:
                raise DataError(
                    f"the decider has {other!r} in its place: the labels must be those of the "
                    "decider, in the same order",
                    source=reader.source,
                    column=one,
                )
    return names
