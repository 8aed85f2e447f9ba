"""Comparison of ILF-Compo with the results of the authors' R scripts on the same rows.

``python -m benchmarks.reference_factors``

The environment variable ``FGFM_REFERENCE`` names the folder with their results, by default
../shared/reference beside the clone. Their test draws 100 random tables where ours takes the
expectation, so that their p-values are ours plus noise of a known size.
"""

from __future__ import annotations

import csv
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy
from scipy.stats import chi2

from benchmarks.environment import on_one_core
from benchmarks.measure import least_times
from benchmarks.report import Table, print_tables
from fgfm.factors import ILFCompo, g_test, markov_boundary, published_grouping
from fgfm.factors._contingency import combine, make_strata
from fgfm.factors._g_moments import moments_2x2  # timed by itself
from fgfm.factors._g_test import GTest

__all__ = ["Case", "cases", "given_boundaries", "monte_carlo_range", "published_boundary", "run"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FOLDER = Path(os.environ.get("FGFM_REFERENCE", Path(__file__).parents[2] / "shared" / "reference"))
ALPHA = 0.01
N_FEATURES = 6
SEEDS = 100  # repetitions of their random test if a boundary differs


class Case(NamedTuple):
    """One data set, and the results of their scripts."""

    dag: str
    n: int
    rep: int
    X: npt.NDArray[np.uint8]  # (n, 6)
    Y: npt.NDArray[np.uint8]  # (n, 8)
    p_values: Floats  # (8, 8)
    boundaries: list[Integers]
    factors: list[tuple[int, ...]]


def require_folder() -> None:
    """Stop where there are no results of theirs."""
    if not FOLDER.is_dir():
        raise SystemExit(f"{FOLDER} does not exist: FGFM_REFERENCE must name their results")


def stored_table(name: str) -> Iterator[dict[str, str]]:
    """Read the rows of a stored table."""
    with (FOLDER / name).open(newline="") as lines:
        yield from csv.DictReader(lines)


def case_key(row: dict[str, str]) -> tuple[str, int, int]:
    """Return structure, number of rows and repetition."""
    return row["dag"], int(row["n_train"]), int(row["rep"])


def cases() -> list[Case]:
    """Read all stored cases."""
    p_values: dict[Any, Floats] = defaultdict(lambda: np.full((8, 8), np.nan))
    for row in stored_table("ydeps.csv"):
        p_values[case_key(row)][int(row["y1"][1:]) - 1, int(row["y2"][1:]) - 1] = float(row["p"])
    boundaries: dict[Any, dict[int, Integers]] = defaultdict(dict)
    names = ("x1", "x2", "x3", "x4", "z1", "z2")
    for row in stored_table("ymb.csv"):
        chosen = np.flatnonzero([row[name] == "1" for name in names])
        boundaries[case_key(row)][int(row["y"][1:]) - 1] = chosen
    factors = {
        case_key(row): sorted(tuple(map(int, part.split())) for part in row["factors"].split("|"))
        for row in stored_table("factors.csv")
        if row["method"] == "f-gfm"
    }
    found = []
    for dag, n in sorted({key[:2] for key in factors}):
        with np.load(FOLDER / "data" / f"{dag}_n{n:04d}.npz") as stored:
            train, reps = stored["train"], stored["reps"]
        for rows, rep in zip(train, reps, strict=True):
            key = (dag, n, int(rep))
            mine = [boundaries[key][i] for i in range(8)]
            X, Y = rows[:, :N_FEATURES], rows[:, N_FEATURES:]
            found.append(Case(*key, X, Y, p_values[key], mine, factors[key]))
    return found


def given_boundaries(case: Case, boundaries: list[Integers]) -> GTest:
    """Test all ordered pairs of labels given boundaries; arrays of shape (8, 8)."""
    found = np.zeros((3, 8, 8))
    for i, boundary in enumerate(boundaries):
        for j in range(8):
            found[:, i, j] = g_test(case.Y[:, j], case.Y[:, i], case.X[:, boundary])
    return GTest(*found)


def monte_carlo_range(result: GTest, deviations: float) -> tuple[Floats, Floats]:
    """Return the range of p-values if the mean G of 100 random tables deviates.

    G of a random table has about the variance of a chi-square variable with the same mean.
    """
    noise = deviations * np.sqrt(2.0 * result.df / 100.0)
    with np.errstate(invalid="ignore"):
        low = chi2.sf(result.statistic, np.maximum(result.df - noise, 1e-12))
        high = chi2.sf(result.statistic, result.df + noise)
    informative = result.df > 0.0
    return np.where(informative, low, 1.0), np.where(informative, high, 1.0)


def mean_random_g(rows: Integers, columns: Integers, rng: np.random.Generator) -> float:
    """Return the sum over strata of the mean G of 100 random tables with given margins."""
    products = xlogy(np.arange(rows.sum() + 1), np.maximum(1, np.arange(rows.sum() + 1)))
    free = np.broadcast_to(rows, (100, *rows.shape)).copy()  # (tables, K, 2)
    total = np.zeros(free.shape[:2])
    # Column by column, each cell is hypergeometric given the cells drawn before it.
    for j in range(columns.shape[1]):
        left = np.broadcast_to(columns[:, j], free.shape[:2]).copy()  # still to place in column j
        others = free.sum(axis=2)
        for i in range(rows.shape[1]):
            others = others - free[:, :, i]
            drawn = rng.hypergeometric(free[:, :, i], others, left)
            total += products[drawn]
            free[:, :, i] -= drawn
            left -= drawn
    margins = products[rows].sum(axis=1) + products[columns].sum(axis=1)
    total += products[rows.sum(axis=1)] - margins
    return float(2.0 * total.mean(axis=0).sum())


def random_g_test(
    x: npt.NDArray[Any], y: npt.NDArray[Any], given: npt.NDArray[Any], rng: np.random.Generator
) -> tuple[float, float]:
    """Return p-value and G of the published test of 0/1 variables, by 100 random tables."""
    G = g_test(x, y, given).statistic
    strata = make_strata(y, 2, *combine([(z, 2) for z in given.T], len(y)))
    ones = np.bincount(strata.joint, x[strata.rows], strata.counts.size)
    ones = ones.reshape(-1, 2).sum(axis=1).astype(np.int64)
    columns = np.column_stack([strata.counts.sum(axis=1) - ones, ones])
    df = mean_random_g(strata.counts, columns, rng) if len(ones) else 0.0
    if df <= 1e-12:
        return 1.0, G
    p = float(chi2.sf(G, df))
    return (max(p, float(chi2.sf(1.0, 1))) if df >= G else p), G


def published_boundary(
    X: npt.NDArray[Any], y: npt.NDArray[Any], rng: np.random.Generator | None = None
) -> tuple[int, ...]:
    """Find a boundary by their rule: IAMB with one pass of shrinking, without the last member.

    With a generator by their random tables, otherwise by the exact mean.
    """

    def p_value(j: int, given: list[int]) -> tuple[float, float]:
        if rng is not None:
            p, G = random_g_test(X[:, j], y, X[:, given], rng)
            return p, -G
        test = g_test(X[:, j], y, X[:, given])
        return test.p_value, -test.statistic

    members: list[int] = []
    while len(members) < X.shape[1]:
        rest = [j for j in range(X.shape[1]) if j not in members]
        found = {j: p_value(j, members) for j in rest}
        best = min(rest, key=found.__getitem__)
        if found[best][0] > ALPHA:
            break
        members.append(best)
    kept = list(members)
    for j in members[:-1]:
        if p_value(j, [k for k in kept if k != j])[0] > ALPHA:
            kept.remove(j)
    return tuple(sorted(kept))


def _reason(X: npt.NDArray[Any], y: npt.NDArray[Any], theirs: tuple[int, ...]) -> str:
    """Return why their boundary is not ours."""
    if published_boundary(X, y) == theirs:
        return "they shrink in one pass, we until stable"
    for seed in range(SEEDS):
        if published_boundary(X, y, np.random.default_rng(seed)) == theirs:
            return "the noise of 100 random tables"
    return f"not found in {SEEDS} repetitions of their random test"


def _p_value_table(stored: list[Case]) -> Table:
    table = Table(
        "p-values of 56 ordered pairs given the same boundaries",
        "n: text; tests: count; max diff: .3f; mean diff: .4f; correlation: .4f; "
        "within noise: percent; other decisions: count",
    )
    off = ~np.eye(8, dtype=bool)
    parts: dict[Any, list[tuple[Floats, ...]]] = defaultdict(list)
    for case in stored:
        result = given_boundaries(case, case.boundaries)
        low, high = monte_carlo_range(result, 3.0)
        row = tuple(a[off] for a in (result.p_value, case.p_values, low, high))
        parts[case.n].append(row)
        parts["all"].append(row)
    for n, rows in parts.items():
        ours, theirs, low, high = (np.concatenate(part) for part in zip(*rows, strict=True))
        difference = np.abs(ours - theirs)
        within = (theirs >= low - 1e-9) & (theirs <= high + 1e-9)
        table.add(
            n,
            len(ours),
            difference.max(),
            difference.mean(),
            np.corrcoef(ours, theirs)[0, 1],
            within.mean(),
            int(((ours <= ALPHA) != (theirs <= ALPHA)).sum()),
        )
    last = table.rows.pop(list(parts).index("all"))
    table.rows = [*sorted(table.rows, key=lambda row: row[0]), last]
    table.notes.append(
        "Within noise: three standard deviations of the mean G of 100 random tables. Other "
        f"decisions: one p-value is at most {ALPHA} and the other is not."
    )
    return table


def _boundary_table(stored: list[Case]) -> Table:
    reasons: Counter[str] = Counter()
    for case in stored:
        for y, theirs in zip(case.Y.T, case.boundaries, strict=True):
            same = np.array_equal(markov_boundary(case.X, y, ALPHA), theirs)
            reasons["the same" if same else _reason(case.X, y, tuple(map(int, theirs)))] += 1
    table = Table(
        f"Markov boundaries of {sum(reasons.values())} labels",
        "ours and theirs: left; labels: count",
    )
    table.rows += reasons.most_common()
    table.notes.append(
        f"Noise: their random test, repeated up to {SEEDS} times with other seeds, gives their "
        "boundary at least once."
    )
    return table


def _factor_tables(stored: list[Case]) -> list[Table]:
    counts = Counter(dict.fromkeys(("theirs", "ours", "closure"), 0))
    different = Table(
        "Factors that differ, by the published rule and their boundaries",
        "data: left; pair: text; our p: text; their p: text; reason: left",
    )
    for case in stored:
        result = given_boundaries(case, case.boundaries)
        by_rule = _as_tuples(published_grouping(result.p_value, ALPHA))
        counts["theirs"] += by_rule == case.factors
        fitted = ILFCompo("mi", ALPHA, correction=None).fit(case.X, case.Y)
        counts["ours"] += _as_tuples(published_grouping(fitted.p_values_, ALPHA)) == case.factors
        counts["closure"] += _as_tuples(fitted.factors_) == case.factors
        if by_rule != case.factors:
            different.rows += _flips(case, result)
    agreement = Table(
        f"Factors of {len(stored)} data sets that are theirs",
        "our p-values: left; grouping: left; same: count",
        [
            ("given their boundaries", "published rule", counts["theirs"]),
            ("given our boundaries", "published rule", counts["ours"]),
            ("given our boundaries", "connected components (ours)", counts["closure"]),
        ],
    )
    return [agreement, different]


def _flips(case: Case, result: GTest) -> Iterator[tuple[Any, ...]]:
    """Yield the pairs above the diagonal on which the two p-values decide differently."""
    low, high = monte_carlo_range(result, 3.0)
    for i, j in zip(*np.triu_indices(8, 1), strict=True):
        ours, theirs = result.p_value[i, j], case.p_values[i, j]
        if (ours < ALPHA) != (theirs < ALPHA):
            noise = low[i, j] <= theirs <= high[i, j]
            yield (
                f"{case.dag} n={case.n} rep {case.rep}",
                f"{i}, {j}",
                f"{ours:.4f}",
                f"{theirs:.4f}",
                "their random tables" if noise else "beyond their noise",
            )


def _as_tuples(factors: list[Integers]) -> list[tuple[int, ...]]:
    return sorted(tuple(int(k) for k in factor) for factor in factors)


def _cpu_seconds(case: Case, seconds: float) -> float:
    """Return the least processor time of a fit; theirs is processor time as well."""
    least = float("inf")
    end = time.perf_counter() + seconds
    runs = 0
    while runs < 5 or time.perf_counter() < end:
        start = time.process_time()
        ILFCompo("mi", correction=None).fit(case.X, case.Y)
        least = min(least, time.process_time() - start)
        runs += 1
    return least


def _time_table(stored: list[Case], n: int, seconds: float) -> Table:
    theirs: dict[str, list[float]] = defaultdict(list)
    for row in stored_table("timings.csv"):
        if int(row["n_train"]) == n:
            theirs[row["dag"]].append(float(row["iamb_s"]) + float(row["citests_s"]))
    table = Table(
        f"Time of boundaries and tests, n = {n}",
        "structure: left; ours: duration; theirs: duration; ratio: ratio",
    )
    for dag, times in sorted(theirs.items()):
        mine = [case for case in stored if (case.dag, case.n) == (dag, n)]
        ours = float(np.mean([_cpu_seconds(case, seconds / len(mine)) for case in mine]))
        their = float(np.mean(times))
        table.add(dag, ours, their, their / ours)
    ours, their = (float(np.mean([row[k] for row in table.rows])) for k in (1, 2))
    table.add("all", ours, their, their / ours)
    table.notes.append(
        "Processor time. Ours: the whole of ILFCompo.fit, least of several runs, mean over "
        "repetitions. Theirs: IAMB and the 56 tests in R (compiled C inside), as stored, on a "
        "quiet machine."
    )
    return table


def _expectation_table() -> Table:
    """Time E[G] of all tables at once, and of scikit-learn's function table by table."""
    from sklearn.metrics.cluster import expected_mutual_information

    table = Table(
        "Exact degrees of freedom of 1000 tables, 2 x 2",
        "rows of a table: left; ours: duration; scikit-learn: duration; ratio: ratio; "
        "difference: .0e",
    )
    rng = np.random.default_rng(0)
    for largest in (20, 200, 2000):
        n = rng.integers(2, largest, 1000)
        r, c = rng.integers(1, n), rng.integers(1, n)
        first = np.maximum(0, r + c - n)
        margins = np.stack([first, r - first, c - first, n - r - c + first], axis=1)
        tables = margins.reshape(-1, 2, 2)  # any table with these margins

        def one_by_one(n: Integers = n, tables: npt.NDArray[Any] = tables) -> list[float]:
            return [
                2.0 * k * expected_mutual_information(t, k)
                for k, t in zip(n.tolist(), tables, strict=True)
            ]

        tasks = {
            "ours": lambda n=n, r=r, c=c: moments_2x2(n, r, c),
            "theirs": one_by_one,
        }
        least = least_times(tasks, seconds=0.5)
        difference = np.abs(moments_2x2(n, r, c)[0] - one_by_one()).max()
        table.add(
            f"up to {largest}",
            least["ours"],
            least["theirs"],
            least["theirs"] / least["ours"],
            difference,
        )
    return table


def run(*, seconds: float = 2.0) -> list[Table]:
    """Compare, print the tables, and return them."""
    require_folder()
    stored = cases()
    tables = [_time_table(stored, 1000, seconds), _expectation_table(), _p_value_table(stored)]
    tables += [_boundary_table(stored), *_factor_tables(stored)]
    print_tables(tables)
    return tables


if __name__ == "__main__":
    on_one_core("benchmarks.reference_factors")
    run()
