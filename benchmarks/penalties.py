"""Does it pay to try small penalties? ``python -m benchmarks.penalties [NAME ...]``.

Large ridge models stop where smaller penalties only do worse. Here some labels of real data sets
are fitted with all penalties as well: in how many would another one have been chosen?
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.datasets import load
from benchmarks.environment import show_progress
from benchmarks.report import Column, Table, ratio
from fgfm.ridge import RidgeFit, _batch, fit_ridge_logistic

__all__ = ["main", "penalty_table"]

NAMES = ("medical", "genbase", "enron", "bibtex", "delicious", "rcv1sub1", "stackex_cs")


def _fitted(X: Any, Y: Any, clearly: float) -> tuple[list[RidgeFit], float]:
    """Fit with another limit; give the models, and seconds of processor time."""
    before, _batch._CLEARLY = _batch._CLEARLY, clearly
    try:
        start = time.process_time()
        models = fit_ridge_logistic(X, Y, random_state=0)
        return models, time.process_time() - start
    finally:
        _batch._CLEARLY = before


def penalty_table(names: Sequence[str], most: int) -> Table:
    """Compare stopping with trying all penalties, on up to `most` labels of each data set."""
    table = Table(
        "Penalties of large ridge models: stopping against trying all",
        [
            Column("data", left=True),
            Column("labels"),
            Column("tried", lambda share: f"{share:.0%}"),
            Column("other choices"),
            Column("faster", ratio),
        ],
    )
    total = other = 0
    for name in names:
        show_progress(name)
        split = load(name)
        labels = np.unique(np.linspace(0, split.Y_train.shape[1] - 1, most).astype(int))
        Y = split.Y_train[:, labels]
        stopped, seconds = _fitted(split.X_train, Y, _batch._CLEARLY)
        whole, all_seconds = _fitted(split.X_train, Y, float("inf"))
        pairs = list(zip(stopped, whole, strict=True))
        different = sum(one.penalty != two.penalty for one, two in pairs)
        tried = float(np.mean([np.isfinite(one.cv_losses) for one in stopped]))
        table.rows.append((name, len(labels), tried, different, all_seconds / seconds))
        total, other = total + len(labels), other + different
    show_progress("")
    table.notes.append(f"Another penalty is chosen for {other} of {total} labels.")
    return table


def main(arguments: list[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.penalties", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help="data sets")
    parser.add_argument("--labels", type=int, default=60, help="of each, at most (default: 60)")
    options = parser.parse_args(arguments)
    try:
        table = penalty_table(options.names, options.labels)
    except FileNotFoundError as error:
        sys.exit(str(error))
    print("\n".join(table.lines()))


if __name__ == "__main__":
    main()
