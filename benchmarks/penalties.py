"""Early stopping of the penalty search: ``python -m benchmarks.penalties [NAME ...]``.

Large ridge models stop where smaller penalties are clearly worse. Here some labels of real data
sets are also fitted with all penalties. The table shows for how many labels another penalty would
have been chosen, and the time saved.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.datasets import load
from benchmarks.environment import show_progress
from benchmarks.report import Column, Table, ratio
from fgfm.ridge import RidgeFit, fit_ridge_logistic

__all__ = ["main", "penalty_table"]

NAMES = ("medical", "genbase", "enron", "bibtex", "delicious", "rcv1sub1", "stackex_cs")
_LIMIT = "fgfm.ridge._batch._CLEARLY_WORSE"


def _timed_fit(X: Any, Y: Any) -> tuple[list[RidgeFit], float]:
    """Return the models, and the seconds of processor time that they took."""
    start = time.process_time()
    models = fit_ridge_logistic(X, Y, random_state=0)
    return models, time.process_time() - start


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
        stopped, seconds = _timed_fit(split.X_train, Y)
        with mock.patch(_LIMIT, float("inf")):
            whole, all_seconds = _timed_fit(split.X_train, Y)
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
