"""Time and memory of fit and predict on real data: ``python -m benchmarks.fit [NAME ...]``.

Against a loop over LogisticRegressionCV (the same grid of penalties, 3 folds, log-loss; labels by
their more probable value) and example-wise-f1-maximizer, which fits m^2 + 1 binary models, here
logistic regressions with a fixed penalty. Each runs in a process of its own, on one core.
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
from benchmarks.environment import THREAD_VARIABLES
from benchmarks.report import Column, Table, duration, mebibytes, ratio

__all__ = ["main", "run_child", "write_split"]

NAMES = ("yeast", "enron", "bibtex")
METHODS = ("independent", "single", "LogisticRegressionCV", "f1-maximizer")
CHILD = Path(__file__).with_name("fit_child.py")
RIVAL = Path(__file__).parents[1] / ".venv-rival" / "bin" / "python"


def write_split(split: Split, path: Path) -> None:
    """Write a split as the child reads it."""
    parts: dict[str, Any] = {"Y_train": split.Y_train, "Y_test": split.Y_test}
    for part, X in (("train", split.X_train), ("test", split.X_test)):
        if sparse.issparse(X):
            for piece in ("data", "indices", "indptr", "shape"):
                parts[f"{piece}_{part}"] = getattr(X, piece)
        else:
            parts[f"X_{part}"] = X
    np.savez(path, **parts)


def run_child(
    who: str, path: Path, seconds: float, limit: float | None = None
) -> dict[str, Any] | str:
    """Give what the child found, or why there is nothing.

    A rival extrapolates after so many seconds; whoever takes longer than `limit` is ended.
    """
    python = str(RIVAL) if who == "f1-maximizer" else sys.executable
    if not Path(python).exists():
        return "not installed: make bench-fit does so"
    try:
        done = subprocess.run(
            [python, str(CHILD), who, str(path), str(seconds)],
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
            env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")},
        )
    except subprocess.TimeoutExpired:
        return f"took longer than {limit:g} s, and was ended"
    if done.returncode:
        return (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1][:60]
    return dict(json.loads(done.stdout.splitlines()[-1]))


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
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "split.npz"
            write_split(split, path)
            found = {}
            for who in METHODS:
                if sys.stderr.isatty():
                    print(f"\r\x1b[K{name}: {who}", end="", file=sys.stderr, flush=True)
                found[who] = run_child(who, path, options.seconds)
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        ours = found["single"]
        for who in METHODS:
            row = found[who]
            if isinstance(row, str):
                table.rows.append((who, "-", "-", None, None, None))
                table.notes.append(f"{who}: {row}")
                continue
            about = "~" if row["extrapolated"] else ""
            by = ratio(row["fit"] / ours["fit"]) if isinstance(ours, dict) else "-"
            table.rows.append(
                (
                    who,
                    about + duration(row["fit"]),
                    by,
                    row["predict"],
                    row["memory"],
                    row["f1"],
                )
            )
        if any(isinstance(row, dict) and row["extrapolated"] for row in found.values()):
            table.notes.append(
                f"~: stopped after {options.seconds:g} s; extrapolated by the number of models."
            )
        print("\n".join(table.lines()))
        print(flush=True)


if __name__ == "__main__":
    main()
