"""Bytes, time and money of deciding 10^9 rows on a cluster, from measured rates.

``python -m benchmarks.costs`` prints the tables of ``docs/cluster.md`` from stored measurements;
options change the assumptions. ``--measure`` measures the rates of this machine first, and
replaces what is stored. Write the output to ``docs/benchmark/costs/tables.txt``.

Rates are rows per second of processor time of one thread, so that other load on the machine does
not count as work.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.cluster_job import decide_part
from benchmarks.environment import show_progress
from benchmarks.inputs import marginal_rows, sparse_rows
from benchmarks.report import Column, Table, count, duration
from fgfm import decision

__all__ = ["Cost", "Job", "Nodes", "cost", "main", "measure", "tables"]

MEASURED = Path(__file__).parents[1] / "docs" / "benchmark" / "costs" / "measured.json"
ROWS = 10**9
TWENTY = "20 labels"
# Rows per second of one H200, float32 probabilities in its memory: docs/gpu.md.
GPU_RATES = {"1000 labels, few": 2.0e8, "1000 labels, half": 9.9e7}


@dataclass(frozen=True)
class Job:
    """Rows to decide."""

    rows: float
    rate: float
    read: float
    written: float
    file_rows: float


@dataclass(frozen=True)
class Nodes:
    """Machines of a cluster."""

    number: int
    units: int
    bandwidth: float
    price: float = 0.0
    task: float = 0.0


class Cost(NamedTuple):
    """What a job takes."""

    read: float
    written: float
    work: float
    seconds: float
    bound: str
    busy: float
    money: float


def cost(job: Job, nodes: Nodes) -> Cost:
    """Compute what a job takes on a cluster.

    Transfer, computing and scheduling overlap, each spread evenly: the longest one counts.
    """
    read, written = job.rows * job.read, job.rows * job.written
    work = job.rows / job.rate
    parts = {
        "computing": work / (nodes.number * nodes.units),
        "transfer": (read + written) / (nodes.number * nodes.bandwidth),
        "scheduling": nodes.task * job.rows / job.file_rows,
    }
    bound = max(parts, key=lambda name: parts[name])
    seconds = parts[bound]
    return Cost(
        read=read,
        written=written,
        work=work,
        seconds=seconds,
        bound=bound,
        busy=nodes.bandwidth / (job.rate * (job.read + job.written)),
        money=nodes.number * nodes.units * nodes.price * seconds / 3600.0,
    )


def _twenty(rows: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random((rows, 20), dtype=np.float32) ** 4


# Name, rows of a file, rows to draw.
CASES: dict[str, tuple[int, Callable[[int], Any]]] = {
    "1000 labels, few": (100_000, lambda n: marginal_rows("sparse", n, 1000)),
    "1000 labels, half": (100_000, lambda n: marginal_rows("dense", n, 1000)),
    "10^7 labels, CSR": (1_000_000, lambda n: sparse_rows(n, 10_000_000, 100)),
    TWENTY: (1_000_000, _twenty),
}


def _processor_time(task: Callable[[], object], calls: int) -> float:
    """Return the least processor seconds of some calls."""
    found = []
    for _ in range(calls):
        start = time.process_time()
        task()
        found.append(time.process_time() - start)
    return min(found)


def _save(proba: Any, folder: Path, name: str) -> Path:
    if sparse.issparse(proba):
        sparse.save_npz(folder / f"{name}.npz", proba, compressed=False)
        return folder / f"{name}.npz"
    np.save(folder / f"{name}.npy", proba)
    return folder / f"{name}.npy"


def measure(calls: int = 3, share: float = 1.0) -> dict[str, dict[str, float]]:
    """Measure the rate of each case, with files of `share` of their rows."""
    rates = {}
    for name, (rows, draw) in CASES.items():
        show_progress(name)
        n = int(share * rows)
        proba = draw(n).astype(np.float32)
        with tempfile.TemporaryDirectory() as folder:
            source, target = _save(proba, Path(folder), "part"), Path(folder) / "part.parquet"
            decision.from_marginals(proba[:10])  # loads the kernels

            def task(source: Path = source, target: Path = target) -> None:
                target.unlink(missing_ok=True)
                decide_part(source, target)

            task()
            rates[name] = {
                "file_rows": rows,
                "decision": n / _processor_time(partial(decision.from_marginals, proba), calls),
                "file": n / _processor_time(task, calls),
                "read": source.stat().st_size / n,
                "written": target.stat().st_size / n,
            }
    show_progress("")
    return rates


def task_seconds(tasks: int = 10_000) -> float:
    """Measure the seconds of Dask's scheduler per task, by tasks without work."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.gather(client.map(abs, range(10), pure=False))
        start = time.perf_counter()
        client.gather(client.map(abs, range(tasks), pure=False))
        return (time.perf_counter() - start) / tasks


def _terabytes(value: float) -> str:
    return f"{value / 1e12:.2f} TB" if value >= 1e12 else f"{value / 1e9:.1f} GB"


def _time(seconds: float) -> str:
    units = ((3600.0, "h"), (60.0, "min"))
    unit, name = next((u for u in units if seconds >= 2.0 * u[0]), (1.0, "s"))
    return f"{seconds / unit:.1f} {name}"


def _job(measured: dict[str, Any], name: str, rows: float) -> Job:
    r = measured["rates"][name]
    return Job(rows, r["file"] / measured["factor"], r["read"], r["written"], r["file_rows"])


def _rate_table(measured: dict[str, Any]) -> Table:
    table = Table(
        "Measured: one core, float32, files in memory",
        [
            Column("", left=True),
            Column("decision", count),
            Column("file", count),
            Column("worker", count),
            Column("read", count),
            Column("written", count),
        ],
    )
    for name, r in measured["rates"].items():
        rate = _job(measured, name, ROWS).rate
        table.rows.append((name, r["decision"], r["file"], rate, r["read"], r["written"]))
    table.notes.append(
        f"Rows per second of processor time, {measured['date']}: the decision alone; a file read, "
        f"decided and written; the same in a Dask worker, which takes {measured['factor']:.2f} "
        "times as long for files of 20 labels. Bytes per row read and written. The scheduler of "
        f"Dask takes {duration(measured['task'])} per file."
    )
    return table


def _cost_table(
    measured: dict[str, Any], cores: Nodes, gpus: Nodes, month: float, rows: float
) -> Table:
    jobs = [
        (name, _job(measured, name, rows), cores) for name in measured["rates"] if name != TWENTY
    ]
    for name, rate in GPU_RATES.items():
        job = replace(_job(measured, name, rows), rate=rate, file_rows=np.inf)
        kind = name.rpartition(" ")[2]
        jobs.append((f"GPU, {kind}", job, gpus))
        # The network that computes the probabilities runs on the same GPU.
        jobs.append((f"GPU, {kind}, in memory", replace(job, read=0.0), gpus))
    table = Table(
        f"{count(rows)} rows",
        [
            Column("", left=True),
            Column("read", _terabytes),
            Column("written", _terabytes),
            Column("work", _time),
            Column("1 node", _time),
            Column(f"{cores.number} nodes", _time),
            Column("bound", left=True),
            Column("busy", lambda x: f"{x:.2g}"),
            Column("price", lambda x: f"{x:.2f}"),
        ],
    )
    for name, job, nodes in jobs:
        alone = cost(job, replace(nodes, number=1))
        c = cost(job, nodes)
        busy = min(c.busy, float(nodes.units))
        table.rows.append(
            (name, c.read, c.written, c.work, alone.seconds, c.seconds, c.bound, busy, c.money)
        )
    largest = max(row[1] + row[2] for row in table.rows)
    table.notes += [
        f"Assumed: nodes of {cores.units} cores at {cores.price:g} per core-hour and "
        f"{8e-9 * cores.bandwidth:g} Gbit/s; of {gpus.units} GPU at {gpus.price:g} per GPU-hour "
        f"and {8e-9 * gpus.bandwidth:g} Gbit/s; storage at {month:g} per GB and month "
        f"({month * largest / 1e9:.0f} for the largest table).",
        "Work: of one core or GPU. Busy: cores or GPUs per node that work at a time, on average.",
    ]
    return table


def tables(
    measured: dict[str, Any], cores: Nodes, gpus: Nodes, month: float, rows: float = ROWS
) -> list[Table]:
    """Return the tables of rates and of costs."""
    cores, gpus = (replace(n, task=measured["task"]) for n in (cores, gpus))
    return [
        _rate_table(measured),
        _cost_table(measured, cores, gpus, month, rows),
    ]


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description=__doc__)
    parser.add_argument("--measure", action="store_true", help="measure the rates (minutes)")
    parser.add_argument("--rows", type=float, default=ROWS)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--cores", type=int, default=16, help="per node")
    parser.add_argument("--network", type=float, default=10.0, help="Gbit/s of a node with cores")
    parser.add_argument("--gpu-network", type=float, default=100.0, help="Gbit/s of one with GPU")
    parser.add_argument("--core-hour", type=float, default=0.05, help="assumed price")
    parser.add_argument("--gpu-hour", type=float, default=4.0, help="assumed price")
    parser.add_argument("--month", type=float, default=0.02, help="assumed price of a stored GB")
    options = parser.parse_args(arguments)
    measured = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    if options.measure:
        date = time.strftime("%Y-%m-%d")
        measured |= {"date": date, "rates": measure(), "task": task_seconds()}
        MEASURED.parent.mkdir(parents=True, exist_ok=True)
        MEASURED.write_text(json.dumps(measured, indent=1) + "\n")
    cores = Nodes(options.nodes, options.cores, options.network / 8e-9, options.core_hour)
    gpus = Nodes(options.nodes, 1, options.gpu_network / 8e-9, options.gpu_hour)
    found = tables(measured, cores, gpus, options.month, options.rows)
    print("\n\n".join("\n".join(table.lines()) for table in found))


if __name__ == "__main__":
    main()
