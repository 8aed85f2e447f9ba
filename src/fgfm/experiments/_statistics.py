"""From the records of the paper's experiment to means, paired tests and findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

__all__ = [
    "NAMES",
    "PUBLISHED",
    "Difference",
    "FactorScore",
    "Finding",
    "Mean",
    "Record",
    "Summary",
    "holm",
    "paired",
    "score_factors",
    "summarise",
]

Floats = npt.NDArray[np.float64]

NAMES = {
    "gfm": "GFM",
    "true": "F-GFM true",
    "ilf": "F-GFM ILF",
    "independent": "F-GFM ind.",
    "threshold": "p > 0.5",
    "bayes": "Bayes",
}
PUBLISHED = ("gfm", "true", "ilf")  # the methods of the paper's figure
_PAIRS = (("ilf", "gfm"), ("ilf", "true"), ("ilf", "independent"), ("gfm", "threshold"))
_LEVEL = 0.05
_SMALL = 200  # training rows, at most
_MARGIN = 0.002  # what may be lost by a method that is "at least as good"


class Record(NamedTuple):
    """What one method reached on one data set.

    Attributes
    ----------
    structure : str
        Sizes of the label factors, as "4+4".
    n : int
        Number of training rows.
    repetition : int
        Which random distribution.
    learner : str
        The base learner.
    method : str
        The method.
    f : float
        Mean F-measure on the test rows.
    f_exact : float
        Expectation of the F-measure under the distribution itself.
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
    """A mean over repetitions, and its standard error."""

    structure: str
    n: int
    learner: str
    method: str
    mean: float
    standard_error: float
    mean_exact: float
    limit_gap: float  # Bayes less this, exact; NaN where the limit was not computed
    limit_gap_error: float
    best: bool  # of the published methods


class Difference(NamedTuple):
    """A paired difference of two methods, or of two sizes, over repetitions."""

    structure: str
    n: int
    learner: str
    first: str
    second: str
    mean: float
    standard_error: float
    low: float  # of the confidence interval, 95 %
    high: float
    p_value: float  # paired t-test, two-sided
    p_holm: float  # corrected for all structures and sizes of the comparison
    wins: int
    losses: int


class FactorScore(NamedTuple):
    """How the pairs of labels in one factor that were found compare with the true ones."""

    structure: str
    n: int
    precision: float
    recall: float
    exact: float  # share of the data sets in which the factors are the true ones


class Finding(NamedTuple):
    """A statement of the paper, and what became of it."""

    claim: str
    verdict: str
    detail: str


class Summary(NamedTuple):
    """All that is said of a run."""

    settings: dict[str, Any]
    means: list[Mean]
    differences: list[Difference]
    rises: list[Difference]
    factors: list[FactorScore]
    findings: list[Finding]

    def as_dict(self) -> dict[str, Any]:
        """Give plain dictionaries and lists, for JSON; numbers that are not there become None.

        Returns
        -------
        dict
            One entry for each part.
        """
        parts: dict[str, Any] = {"settings": self.settings}
        for name in self._fields[1:]:
            parts[name] = [
                {k: _plain(v) for k, v in part._asdict().items()} for part in getattr(self, name)
            ]
        return parts


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


class _Test(NamedTuple):
    mean: float
    standard_error: float
    low: float
    high: float
    p_value: float


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def paired(difference: Floats) -> _Test:
    """Test whether differences have mean 0, by the paired t-test.

    Parameters
    ----------
    difference : ndarray of shape (n,)
        The differences.

    Returns
    -------
    tuple
        Mean, standard error, ends of the 95 % interval, and p-value. Differences that are all 0
        have the p-value 1; a single one, or several that are equal, have none.
    """
    mean, error = float(difference.mean()), _standard_error(difference)
    if not error > 0.0:  # one difference, or all equal
        p = 1.0 if len(difference) > 1 and mean == 0.0 else float("nan")
        return _Test(mean, error, mean - error, mean + error, p)
    law = stats.t(len(difference) - 1)
    width = float(law.ppf(0.975)) * error
    return _Test(mean, error, mean - width, mean + width, float(2.0 * law.sf(abs(mean / error))))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number by Holm's method; NaN counts as none.

    Parameters
    ----------
    p_values : sequence of float
        The p-values.

    Returns
    -------
    list of float
        Corrected ones, in the same order.
    """
    p = np.asarray(p_values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    corrected = p.copy()
    scaled = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(v) for v in corrected]


class _Table:
    """Values by structure, size, learner and method, each an array over repetitions."""

    def __init__(self, records: Iterable[Record], value: Callable[[Record], float]) -> None:
        cells: dict[Any, dict[int, float]] = defaultdict(dict)
        for r in records:
            cells[r.structure, r.n, r.learner, r.method][r.repetition] = value(r)
        self.cells = {key: np.array([of[rep] for rep in sorted(of)]) for key, of in cells.items()}
        self.structures = list(dict.fromkeys(key[0] for key in cells))
        self.sizes = sorted({key[1] for key in cells})
        self.learners = list(dict.fromkeys(key[2] for key in cells))
        self.methods = list(dict.fromkeys(key[3] for key in cells))

    def get(self, *key: Any) -> Floats | None:
        return self.cells.get(key)


def summarise(records: Sequence[Record], settings: dict[str, Any]) -> Summary:
    """Summarise the records of a run.

    Parameters
    ----------
    records : sequence of Record
        The records: for each cell of one structure the same repetitions.
    settings : dict
        What the run was asked for.

    Returns
    -------
    Summary
        Means, paired differences, factors and findings.
    """
    f = _Table(records, lambda r: r.f)
    exact = _Table(records, lambda r: r.f_exact)
    differences = [d for pair in _PAIRS for d in _pair_differences(f, *pair)]
    rises = _rises(f)
    about = settings | {
        "structures": f.structures,
        "sizes": f.sizes,
        "learners": f.learners,
        "methods": f.methods,
    }
    factors = _factor_scores(records)
    findings = _findings(f, differences, rises)
    return Summary(about, _means(f, exact), differences, rises, factors, findings)


def _means(f: _Table, exact: _Table) -> list[Mean]:
    means: list[Mean] = []
    for (structure, n, learner, method), values in sorted(
        f.cells.items(),
        key=lambda item: (
            f.learners.index(item[0][2]),
            f.structures.index(item[0][0]),
            item[0][1],
            f.methods.index(item[0][3]),
        ),
    ):
        limit = exact.get(structure, n, learner, "bayes")
        mine = exact.cells[structure, n, learner, method]
        gap = np.array([np.nan]) if limit is None else limit - mine
        means.append(
            Mean(
                structure,
                n,
                learner,
                method,
                float(values.mean()),
                _standard_error(values),
                float(mine.mean()),
                float(gap.mean()),
                _standard_error(gap),
                False,
            )
        )
    best: dict[Any, float] = defaultdict(float)
    for m in means:
        if m.method in PUBLISHED:
            best[m[:3]] = max(best[m[:3]], m.mean)
    compared = len({m.method for m in means} & set(PUBLISHED)) > 1
    return [
        m._replace(best=compared and m.method in PUBLISHED and m.mean == best[m[:3]])
        for m in means
    ]


def _pair_differences(f: _Table, first: str, second: str) -> list[Difference]:
    """Compare two methods in every cell; Holm's correction is over all cells of a learner."""
    found: list[Difference] = []
    for learner in f.learners:
        rows = [
            ((structure, n, learner, first, second), a - b)
            for structure in f.structures
            for n in f.sizes
            if (a := f.get(structure, n, learner, first)) is not None
            and (b := f.get(structure, n, learner, second)) is not None
        ]
        found += _tested(rows)
    return found


def _rises(f: _Table) -> list[Difference]:
    """Compare each size with the next smaller one, and the largest with the smallest."""
    steps = list(zip(f.sizes, f.sizes[1:], strict=False))
    if len(f.sizes) > 2:
        steps.append((f.sizes[0], f.sizes[-1]))
    found: list[Difference] = []
    for learner in f.learners:
        rows = [
            (structure, n, method, f"n = {last}", b - a)
            for structure in f.structures
            for method in f.methods
            if method in PUBLISHED
            for last, n in steps
            if (a := f.get(structure, last, learner, method)) is not None
            and (b := f.get(structure, n, learner, method)) is not None
        ]
        found += _tested([((s, n, learner, method, last), d) for s, n, method, last, d in rows])
    return found


def _tested(rows: Sequence[tuple[tuple[str, int, str, str, str], Floats]]) -> list[Difference]:
    """Test differences, correcting for their number."""
    tests = [paired(d) for _, d in rows]
    corrected = holm([t.p_value for t in tests])
    return [
        Difference(*name, *test, p_holm, int((d > 0.0).sum()), int((d < 0.0).sum()))
        for (name, d), test, p_holm in zip(rows, tests, corrected, strict=True)
    ]


def _pairs(factors: Iterable[Iterable[int]]) -> frozenset[tuple[int, int]]:
    """Give the pairs of labels that share a factor."""
    parts = [sorted(int(label) for label in factor) for factor in factors]
    return frozenset((i, j) for part in parts for i in part for j in part if i < j)


def score_factors(
    found: Iterable[Iterable[int]], true: Iterable[Iterable[int]]
) -> tuple[float, float, bool]:
    """Compare partitions by the pairs of labels that share a factor; 0/0 = 1.

    Parameters
    ----------
    found : iterable of iterable of int
        Factors that were found.
    true : iterable of iterable of int
        The true ones.

    Returns
    -------
    precision : float
        Of the pairs found, the share that is true.
    recall : float
        Of the true pairs, the share that was found.
    exact : bool
        Whether the partitions are the same.
    """
    mine, theirs = _pairs(found), _pairs(true)
    both = len(mine & theirs)
    precision = both / len(mine) if mine else 1.0
    return precision, both / len(theirs) if theirs else 1.0, mine == theirs


def _factor_scores(records: Sequence[Record]) -> list[FactorScore]:
    """Score the learned factors against the true ones."""
    cells: dict[Any, list[tuple[float, float, bool]]] = defaultdict(list)
    for r in records:
        if r.method == "ilf" and r.learner == "linear":  # the learner has no part in it
            ends = np.cumsum([int(size) for size in r.structure.split("+")])
            true = np.split(np.arange(ends[-1]), ends[:-1])
            found = [[int(label) for label in part.split()] for part in r.factors.split("|")]
            cells[r.structure, r.n].append(score_factors(found, true))
    return [
        FactorScore(*key, *(float(v) for v in np.mean(scores, axis=0)))
        for key, scores in cells.items()
    ]


def _findings(
    f: _Table, differences: Sequence[Difference], rises: Sequence[Difference]
) -> list[Finding]:
    """Hold the paper's statements against the linear learner, which is the paper's."""
    found: list[Finding] = []
    linear = [r for r in rises if r.learner == "linear"]
    if linear:
        ends = [r for r in linear if (r.second, r.n) == (f"n = {f.sizes[0]}", f.sizes[-1])]
        up, down, open_ = _counts(ends)
        steps = [r for r in linear if r not in ends] or ends
        _, falls, _ = _counts(steps)
        if down or falls:
            verdict = "does not hold everywhere"
        else:
            verdict = "not decided" if open_ else "holds"
        found.append(
            Finding(
                "F rises with the number of training rows",
                verdict,
                f"from n = {f.sizes[0]} to {f.sizes[-1]} it rises significantly in {up} of "
                f"{len(ends)} cases (structures, published methods), by "
                f"{np.mean([r.mean for r in ends]):+.4f} on average; of {len(steps)} steps from "
                f"one size to the next {falls} fall significantly",
            )
        )
    claims = {
        "gfm": "F-GFM ILF is at least as good as GFM",
        "true": "F-GFM ILF is as good as or better than F-GFM with the true factors",
    }
    for second, claim in claims.items():
        cells = [d for d in differences if d[2:5] == ("linear", "ilf", second)]
        if not cells:
            continue
        up, down, open_ = _counts(cells)
        mean = float(np.mean([d.mean for d in cells]))
        extreme = max(cells, key=lambda d: abs(d.mean))
        least = min(d.low for d in cells)
        if down:
            verdict = "does not hold everywhere"
        elif any(np.isnan(d.p_value) for d in cells):
            verdict = "not decided"
        elif least > -_MARGIN:
            verdict = f"holds, within {_MARGIN:g}"
        else:
            verdict = "not contradicted" if up else "not decided"
        found.append(
            Finding(
                claim,
                verdict,
                f"of {len(cells)} cells it is significantly better in {up}, worse in {down}, and "
                f"not told apart in {open_}; mean difference {mean:+.4f}, the largest "
                f"{extreme.mean:+.4f} ({extreme.structure}, n = {extreme.n}); the lowest end of "
                f"a 95 % interval is {least:+.4f}",
            )
        )
    found += _where_it_is_clearest(f)
    return found


def _counts(tests: Sequence[Difference]) -> tuple[int, int, int]:
    """Count tests that are significantly above 0, below 0, and neither."""
    up = sum(t.p_holm < _LEVEL and t.mean > 0.0 for t in tests)
    down = sum(t.p_holm < _LEVEL and t.mean < 0.0 for t in tests)
    return up, down, len(tests) - up - down


def _where_it_is_clearest(f: _Table) -> list[Finding]:
    """Compare the gain of F-GFM ILF over GFM: by structure, and at small and large sizes."""

    def gains(structures: Sequence[str], small: bool) -> Floats:
        """Give the gain of each repetition, averaged over the sizes."""
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

    late, early = ("6+2", "8"), ("2+2+2+2", "4+4")
    here, elsewhere = gains(late, True), gains(early, True)
    larger = gains(late, False)
    if min(len(here), len(elsewhere), len(larger)) < 4:
        return []
    positive = paired(here)
    apart = stats.ttest_ind(here, elsewhere, equal_var=False)
    falling = paired(here - larger)
    shown = [
        positive.p_value < _LEVEL and positive.mean > 0.0,
        apart.pvalue < _LEVEL and here.mean() > elsewhere.mean(),
        falling.p_value < _LEVEL and falling.mean > 0.0,
    ]
    contrary = [
        positive.p_value < _LEVEL and positive.mean < 0.0,
        apart.pvalue < _LEVEL and here.mean() < elsewhere.mean(),
        falling.p_value < _LEVEL and falling.mean < 0.0,
    ]
    verdict = "holds" if all(shown) else "does not hold" if any(contrary) else "not decided"
    return [
        Finding(
            f"the gain over GFM is clearest for structures 3 and 4 at small n (n <= {_SMALL})",
            verdict,
            f"mean gain {here.mean():+.4f} (s.e. {_standard_error(here):.4f}, p = "
            f"{positive.p_value:.2g}) there; {elsewhere.mean():+.4f} (s.e. "
            f"{_standard_error(elsewhere):.4f}) in structures 1 and 2, p = {apart.pvalue:.2g} "
            f"for the difference (Welch); {larger.mean():+.4f} (s.e. "
            f"{_standard_error(larger):.4f}) in structures 3 and 4 at larger n, p = "
            f"{falling.p_value:.2g} (paired)",
        )
    ]
