"""Where one system stands among all stored results: ``python -m benchmarks.standings``.

Reads result files of ``python -m benchmarks.real`` and prints, for each data set, the F1 of the
default of fgfm beside the best of all other systems (a base learner with a rule, or another
package), the default beside single systems, what it expects beside what it obtains, and the mean
ranks of the systems with a result on the same data sets.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from benchmarks.deciders.report import DEVELOPMENT
from benchmarks.real.statistics import ranks

DEFAULT = ("auto", "default")
OTHERS = (
    ("ridge", "default"),
    ("ridge-log", "default"),
    ("forest", "default"),
    ("boosting", "default"),
    ("boomer", "gfm"),
)
STORED = [Path("docs/benchmark/results.csv"), Path("docs/benchmark/auto/results.csv")]

System = tuple[str, str]  # learner or package, rule


def read_scores(paths: list[Path], measure: str) -> dict[str, dict[System, float]]:
    """Return the score of each system on each data set, the mean of its folds."""
    found: dict[str, dict[System, list[float]]] = {}
    for path in paths:
        with path.open() as file:
            for row in csv.DictReader(file):
                if row["status"] == "ok":
                    system = (row["learner"], row["rule"])
                    scores = found.setdefault(row["dataset"], {})
                    scores.setdefault(system, []).append(float(row[measure]))
    return {
        name: {system: float(np.mean(values)) for system, values in scores.items()}
        for name, scores in found.items()
    }


def print_data_sets(f1: dict[str, dict[System, float]], names: list[str]) -> None:
    """Print the F1 of the default and of the best other system."""
    behind = []
    for name in names:
        others = {system: score for system, score in f1[name].items() if system != DEFAULT}
        best = max(others, key=others.__getitem__)
        difference = f1[name][DEFAULT] - others[best]
        behind.append(min(difference, 0.0))
        print(
            f"{name:<20} {f1[name][DEFAULT]:.3f}  {difference:+.3f}  {others[best]:.3f} "
            f"{' '.join(best)} (of {len(others)})"
        )
    first = sum(value == 0.0 for value in behind)
    near = sum(value >= -0.003 for value in behind)
    print(f"best on {first} of {len(names)}, within 0.003 of the best on {near}\n")


def print_pairs(f1: dict[str, dict[System, float]]) -> None:
    """Print the mean scores of the default and of single systems on their data sets."""
    for other in OTHERS:
        names = [name for name in f1 if other in f1[name]]
        ahead = sum(f1[name][DEFAULT] > f1[name][other] for name in names)
        own, theirs = (np.mean([f1[name][s] for name in names]) for s in (DEFAULT, other))
        print(
            f"{' '.join(other):<20} {theirs:.3f}  default {own:.3f}, ahead on {ahead} of "
            f"{len(names)}"
        )
    print()


def print_expected(
    f1: dict[str, dict[System, float]], expected: dict[str, dict[System, float]]
) -> None:
    """Print the excess of the F1 that the default expects."""
    excess = {name: expected[name][DEFAULT] - f1[name][DEFAULT] for name in f1}
    largest = sorted(excess, key=excess.__getitem__)[:-4:-1]
    print(
        f"expected minus obtained: mean {np.mean(list(excess.values())):+.3f}; largest "
        + ", ".join(f"{name} {excess[name]:+.3f}" for name in largest)
        + "\n"
    )


def print_ranks(f1: dict[str, dict[System, float]], names: list[str], least: int) -> None:
    """Print the mean ranks of the systems that have results on the same data sets as others."""
    systems = sorted({system for name in names for system in f1[name]})
    counts = {s: sum(s in f1[name] for name in names) for s in systems}
    kept = [s for s in systems if counts[s] >= least]
    common = [name for name in names if all(s in f1[name] for s in kept)]
    scores = np.array([[f1[name][s] for s in kept] for name in common])
    mean_ranks = ranks(scores).mean(axis=0)
    print(f"mean ranks of {len(kept)} systems on {len(common)} data sets: {', '.join(common)}")
    for at in np.argsort(mean_ranks)[:8]:
        print(f"  {mean_ranks[at]:5.2f}  {scores[:, at].mean():.3f}  {' '.join(kept[at])}")
    print()


def main() -> None:
    """Print the standings of the stored results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.standings", description=__doc__)
    parser.add_argument("results", nargs="*", type=Path, default=STORED, help="results.csv files")
    parser.add_argument("--measure", default="f1", help="f1, macro_f1, micro_f1 (default: f1)")
    options = parser.parse_args()
    f1 = read_scores(options.results, options.measure)
    f1 = {name: scores for name, scores in f1.items() if DEFAULT in scores and len(scores) > 1}
    names = sorted(f1)
    for title, group in (
        ("data sets that the recipe was chosen on", [n for n in names if n in DEVELOPMENT]),
        ("other data sets", [n for n in names if n not in DEVELOPMENT]),
    ):
        print(f"{title}: {options.measure} of the default, difference to the best other, its name")
        print_data_sets(f1, group)
    print_pairs(f1)
    if options.measure == "f1":
        print_expected(f1, read_scores(options.results, "expected_f"))
    for least in (len(names), 9, 8, 6):
        print_ranks(f1, names, least)


if __name__ == "__main__":
    main()
