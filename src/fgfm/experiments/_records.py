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
    """The score of one method on one data set.

    Attributes
    ----------
    structure : str
        Sizes of the label factors, as "4+4".
    n : int
        Number of training rows.
    repetition : int
        Number of the random distribution.
    learner : str
        The base learner.
    method : str
        The method.
    f : float
        Mean F-measure of the test rows.
    f_exact : float
        Expected F-measure under the true distribution.
    factors : str
        The label factors that the method used.
    """

    structure: str
    n: int
    repetition: int
    learner: str
    method: str
    f: float
    f_exact: float
    factors: str


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
    """Summary of a run with one kind of estimates.

    Attributes
    ----------
    settings : dict
        Settings of the run, and its structures, sizes, learners and methods.
    means : list of Mean
        For each structure, size, learner and method.
    differences : list of Difference
        Between methods.
    rises : list of Difference
        Between sizes of the training set.
    factors : list of FactorScore
        For each structure and size.
    findings : list of Finding
        The paper's statements.
    """

    settings: dict[str, Any]
    means: list[Mean]
    differences: list[Difference]
    rises: list[Difference]
    factors: list[FactorScore]
    findings: list[Finding]

    def as_dict(self) -> dict[str, Any]:
        """Convert to dictionaries and lists for JSON; NaN becomes None.

        Returns
        -------
        dict
            One entry per attribute.
        """
        parts: dict[str, Any] = {"settings": self.settings}
        for name in self._fields[1:]:
            parts[name] = [
                {k: _finite(v) for k, v in part._asdict().items()} for part in getattr(self, name)
            ]
        return parts


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
