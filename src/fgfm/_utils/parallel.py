"""Jobs by joblib: in threads, in processes, or on a cluster, as its backend says.

joblib's backends for Dask and for Ray put an argument of a job on the workers once, however many
jobs take it, if it is an argument by itself, the same object each time, and large by its own word
(``sys.getsizeof``). Arrays are; objects that hold arrays are `Shared`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from joblib.parallel import get_active_backend
from scipy import sparse
from sklearn.utils.parallel import Parallel
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

__all__ = ["Shared", "one_blas_thread", "run_jobs"]


class Shared:
    """What many jobs read: it tells its size, arrays included, so that it is shipped once."""

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(_n_bytes(value) for value in vars(self).values())


def _n_bytes(value: Any) -> int:
    """Give the bytes of the arrays that a value holds."""
    if sparse.issparse(value):
        return sum(_n_bytes(getattr(value, name)) for name in ("data", "indices", "indptr"))
    if isinstance(value, Shared):
        return value.__sizeof__()
    if isinstance(value, (list, tuple)):
        return sum(_n_bytes(part) for part in value)
    return int(getattr(value, "nbytes", 0))


def run_jobs(
    jobs: Iterable[Any], n_jobs: Any, prefer: str | None = None, *, ordered: bool = True
) -> Iterator[Any]:
    """Give the answers of jobs: as they come, or at the end if the backend waits.

    Parameters
    ----------
    jobs : iterable
        Calls, by scikit-learn's ``delayed``.
    n_jobs : int or None
        How many at a time, in joblib's meaning.
    prefer : {"threads", "processes"}, optional
        What to take where no backend is configured.
    ordered : bool, default=True
        Give them in order. If not, jobs are long: they go one by one, and an answer does not wait
        for those before it.

    Returns
    -------
    iterator
        The answers.
    """
    hint: dict[str, Any] = {} if prefer is None else {"prefer": prefer}
    backend, _ = get_active_backend(**hint)
    # joblib's "multiprocessing", and Ray's backend, which is made of it, give lists only
    return_as = "generator" if ordered else "generator_unordered"
    if not backend.supports_return_generator:
        return_as = "list"
    batch_size = "auto" if ordered else 1
    parallel = Parallel(n_jobs=n_jobs, return_as=return_as, batch_size=batch_size, **hint)
    return iter(parallel(jobs))


class _OneBlasThread:
    """The limit that jobs of a process share: the last one to leave lifts it.

    The number of threads of BLAS may change the last bits of a product.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limiter: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limiter = _thread_pools().limit(limits=1, user_api="blas")
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limiter.restore_original_limits()


one_blas_thread = _OneBlasThread()


@functools.cache
def _thread_pools() -> ThreadpoolController:
    """Find the libraries once: that takes longer than a small fit."""
    return ThreadpoolController()
