"""Parallel jobs with joblib, in threads, in processes or on a cluster; thread counts of libraries.

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

import threadpoolctl  # type: ignore[import-untyped]
from joblib import cpu_count
from joblib.parallel import get_active_backend
from scipy import sparse
from sklearn.utils.parallel import Parallel

_SMALL = 100_000  # values of X up to which OpenMP threads cost more than they save


class Shared:
    """Base class of read-only arguments of many jobs; its size includes its arrays."""

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(map(_n_bytes, vars(self).values()))


def _n_bytes(value: Any) -> int:
    """Return the number of bytes of the arrays that a value holds."""
    if sparse.issparse(value):
        value = value.data, value.indices, value.indptr
    if isinstance(value, (list, tuple)):
        return sum(map(_n_bytes, value))
    if isinstance(value, Shared) or hasattr(value, "memory_usage"):  # a data frame of pandas
        return sys.getsizeof(value)
    return int(getattr(value, "nbytes", 0))


def run_jobs(
    jobs: Iterable[Any], n_jobs: Any, prefer: str | None = None, *, ordered: bool = True
) -> Iterator[Any]:
    """Run jobs and iterate over their results, as they come if the backend supports it."""
    hint: dict[str, Any] = {} if prefer is None else {"prefer": prefer}
    backend, _ = get_active_backend(**hint)
    return_as = "generator" if ordered else "generator_unordered"
    # joblib's "multiprocessing" backend, and Ray's, which derives from it, only return lists
    if not backend.supports_return_generator:
        return_as = "list"
    batch_size = "auto" if ordered else 1
    parallel = Parallel(n_jobs=n_jobs, return_as=return_as, batch_size=batch_size, **hint)
    return iter(parallel(jobs))


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
    pools = _libraries(len(sys.modules)).select(user_api="openmp")
    most = 1 if n_values <= _SMALL else max(1, cpu_count() // n_workers)
    threads = min([most, *(pool.num_threads for pool in pools.lib_controllers)])
    with pools.limit(limits=threads):
        yield


@functools.lru_cache(maxsize=1)
def _libraries(n_modules: int) -> Any:
    """Find the loaded thread pools, again if modules were imported since: it takes long."""
    return threadpoolctl.ThreadpoolController()


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
                _free_openblas()
                self._limiter = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _free_openblas()
                self._limiter.restore_original_limits()
                _free_openblas()


def _free_openblas() -> None:
    """Let the current thread set the limit: threadpoolctl 3.8 ignores all but the first one."""
    openblas: Any = getattr(threadpoolctl, "OpenBLASController", None)
    if hasattr(openblas, "clear_controlling_thread"):
        openblas.clear_controlling_thread(force=True)


one_blas_thread = _OneBlasThread()
