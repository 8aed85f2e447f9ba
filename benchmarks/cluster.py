"""Cost of fitting and deciding on Dask workers.

``python -m benchmarks.cluster [--quick] [--only fit|parts|arrays]`` fits data of the size of yeast
in this process, with ``n_jobs=2``, and on one and two Dask workers. It decides for a folder of
Parquet files and for a Dask array of 20 labels and up to 5 million rows, and reports the peak
memory of a process. The workers are processes of one thread on this machine: the results contain
the cost of sending data, but not the gain of other machines.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
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


def _minimum_time(task: Callable[[], object], times: int) -> float:
    """Return the minimum time of some calls, after one that is not timed."""
    task()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        task()
        found.append(time.perf_counter() - start)
    return min(found)


def fit(quick: bool) -> Table:
    """Fit the default learner and a forest to data of the size of yeast."""
    from sklearn.ensemble import RandomForestClassifier

    from fgfm import FGFMClassifier

    n, p, m = (300, 20, 6) if quick else (2417, 103, 14)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    Y = (X[:, :m] + rng.normal(size=(n, m)) > 0.5).astype(int)
    trees = 10 if quick else 100
    models = {
        "ridge": FGFMClassifier(method="two-step", random_state=0),
        "forest": FGFMClassifier(
            RandomForestClassifier(trees), factors="independent", calibration=None, random_state=0
        ),
    }
    times = 1 if quick else 2
    table = Table(
        f"Fit {n} rows, {p} features, {m} labels",
        [Column("where", left=True), *(Column(name, duration) for name in models)],
    )

    def times_of_fits() -> list[float]:
        return [
            _minimum_time(lambda model=model: model.fit(X, Y), times) for model in models.values()
        ]

    table.rows.append(("one process", *times_of_fits()))
    with joblib.parallel_config(n_jobs=2):
        table.rows.append(("n_jobs=2", *times_of_fits()))
    for number in (1, 2):
        with _workers(number), joblib.parallel_config("dask"):
            table.rows.append((f"Dask, workers: {number}", *times_of_fits()))
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


def _in_child(job: str, rows: int, where: str) -> tuple[float, float]:
    """Run a job in a new process; return its time, and the peak memory of its processes."""
    command = [sys.executable, "-m", "benchmarks.cluster", "--child", job, str(rows), where]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds, memory = done.stdout.split()[-2:]
    return float(seconds), float(memory)


def _child(job: str, rows: int, where: str) -> None:
    """Run a job on 1 or 2 threads ("1", "2") or workers ("dask1", "dask2")."""
    number = int(where[-1])
    with contextlib.ExitStack() as stack:
        client = None
        if where.startswith("dask"):
            client = stack.enter_context(_workers(number))
        _load_libraries()
        if client is not None:
            client.run(_load_libraries)
        if job == "parts":
            seconds = _decide_parts(rows, number, client)
        else:
            seconds = _decide_array(rows, number, client)
        memory = peak_bytes()
        if client is not None:
            memory = max(memory, *client.run(peak_bytes).values())
    print(seconds, memory / 2**20)


def _decide_parts(rows: int, number: int, client: Any) -> float:
    from fgfm.io import decide

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "p").mkdir()
        _write_parts(Path(folder) / "p", rows)
        config = {"n_jobs": number} if client is None else {"backend": "dask"}
        start = time.perf_counter()
        with joblib.parallel_config(**config):
            decide(Path(folder) / "p", Path(folder) / "s")
        return time.perf_counter() - start


def _decide_array(rows: int, number: int, client: Any) -> float:
    """Decide for an array, and reduce the decisions, so that no worker holds them all."""
    import dask
    from dask import array

    from fgfm.decision import from_marginals

    proba = array.random.default_rng(0).random((rows, LABELS), chunks=(PART_ROWS, LABELS)) ** 4
    labels, expected_f = from_marginals(proba)
    results = labels.sum(), expected_f.mean()
    start = time.perf_counter()
    if client is None:
        dask.compute(*results, scheduler="threads", num_workers=number)
    else:
        client.gather(client.compute(list(results)))
    return time.perf_counter() - start


def decisions(job: str, title: str, sizes: tuple[int, ...]) -> Table:
    """Decide for tables of several sizes with threads and with workers."""
    table = Table(
        title,
        [
            Column("rows", count),
            Column("where", left=True),
            Column("time", duration),
            Column("peak memory of a process", lambda v: f"{v:.0f} MiB"),
        ],
    )
    names = {"1": "one thread", "2": "two threads", "dask1": "one worker", "dask2": "two workers"}
    for rows in sizes:
        for where, name in names.items():
            table.rows.append((rows, name, *_in_child(job, rows, where)))
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
            print("\n".join(make().lines()), flush=True)


if __name__ == "__main__":
    main()
