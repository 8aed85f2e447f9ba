"""Extreme multi-label classification, in CSR: ``python -m benchmarks.extreme [NAME ...]``.

Probabilities of napkinXC's label trees (``--only real``): `FDecider`, thresholds and the k most
probable labels, tuned on the same validation rows, a fifth of the training rows. Times are those
of the decision alone.

Macro at k (``--only budgets``): k labels per row, against xCOLUMNs' block coordinate ascent, by
the exact expected macro F1; on generated probabilities, and on those of label trees.

Generated probabilities (``--only generated``): 100,000 rows of a million labels, 100 entries per
row, with probabilities that fall like 1 / rank.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.datasets import load
from benchmarks.environment import show_progress
from benchmarks.inputs import sparse_rows
from benchmarks.measure import in_child, least_times
from benchmarks.peers import install
from benchmarks.peers import run as run_peer
from benchmarks.report import Table, count, duration, print_tables
from fgfm import FDecider, decision, f_measure
from fgfm.decision._quadrature import nodes
from fgfm.metrics import best_threshold

__all__ = ["generated", "main", "real", "top_k"]

NAMES = ("eukaryote_go", "imdb", "delicious")
BUDGET_NAMES = ("bibtex", "corel5k", "delicious", "eukaryote_go", "stackex_cs")
BUDGETS = (1, 3, 5)  # labels per row
LIMIT = 480.0  # seconds for one fit of the label tree
NAPKINXC = ("napkinXC==0.7.2", "numpy==2.4.6", "scipy==1.17.1")
XCOLUMNS = ("xcolumns==0.0.2", "numpy==2.4.6", "scipy==1.17.1")
_CHILDREN = Path(__file__).parent


def above(proba: sparse.csr_array, threshold: float) -> sparse.csr_array:
    """Return the labels whose probability is above a threshold."""
    marks = (proba.data > threshold, proba.indices, proba.indptr)
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


def _xcolumns(proba: sparse.csr_array, k: int, seconds: float) -> tuple[float, sparse.csr_array]:
    """Return time and label sets of xCOLUMNs, for macro F1."""
    python = install("xcolumns", XCOLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder) / "proba.npz", Path(folder) / "labels.npz"
        sparse.save_npz(given, proba, compressed=False)
        printed = run_peer(python, _CHILDREN / "xcolumns_child.py", given, k, result, seconds)
        return float(printed.split()[-1]), sparse.csr_array(sparse.load_npz(result))


def _napkinxc(X: Any, Y: Any, X_new: Any) -> sparse.csr_array:
    """Return the probabilities of new rows by a label tree of napkinXC."""
    python = install("napkinxc", NAPKINXC)
    parts = {}
    for name, matrix in {"X": X, "Y": Y, "X_new": X_new}.items():
        csr = sparse.csr_array(matrix)
        parts |= {f"{name}/{p}": getattr(csr, p) for p in ("data", "indices", "indptr", "shape")}
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder) / "split.npz", Path(folder) / "proba.npz"
        np.savez(given, **parts)
        run_peer(python, _CHILDREN / "napkinxc_child.py", given, result, limit=LIMIT)
        return sparse.csr_array(sparse.load_npz(result))


def real(name: str, seconds: float) -> Table:
    """Compare rules on the probabilities of one model."""
    show_progress(f"{name}: napkinXC")
    split = load(name)
    X, Y = sparse.csr_array(split.X_train), split.Y_train
    held_out = np.random.default_rng(0).permutation(len(Y)) < len(Y) // 5
    new = sparse.vstack([X[held_out], sparse.csr_array(split.X_test)])
    proba = _napkinxc(X[~held_out], Y[~held_out], new)
    validation, proba, Y = proba[: held_out.sum()], proba[held_out.sum() :], Y[held_out]
    n, m = proba.shape
    show_progress(f"{name}: decisions")
    decider = FDecider().fit(validation, Y)
    cut = best_threshold(validation, sparse.csr_array(Y))
    numbers = range(1, round(2 * Y.sum() / len(Y)) + 2)
    k = max(numbers, key=lambda k: f_measure(Y, top_k(validation, k)))
    nonempty = bool(Y.any(axis=1).all())
    tasks: dict[str, Callable[[], Any]] = {
        "FDecider": lambda: decider.predict(proba),
        "from_marginals": lambda: decision.from_marginals(proba, nonempty=nonempty).labels,
        "threshold": lambda: above(proba, cut),
        "k most probable": lambda: top_k(proba, k),
        "p > 0.5": lambda: above(proba, 0.5),
    }
    times = least_times(tasks, seconds=seconds)
    show_progress("")
    table = Table(
        f"{name}: {n} test rows, {m} labels, {proba.nnz / n:.0f} stored per row",
        "rule: left; F1: .3f; labels per row: number; time of a row: duration",
    )
    for rule, task in tasks.items():
        labels = task()
        f1 = f_measure(split.Y_test, labels)
        table.add(rule, f1, labels.sum() / n, times[rule] / n)
    table.notes.append(f"Chosen on {len(Y)} validation rows: threshold {cut:.3f}, k = {k}.")
    return table


def generated(n: int, m: int, stored: int) -> Table:
    """Measure speed and memory on generated probabilities."""
    table = Table(
        f"from_marginals, CSR: {count(n)} rows, {count(m)} labels, {stored} stored per row",
        "entries: left; in order: left; rows/s: count; input: MiB; output: MiB; peak beyond: MiB",
    )
    proba = sparse_rows(n, m, stored)
    for dtype in (np.float32, np.float64):
        for in_order in (True, False):
            show_progress(f"{dtype.__name__}, {'in order' if in_order else 'not in order'}")
            with tempfile.TemporaryDirectory() as folder:
                _write(proba, dtype, in_order, Path(folder))
                found = in_child("sparse_memory", folder, "3")
            memory = found["input"], found["decided"], found["extra"]
            order = "yes" if in_order else "no"
            table.add(dtype.__name__, order, n / found["seconds"], *memory)
    show_progress("")
    table.notes.append(
        "Processor time of one thread. Not in order: the most probable label first. Peak beyond: "
        "peak memory minus the memory before the call (input and libraries); it includes the "
        "output."
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
        "data: left; k: text; xCOLUMNs: .5f; fgfm: .5f; gap: .5f; at most k: .5f; "
        "fgfm s: duration; by fgfm: ratio",
    )
    for name, proba, k in cases:
        show_progress(f"{name}, k = {k}")

        def task(least: int = k, p: sparse.csr_array = proba, k: int = k) -> decision.Decision:
            limits = {"min_labels": least, "max_labels": k}
            return decision.from_marginals(p, average="macro", zero_division=0.0, **limits)

        own = task()
        took = least_times({"fgfm": task}, seconds=seconds)["fgfm"]
        other, theirs = _xcolumns(proba, k, seconds)
        f1, free = exact_macro_f(proba, theirs, 0.0), float(task(0).expected_f.mean())
        mean = float(own.expected_f.mean())
        table.add(name, k, f1, mean, own.gap, free, took, other / took)
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
        split = load(name)
        proba = _napkinxc(split.X_train, split.Y_train, split.X_test)
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
    seconds = 1.0 if options.quick else 5.0
    start = time.perf_counter()
    if options.only in (None, "real"):
        for name in options.names or NAMES:
            print_tables([real(name, seconds)])
    if options.only in (None, "budgets"):
        names = options.names or BUDGET_NAMES
        cases = chain(real_budgets(names), generated_budgets(options.quick))
        print_tables([budgets(cases, seconds)])
    if options.only in (None, "generated"):
        n = 5000 if options.quick else 100_000
        print_tables([generated(n, 1_000_000, 100)])
    print(f"Total time: {duration(time.perf_counter() - start)}")


if __name__ == "__main__":
    main()
