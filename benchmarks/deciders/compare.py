"""Apply the rules to stored probabilities, and score their decisions on the test rows.

A task is one data set, one learner and one rule, or another package with all its rules. It runs
in a process of its own; its scores are stored in ``results.csv`` when it ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import fgfm
from benchmarks.deciders.peers import PEERS, decide_by_peer
from benchmarks.deciders.probabilities import Probabilities
from benchmarks.deciders.rules import (
    GUARANTEE,
    RULES,
    averages_of,
)
from benchmarks.real.peers import PeerError, install
from benchmarks.real.subprocesses import OK, Ended, format_error, run_in_subprocesses
from fgfm.experiments._result_file import ResultFile, Row

__all__ = ["Pair", "Record", "compare"]

_N_KEY = 4
_NAN = float("nan")


class Record(NamedTuple):
    """The score of a rule for an average.

    Attributes
    ----------
    dataset, learner, rule, average : str
        What was decided, and how.
    status : str
        "ok", "limit" if the time limit was exceeded, or the error. Without "ok" all numbers are
        NaN.
    f1 : float
        F1 of the test rows, averaged as `average` says, where 0/0 is 1.
    expected_f : float
        F1 that the rule expected; NaN if it does not compute it.
    bound : float
        Lower bound of F1 at 95 % confidence; NaN if there is none.
    tune_s, decide_s : float
        Seconds of tuning on the validation rows, and of deciding for the test rows.
    """

    dataset: str
    learner: str
    rule: str
    average: str
    status: str
    f1: float
    expected_f: float
    bound: float
    tune_s: float
    decide_s: float


class Pair(NamedTuple):
    """The stored probabilities of a learner on a data set."""

    dataset: str
    learner: str
    path: Path


class _Task(NamedTuple):
    pair: Pair
    rule: str  # of RULES, or the name of a package
    python: str  # of the package
    limit: float

    def stored_keys(self) -> list[Row]:
        """Return the keys of its rows."""
        return [(*self.pair[:2], *found) for found in _rules_and_averages(self.rule)]


def _rules_and_averages(name: str) -> list[tuple[str, str]]:
    if name in PEERS:
        found = [rule.split("/") for rule in PEERS[name].rules]
        return [(f"{name}-{rule}", average) for rule, average in found]
    return [(name, average) for average in averages_of(name)]


def compare(
    folder: Path,
    pairs: Sequence[Pair],
    rules: Sequence[str],
    peers: Sequence[str],
    *,
    limit: float,
    seed: int,
    n_jobs: int,
    again: Sequence[str],
    progress: Callable[[str], object],
) -> list[Record]:
    """Compute the scores that ``results.csv`` does not contain, and return those of the pairs."""
    if not hasattr(fgfm.FDecider, "lower_bound"):
        rules = [rule for rule in rules if rule != GUARANTEE]
    tasks = [_Task(pair, rule, "", limit) for pair in pairs for rule in (*rules, *peers)]
    settings = {"seed": seed, "fgfm": version("fgfm")}
    columns: dict[str, Any] = get_type_hints(Record)
    with ResultFile(folder / "results.csv", columns, _N_KEY, settings).opened() as results:
        stale = {key for task in tasks if task.rule in again for key in task.stored_keys()}
        results.discard(stale & results.rows.keys())
        missing = [task for task in tasks if any(key not in results for key in task.stored_keys())]
        missing, errors = _install(missing, folder / "peers")
        rows: dict[_Task, list[Row]] = {}
        for message in run_in_subprocesses(
            _apply, missing, n_jobs, limit, lambda task: errors.get(task.rule)
        ):
            task = message.task
            if not isinstance(message, Ended):
                rows.setdefault(task, []).append(message.value)
                continue
            found = {row[:_N_KEY]: row for row in rows.pop(task, [])}
            status = message.status if message.status != OK else "the rule returned no decisions"
            failed = (status, *[_NAN] * (len(columns) - _N_KEY - 1))
            results.append(
                found.get(key, key + failed) for key in task.stored_keys() if key not in results
            )
            progress(f"{task.pair.dataset}, {task.pair.learner}, {task.rule}: {message.status}")
        results.rewrite()
        wanted = {key for task in tasks for key in task.stored_keys()}
        return [Record(*row) for key, row in sorted(results.rows.items()) if key in wanted]


def _install(tasks: Sequence[_Task], folder: Path) -> tuple[list[_Task], dict[str, str]]:
    """Return the tasks with the Python of their package, and errors of packages without one."""
    pythons: dict[str, str] = {}
    errors: dict[str, str] = {}
    for name in dict.fromkeys(task.rule for task in tasks if task.rule in PEERS):
        try:
            pythons[name] = os.fspath(install(PEERS[name], folder))
        except PeerError as error:
            errors[name] = format_error(error)
    return [task._replace(python=pythons.get(task.rule, "")) for task in tasks], errors


def _apply(task: _Task) -> Iterator[Row]:
    """Yield the rows of a task."""
    p = Probabilities.read(task.pair.path)
    if task.rule in PEERS:
        outcomes = decide_by_peer(task.rule, task.python, task.limit, p)
    else:
        outcomes = ((task.rule, outcome) for outcome in RULES[task.rule](p))
    for rule, one in outcomes:
        f1 = fgfm.f_measure(p.Y_test, one.labels, average=one.average)
        yield tuple(
            Record(
                *task.pair[:2],
                rule,
                one.average,
                OK,
                f1,
                one.expected_f,
                one.bound,
                one.tune_s,
                one.decide_s,
            )
        )
