"""Cost of fitting and deciding on Dask workers: ``python -m benchmarks.cluster``.

Fits data of the size of yeast in this process, with ``n_jobs=2``, and on two Dask workers. Decides
for a folder of Parquet files and for a Dask array of 20 labels and up to 5 million rows, and
reports the peak memory of a process. The workers are processes of one thread on this machine: the
results contain the cost of sending data, but not the gain of other machines. Processor times are
those of all processes; other load on the machine adds more to the time that passes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from benchmarks.memory import peak_bytes
from benchmarks.report import Column, Table, count, duration

__all__ = ["main"]

LABELS = 20
PART_ROWS = 100_000


@contextlib.contextmanager
def _workers(number: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=number, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _processor_time() -> float:
    """Return the processor seconds of this process and of those that it started."""
    import psutil

    this = psutil.Process()
    # user, system, and the same of children that have ended
    return sum(sum(p.cpu_times()[:4]) for p in (this, *this.children(recursive=True)))


def _timed(task: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that pass during a call, and its processor seconds."""
    start, work = time.perf_counter(), _processor_time()
    task()
    return time.perf_counter() - start, _processor_time() - work


def fit(quick: bool) -> Table:
    """Fit the learner "ridge" and one booster per label to data of the size of yeast."""
    from sklearn.ensemble import GradientBoostingClassifier

    from fgfm import FGFMClassifier

    n, p, m = (300, 20, 6) if quick else (2417, 103, 14)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    Y = (X[:, :m] + rng.normal(size=(n, m)) > 0.5).astype(int)
    booster = GradientBoostingClassifier(n_estimators=1 if quick else 4)
    models = {
        "ridge": FGFMClassifier("ridge", random_state=0),
        "boosters": FGFMClassifier(booster, calibration=None, random_state=0),
    }
    table = Table(
        f"Fit {n} rows, {p} features, {m} labels",
        [
            Column("learner", left=True),
            Column("where", left=True),
            Column("time", duration),
            Column("processor", duration),
        ],
    )

    def fits(where: str) -> None:
        for name, model in models.items():
            runs = [_timed(partial(model.fit, X, Y)) for _ in range(3)][1:]  # one starts workers
            table.rows.append((name, where, *map(min, zip(*runs, strict=True))))

    fits("one process")
    with joblib.parallel_config(n_jobs=2):
        fits("n_jobs=2")
    with _workers(2), joblib.parallel_config("dask"):
        fits("two Dask workers")
    return table


def _write_parts(folder: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    proba = np.random.default_rng(0).beta(0.2, 1.2, (PART_ROWS, LABELS))
    table = pa.table({f"label{j}": proba[:, j] for j in range(LABELS)})
    for k in range(rows // PART_ROWS):
        pq.write_table(table, folder / f"{k:05d}.parquet")


def _load_libraries() -> None:
    """Import libraries and compiled code, which happens once per process."""
    import fgfm.decision
    import fgfm.io

    fgfm.decision.from_marginals(np.full((1, LABELS), 0.5))


def _in_child(job: str, rows: int, where: str) -> list[float]:
    """Run a job in a new process; return its times, and the peak memory of its processes."""
    command = [sys.executable, "-m", "benchmarks.cluster", "--child", job, str(rows), where]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [float(value) for value in done.stdout.split()[-3:]]


def _child(job: str, rows: int, where: str) -> None:
    """Run a job on two threads or two Dask workers."""
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(_workers(2)) if where == "dask" else None
        _load_libraries()
        if client is not None:
            client.run(_load_libraries)
        times = (_decide_parts if job == "parts" else _decide_array)(rows, client)
        memory = peak_bytes()
        if client is not None:
            memory = max(memory, *client.run(peak_bytes).values())
    print(*times, memory / 2**20)


def _decide_parts(rows: int, client: Any) -> tuple[float, float]:
    from fgfm.io import decide

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "p").mkdir()
        _write_parts(Path(folder) / "p", rows)
        with joblib.parallel_config(**({"n_jobs": 2} if client is None else {"backend": "dask"})):
            return _timed(lambda: decide(Path(folder) / "p", Path(folder) / "s"))


def _decide_array(rows: int, client: Any) -> tuple[float, float]:
    """Decide for an array, and reduce the decisions, so that no worker holds them all."""
    import dask
    from dask import array

    from fgfm.decision import from_marginals

    proba = array.random.default_rng(0).random((rows, LABELS), chunks=(PART_ROWS, LABELS)) ** 4
    labels, expected_f = from_marginals(proba)
    results = [labels.sum(), expected_f.mean()]
    if client is None:
        return _timed(lambda: dask.compute(*results, scheduler="threads", num_workers=2))
    return _timed(lambda: client.gather(client.compute(results)))


def decisions(job: str, title: str, sizes: tuple[int, ...]) -> Table:
    """Decide for tables of several sizes with threads and with workers, each twice."""
    table = Table(
        title,
        [
            Column("rows", count),
            Column("where", left=True),
            Column("time", duration),
            Column("processor", duration),
            Column("peak memory of a process", lambda v: f"{v:.0f} MiB"),
        ],
    )
    for rows in sizes:
        for where, name in {"threads": "two threads", "dask": "two Dask workers"}.items():
            runs = (_in_child(job, rows, where) for _ in range(2))
            seconds, work, memory = zip(*runs, strict=True)
            table.rows.append((rows, name, min(seconds), min(work), max(memory)))
    return table


def main() -> None:
    """Run the benchmarks and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", choices=("fit", "parts", "arrays"))
    parser.add_argument("--child", nargs=3, metavar=("JOB", "ROWS", "WHERE"))
    options = parser.parse_args()
    if options.child:
        job, rows, where = options.child
        _child(job, int(rows), where)
        return
    sizes = (200_000, 400_000) if options.quick else (1_000_000, 5_000_000)
    tables = {
        "fit": lambda: fit(options.quick),
        "parts": lambda: decisions(
            "parts", "A folder of Parquet files of 100 000 rows and 20 labels", sizes
        ),
        "arrays": lambda: decisions(
            "arrays", "A Dask array of 20 labels in blocks of 100 000 rows", sizes
        ),
    }
    for name, make in tables.items():
        if options.only in (None, name):
            print("\n".join(make().lines()), end="\n\n", flush=True)
    load = os.getloadavg()[0]
    print(f"Load of the machine at the end: {load:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
