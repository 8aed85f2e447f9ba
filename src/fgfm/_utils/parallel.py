"""Parallel jobs with joblib: in threads, in processes, or on a cluster.

joblib's backends for Dask and Ray send an argument to a worker once, however many jobs take it, if
it is a separate argument, the same object in each job, and large according to
``sys.getsizeof``. Arrays are; objects that hold arrays derive from `Shared`. Arrays of one job
are passed in a tuple, which is sent with the job.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import numpy as np
import threadpoolctl  # type: ignore[import-untyped]
from joblib import cpu_count
from joblib.parallel import get_active_backend
from scipy import sparse
from sklearn.utils.parallel import Parallel

_SMALL = 100_000  # values of X up to which OpenMP threads cost more than they save


class Shared:
    """Base class of read-only arguments of many jobs; its size includes its arrays."""

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(_n_bytes(value) for value in vars(self).values())


def _n_bytes(value: Any) -> int:
    """Return the number of bytes of the arrays that a value holds."""
    if sparse.issparse(value):
        return sum(_n_bytes(getattr(value, name)) for name in ("data", "indices", "indptr"))
    if isinstance(value, Shared):
        return value.__sizeof__()
    if isinstance(value, (list, tuple)):
        return sum(_n_bytes(part) for part in value)
    if hasattr(value, "memory_usage"):  # a data frame of pandas
        return sys.getsizeof(value)
    return int(getattr(value, "nbytes", 0))


def run_jobs(
    jobs: Iterable[Any], n_jobs: Any, prefer: str | None = None, *, ordered: bool = True
) -> Iterator[Any]:
    """Run jobs and iterate over their results, as they come if the backend supports it."""
    hint: dict[str, Any] = {} if prefer is None else {"prefer": prefer}
    backend, _ = get_active_backend(**hint)
    if hasattr(backend, "client"):  # Dask's; a copy, as the caller's serves other calls too
        recoverable = object.__new__(type(backend))
        vars(recoverable).update(vars(backend), client=_RecoverableClient(backend.client))
        hint["backend"] = recoverable
    return_as = "generator" if ordered else "generator_unordered"
    # joblib's "multiprocessing" backend, and Ray's, which derives from it, only return lists
    if not backend.supports_return_generator:
        return_as = "list"
    batch_size = "auto" if ordered else 1
    parallel = Parallel(n_jobs=n_jobs, return_as=return_as, batch_size=batch_size, **hint)
    return iter(parallel(jobs))


class _RecoverableClient:
    """Client of Dask for joblib's backend; a lost worker takes no data with it.

    joblib scatters large arguments, each to one worker, and Dask cannot restore scattered data.
    Replicas would not suffice: Dask drops those that no job waits for. Here an argument is the
    result of a task, which the scheduler keeps and can run again. It keeps bytes, and so needs
    none of the packages of a learner.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        """Submit a task; Dask would warn of its arguments if they are large."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": sys.maxsize}):
            return self._client.submit(*args, **kwargs)

    async def scatter(self, value: Any, **options: Any) -> Any:
        """Return a future of the value."""
        from distributed.protocol.pickle import dumps, loads

        # Dask copies bytes when it sends them, but not an array
        return self.submit(loads, np.frombuffer(dumps(value), dtype=np.uint8), pure=False)


def interruptible(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return function(*args, **kwargs), computed in another thread so that Ctrl-C ends the wait.

    Compiled code such as an eigendecomposition does not look for signals. After Ctrl-C it runs to
    its end, and its result is dropped.
    """
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)  # on Windows, a wait without limit would not end
    return future.result()


@contextmanager
def limit_openmp(n_workers: int, n_values: int) -> Iterator[None]:
    """Limit the OpenMP threads of a fit that runs beside others, in the calling thread.

    Threads that wait for each other at barriers take very long on cores that are busy. joblib
    limits them in its own processes, but neither in threads nor on the workers of a cluster.
    """
    pools = _openmp_pools(len(sys.modules))
    most = 1 if n_values <= _SMALL else max(1, cpu_count() // n_workers)
    threads = min([most, *(pool.num_threads for pool in pools.lib_controllers)])
    with pools.limit(limits=threads):
        yield


@functools.lru_cache(maxsize=1)
def _openmp_pools(n_modules: int) -> Any:
    """Find the loaded OpenMP libraries, again if modules were imported since."""
    return threadpoolctl.ThreadpoolController().select(user_api="openmp")


class _OneBlasThread:
    """Context manager that limits BLAS to one thread while any thread is inside.

    The number of BLAS threads may change the last bits of a product. The limit holds for the whole
    process: the first thread that enters sets it, the last that leaves, perhaps another one,
    restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limiter: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                _clear_controlling_thread()
                self._limiter = _thread_pools().limit(limits=1, user_api="blas")
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _clear_controlling_thread()
                self._limiter.restore_original_limits()
                _clear_controlling_thread()


one_blas_thread = _OneBlasThread()


def _clear_controlling_thread() -> None:
    """Allow the current thread to change the limit of OpenBLAS.

    From version 3.8 on, threadpoolctl silently ignores all threads but the first one that has set
    a limit. Here threads take turns under a lock.
    """
    openblas = getattr(threadpoolctl, "OpenBLASController", None)
    clear = getattr(openblas, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@functools.cache
def _thread_pools() -> Any:
    """Find the loaded libraries, once: it takes longer than a small fit."""
    return threadpoolctl.ThreadpoolController()
