"""Time and memory of fit and predict on real data: ``python -m benchmarks.fit [NAME ...]``.

The rivals are a loop over LogisticRegressionCV (the same penalties, 3 folds, log-loss; labels with
p > 0.5) and example-wise-f1-maximizer, which fits m^2 + 1 binary models, here logistic regressions
with a fixed penalty. Each runs in a process of its own, on one core; times are processor times.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.datasets import Split, load
from benchmarks.environment import THREAD_VARIABLES, show_progress
from benchmarks.report import Column, Table, duration, mebibytes, ratio

__all__ = ["fit_table", "main", "run_child", "write_split"]

NAMES = ("yeast", "enron", "bibtex")
METHODS = ("independent", "single", "LogisticRegressionCV", "f1-maximizer")
CHILD = Path(__file__).with_name("fit_child.py")
RIVAL = Path(__file__).parents[1] / ".venv-rival" / "bin" / "python"


def write_split(split: Split, path: Path) -> None:
    """Write a split in the format that `fit_child.read` reads."""
    parts: dict[str, Any] = {"Y_train": split.Y_train, "Y_test": split.Y_test}
    for part, X in (("train", split.X_train), ("test", split.X_test)):
        if sparse.issparse(X):
            for piece in ("data", "indices", "indptr", "shape"):
                parts[f"{piece}_{part}"] = getattr(X, piece)
        else:
            parts[f"X_{part}"] = X
    np.savez(path, **parts)


def run_child(
    method: str, path: Path, seconds: float, limit: float | None = None
) -> dict[str, Any] | str:
    """Run a method in a child process; return its measurements, or the reason of a failure.

    A rival extrapolates its time after `seconds`. A child that takes longer than `limit` is
    killed.
    """
    python = str(RIVAL) if method == "f1-maximizer" else sys.executable
    if not Path(python).exists():
        return "not installed: make bench-fit installs it"
    try:
        done = subprocess.run(
            [python, str(CHILD), method, str(path), str(seconds)],
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
            env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")},
        )
    except subprocess.TimeoutExpired:
        return f"stopped after {limit:g} s"
    if done.returncode:
        return (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1][:60]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def fit_table(name: str, split: Split, seconds: float) -> Table:
    """Measure all methods on one data set."""
    n, m = split.Y_train.shape
    table = Table(
        f"{name}: {n} rows, {split.X_train.shape[1]} features, {m} labels; "
        f"{len(split.Y_test)} test rows",
        [
            Column("method", left=True),
            Column("fit"),
            Column("by single"),
            Column("predict", duration),
            Column("memory", mebibytes),
            Column("F1", lambda f1: "-" if f1 is None else f"{f1:.4f}"),
        ],
    )
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "split.npz"
        write_split(split, path)
        for method in METHODS:
            show_progress(f"{name}: {method}")
            found[method] = run_child(method, path, seconds)
    show_progress("")
    ours = found["single"]
    for method, row in found.items():
        if isinstance(row, str):
            table.rows.append((method, "-", "-", None, None, None))
            table.notes.append(f"{method}: {row}")
            continue
        about = "~" if row["extrapolated"] else ""
        by = ratio(row["fit"] / ours["fit"]) if isinstance(ours, dict) else "-"
        cells = (row[key] for key in ("predict", "memory", "f1"))
        table.rows.append((method, about + duration(row["fit"]), by, *cells))
    if any(isinstance(row, dict) and row["extrapolated"] for row in found.values()):
        table.notes.append(
            f"~: stopped after {seconds:g} s; extrapolated by the number of models."
        )
    return table


def main(arguments: list[str] | None = None) -> None:
    """Measure and print one table for each data set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help="data sets")
    parser.add_argument(
        "--seconds",
        type=float,
        default=120.0,
        help="a rival that takes longer is stopped, and its time extrapolated (default: 120)",
    )
    options = parser.parse_args(arguments)
    for name in options.names:
        try:
            split = load(name)
        except FileNotFoundError as error:
            sys.exit(str(error))
        table = fit_table(name, split, options.seconds)
        print("\n".join(table.lines()), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
