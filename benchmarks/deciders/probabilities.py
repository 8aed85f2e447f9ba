"""Fit learners on data sets, and store the probabilities of validation and test rows.

Of the training rows, 30 % are held out as validation rows; the learner is fitted on the others.
Learners of `OUT_OF_BAG` are fitted on all training rows, which are their validation rows too.
Each pair of data set and learner is a file ``<data>-<learner>.npz`` with the arrays `proba_val`,
`Y_val`, `proba_test`, `Y_test` and `fit_seconds`; reasons for missing files are in
``failures.json``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.deciders.learners import LEARNERS, OUT_OF_BAG
from benchmarks.real.splits import Source, load_split
from benchmarks.real.subprocesses import OK, Ended, run_in_subprocesses
from fgfm._utils.atomic import atomic_file

__all__ = ["Probabilities", "Task", "cache_probabilities", "path_of", "read_failures"]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.uint8]

_VALIDATION = 0.3


class Probabilities(NamedTuple):
    """Probabilities and labels of the validation rows and of the test rows."""

    proba_val: Floats
    Y_val: Labels
    proba_test: Floats
    Y_test: Labels

    @classmethod
    def read(cls, path: Path) -> Probabilities:
        """Read a file that `cache_probabilities` wrote."""
        with np.load(path) as file:
            return cls(
                file["proba_val"].astype(np.float64),
                file["Y_val"],
                file["proba_test"].astype(np.float64),
                file["Y_test"],
            )


class Task(NamedTuple):
    """A data set and a learner, to be stored in a folder."""

    source: Source
    learner: str
    seed: int
    folder: Path


def path_of(folder: Path, data: str, learner: str) -> Path:
    """Return the path of the probabilities of a learner on a data set."""
    return folder / f"{data}-{learner}.npz"


def cache_probabilities(
    folder: Path,
    sources: Sequence[Source],
    learners: Sequence[str],
    *,
    limit: float,
    seed: int,
    n_jobs: int,
    retry: bool,
    progress: Callable[[str], object],
) -> None:
    """Fit the learners whose probabilities are not stored yet, each in a subprocess."""
    folder.mkdir(parents=True, exist_ok=True)
    failures = read_failures(folder)
    tasks = [
        task
        for task in (Task(source, name, seed, folder) for source in sources for name in learners)
        if not path_of(folder, task.source.name, task.learner).exists()
        and (retry or _name(task) not in failures)
    ]
    for message in run_in_subprocesses(_fit, tasks, n_jobs, limit, lambda _: None):
        if not isinstance(message, Ended):
            continue
        progress(f"{_name(message.task)}: {message.status}")
        failures.pop(_name(message.task), None)
        if message.status != OK:
            failures[_name(message.task)] = message.status
        with atomic_file(folder / "failures.json") as file:
            file.write((json.dumps(failures, indent=1, sort_keys=True) + "\n").encode())


def read_failures(folder: Path) -> dict[str, str]:
    """Return the reasons why pairs ``<data>-<learner>`` are missing."""
    path = folder / "failures.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _name(task: Task) -> str:
    return f"{task.source.name}-{task.learner}"


def _fit(task: Task) -> Iterator[Any]:
    """Fit a learner and store its probabilities."""
    split = load_split(task.source.path, seed=task.seed)
    n = len(split.Y_train)
    order = np.random.default_rng(task.seed).permutation(n)
    validation, fitted = np.split(order, [round(_VALIDATION * n)])
    if task.learner in OUT_OF_BAG:
        validation = fitted = order
    start = time.perf_counter()
    proba_val, proba_test = LEARNERS[task.learner](
        split.X_train[fitted],
        split.Y_train[fitted],
        [split.X_train[validation], split.X_test],
        task.seed,
    )
    seconds = time.perf_counter() - start
    with atomic_file(path_of(task.folder, task.source.name, task.learner)) as file:
        np.savez_compressed(
            file,
            proba_val=proba_val.astype(np.float32),
            Y_val=split.Y_train[validation].astype(np.uint8),
            proba_test=proba_test.astype(np.float32),
            Y_test=split.Y_test.astype(np.uint8),
            fit_seconds=np.float64(seconds),
        )
    yield seconds
