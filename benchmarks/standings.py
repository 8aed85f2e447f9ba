"""Where one system stands among all stored results: ``python -m benchmarks.standings``.

Reads result files of ``python -m benchmarks.real`` and prints, for each data set, the F1 of the
default of fgfm beside the best of all other systems (a base learner with a rule, or another
package), the default beside single systems, what it expects beside what it obtains, and the mean
ranks of the systems with a result on the same data sets.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from benchmarks.deciders.report import DEVELOPMENT

DEFAULT = ("auto", "default")
OTHERS = (
    ("ridge", "default"),
    ("ridge-log", "default"),
    ("forest", "default"),
    ("boosting", "default"),
    ("boomer", "gfm"),
)
STORED = [Path("docs/benchmark/results.csv"), Path("docs/benchmark/auto/results.csv")]


def read_scores(paths: list[Path], measure: str) -> pd.DataFrame:
    """Return scores by data set (rows) and learner and rule (columns), the mean of folds."""
    frame = pd.concat([pd.read_csv(path) for path in paths]).query("status == 'ok'")
    means = frame.groupby(["dataset", "learner", "rule"])[measure].mean()
    return means.unstack(["learner", "rule"]).sort_index(axis=1)


def print_data_sets(f1: pd.DataFrame) -> None:
    """Print the score of the default and of the best other system."""
    others = f1.drop(columns=[DEFAULT])
    difference = f1[DEFAULT] - others.max(axis=1)
    for name, row in others.iterrows():
        print(
            f"{name:<20} {f1.loc[name, DEFAULT]:.3f}  {difference[name]:+.3f}  {row.max():.3f} "
            f"{' '.join(row.idxmax())} (of {row.count()})"
        )
    first, near = (difference >= 0.0).sum(), (difference >= -0.003).sum()
    print(f"best on {first} of {len(f1)}, within 0.003 of the best on {near}\n")


def print_pairs(f1: pd.DataFrame) -> None:
    """Print the mean scores of the default and of single systems on their data sets."""
    for other in OTHERS:
        both = f1[[DEFAULT, other]].dropna()
        ahead = (both[DEFAULT] > both[other]).sum()
        print(
            f"{' '.join(other):<20} {both[other].mean():.3f}  default {both[DEFAULT].mean():.3f}, "
            f"ahead on {ahead} of {len(both)}"
        )
    print()


def print_expected(excess: pd.Series[float]) -> None:
    """Print the excess of the F1 that the default expects."""
    largest = ", ".join(f"{name} {value:+.3f}" for name, value in excess.nlargest(3).items())
    print(f"expected minus obtained: mean {excess.mean():+.3f}; largest {largest}\n")


def print_ranks(f1: pd.DataFrame, least: int) -> None:
    """Print the mean ranks of the systems that have results on the same data sets as others."""
    common = f1.loc[:, f1.count() >= least].dropna()
    ranks = common.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    names = ", ".join(common.index)
    print(f"mean ranks of {common.shape[1]} systems on {len(common)} data sets: {names}")
    for system, rank in ranks[:8].items():
        print(f"  {rank:5.2f}  {common[system].mean():.3f}  {' '.join(system)}")
    print()


def main() -> None:
    """Print the standings of the stored results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.standings", description=__doc__)
    parser.add_argument("results", nargs="*", type=Path, default=STORED, help="results.csv files")
    parser.add_argument("--measure", default="f1", help="f1, macro_f1, micro_f1 (default: f1)")
    options = parser.parse_args()
    f1 = read_scores(options.results, options.measure)
    f1 = f1[f1[DEFAULT].notna() & (f1.count(axis=1) > 1)]
    chosen_on = f1.index.isin(DEVELOPMENT)
    for title, group in (
        ("data sets that the recipe was chosen on", f1[chosen_on]),
        ("other data sets", f1[~chosen_on]),
    ):
        print(f"{title}: {options.measure} of the default, difference to the best other, its name")
        print_data_sets(group)
    print_pairs(f1)
    if options.measure == "f1":
        expected = read_scores(options.results, "expected_f")[DEFAULT]
        print_expected((expected - f1[DEFAULT]).dropna())
    for least in (len(f1), 9, 8, 6):
        print_ranks(f1, least)


if __name__ == "__main__":
    main()
