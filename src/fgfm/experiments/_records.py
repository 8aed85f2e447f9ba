"""Types of the paper's experiment: records of single runs, and the parts of a summary."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

NAMES = {
    "gfm": "GFM",
    "true": "F-GFM true",
    "ilf": "F-GFM ILF",
    "independent": "F-GFM ind.",
    "threshold": "p > 0.5",
    "bayes": "Bayes",
}
PAPER_METHODS = ("gfm", "true", "ilf")  # the methods of the paper's figure


class Record(NamedTuple):
    """The score of one method on one data set."""

    structure: str  # sizes of the label factors, as "4+4"
    n: int  # number of training rows
    repetition: int  # number of the random distribution
    learner: str
    method: str
    f: float  # mean F-measure of the test rows
    f_exact: float  # expected F-measure under the true distribution
    factors: str  # the label factors that the method used


class Mean(NamedTuple):
    """Mean F-measure of a method over repetitions, with its standard error."""

    structure: str
    n: int
    learner: str
    method: str
    mean: float
    standard_error: float
    mean_exact: float
    bayes_gap: float  # exact F of the Bayes-optimal decision minus exact F; NaN without "bayes"
    bayes_gap_error: float
    best: bool  # the best of the paper's methods in this cell


class Difference(NamedTuple):
    """Mean paired difference of two methods, or of two sizes, over repetitions."""

    structure: str
    n: int
    learner: str
    first: str
    second: str
    mean: float
    standard_error: float
    low: float  # ends of the 95 % confidence interval
    high: float
    p_value: float  # two-sided paired t-test
    p_holm: float  # corrected for all structures and sizes of the comparison
    wins: int
    losses: int


class FactorScore(NamedTuple):
    """Agreement of learned and true label factors, by the pairs of labels that share a factor."""

    structure: str
    n: int
    precision: float
    recall: float
    exact: float  # share of the data sets on which all factors are the true ones


class Finding(NamedTuple):
    """A statement of the paper, and what the run shows about it."""

    topic: str
    claim: str
    verdict: str | None
    detail: str


class Summary(NamedTuple):
    """Summary of a run with one kind of estimates."""

    settings: dict[str, Any]  # of the run, and its structures, sizes, learners and methods
    means: list[Mean]  # of each structure, size, learner and method
    differences: list[Difference]  # between methods
    rises: list[Difference]  # between sizes of the training set
    factors: list[FactorScore]  # of each structure and size
    findings: list[Finding]

    def as_dict(self) -> dict[str, Any]:
        """Convert to dictionaries and lists for JSON; NaN becomes None."""
        parts: dict[str, Any] = {"settings": self.settings}
        for name in self._fields[1:]:
            parts[name] = [
                {k: _finite(v) for k, v in part._asdict().items()} for part in getattr(self, name)
            ]
        return parts


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
