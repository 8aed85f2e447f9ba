"""Summarise the records of the paper's experiment: means, paired tests and factor scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm.experiments._findings import find
from fgfm.experiments._records import PAPER_METHODS, Difference, FactorScore, Mean, Record, Summary
from fgfm.experiments._statistics import holm, paired_t_test, score_factors, standard_error

Floats = npt.NDArray[np.float64]

_PAIRS = (
    ("ilf", "gfm"),
    ("true", "gfm"),
    ("independent", "gfm"),
    ("ilf", "true"),
    ("ilf", "independent"),
    ("gfm", "threshold"),
)


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
