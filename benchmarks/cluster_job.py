"""Decide a folder of probability files on a Dask cluster, one file per task.

``python benchmarks/cluster_job.py PARTS SETS --scheduler tcp://HOST:8786``: .npy arrays or sparse
.npz matrices of PARTS become Parquet files of label lists in SETS. Workers see the same folders.
"""

import argparse
from contextlib import ExitStack
from pathlib import Path


def decide_part(source: Path, target: Path) -> int:
    """Decide the rows of a file; return their number, or 0 if that was done before."""
    from fgfm.io import decide

    if target.exists():  # decide() renames complete files to this name
        return 0
    return decide(source, target, n_jobs=1).rows


def main() -> None:
    """Run the job and print the number of rows decided."""
    from distributed import Client, LocalCluster, as_completed

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", type=Path)
    parser.add_argument("sets", type=Path)
    parser.add_argument("--scheduler", help="address; by default, workers on this machine")
    parser.add_argument("--workers", type=int, default=2, help="of one thread each")
    options = parser.parse_args()
    options.sets.mkdir(parents=True, exist_ok=True)
    sources = sorted(p for p in options.parts.iterdir() if p.suffix in (".npy", ".npz"))
    targets = [options.sets / f"{p.stem}.parquet" for p in sources]
    with ExitStack() as stack:
        cluster = options.scheduler or stack.enter_context(
            LocalCluster(
                n_workers=options.workers,
                threads_per_worker=1,
                dashboard_address=":0",
            )
        )
        client = stack.enter_context(Client(cluster))
        tasks = client.map(decide_part, sources, targets, retries=2, pure=False)
        print(sum(task.result() for task in as_completed(tasks)), "rows")


if __name__ == "__main__":
    main()
