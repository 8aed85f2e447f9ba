"""Compare our F-measures with those of the authors' R scripts on the same rows.

``python -m benchmarks.reference_f [--quick]``

Two comparisons. With the penalties and label factors that their scripts chose nothing is random:
all F-measures should be equal. With penalties and factors chosen by our own run of their
procedure, the differences should be those of another random split of the rows.

The environment variable ``FGFM_REFERENCE`` names the folder of their results.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.environment import on_one_core
from benchmarks.reference_factors import require_folder
from benchmarks.reference_models import (
    METHODS,
    PUBLISHED,
    Data,
    GivenModels,
    Rule,
    Run,
    by_our_splits,
    by_their_penalties,
    data_sets,
    margins,
    our_runs,
)
from benchmarks.report import Table, count, print_tables

__all__ = ["run"]

Floats = npt.NDArray[np.float64]

SPLITS = 10  # repetitions of our cross-validation
# Standard deviation of F over their splits, as stated with their results: from gfm and t-gfm on
# structures where both fit the same model.
THEIR_SD = {50: 0.009, 100: 0.009, 200: 0.002, 500: 0.002, 1000: 0.002, 2000: 3e-4, 5000: 3e-4}


def _given_tables(stored: list[Data]) -> list[Table]:
    """Compare F-measures with the authors' penalties and factors."""
    summary = Table(
        "Their penalties, their factors: largest difference of F1 in any cell",
        "n: text; cells: count; "
        + "".join(f"{method}: tiny; " for method in METHODS)
        + "to 1e-4: count; to 1e-3: count; all losses: count",
    )
    other = Table(
        "Cells that differ by more than 1e-4",
        "data: left; method: left; difference: +z.4f; smallest margin: tiny",
    )
    gaps = []
    rows: dict[int, list[Floats]] = defaultdict(list)  # (methods, losses)
    for data in stored:
        estimates = by_their_penalties(data)
        differences = np.array([data.losses(estimates[m].labels()) for m in METHODS]) - np.array(
            [data.stored[m].losses for m in METHODS]
        )
        rows[data.n].append(differences)
        for method, difference in zip(METHODS, differences[:, 0], strict=True):
            gap = margins(data, estimates[method])
            gaps.append(gap)
            if abs(difference) > 1e-4:
                name = f"{data.dag} n={data.n} rep {data.rep}"
                other.add(name, method, difference, gap.min())
    for n, parts in rows.items():
        difference = np.abs(parts)  # (data sets, methods, losses)
        f = difference[:, :, 0]
        within = [int((f <= limit).sum()) for limit in (1e-4, 1e-3)]
        same = int((difference < 1e-9).all(axis=2).sum())
        summary.add(n, f.size, *f.max(axis=0), *within, same)
    last = [sum(row[k] for row in summary.rows) for k in (1, -3, -2, -1)]
    largest = [max(row[k] for row in summary.rows) for k in range(2, 6)]
    summary.add("all", last[0], *largest, *last[1:])
    margin = np.concatenate(gaps)
    summary.notes.append(
        "Cell: a structure, a repetition and a method. All losses: F1, Hamming loss and subset "
        f"loss agree to 1e-9. Of the {count(len(margin))} decisions, {(margin < 1e-3).sum()} "
        f"have a margin below 1e-3 in expected F, {(margin < 1e-4).sum()} below 1e-4 and "
        f"{(margin < 1e-5).sum()} below 1e-5; the smallest is {margin.min():.0e}."
    )
    return [summary, other] if other.rows else [summary]


CHANGES = {
    "half of each penalty": Rule(scale=0.5),
    "intercepts not penalised": Rule(penalize_intercept=False),
    "weights for every class": Rule(reference_class=False),
    "one model of a single label": Rule(second_model=False),
    "P made coherent": Rule(coherent=True),
}


def _change_table(stored: list[Data]) -> Table:
    """Show the effect of each of the authors' settings on F."""
    table = Table(
        "Their penalties and factors, one setting changed: F1 minus theirs",
        "changed: left; cells: count; same: count; to 1e-3: count; n<=100: +z.4f; "
        "n>=200: +z.4f; largest: .4f",
    )
    for name, rule in CHANGES.items():
        differences: dict[bool, list[float]] = {True: [], False: []}
        for data in stored:
            estimates = by_their_penalties(data, rule)
            for method, theirs in data.stored.items():
                if rule.second_model or any(len(factor) == 1 for factor in theirs.factors):
                    f = data.losses(estimates[method].labels())[0]
                    differences[data.n <= 100].append(f - theirs.losses[0])
        every = np.abs(differences[True] + differences[False])
        table.add(
            name,
            len(every),
            int((every < 1e-9).sum()),
            int((every <= 1e-3).sum()),
            *(float(np.mean(part)) if part else 0.0 for part in differences.values()),
            every.max(),
        )
    table.notes.append(
        "Means over cells with up to 100 training rows, and with more; the largest in absolute "
        "value. Single labels: the scripts fit a second model, of the label given itself; only "
        "cells with such factors are counted, all those of i-gfm among them."
    )
    return table


class Cell(NamedTuple):
    """A structure, a size and a method, with all repetitions."""

    dag: str
    n: int
    method: str
    data: list[Data]
    runs: list[Run]

    def differences(self) -> Floats:
        """Return our mean F over splits minus theirs, for each repetition."""
        theirs = [data.stored[self.method].losses[0] for data in self.data]
        return np.array([run.f.mean() for run in self.runs]) - theirs

    def same_factors(self) -> list[bool]:
        """Return for each repetition whether our factors equal theirs."""
        return [
            sorted(run.factors) == sorted(data.stored[self.method].factors)
            for data, run in zip(self.data, self.runs, strict=True)
        ]


def _cells(stored: list[Data], splits: int) -> list[Cell]:
    """Run all methods on all data sets, and collect the cells."""
    cells: dict[Any, Cell] = {}
    for data in stored:
        for method, ours in our_runs(data, splits).items():
            key = data.dag, data.n, method
            cell = cells.setdefault(key, Cell(*key, [], []))
            cell.data.append(data)
            cell.runs.append(ours)
    return list(cells.values())


def _split_tables(cells: list[Cell], splits: int) -> list[Table]:
    """Compare F with our own cross-validation with theirs."""
    groups: dict[tuple[int, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.n, cell.method].append(cell)
    spread = {  # standard deviation of F over our splits
        key: float(np.sqrt(np.mean([run.f.var(ddof=1) for cell in group for run in cell.runs])))
        for key, group in groups.items()
    }
    summary = Table(
        f"Our own cross-validation ({splits} splits) against theirs (one): F1",
        "n: text; method: left; ours: .4f; theirs: .4f; difference: +z.4f; "
        "sd of a split: .4f; noise: .4f; z: +z.1f",
    )
    for (n, method), group in groups.items():
        ours = float(np.mean([run.f.mean() for cell in group for run in cell.runs]))
        difference = np.concatenate([cell.differences() for cell in group])
        sd = spread[n, method]
        noise = _noise(sd, sd, splits, len(difference))
        mean = float(difference.mean())
        summary.add(n, method, ours, ours - mean, mean, sd, noise, mean / noise)
    same = [same for cell in cells if cell.method == "f-gfm" for same in cell.same_factors()]
    summary.notes.append(
        "Means over structures and repetitions. sd of a split: standard deviation of F over our "
        "splits of the same rows. Noise: that of the difference; theirs is one split. "
        f"ILF-Compo finds their factors in {sum(same)} of {len(same)} data sets."
    )
    detail, beyond = _structure_table(cells, spread, splits)
    tables = [summary, detail]
    return [*tables, _reason_table(beyond, splits)] if beyond else tables


def _noise(theirs: float, ours: float, splits: int, repetitions: int) -> float:
    """Return the standard deviation of a mean difference: one split of theirs, several of ours."""
    noise = np.sqrt((theirs**2 + ours**2 / splits) / repetitions)
    return max(float(noise), 1e-9)  # if all splits lead to the same decisions


def _structure_table(
    cells: list[Cell], spread: dict[tuple[int, str], float], splits: int
) -> tuple[Table, list[tuple[Cell, float]]]:
    """Return the differences of all cells, and the cells beyond the noise."""
    pairs = "".join(f"; {method}: +z.4f; z: +z.1f" for method in METHODS)
    table = Table("By structure: difference and z", "n: text; structure: left" + pairs)
    z: dict[str, list[float]] = defaultdict(list)
    rows: dict[Any, dict[str, tuple[float, float]]] = defaultdict(dict)
    beyond = []
    for cell in cells:
        mean, sd = float(cell.differences().mean()), spread[cell.n, cell.method]
        measured = mean / _noise(sd, sd, splits, len(cell.runs))
        given = mean / _noise(THEIR_SD[cell.n], sd, splits, len(cell.runs))
        z["as measured"].append(measured)
        z["as stated with their results"].append(given)
        rows[cell.n, cell.dag][cell.method] = mean, measured
        if abs(measured) > 2.0 or abs(given) > 3.0:
            beyond.append((cell, measured))
    for key, row in rows.items():
        table.add(*key, *(value for method in METHODS for value in row[method]))
    for name, values in z.items():
        within = [int((np.abs(values) <= limit).sum()) for limit in (2, 3)]
        table.notes.append(
            f"By the sd of a split {name}: {within[0]} of {len(values)} cells lie within 2 of it, "
            f"{within[1]} within 3."
        )
    return table, beyond


def _reason_table(beyond: list[tuple[Cell, float]], splits: int) -> Table:
    """Explain the largest differences."""
    table = Table(
        "Cells beyond 2 as measured, or 3 as stated: the repetition that differs most",
        "n: text; cell: left; z: +z.1f; rep: text; diff: +z.4f; reason: left",
    )
    for cell, z in beyond:
        differences = cell.differences()
        worst = int(np.abs(differences).argmax())
        data = cell.data[worst]
        why = _reason(data, cell.runs[worst], cell.method, splits)
        name = f"{cell.dag} {cell.method}"
        table.add(cell.n, name, z, data.rep, differences[worst], why)
    table.notes.append(
        "Reason: the model whose penalty has the largest effect, their penalty, the one that most "
        "of our splits choose, and the change of their F with that penalty alone."
    )
    return table


def _reason(data: Data, run: Run, method: str, splits: int) -> str:
    """Return why our F differs from theirs: the factors, or the penalty of one model."""
    stored = data.stored[method]
    if sorted(stored.factors) != sorted(run.factors):
        theirs = by_our_splits(data, stored.factors, splits)
        rest = float(theirs.f.mean() - stored.losses[0])
        return f"other factors; with theirs {rest:+.4f}"
    models = GivenModels(data, PUBLISHED)
    effects = []
    for name, chosen in run.penalties.items():
        usual, times = Counter(chosen.tolist()).most_common(1)[0]
        if usual != stored.penalties[name]:
            changed = models.estimate(stored.factors, stored.penalties | {name: usual})
            effect = data.losses(changed.labels())[0] - stored.losses[0]
            effects.append((abs(effect), effect, name, usual, times))
    if not effects:
        return "same penalties in most splits"
    _, effect, (factor, target), usual, times = max(effects)
    label = target if len(factor) > 1 else f"y{factor[0]}"
    their = stored.penalties[factor, target]
    return f"{label}: {their:g}; ours {usual:g} ({times} of {splits}), alone {effect:+.4f}"


def run(*, quick: bool = False, splits: int = SPLITS) -> list[Table]:
    """Compare, print the tables, and return them."""
    require_folder()
    splits = 3 if quick else splits
    if quick:
        print("Quick: too few splits and data sets for meaningful z values.\n")
    stored = list(data_sets((100, 1000), ("lp2", "lp6"), 1) if quick else data_sets())
    tables = [*_given_tables(stored), _change_table(stored)]
    tables += _split_tables(_cells(stored, splits), splits)
    print_tables(tables)
    return tables


def main() -> None:
    """Parse the options, and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reference_f", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a few cells, to check that everything runs"
    )
    run(quick=parser.parse_args().quick)


if __name__ == "__main__":
    on_one_core("benchmarks.reference_f")
    main()
