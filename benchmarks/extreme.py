"""Extreme multi-label classification, in CSR: ``python -m benchmarks.extreme [NAME ...]``.

With real data: several rules decide from the probabilities of napkinXC's label trees. Times are
those of the decision alone. xCOLUMNs has no rule for the F-measure of a row; the nearest ones are
the k most probable labels, and the macro F-measure by block coordinate ascent. k is the mean
number of labels in training, rounded.

Without real data (``--only generated``): 100,000 rows of a million labels, 100 entries per row,
with probabilities that fall like 1 / rank.

Macro at k (``--only budgets``): k labels per row, against xCOLUMNs' block coordinate ascent, by
the exact expected macro F1; on generated probabilities, and on those of label trees.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.datasets import Split, load
from benchmarks.environment import show_progress
from benchmarks.inputs import sparse_rows
from benchmarks.measure import in_child, least_times
from benchmarks.peers import install
from benchmarks.peers import run as run_peer
from benchmarks.report import Column, Table, count, duration, mebibytes, number, ratio
from fgfm import decision, f_measure
from fgfm.decision._quadrature import nodes

__all__ = ["generated", "main", "real", "threshold", "top_k"]

NAMES = ("eukaryote_go", "imdb", "delicious")
BUDGET_NAMES = ("bibtex", "corel5k", "delicious", "eukaryote_go", "stackex_cs")
BUDGETS = (1, 3, 5)  # labels per row
LIMIT = 480.0  # seconds for one fit of the label tree
NAPKINXC = ("napkinXC==0.7.2", "numpy==2.4.6", "scipy==1.17.1")
XCOLUMNS = ("xcolumns==0.0.2", "numpy==2.4.6", "scipy==1.17.1")
_CHILDREN = Path(__file__).parent


def threshold(proba: sparse.csr_array) -> sparse.csr_array:
    """Return the labels that are more probable than not."""
    marks = (proba.data > 0.5, proba.indices, proba.indptr)
    labels = sparse.csr_array(marks, shape=proba.shape, copy=True)  # changed in place below
    labels.eliminate_zeros()
    return labels


def top_k(proba: sparse.csr_array, k: int) -> sparse.csr_array:
    """Return the k most probable labels of each row, or all stored ones if they are fewer."""
    lengths = np.diff(proba.indptr)
    row = np.repeat(np.arange(proba.shape[0]), lengths)
    order = np.lexsort((-proba.data, row))
    rank = np.arange(proba.nnz) - np.repeat(proba.indptr[:-1], lengths)
    kept = order[rank < k]
    ones = np.ones(len(kept), dtype=np.int8)
    return sparse.csr_array((ones, (row[kept], proba.indices[kept])), shape=proba.shape)


def _xcolumns(
    proba: sparse.csr_array, k: int, seconds: float
) -> dict[str, tuple[float, sparse.csr_array]]:
    """Return time and label sets of each rule of xCOLUMNs."""
    python = install("xcolumns", XCOLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder) / "proba.npz", Path(folder) / "labels.npz"
        sparse.save_npz(given, proba, compressed=False)
        printed = run_peer(python, _CHILDREN / "xcolumns_child.py", given, k, result, seconds)
        with np.load(result) as stored:
            return {
                name: (
                    took,
                    sparse.csr_array(
                        tuple(stored[f"{name}/{part}"] for part in ("data", "indices", "indptr")),
                        shape=proba.shape,
                    ),
                )
                for name, took in json.loads(printed).items()
            }


def _napkinxc(split: Split) -> tuple[sparse.csr_array, float, float]:
    """Return the probabilities of a label tree of napkinXC, and the seconds of fit and predict."""
    python = install("napkinxc", NAPKINXC)
    parts = {}
    for name in ("X_train", "Y_train", "X_test"):
        matrix = sparse.csr_array(getattr(split, name))
        parts |= {
            f"{name}/{p}": getattr(matrix, p) for p in ("data", "indices", "indptr", "shape")
        }
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder) / "split.npz", Path(folder) / "proba.npz"
        np.savez(given, **parts)
        printed = run_peer(python, _CHILDREN / "napkinxc_child.py", given, result, limit=LIMIT)
        return sparse.csr_array(sparse.load_npz(result)), *json.loads(printed)


def real(name: str, split: Split, seconds: float) -> Table:
    """Compare rules on the probabilities of one model."""
    show_progress(f"{name}: napkinXC")
    proba, fit_s, predict_s = _napkinxc(split)
    single = proba.astype(np.float32)
    n, m = proba.shape
    k = max(1, round(split.Y_train.sum() / len(split.Y_train)))
    nonempty = bool(split.Y_train.any(axis=1).all())
    tasks: dict[str, Callable[[], Any]] = {
        "fgfm": lambda: decision.from_marginals(proba, nonempty=nonempty),
        "fgfm, float32": lambda: decision.from_marginals(single, nonempty=nonempty),
        "napkinXC, 0.5": lambda: threshold(proba),
        "napkinXC, top-k": lambda: top_k(proba, k),
    }
    show_progress(f"{name}: decisions")
    times = least_times(tasks, seconds=seconds)
    labels = {rule: getattr(task(), "labels", None) for rule, task in tasks.items()}
    labels |= {rule: tasks[rule]() for rule, sets in labels.items() if sets is None}
    show_progress(f"{name}: xCOLUMNs")
    for rule, (took, found) in _xcolumns(proba, k, seconds).items():
        times[f"xCOLUMNs, {rule}"], labels[f"xCOLUMNs, {rule}"] = took, found
    show_progress("")
    table = Table(
        f"{name}: {n} test rows, {m} labels, {proba.nnz / n:.0f} stored per row, k = {k}",
        [
            Column("rule", left=True),
            Column("F1", lambda f1: f"{f1:.4f}"),
            Column("labels per row", number),
            Column("decision", duration),
            Column("by fgfm", lambda x: f"{x:.2f}x"),
        ],
    )
    for rule, sets in labels.items():
        f1 = f_measure(split.Y_test, sets)
        table.rows.append((rule, f1, sets.sum() / n, times[rule], times[rule] / times["fgfm"]))
    table.notes.append(
        f"napkinXC took {duration(fit_s)} to fit and {duration(predict_s)} to predict; "
        "its rules are timed here on the CSR matrix."
    )
    if nonempty:
        table.notes.append("No training row is empty: fgfm decides with nonempty=True.")
    return table


def generated(
    n: int, m: int, stored: int, dtypes: Sequence[type[np.floating]] = (np.float32, np.float64)
) -> Table:
    """Measure speed and memory on generated probabilities."""
    table = Table(
        f"from_marginals, CSR: {count(n)} rows, {count(m)} labels, {stored} stored per row",
        [
            Column("entries", left=True),
            Column("in order", left=True),
            Column("threads"),
            Column("rows/s", count),
            Column("speed-up", ratio),
            Column("input", mebibytes),
            Column("output", mebibytes),
            Column("peak beyond", mebibytes),
        ],
    )
    proba = sparse_rows(n, m, stored)
    for dtype in dtypes:
        for in_order in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                _write(proba, dtype, in_order, Path(folder))
                alone = None
                for threads in (1, 2):
                    show_progress(f"{dtype.__name__}, {threads} threads")
                    found = in_child("sparse_memory", folder, str(threads), "3")
                    alone = alone or found["seconds"]
                    table.rows.append(
                        (
                            dtype.__name__,
                            "yes" if in_order else "no",
                            threads,
                            n / found["seconds"],
                            alone / found["seconds"],
                            found["input"],
                            found["decided"],
                            found["extra"],
                        )
                    )
    show_progress("")
    table.notes.append(
        "Not in order: the most probable label first. Peak beyond: peak memory minus the memory "
        "before the call (input and libraries); it includes the output."
    )
    return table


def exact_macro_f(
    proba: sparse.csr_array, labels: sparse.csr_array, zero_division: float = 1.0
) -> float:
    """Compute the exact expected macro F1 of a decision, from the generating functions."""
    columns, chosen = proba.tocsc(), labels.multiply(proba).tocsc()
    sizes = np.asarray(labels.sum(axis=0)).ravel()  # (m,)
    rule = nodes(1.0, proba.shape[0], proba.shape[0])

    def add(matrix: Any, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        column = np.repeat(np.arange(proba.shape[1]), np.diff(matrix.indptr))
        return np.bincount(column, values, minlength=proba.shape[1])

    value = np.zeros(proba.shape[1])
    for log_z, weight in zip(*rule, strict=True):
        u = -np.expm1(log_z)
        none = np.exp(add(columns, np.log1p(-columns.data * u)))
        hits = add(chosen, chosen.data / (1.0 - chosen.data * u))
        value += 2.0 * weight * np.exp((sizes + 1) * log_z) * none * hits
    empty = np.exp(add(columns, np.log1p(-np.minimum(columns.data, 1.0 - 1e-16))))
    return float(np.where(sizes > 0, value, zero_division * empty).mean())


def budgets(cases: Iterable[tuple[str, sparse.csr_array, int]], seconds: float) -> Table:
    """Compare decisions of k labels per row: exactly k, or at most k."""
    table = Table(
        "expected macro F1 with k labels per row, CSR, one thread",
        [
            Column("data", left=True),
            Column("k"),
            Column("xCOLUMNs", lambda f1: f"{f1:.5f}"),
            Column("fgfm", lambda f1: f"{f1:.5f}"),
            Column("gap", lambda gap: f"{gap:.5f}"),
            Column("at most k", lambda f1: f"{f1:.5f}"),
            Column("fgfm s", duration),
            Column("by fgfm", ratio),
        ],
    )
    for name, proba, k in cases:
        show_progress(f"{name}, k = {k}")

        def task(least: int = k, p: sparse.csr_array = proba, k: int = k) -> decision.Decision:
            limits = {"min_labels": least, "max_labels": k}
            return decision.from_marginals(p, average="macro", zero_division=0.0, **limits)

        own = task()
        took = least_times({"fgfm": task}, seconds=seconds)["fgfm"]
        other, theirs = _xcolumns(proba, k, seconds)["macro F1"]
        f1, free = exact_macro_f(proba, theirs, 0.0), float(task(0).expected_f.mean())
        mean = float(own.expected_f.mean())
        table.rows.append((name, k, f1, mean, own.gap, free, took, other / took))
    show_progress("")
    table.notes.append("xCOLUMNs and fgfm choose exactly k; only fgfm can choose fewer. 0/0 is 0.")
    return table


def generated_budgets(quick: bool) -> Iterator[tuple[str, sparse.csr_array, int]]:
    """Yield name, probabilities and k of generated problems."""
    sizes = [(2000, 500, 3), (5000, 5000, 5), (20_000, 20_000, 5)]
    for n, m, k in sizes[:1] if quick else sizes:
        yield f"{count(n)} x {count(m)}", sparse_rows(n, m, 50), k


def real_budgets(names: Iterable[str]) -> Iterator[tuple[str, sparse.csr_array, int]]:
    """Yield name, probabilities of a label tree, and k; rows with fewer labels are left out."""
    for name in names:
        show_progress(f"{name}: napkinXC")
        proba, *_ = _napkinxc(load(name))
        proba = proba[np.flatnonzero(np.diff(proba.indptr) >= max(BUDGETS))]
        for k in BUDGETS:
            yield name, proba, k


def _write(proba: sparse.csr_array, dtype: Any, in_order: bool, folder: Path) -> None:
    """Write the files that the job `sparse_memory` reads."""
    data, indices = proba.data.astype(dtype), proba.indices
    if not in_order:
        row = np.repeat(np.arange(proba.shape[0]), np.diff(proba.indptr))
        order = np.lexsort((-data, row))
        data, indices = data[order], indices[order]
    parts = {"data": data, "indices": indices, "indptr": proba.indptr, "m": proba.shape[1]}
    for name, part in parts.items():
        np.save(folder / f"{name}.npy", part)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extreme", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets")
    parser.add_argument("--only", choices=("real", "generated", "budgets"), help="run one part")
    parser.add_argument("--quick", action="store_true", help="5000 generated rows, one second")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    if options.only in (None, "budgets"):
        seconds = 1.0 if options.quick else 10.0
        for cases in (
            generated_budgets(options.quick),
            real_budgets(options.names or BUDGET_NAMES),
        ):
            print("\n".join(budgets(cases, seconds).lines()), end="\n\n", flush=True)
    if options.only in (None, "generated"):
        n = 5000 if options.quick else 100_000
        print("\n".join(generated(n, 1_000_000, 100).lines()), end="\n\n", flush=True)
    if options.only in (None, "real"):
        for name in options.names or NAMES:
            try:
                split = load(name)
            except FileNotFoundError as error:
                sys.exit(str(error))
            table = real(name, split, 1.0 if options.quick else 10.0)
            print("\n".join(table.lines()), end="\n\n", flush=True)
    print(f"Total time: {duration(time.perf_counter() - start)}")


if __name__ == "__main__":
    main()
