"""Summary of the paper's experiment: means, paired tests, factor scores, the paper's findings."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

Floats = npt.NDArray[np.float64]

PAPER_METHODS = ("gfm", "true", "ilf")  # the methods of the paper's figure
LEVEL = 0.05  # of the tests, after Holm's correction
_SMALL = 200  # "small" training sets have at most this many rows
_MARGIN = 0.002  # a method that loses less than this is "at least as good"
_PAIRS = (
    ("ilf", "gfm"),
    ("true", "gfm"),
    ("independent", "gfm"),
    ("ilf", "true"),
    ("ilf", "independent"),
    ("gfm", "threshold"),
)


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


class Values:
    """A number of each record, as arrays over repetitions."""

    def __init__(self, records: Iterable[Record], value: Callable[[Record], float]) -> None:
        cells: dict[Any, dict[int, float]] = defaultdict(dict)
        for r in records:
            cells[r.structure, r.n, r.learner, r.method][r.repetition] = value(r)
        self.cells: dict[tuple[str, int, str, str], Floats] = {
            key: np.array([by_repetition[k] for k in sorted(by_repetition)])
            for key, by_repetition in cells.items()
        }
        self.structures = list(dict.fromkeys(key[0] for key in cells))
        self.sizes = sorted({key[1] for key in cells})
        self.learners = list(dict.fromkeys(key[2] for key in cells))
        self.methods = list(dict.fromkeys(key[3] for key in cells))

    def get(self, structure: str, n: int, learner: str, method: str) -> Floats | None:
        """Return the values of a method in a cell, or None if it was not run."""
        return self.cells.get((structure, n, learner, method))


def summarise(records: Sequence[Record], settings: dict[str, Any]) -> Summary:
    """Summarise the records of a run."""
    f = Values(records, lambda r: r.f)
    differences = [d for pair in _PAIRS for d in _method_differences(f, *pair)]
    rises = _size_differences(f)
    described = settings | {
        "structures": f.structures,
        "sizes": f.sizes,
        "learners": f.learners,
        "methods": f.methods,
    }
    return Summary(
        described,
        _means(f, Values(records, lambda r: r.f_exact)),
        differences,
        rises,
        _factor_scores(records),
        find(f, differences, rises, judge=settings["estimates"] == "published"),
    )


def _means(f: Values, exact: Values) -> list[Mean]:
    keys = [
        (structure, n, learner, method)
        for learner in f.learners
        for structure in f.structures
        for n in f.sizes
        for method in f.methods
        if (structure, n, learner, method) in f.cells
    ]
    means: list[Mean] = []
    for structure, n, learner, method in keys:
        values = f.cells[structure, n, learner, method]
        exact_values = exact.cells[structure, n, learner, method]
        optimum = exact.get(structure, n, learner, "bayes")
        gap = np.array([np.nan]) if optimum is None else optimum - exact_values
        means.append(
            Mean(
                structure,
                n,
                learner,
                method,
                float(values.mean()),
                standard_error(values),
                float(exact_values.mean()),
                float(gap.mean()),
                standard_error(gap),
                best=False,
            )
        )
    return _mark_best(means)


def _mark_best(means: list[Mean]) -> list[Mean]:
    """Mark the best of the paper's methods in each cell, if there are two or more of them."""
    highest: dict[Any, float] = defaultdict(float)
    for m in means:
        if m.method in PAPER_METHODS:
            cell = m.structure, m.n, m.learner
            highest[cell] = max(highest[cell], m.mean)
    compared = len({m.method for m in means} & set(PAPER_METHODS)) > 1
    return [
        m._replace(
            best=compared
            and m.method in PAPER_METHODS
            and m.mean == highest[m.structure, m.n, m.learner]
        )
        for m in means
    ]


def _method_differences(f: Values, first: str, second: str) -> list[Difference]:
    """Compare two methods in every cell; Holm's correction is over all cells of a learner."""
    found: list[Difference] = []
    for learner in f.learners:
        found += _tested(
            [
                ((structure, n, learner, first, second), a - b)
                for structure in f.structures
                for n in f.sizes
                if (a := f.get(structure, n, learner, first)) is not None
                and (b := f.get(structure, n, learner, second)) is not None
            ]
        )
    return found


def _size_differences(f: Values) -> list[Difference]:
    """Compare each size with the next smaller one, and the largest with the smallest."""
    steps = list(zip(f.sizes, f.sizes[1:], strict=False))
    if len(f.sizes) > 2:
        steps.append((f.sizes[0], f.sizes[-1]))
    found: list[Difference] = []
    for learner in f.learners:
        found += _tested(
            [
                ((structure, n, learner, method, f"n = {smaller}"), b - a)
                for structure in f.structures
                for method in f.methods
                if method in PAPER_METHODS
                for smaller, n in steps
                if (a := f.get(structure, smaller, learner, method)) is not None
                and (b := f.get(structure, n, learner, method)) is not None
            ]
        )
    return found


def _tested(rows: Sequence[tuple[tuple[str, int, str, str, str], Floats]]) -> list[Difference]:
    """Test differences, correcting the p-values for their number."""
    tests = [paired_t_test(d) for _, d in rows]
    corrected = holm([t.p_value for t in tests])
    return [
        Difference(*name, *test, p_holm, int((d > 0.0).sum()), int((d < 0.0).sum()))
        for (name, d), test, p_holm in zip(rows, tests, corrected, strict=True)
    ]


def _factor_scores(records: Sequence[Record]) -> list[FactorScore]:
    """Score the learned factors against the true ones; they do not depend on the learner."""
    cells: dict[Any, list[tuple[float, float, bool]]] = defaultdict(list)
    for r in records:
        if r.method == "ilf" and r.learner == "linear":
            ends = np.cumsum([int(size) for size in r.structure.split("+")])
            true = np.split(np.arange(ends[-1]), ends[:-1])
            found = [[int(label) for label in part.split()] for part in r.factors.split("|")]
            cells[r.structure, r.n].append(score_factors(found, true))
    return [
        FactorScore(*key, *(float(v) for v in np.mean(scores, axis=0)))
        for key, scores in cells.items()
    ]


# Paired t-test, Holm's correction, scores of label factors


class PairedTest(NamedTuple):
    """Result of a paired t-test: mean, standard error, 95 % interval and p-value."""

    mean: float
    standard_error: float
    low: float
    high: float
    p_value: float


def standard_error(values: Floats) -> float:
    """Return the standard error of a mean; NaN for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def paired_t_test(differences: Floats) -> PairedTest:
    """Test the hypothesis that paired differences have mean 0."""
    mean, error = float(differences.mean()), standard_error(differences)
    if not error > 0.0:  # one difference, or all equal: the t statistic is undefined
        p = 1.0 if len(differences) > 1 and mean == 0.0 else float("nan")
        return PairedTest(mean, error, mean - error, mean + error, p)
    df = len(differences) - 1
    width = float(stdtrit(df, 0.975)) * error  # a quantile of Student's t
    p = float(2.0 * stdtr(df, -abs(mean / error)))
    return PairedTest(mean, error, mean - width, mean + width, p)


def welch_p_value(a: Floats, b: Floats) -> float:
    """Test the hypothesis that two samples have the same mean, by Welch's t-test."""
    u, v = standard_error(a) ** 2, standard_error(b) ** 2
    df = (u + v) ** 2 / (u**2 / (len(a) - 1) + v**2 / (len(b) - 1))
    return float(2.0 * stdtr(df, -abs(a.mean() - b.mean()) / np.sqrt(u + v)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for multiple testing by Holm's method.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    valid = np.flatnonzero(~np.isnan(p))
    order = valid[np.argsort(p[valid], kind="stable")]
    corrected = p.copy()
    # the k-th smallest of K is multiplied by K - k + 1, and must not be below the one before
    scaled = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(v) for v in corrected]


def score_factors(
    found: Iterable[Iterable[int]], true: Iterable[Iterable[int]]
) -> tuple[float, float, bool]:
    """Compare two partitions by the pairs of labels that share a factor; 0/0 is 1."""
    learned, expected = _pairs(found), _pairs(true)
    common = len(learned & expected)
    precision = common / len(learned) if learned else 1.0
    return precision, common / len(expected) if expected else 1.0, learned == expected


def _pairs(factors: Iterable[Iterable[int]]) -> frozenset[tuple[int, int]]:
    """Return the pairs of labels that share a factor."""
    parts = [sorted(int(label) for label in factor) for factor in factors]
    return frozenset((i, j) for part in parts for i in part for j in part if i < j)


# The statements of the paper; only its base learner, the linear one, is used


def find(
    f: Values, differences: Sequence[Difference], rises: Sequence[Difference], *, judge: bool
) -> list[Finding]:
    """Compare the statements of the paper with the results of a run."""
    found = _rise(f, [r for r in rises if r.learner == "linear"])
    for second, topic, claim in (
        ("gfm", "F-GFM ILF against GFM", "F-GFM ILF is at least as good as GFM"),
        (
            "true",
            "F-GFM ILF against F-GFM with the true factors",
            "F-GFM ILF is as good as or better than F-GFM with the true factors",
        ),
    ):
        cells = [
            d for d in differences if (d.learner, d.first, d.second) == ("linear", "ilf", second)
        ]
        if cells:
            found.append(Finding(topic, claim, *_comparison(cells)))
    found += _clearest_gain(f)
    return found if judge else [finding._replace(verdict=None) for finding in found]


def _rise(f: Values, rises: Sequence[Difference]) -> list[Finding]:
    """Compare the largest size with the smallest, and each size with the next."""
    if not rises:
        return []
    smallest, largest = f.sizes[0], f.sizes[-1]
    ends = [r for r in rises if (r.second, r.n) == (f"n = {smallest}", largest)]
    steps = [r for r in rises if r not in ends] or ends
    up, down, undecided = _count_significant(ends)
    _, falls, _ = _count_significant(steps)
    if down or falls:
        verdict = "does not hold everywhere"
    else:
        verdict = "not decided" if undecided else "holds"
    return [
        Finding(
            "F against the number of training rows",
            "F rises with the number of training rows",
            verdict,
            f"significant rise from n = {smallest} to {largest} in {up} of {len(ends)} cases "
            f"(structure and method), {np.mean([r.mean for r in ends]):+.4f} on average; "
            f"significant fall in {falls} of {len(steps)} steps from one size to the next",
        )
    ]


def _comparison(cells: Sequence[Difference]) -> tuple[str, str]:
    """Return verdict and numbers of a comparison of two methods over all cells."""
    up, down, undecided = _count_significant(cells)
    mean = float(np.mean([d.mean for d in cells]))
    largest = max(cells, key=lambda d: abs(d.mean))
    lowest = min(d.low for d in cells)
    if down:
        verdict = f"holds but for {down} of {len(cells)} cells"
    elif any(np.isnan(d.p_value) for d in cells):
        verdict = "not decided"
    elif lowest > -_MARGIN:  # non-inferiority: no interval reaches below the margin
        verdict = f"holds, within {_MARGIN:g}"
    else:
        verdict = "not contradicted" if up else "not decided"
    detail = (
        f"significantly better in {up} of {len(cells)} cells, worse in {down}, no significant "
        f"difference in {undecided}; mean difference {mean:+.4f}, largest {largest.mean:+.4f} "
        f"({largest.structure}, n = {largest.n}); lowest end of a 95 % interval {lowest:+.4f}"
    )
    return verdict, detail


def _count_significant(tests: Sequence[Difference]) -> tuple[int, int, int]:
    """Count the tests that are significantly above 0, below 0, and neither."""
    up = sum(t.p_holm < LEVEL and t.mean > 0.0 for t in tests)
    down = sum(t.p_holm < LEVEL and t.mean < 0.0 for t in tests)
    return up, down, len(tests) - up - down


def _gains(f: Values, structures: Sequence[str], *, small: bool) -> Floats:
    """Return the gain of F-GFM ILF over GFM of each repetition, averaged over sizes."""
    found = []
    for structure in structures:
        parts = [
            a - b
            for n in f.sizes
            if (n <= _SMALL) == small
            and (a := f.get(structure, n, "linear", "ilf")) is not None
            and (b := f.get(structure, n, "linear", "gfm")) is not None
        ]
        if parts:
            found.append(np.mean(parts, axis=0))
    return np.concatenate(found) if len(found) == len(structures) else np.empty(0)


def _clearest_gain(f: Values) -> list[Finding]:
    """Compare the gain over GFM in structures 3 and 4 at small n with all other cells."""
    gain = _gains(f, ("6+2", "8"), small=True)
    other = _gains(f, ("2+2+2+2", "4+4"), small=True)
    large = _gains(f, ("6+2", "8"), small=False)
    if min(len(gain), len(other), len(large)) < 4:  # too few for a t-test
        return []
    positive = paired_t_test(gain)
    welch = welch_p_value(gain, other)
    drop = paired_t_test(gain - large)
    tests = [
        (positive.p_value, positive.mean),
        (welch, float(gain.mean() - other.mean())),
        (drop.p_value, drop.mean),
    ]
    if all(p < LEVEL and mean > 0.0 for p, mean in tests):
        verdict = "holds"
    elif any(p < LEVEL and mean < 0.0 for p, mean in tests):
        verdict = "does not hold"
    else:
        verdict = "not decided"
    return [
        Finding(
            f"Gain of F-GFM ILF over GFM in structures 3 and 4 at n <= {_SMALL}",
            "The gain over GFM is clearest for structures 3 and 4 at small n",
            verdict,
            f"mean gain {gain.mean():+.4f} (s.e. {standard_error(gain):.4f}, p = "
            f"{positive.p_value:.2g}) for n <= {_SMALL}; {other.mean():+.4f} (s.e. "
            f"{standard_error(other):.4f}) in structures 1 and 2, p = {welch:.2g} for the "
            f"difference (Welch); {large.mean():+.4f} (s.e. {standard_error(large):.4f}) in "
            f"structures 3 and 4 at larger n, p = {drop.p_value:.2g} (paired)",
        )
    ]
