"""Blocks of rows: bounded memory, threads, and thread counts as in joblib.

Each row is processed independently of all others, so that results have the same bits for any block
size and number of threads. Blocks bound the memory of converted copies, and are the unit of work
of a thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK_BYTES = 1 << 22  # input or work space of one block; about the size of an L2 cache
_LOCAL_BACKENDS = ("loky", "multiprocessing", "sequential", "threading")  # of joblib itself


def n_workers(n_jobs: Any) -> int:
    """Return the number of concurrent jobs for `n_jobs`, as in joblib.

    None is 1 unless in a ``joblib.parallel_config`` context, and -1 is all cores. The backend of a
    cluster counts the workers of the cluster.
    """
    valid = n_jobs is None or (
        isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool) and n_jobs != 0
    )
    if not valid:
        raise ValueError(f"n_jobs is {n_jobs!r}: it must be None or an integer other than 0")
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def n_threads(n_jobs: Any) -> int:
    """Return the number of threads of this process for `n_jobs`, as in joblib.

    Same as `n_workers`, except that workers of a cluster do not count: with the backend of a
    cluster, None is 1, and -1 is all cores of this machine.
    """
    if (n_jobs is None and "joblib" not in sys.modules) or (type(n_jobs) is int and n_jobs == 1):
        return 1  # without importing joblib: no context can be active
    workers = n_workers(n_jobs)
    if workers == 1:
        return 1
    from joblib import cpu_count
    from joblib.parallel import BACKENDS, get_active_backend

    backend, _ = get_active_backend()
    if type(backend) in {BACKENDS[name] for name in _LOCAL_BACKENDS}:
        return workers
    if n_jobs is None:
        return 1
    return int(n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs))


def slices(n: int, size: int) -> list[slice]:
    """Return the slices of n items in blocks of a size, of at least 1."""
    size = max(size, 1)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def row_blocks(n: int, row_bytes: int, threads: int = 1) -> list[slice]:
    """Split n rows into blocks of at most `BLOCK_BYTES`, at least four per thread if possible."""
    rows = max(1, BLOCK_BYTES // max(1, row_bytes))
    if threads > 1:
        # Four blocks per thread even out rows that take different times.
        rows = max(1, min(rows, -(-n // (4 * threads))))
    return slices(n, rows)


def run_blocks(n: int, row_bytes: int, threads: int, work: Callable[[slice], Any]) -> list[Any]:
    """Call ``work(rows)`` for all blocks of n rows, and return the results in order.

    The error of the first block that fails is raised; blocks that have not started are cancelled.
    """
    if threads == 1 and 0 < n * row_bytes <= BLOCK_BYTES:
        return [work(slice(0, n))]
    blocks = row_blocks(n, row_bytes, threads)
    if threads == 1 or len(blocks) < 2:
        return [work(block) for block in blocks]
    with ThreadPoolExecutor(min(threads, len(blocks))) as pool:
        futures = [pool.submit(work, block) for block in blocks]
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def float_block(array: npt.NDArray[Any], dtype: Any = None) -> npt.NDArray[Any]:
    """Convert a block for the kernels: C-contiguous, aligned, in native byte order.

    It is of the given dtype; by default float32 stays, and all else becomes float64.
    """
    if dtype is None:
        dtype = np.float32 if array.dtype.type is np.float32 else np.float64
    block = np.ascontiguousarray(array, dtype=dtype)
    return block if block.flags.aligned else block.copy()
