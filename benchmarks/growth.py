"""Time and memory by the number of labels: ``python -m benchmarks.growth``.

The first m labels of delicious (12 920 rows, 500 features): `ILFCompo` with the generalised
covariance measure, and fit and predict of `FGFMClassifier` for each kind of label factors. Each
runs in a process of its own, so that peak memory is measured separately.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.datasets import Split, load
from benchmarks.environment import show_progress
from benchmarks.fit import run_child, write_split
from benchmarks.measure import growth_exponent
from benchmarks.report import Column, Table, duration, mebibytes, number

__all__ = ["main", "model_table", "search_table"]

SIZES = (60, 250, 983)
METHODS = ("independent", "ilf", "single")


def _first_labels(split: Split, m: int) -> Split:
    return split._replace(Y_train=split.Y_train[:, :m], Y_test=split.Y_test[:, :m])


def _measure(
    split: Split, method: str, sizes: Sequence[int], limit: float
) -> list[dict[str, float] | str]:
    """Return the measurements for each number of labels, or the reason of a failure."""
    found: list[dict[str, float] | str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "split.npz"
        for m in sizes:
            show_progress(f"{method}, {m} labels")
            write_split(_first_labels(split, m), path)
            found.append(run_child(method, path, float("inf"), limit))
    show_progress("")
    return found


def search_table(split: Split, sizes: Sequence[int], limit: float) -> Table:
    """Measure the search for label factors."""
    n, p = split.X_train.shape
    table = Table(
        f"ILFCompo('gcm') on delicious, {n} rows, {p} features",
        [
            Column("labels"),
            Column("pairs"),
            Column("time", duration),
            Column("processor", duration),
            Column("peak memory", mebibytes),
            Column("factors"),
            Column("largest"),
        ],
    )
    times = []
    for m, found in zip(sizes, _measure(split, "ILFCompo", sizes, limit), strict=True):
        if isinstance(found, str):
            table.notes.append(f"{m} labels: {found}")
            continue
        times.append(found["processor"])
        row = tuple(found[key] for key in ("fit", "processor", "peak", "factors", "largest"))
        table.rows.append((m, m * (m - 1) // 2, *row))
    _note_growth(table, sizes, times, "Processor time")
    return table


def model_table(split: Split, method: str, sizes: Sequence[int], limit: float) -> Table:
    """Measure fit and predict of the classifier."""
    n, p = split.X_train.shape
    table = Table(
        f"FGFMClassifier('ridge', factors={method!r}) on delicious, {n} rows, {p} features",
        [
            Column("labels"),
            Column("fit", duration),
            Column("processor", duration),
            Column(f"predict {len(split.Y_test)} rows", duration),
            Column("peak memory", mebibytes),
            Column("F1", lambda f1: f"{f1:.4f}"),
        ],
    )
    times = []
    for m, found in zip(sizes, _measure(split, method, sizes, limit), strict=True):
        if isinstance(found, str):
            table.notes.append(f"{m} labels: {found}")
            continue
        times.append(found["processor"])
        row = tuple(found[key] for key in ("fit", "processor", "predict", "peak", "f1"))
        table.rows.append((m, *row))
    _note_growth(table, sizes, times, "Processor time of fit")
    table.notes.append("Peak memory: of the whole process, libraries included.")
    return table


def _note_growth(table: Table, sizes: Sequence[int], times: Sequence[float], what: str) -> None:
    if len(times) == len(sizes) > 1:
        exponent = number(growth_exponent(sizes, times))
        table.notes.append(f"{what} grows like the number of labels to the power of {exponent}.")


def main(arguments: list[str] | None = None) -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of labels")
    parser.add_argument(
        "--methods", nargs="*", default=METHODS, choices=METHODS, help="kinds of label factors"
    )
    parser.add_argument(
        "--no-search", action="store_true", help="skip the search for label factors"
    )
    parser.add_argument(
        "--limit", type=float, default=3600.0, help="seconds for one fit (default: 3600)"
    )
    options = parser.parse_args(arguments)
    try:
        split = load("delicious")
    except FileNotFoundError as error:
        sys.exit(str(error))
    if not options.no_search:
        table = search_table(split, options.sizes, options.limit)
        print("\n".join(table.lines()), end="\n\n", flush=True)
    for method in options.methods:
        table = model_table(split, method, options.sizes, options.limit)
        print("\n".join(table.lines()), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
