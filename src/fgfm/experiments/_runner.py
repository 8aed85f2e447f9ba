"""Many independent tasks over processes, each result kept as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from typing import Any

from sklearn.utils.parallel import delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fgfm._utils.parallel import run_jobs
from fgfm.experiments._results import ResultFile, Row

__all__ = ["Progress", "run_tasks"]

Progress = Callable[[int, int], object]
"""Called with the number of tasks that are done, and of all."""


def run_tasks(
    work: Callable[[Any], list[Row]],
    tasks: Sequence[Any],
    results: ResultFile,
    n_jobs: int | None,
    progress: Progress | None,
) -> None:
    """Run tasks, and append the rows of each to the results when it ends.

    Where a backend of joblib is configured that answers at the end only (Ray's, or
    "multiprocessing"), all but those of the first task are appended then.

    Parameters
    ----------
    work : callable
        Gives the rows of a task. Workers import it by its name.
    tasks : sequence
        The tasks.
    results : ResultFile
        Where the rows go, opened.
    n_jobs : int or None
        How many processes, in joblib's meaning.
    progress : callable or None
        Told of every task that ends.
    """
    if progress is not None:
        progress(0, len(tasks))
    for done, rows in enumerate(_answers(work, tasks, n_jobs), start=1):
        results.append(rows)
        if progress is not None:
            progress(done, len(tasks))
    if tasks:
        results.rewrite()


def _answers(
    work: Callable[[Any], list[Row]], tasks: Sequence[Any], n_jobs: int | None
) -> Iterator[list[Row]]:
    """Give the rows of each task, in whatever order they come."""
    # the first one here: what it compiles, the workers load
    for task in tasks[:1]:
        yield _alone(work, task)
    jobs = (delayed(_alone)(work, task) for task in tasks[1:])
    try:
        yield from run_jobs(jobs, n_jobs, ordered=False)
    except BrokenExecutor as error:
        raise ChildProcessError(
            "a process that was computing was killed, perhaps for want of memory; what was done "
            "is kept, and the same call goes on from there"
        ) from error


def _alone(work: Callable[[Any], list[Row]], task: Any) -> list[Row]:
    """Do a task on one core: the processes share them already."""
    with threadpool_limits(1):
        return work(task)
