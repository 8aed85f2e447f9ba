"""Run independent tasks in parallel and store each result as soon as it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from typing import Any

from sklearn.utils.parallel import delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fgfm._utils.parallel import run_jobs
from fgfm.experiments._result_file import ResultFile, Row

__all__ = ["Progress", "run_tasks"]

Progress = Callable[[int, int], object]
"""Called with the number of finished tasks and the number of all tasks."""


def run_tasks(
    work: Callable[[Any], list[Row]],
    tasks: Sequence[Any],
    results: ResultFile,
    n_jobs: int | None,
    progress: Progress | None,
) -> None:
    """Run tasks and append the rows of each to the results when it ends.

    With joblib backends that return all results at the end (Ray's, or "multiprocessing"), the
    rows of all but the first task are appended then.

    Parameters
    ----------
    work : callable
        Computes the rows of a task. Workers import it by its name.
    tasks : sequence
        The tasks.
    results : ResultFile
        The open file that the rows are appended to.
    n_jobs : int or None
        Number of processes, as in joblib.
    progress : callable or None
        Called after every task.
    """
    if progress is not None:
        progress(0, len(tasks))
    for done, rows in enumerate(_compute(work, tasks, n_jobs), start=1):
        results.append(rows)
        if progress is not None:
            progress(done, len(tasks))
    if tasks:
        results.rewrite()


def _compute(
    work: Callable[[Any], list[Row]], tasks: Sequence[Any], n_jobs: int | None
) -> Iterator[list[Row]]:
    """Yield the rows of each task, in the order in which the tasks end."""
    # The first task runs in this process: the kernels it compiles are loaded by the workers.
    for task in tasks[:1]:
        yield _run_on_one_core(work, task)
    jobs = (delayed(_run_on_one_core)(work, task) for task in tasks[1:])
    try:
        yield from run_jobs(jobs, n_jobs, ordered=False)
    except BrokenExecutor as error:
        raise ChildProcessError(
            "a worker process was killed, perhaps because memory ran out; finished results are "
            "kept, and the same call continues from there"
        ) from error


def _run_on_one_core(work: Callable[[Any], list[Row]], task: Any) -> list[Row]:
    """Run a task without threads: the processes use all cores already."""
    with threadpool_limits(1):
        return work(task)
