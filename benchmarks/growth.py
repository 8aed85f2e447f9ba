"""Time of the search for label factors by the number of labels: ``python -m benchmarks.growth``.

The generalised covariance measure on delicious (12 920 rows, 500 features): the first m labels.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

from benchmarks.datasets import load
from benchmarks.measure import growth_exponent
from benchmarks.report import Column, Table, duration, mebibytes, number
from fgfm import ILFCompo

__all__ = ["main"]

SIZES = (60, 250, 983)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="threads (default: 2)")
    options = parser.parse_args(arguments)
    try:
        split = load("delicious")
    except FileNotFoundError as error:
        sys.exit(str(error))
    n, p = split.X_train.shape
    table = Table(
        f"ILFCompo('gcm') on delicious, {n} rows, {p} features, n_jobs={options.jobs}",
        [
            Column("labels"),
            Column("pairs"),
            Column("time", duration),
            Column("peak memory", mebibytes),
            Column("factors"),
            Column("largest"),
        ],
    )
    times = []
    for m in SIZES:
        start = time.perf_counter()
        ilf = ILFCompo("gcm", n_jobs=options.jobs).fit(split.X_train, split.Y_train[:, :m])
        times.append(time.perf_counter() - start)
        peak = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        largest = max(len(factor) for factor in ilf.factors_)
        table.rows.append((m, m * (m - 1) // 2, times[-1], peak, len(ilf.factors_), largest))
    exponent = number(growth_exponent(SIZES, times))
    table.notes.append(f"Time grows like the number of labels to the power of {exponent}.")
    print("\n".join(table.lines()))


if __name__ == "__main__":
    main()
