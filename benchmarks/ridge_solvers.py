"""Solvers of large ridge models: ``python -m benchmarks.ridge_solvers [NAME ...]``.

Models of more than 300 unknowns are fitted by conjugate gradients, many targets at a time. Here
they are fitted (1) so, (2) without the preconditioner, and (3) like small models, one by one with
a Cholesky factor of each Hessian. Each solver runs in a process of its own, on one core, on the
same folds and penalties. Targets are some labels of each data set, and the number of labels,
which has several classes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Split, load
from benchmarks.environment import THREAD_VARIABLES, show_progress
from benchmarks.fit_child import peak
from benchmarks.report import Column, Table, duration

__all__ = ["fit_with", "main", "solver_table"]

SOLVERS = ("cg", "plain", "cholesky")
NAMES = (
    *("cal500", "yeast", "scene", "image"),  # dense: only the number of labels is large
    *("medical", "genbase", "enron", "langlog", "stackex_chess", "stackex_philosophy"),
    *("corel5k", "reutersk500", "stackex_cs", "bibtex", "ohsumed", "delicious", "ng20"),
    *("tmc2007_500", "eukaryote_go", "yahoo_arts", "rcv1sub1"),
)
# Constants that make all models small, and that switch the preconditioner off.
_PATCHES: dict[str, dict[str, float]] = {
    "cg": {},
    "plain": {
        "fgfm.ridge._chunks.LARGEST_BLOCK": 0,
        "fgfm.ridge._preconditioner.LARGEST_BLOCK": 0,
    },
    "cholesky": {
        "fgfm.ridge._design.NEWTON_LIMIT": 1 << 62,
        "fgfm.ridge._design._DENSE_LIMIT": 1 << 62,
        "fgfm.ridge._design._ROTATED_ROWS": 1 << 62,
    },
}
_MOST_BYTES = 4 << 30  # of the Hessian, its factor and the dense rows: more is not tried


def fit_with(solver: str, X: Any, targets: Any, **options: Any) -> list[Any]:
    """Fit targets with one of the solvers."""
    from fgfm.ridge import fit_ridge_logistic

    with ExitStack() as stack:
        for name, value in _PATCHES[solver].items():
            stack.enter_context(mock.patch(name, value))
        return list(fit_ridge_logistic(X, targets, random_state=0, **options))


def _targets(split: Split, kind: str, most: int) -> list[npt.NDArray[np.int64]]:
    """Return up to `most` labels that are not constant, or the number of labels of each row."""
    Y = np.asarray(split.Y_train)
    if kind == "number":
        return [Y.sum(axis=1)]
    varying = np.flatnonzero(Y.any(axis=0) & ~Y.all(axis=0))
    return list(Y[:, varying[np.unique(np.linspace(0, len(varying) - 1, most).astype(int))]].T)


def _cholesky_size(split: Split, targets: list[npt.NDArray[np.int64]]) -> tuple[int, int]:
    """Return the number of unknowns, and the bytes that Cholesky factors would take."""
    n, p = split.X_train.shape
    unknowns = (min(n, p) + 1) * (len(np.unique(targets[0])) - 1)
    rows = 4 * n * p if p > n else 2 * n * p  # the rotation takes two more copies
    return unknowns, 8 * (2 * unknowns**2 + rows)


def child(solver: str, name: str, kind: str, most: int, limit: float) -> None:
    """Fit and print, after each chunk of targets, the cost so far as one line of JSON."""
    from fgfm.ridge import RidgeFit

    split = load(name)
    targets = _targets(split, kind, most)
    few = np.random.default_rng(0).normal(size=(40, 8))
    for each in SOLVERS:  # compiles the kernels
        fit_with(each, few, [np.arange(40) % 2, np.arange(40) % 3], penalties=[1.0])
    before = peak()
    start = time.process_time()
    seconds = int(start + limit) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))  # then the process is killed

    def report(done: int, fits: list[RidgeFit] | None = None) -> None:
        found = {"done": done, "seconds": time.process_time() - start, "memory": peak() - before}
        if fits is not None:
            found["penalties"] = [fit.penalty for fit in fits]
        print(json.dumps(found), flush=True)

    fits = fit_with(solver, split.X_train, targets, progress=report)
    report(len(targets), fits)


def _run(solver: str, name: str, kind: str, most: int, limit: float) -> dict[str, Any] | None:
    """Return the last report of a child, or None if it fitted no chunk within the limit."""
    command = [sys.executable, "-m", "benchmarks.ridge_solvers", "--child", solver, kind, name]
    done = subprocess.run(
        [*command, "--labels", str(most), "--seconds", str(limit)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")},
    )
    lines = done.stdout.splitlines()
    return dict(json.loads(lines[-1])) if lines else None


def solver_table(names: Sequence[str], most: int, limit: float) -> Table:
    """Compare the solvers on up to `most` labels of each data set, and on their number."""
    table = Table(
        "Large ridge models: processor time per target, and memory",
        [
            Column("data", left=True),
            Column("targets", left=True),
            Column("size"),
            Column("CG", duration),
            Column("plain"),
            Column("Cholesky"),
            Column("MiB", _mebibytes),
            Column("Cholesky", _mebibytes),
        ],
    )
    compared = different = 0
    for name in names:
        split = load(name)
        for kind in ("labels", "number"):
            targets = _targets(split, kind, most)
            size, needed = _cholesky_size(split, targets)
            if size <= 300:  # small models
                continue
            found: dict[str, dict[str, Any] | None] = {}
            for solver in SOLVERS:
                show_progress(f"{name}, {kind}: {solver}")
                possible = solver != "cholesky" or needed <= _MOST_BYTES
                found[solver] = _run(solver, name, kind, most, limit) if possible else None
            table.rows.append((name, kind, size, *_cells(found, needed, limit, len(targets))))
            chosen = [one["penalties"] for one in found.values() if one and "penalties" in one]
            if len(chosen) > 1:
                compared += len(targets)
                different += sum(len(set(each)) > 1 for each in zip(*chosen, strict=True))
    show_progress("")
    table.notes += [
        f"CG: conjugate gradients, as in fit_ridge_logistic, up to {most} labels at a time. "
        "Times of plain CG (without the preconditioner) and Cholesky as multiples of it.",
        f">: stopped after {limit:g} s. GiB: not tried, it would take that much memory.",
        f"Another penalty is chosen for {different} of {compared} targets.",
    ]
    return table


def _cells(
    found: dict[str, dict[str, Any] | None], needed: int, limit: float, n_targets: int
) -> tuple[Any, ...]:
    """Return the cells of a row: seconds per target, two ratios, and the memory of two solvers."""
    cg = found["cg"]
    if cg is None:  # stopped, like all others
        return (None, "-", "-", None, None)
    seconds = cg["seconds"] / cg["done"]
    ratios = []
    for solver in ("plain", "cholesky"):
        other = found[solver]
        if other is not None:
            ratios.append(f"{other['seconds'] / other['done'] / seconds:.1f}x")
        elif solver == "cholesky" and needed > _MOST_BYTES:
            ratios.append(f"{needed / 2**30:.0f} GiB")
        else:  # not even the first chunk: one target, or all of them
            bound = limit if solver == "cholesky" else limit / n_targets
            ratios.append(f"> {bound / seconds:.0f}x")
    memory = [None if one is None else one["memory"] for one in (cg, found["cholesky"])]
    return (seconds, *ratios, *memory)


def _mebibytes(value: float | None) -> str:
    return "-" if value is None else f"{value / 2**20:.0f}"


def main(arguments: list[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ridge_solvers", description=__doc__
    )
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help="data sets")
    parser.add_argument("--labels", type=int, default=16, help="of each, at most (default: 16)")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="for one solver on one data set (default: 60)"
    )
    parser.add_argument("--child", nargs=2, metavar=("SOLVER", "KIND"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        solver, kind = options.child
        child(solver, options.names[0], kind, options.labels, options.seconds)
        return
    try:
        table = solver_table(options.names, options.labels, options.seconds)
    except FileNotFoundError as error:
        sys.exit(str(error))
    print("\n".join(table.lines()))


if __name__ == "__main__":
    main()
