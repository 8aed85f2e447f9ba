"""Parallel jobs: order of results, sizes of shared arguments, BLAS threads, Ctrl-C."""

from __future__ import annotations

import _thread
import sys
import threading
import time

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.parallel import delayed
from threadpoolctl import threadpool_info, threadpool_limits

from fgfm._utils.parallel import Shared, interruptible, one_blas_thread, run_jobs


def slow_square(x):
    time.sleep(0.3 if x == 0 else 0.0)
    return x * x


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_results_come_in_order(n_jobs):
    calls = (delayed(slow_square)(x) for x in range(6))
    assert list(run_jobs(calls, n_jobs, "threads")) == [0, 1, 4, 9, 16, 25]


def test_unordered_results_do_not_wait():
    calls = (delayed(slow_square)(x) for x in range(6))
    found = list(run_jobs(calls, 2, "threads", ordered=False))
    assert sorted(found) == [0, 1, 4, 9, 16, 25]
    assert found[0] != 0


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [True, False])
def test_backend_without_generators_returns_all_results(ordered):
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        found = run_jobs((delayed(slow_square)(x) for x in range(3)), None, ordered=ordered)
        assert sorted(found) == [0, 1, 4]


def test_size_of_a_shared_argument_includes_its_arrays():
    class Arguments(Shared):
        def __init__(self, *values):
            self.values = values

    array = np.zeros(1000)
    matrix = sparse.csr_array(np.eye(100))
    content = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    empty = sys.getsizeof(Arguments())
    assert sys.getsizeof(Arguments(array)) == empty + array.nbytes
    assert sys.getsizeof(Arguments([array, None, 3])) == empty + array.nbytes
    assert sys.getsizeof(Arguments(matrix)) == empty + content
    assert sys.getsizeof(Arguments(Arguments(array))) > empty + array.nbytes
    frame = pytest.importorskip("pandas").DataFrame(np.zeros((1000, 3)))
    assert sys.getsizeof(Arguments(frame)) >= empty + 3 * array.nbytes


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("the number of BLAS threads cannot be set")
        yield


@pytest.mark.parametrize("first", ["main thread", "other thread"])
def test_blas_has_one_thread_while_any_thread_is_inside(two_threads, first):
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with one_blas_thread:
            inside.set()
            leave.wait(10.0)

    thread = threading.Thread(target=hold)
    if first == "other thread":
        thread.start()
        inside.wait(10.0)
    with one_blas_thread:
        if first == "main thread":
            thread.start()
            inside.wait(10.0)
        assert blas_threads() == {1}
    assert blas_threads() == {1}  # the other thread is still inside
    leave.set()
    thread.join()
    assert blas_threads() == {2}


def test_interruptible_returns_and_raises():
    assert interruptible(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        interruptible(divmod, 7, 0)


@pytest.mark.usefixtures("sigint_raises")
def test_ctrl_c_does_not_wait_for_compiled_code():
    ended, released = threading.Event(), threading.Event()

    def compute():
        assert threading.current_thread() is not threading.main_thread()
        _thread.interrupt_main()
        released.wait(60)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        interruptible(compute)
    assert not ended.is_set()
    released.set()
