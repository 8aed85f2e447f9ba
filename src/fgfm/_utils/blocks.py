"""Rows in blocks: bounded memory, threads, and the same bits for any block size and thread count.

A row is decided by itself, whatever stands beside it; blocks only bound the memory for what has to
be converted or copied, and give threads something to share.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["BLOCK_BYTES", "float_block", "n_threads", "n_workers", "row_blocks", "run_blocks"]

BLOCK_BYTES = 1 << 22  # of input, or of work space, that a block may have


_LOCAL = ("loky", "multiprocessing", "sequential", "threading")  # joblib's own backends


def n_workers(n_jobs: Any) -> int:
    """Give the number of jobs at a time that `n_jobs` asks for, in joblib's meaning.

    None is 1, unless a ``joblib.parallel_config`` says otherwise; -1 is all cores. A backend for a
    cluster counts the workers there.
    """
    if n_jobs is None and "joblib" not in sys.modules:
        return 1  # nobody can have configured it
    valid = n_jobs is None or (
        isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool) and n_jobs != 0
    )
    if not valid:
        raise ValueError(f"n_jobs is {n_jobs!r}: it must be None or an integer other than 0")
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def n_threads(n_jobs: Any) -> int:
    """Give the number of threads of this process that `n_jobs` asks for, in joblib's meaning.

    As `n_workers`, but the workers of a cluster are no threads: where a backend for one is
    configured, None is 1, and -1 all cores of this machine.
    """
    workers = n_workers(n_jobs)
    if workers == 1:
        return 1
    from joblib import cpu_count
    from joblib.parallel import BACKENDS, get_active_backend

    backend, _ = get_active_backend()
    if type(backend) in {BACKENDS[name] for name in _LOCAL}:
        return workers
    if n_jobs is None:
        return 1
    return int(n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs))


def row_blocks(n: int, row_bytes: int, threads: int = 1) -> list[slice]:
    """Cut n rows into blocks of bounded size, and enough of them for all threads."""
    rows = max(1, BLOCK_BYTES // max(1, row_bytes))
    if threads > 1:
        rows = max(1, min(rows, -(-n // (4 * threads))))
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


def run_blocks(n: int, row_bytes: int, threads: int, work: Callable[[slice], Any]) -> list[Any]:
    """Call ``work(rows)`` for blocks of rows that cover all n; give the answers in order.

    An error of the first block that has one is raised; blocks that have not begun are dropped.
    """
    blocks = row_blocks(n, row_bytes, threads)
    if threads == 1 or len(blocks) < 2:
        return [work(block) for block in blocks]
    with ThreadPoolExecutor(min(threads, len(blocks))) as pool:
        futures = [pool.submit(work, block) for block in blocks]
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def float_block(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Give a block as the kernels read it: float32 or float64, contiguous, marked as writable.

    The kernels do not write to it, but to them an array that cannot be written has another type,
    and would take machine code of its own: a copy of the block costs less.
    """
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    return np.require(array, array.dtype.newbyteorder("="), ["C", "W"])
