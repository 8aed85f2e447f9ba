"""Summary of the paper's experiment: means, paired tests, factor scores, the paper's findings."""

from __future__ import annotations

import itertools
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
_TRUE = "F-GFM with the true factors"
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
            rows = [part._asdict() for part in getattr(self, name)]
            parts[name] = [{k: None if v != v else v for k, v in row.items()} for row in rows]
        return parts


Cell = tuple[str, int, str, str]  # structure, training rows, learner, method


def summarise(records: Sequence[Record], settings: dict[str, Any], reps: int) -> Summary:
    """Summarise the records of a run, which are sorted by repetition."""
    values: dict[Cell, list[tuple[float, float]]] = defaultdict(list)
    for r in records:
        values[r.structure, r.n, r.learner, r.method].append((r.f, r.f_exact))
    structures, _, learners, methods = (
        list(dict.fromkeys(part)) for part in zip(*values, strict=True)
    )
    sizes = sorted({n for _, n, _, _ in values})
    order = itertools.product(learners, structures, sizes, methods)
    cells = [(s, n, learner, k) for learner, s, n, k in order if (s, n, learner, k) in values]
    f, exact = ({cell: np.array(values[cell])[:, i] for cell in cells} for i in (0, 1))
    by_method = [
        (cell[:3], pair, f[*cell[:3], pair[0]] - f[*cell[:3], pair[1]])
        for pair in _PAIRS
        for cell in cells
        if cell[3] == pair[0] and (*cell[:3], pair[1]) in f
    ]
    steps = list(itertools.pairwise(sizes))
    if len(sizes) > 2:
        steps.append((sizes[0], sizes[-1]))
    by_size = [
        ((s, n, learner), (method, f"n = {smaller}"), f[s, n, learner, method] - before)
        for learner, s, method in itertools.product(learners, structures, PAPER_METHODS)
        for smaller, n in steps
        if (before := f.get((s, smaller, learner, method))) is not None
        and (s, n, learner, method) in f
    ]
    # Holm's correction is over all cells of a comparison, or all sizes, with the same learner
    differences = _test_families(by_method, lambda cell, pair: (pair, cell[2]))
    rises = _test_families(by_size, lambda cell, pair: cell[2])
    return Summary(
        settings
        | {"reps": reps, "structures": structures, "sizes": sizes}
        | {"learners": learners, "methods": methods},
        _means(f, exact),
        differences,
        rises,
        _factor_scores([r for r in records if (r.learner, r.method) == (learners[0], "ilf")]),
        _findings(f, differences, rises, learners[0], judge=settings["estimates"] == "published"),
    )


def _means(f: dict[Cell, Floats], exact: dict[Cell, Floats]) -> list[Mean]:
    """Return the mean of each cell, and mark the best of two or more methods of the paper."""
    means = {cell: float(values.mean()) for cell, values in f.items()}
    compared = len({cell[3] for cell in f} & set(PAPER_METHODS)) > 1
    result = []
    for cell, values in f.items():
        best = max(means.get((*cell[:3], method), 0.0) for method in PAPER_METHODS)
        gap = exact.get((*cell[:3], "bayes"), np.array([np.nan])) - exact[cell]
        moments = standard_error(values), float(exact[cell].mean()), float(gap.mean())
        is_best = compared and cell[3] in PAPER_METHODS and means[cell] == best
        result.append(Mean(*cell, means[cell], *moments, standard_error(gap), is_best))
    return result


def _test_families(rows: Sequence[Any], family: Callable[[Any, Any], Any]) -> list[Difference]:
    """Test differences (cell, names, values), correcting the p-values of each family."""
    tests = [paired_t_test(values) for _, _, values in rows]
    members: dict[Any, list[int]] = defaultdict(list)
    for k, (cell, names, _) in enumerate(rows):
        members[family(cell, names)].append(k)
    corrected = {
        k: p
        for part in members.values()
        for k, p in zip(part, holm([tests[k].p_value for k in part]), strict=True)
    }
    return [
        Difference._make(
            (*cell, *names, *tests[k], corrected[k], int((v > 0.0).sum()), int((v < 0.0).sum()))
        )
        for k, (cell, names, v) in enumerate(rows)
    ]


def _factor_scores(records: Sequence[Record]) -> list[FactorScore]:
    """Score the learned factors against the true ones; they do not depend on the learner."""
    cells: dict[Any, list[tuple[float, float, bool]]] = defaultdict(list)
    for r in records:
        sizes = [int(size) for size in r.structure.split("+")]
        true = [
            factor.tolist() for factor in np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        ]
        learned = [[int(label) for label in part.split()] for part in r.factors.split("|")]
        cells[r.structure, r.n].append(score_factors(learned, true))
    return [
        FactorScore(*cell, *(float(v) for v in np.mean(scores, axis=0)))
        for cell, scores in cells.items()
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
    learned: Iterable[Sequence[int]], true: Iterable[Sequence[int]]
) -> tuple[float, float, bool]:
    """Compare two partitions by the pairs of labels that share a factor; 0/0 is 1."""
    a, b = (
        {pair for factor in factors for pair in itertools.combinations(sorted(factor), 2)}
        for factors in (learned, true)
    )
    common = len(a & b)
    return common / len(a) if a else 1.0, common / len(b) if b else 1.0, a == b


# The statements of the paper, about its base learner


def _findings(
    f: dict[Cell, Floats],
    differences: Sequence[Difference],
    rises: Sequence[Difference],
    learner: str,
    *,
    judge: bool,
) -> list[Finding]:
    """Compare the statements of the paper with the results of a run."""
    findings = _rise([r for r in rises if r.learner == learner])
    for second, other, claim in (
        ("gfm", "GFM", "at least as good as GFM"),
        ("true", _TRUE, f"as good as or better than {_TRUE}"),
    ):
        key = learner, "ilf", second
        cells = [d for d in differences if (d.learner, d.first, d.second) == key]
        if cells:
            topic, claim = f"F-GFM ILF against {other}", f"F-GFM ILF is {claim}"
            findings.append(Finding(topic, claim, *_comparison(cells)))
    findings += _clearest_gain(f, learner)
    return findings if judge else [finding._replace(verdict=None) for finding in findings]


def _rise(rises: Sequence[Difference]) -> list[Finding]:
    """Compare the largest size with the smallest, and each size with the next."""
    if not rises:
        return []
    smallest = min(int(r.second.removeprefix("n = ")) for r in rises)
    largest = max(r.n for r in rises)
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


def _gains(
    f: dict[Cell, Floats], learner: str, structures: Sequence[str], *, small: bool
) -> Floats:
    """Return the gain of F-GFM ILF over GFM of each repetition, averaged over sizes."""
    sizes = sorted({n for _, n, _, _ in f if (n <= _SMALL) == small})
    gains = []
    for s in structures:
        parts = [
            f[s, n, learner, "ilf"] - f[s, n, learner, "gfm"]
            for n in sizes
            if {(s, n, learner, "ilf"), (s, n, learner, "gfm")} <= f.keys()
        ]
        if not parts:
            return np.empty(0)
        gains.append(np.mean(parts, axis=0))
    return np.concatenate(gains)


def _clearest_gain(f: dict[Cell, Floats], learner: str) -> list[Finding]:
    """Compare the gain over GFM in structures 3 and 4 at small n with all other cells."""
    gain = _gains(f, learner, ("6+2", "8"), small=True)
    other = _gains(f, learner, ("2+2+2+2", "4+4"), small=True)
    large = _gains(f, learner, ("6+2", "8"), small=False)
    if min(len(gain), len(other), len(large)) < 4:  # too few for a t-test
        return []
    positive, drop = paired_t_test(gain), paired_t_test(gain - large)
    welch = welch_p_value(gain, other)
    tests = [positive[::4], (gain.mean() - other.mean(), welch), drop[::4]]  # means and p-values
    if all(p < LEVEL and mean > 0.0 for mean, p in tests):
        verdict = "holds"
    elif any(p < LEVEL and mean < 0.0 for mean, p in tests):
        verdict = "does not hold"
    else:
        verdict = "not decided"
    means = [f"{v.mean():+.4f} (s.e. {standard_error(v):.4f}" for v in (gain, other, large)]
    return [
        Finding(
            f"Gain of F-GFM ILF over GFM in structures 3 and 4 at n <= {_SMALL}",
            "The gain over GFM is clearest for structures 3 and 4 at small n",
            verdict,
            f"mean gain {means[0]}, p = {positive.p_value:.2g}) for n <= {_SMALL}; {means[1]}) in "
            f"structures 1 and 2, p = {welch:.2g} for the difference (Welch); {means[2]}) in "
            f"structures 3 and 4 at larger n, p = {drop.p_value:.2g} (paired)",
        )
    ]
