"""Run the benchmark on real data: rules, base learners and other packages.

A *task* is one fold of a data set with one base learner and one family of rules. It runs in a
process of its own, which is killed at the time limit; each of its rows is stored as soon as it is
computed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from benchmarks.real.problem import (
    BETAS,
    LEARNERS,
    Family,
    Learner,
    Outcome,
    Problem,
    make_problem,
)
from benchmarks.real.records import ALL_RULES, Key, Record, make_record
from benchmarks.real.rules import FAMILIES, RULES
from benchmarks.real.splits import Source, find_sources, fingerprint, load_split
from benchmarks.real.subprocesses import (
    LIMIT,
    OK,
    Ended,
    Output,
    format_error,
    run_in_subprocesses,
)
from benchmarks.real.summary import Summary
from fgfm._utils.atomic import atomic_file
from fgfm._utils.validation import check_choice, check_count, check_flag
from fgfm.decision import from_marginals
from fgfm.experiments._reproduce import Progress
from fgfm.experiments._result_file import ResultFile, Row

__all__ = ["BenchmarkResults", "Task", "benchmark", "run_task"]

_N_KEY = 4  # leading columns that identify a row
_PEERS = "benchmarks.real.peers"  # imported by name, so that tests can replace it
_OTHER_FOLD = "limit in another fold"
_COLUMNS: dict[str, Any] = get_type_hints(Record)
_NAN = float("nan")


class Task(NamedTuple):
    """One fold, one base learner and one family of rules."""

    source: Source
    fold: int
    learner_name: str
    learner: Learner
    family: Family
    rules: tuple[str, ...]  # the rules of the family to compute
    seed: int
    folder: Path

    def key(self, rule: str) -> Key:
        """Return the key of a rule's row in the results file."""
        return self.source.name, self.fold, self.learner_name, rule


class BenchmarkResults(NamedTuple):
    """Results of `benchmark`."""

    records: list[Record]
    summary: Summary
    folder: Path


def benchmark(
    out: str | os.PathLike[str],
    *,
    data: Any = None,
    datasets: Sequence[str] | None = None,
    learners: Sequence[str] = ("ridge",),
    rules: Sequence[str] = RULES,
    peers: Sequence[str] = (),
    limit: float = 600.0,
    seed: int = 0,
    n_jobs: int | None = None,
    retry: bool = False,
    progress: Progress | None = None,
) -> BenchmarkResults:
    """Compare decision rules, base learners and other packages on real data.

    Data sets are used in their standard split if they have one, else in five folds, smallest
    first. Results are stored in ``results.csv`` as they are computed, and the F-measures of test
    rows in the folder ``rows``; a run that was stopped continues with the same call. Each task,
    one fold with one learner and the rules that share models, runs in a process of its own: in a
    script, call this under ``if __name__ == "__main__"``.
    """
    learners, peers = list(dict.fromkeys(learners)), list(dict.fromkeys(peers))
    families = _check_arguments(learners, rules, peers, limit, retry)
    settings = {"seed": check_count(seed, "seed", 0), "fgfm": version("fgfm")}
    n_processes = effective_n_jobs(n_jobs)
    sources = find_sources(data, datasets)
    folder = Path(out)
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    named = [(name, LEARNERS[name], family) for name in learners for family in families]
    named += [
        (name, LEARNERS["ridge"], Family((ALL_RULES,), partial(_run_peer, name))) for name in peers
    ]
    tasks = [
        Task(source, fold, name, learner, family, family.rules, seed, folder)
        for source in sources
        for fold in range(source.folds)
        for name, learner, family in named
    ]
    with ResultFile(folder / "results.csv", _COLUMNS, _N_KEY, settings).opened() as results:
        _check_data(folder / "data.json", sources)
        results.discard(_stale_keys(results, folder, retry))
        missing = [task for task in (_without_results(t, results) for t in tasks) if task.rules]
        missing = _install_peers(missing, peers, folder, limit, results)
        _run(missing, results, n_processes, limit, progress)
        records = _select_records(results, tasks, peers)
    return BenchmarkResults(records, Summary(records, folder / "rows", seed), folder)


def _check_arguments(
    learners: Sequence[str], rules: Sequence[str], peers: Sequence[str], limit: Any, retry: Any
) -> list[Family]:
    """Validate the arguments and return the families with the wanted rules."""
    all_rules = tuple(rule for family in FAMILIES for rule in family.rules)
    for argument, names, choices in (
        ("rules", rules, all_rules),
        ("learners", learners, tuple(LEARNERS)),
        ("peers", peers, tuple(import_module(_PEERS).PEERS) if peers else ()),
    ):
        for k, name in enumerate(names):
            check_choice(name, f"{argument}[{k}]", choices)
    wanted = [
        family._replace(rules=tuple(rule for rule in family.rules if rule in rules))
        for family in FAMILIES
    ]
    families = [family for family in wanted if family.rules]
    if not ((learners and families) or peers):
        raise ValueError("learners or rules are empty, and peers too: there is nothing to run")
    if not (isinstance(limit, (int, float)) and limit > 0.0):
        raise ValueError(f"limit is {limit!r}: it must be a positive number of seconds")
    check_flag(retry, "retry")
    return families


def _check_data(path: Path, sources: Sequence[Source]) -> None:
    """Store the digests of the data sets, or raise if another one of the same name is stored."""
    stored: dict[str, str] = {}
    if path.exists():
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
    found = {source.name: fingerprint(source) for source in sources}
    for name, digest in found.items():
        if stored.get(name, digest) != digest:
            raise ValueError(
                f"the data set {name} differs from that of the results in {path.parent}: choose "
                "another folder"
            )
    if found.keys() - stored.keys():
        with atomic_file(path) as file:
            file.write((json.dumps(stored | found, indent=1, sort_keys=True) + "\n").encode())


def _rows_file(folder: Path, key: Row) -> Path:
    """Return the file of the F-measures of test rows."""
    return folder / "rows" / (".".join(map(str, key)) + ".npy")


def _stale_keys(results: ResultFile, folder: Path, retry: bool) -> list[Row]:
    """Return the keys of results to compute again; all rules of another package together."""
    stale = {key for key, row in results.rows.items() if _is_stale(row, folder, retry)}
    peers = {key[:3] for key in stale if key[2] not in LEARNERS}
    return [key for key in results.rows if key in stale or key[:3] in peers]


def _is_stale(row: Row, folder: Path, retry: bool) -> bool:
    if row[_N_KEY] == OK:
        return not _rows_file(folder, row[:_N_KEY]).exists()
    return retry


def _without_results(task: Task, results: ResultFile) -> Task:
    """Return a task with those rules that have no result."""
    if task.rules == (ALL_RULES,):  # the rules of another package are known after it has run
        exists = any(key[:3] == task.key(ALL_RULES)[:3] for key in results.rows)
        return task._replace(rules=() if exists else task.rules)
    return task._replace(rules=tuple(r for r in task.rules if task.key(r) not in results))


def _select_records(
    results: ResultFile, tasks: Sequence[Task], peers: Sequence[str]
) -> list[Record]:
    """Return the records of the tasks; a folder may contain others."""
    wanted = {t.key(rule) for t in tasks for rule in t.family.rules}
    folds = {(t.source.name, t.fold) for t in tasks}
    return [
        Record(*row)
        for key, row in sorted(results.rows.items())
        if key in wanted or (key[2] in peers and key[:2] in folds)
    ]


def _install_peers(
    tasks: list[Task], peers: Sequence[str], folder: Path, limit: float, results: ResultFile
) -> list[Task]:
    """Create the environments of other packages; if that fails, their tasks end here."""
    for name in peers:
        own = [task for task in tasks if task.learner_name == name]
        if not own:
            continue
        module = import_module(_PEERS)
        try:
            python = module.install(module.PEERS[name], folder / "peers")
        except module.PeerError as error:
            results.append(_failed_row(task, ALL_RULES, format_error(error)) for task in own)
            tasks = [task for task in tasks if task.learner_name != name]
        else:
            run = partial(_run_peer, name, module=_PEERS, python=os.fspath(python), limit=limit)
            tasks = [
                task._replace(family=Family((ALL_RULES,), run))
                if task.learner_name == name
                else task
                for task in tasks
            ]
    return tasks


def _run(
    tasks: Sequence[Task],
    results: ResultFile,
    n_processes: int,
    limit: float,
    progress: Progress | None,
) -> None:
    """Run tasks and store their rows."""
    report = progress or (lambda done, total: None)
    done = 0
    report(done, len(tasks))
    too_long: set[Any] = set()  # data set, learner and rules that exceeded the limit in a fold
    pending: dict[Key, list[Row]] = {}  # rows of other packages, stored when all have arrived

    def kind(task: Task) -> Any:
        return task.source.name, task.learner_name, task.family.rules

    def skip(task: Task) -> str | None:
        return _OTHER_FOLD if kind(task) in too_long else None

    for message in run_in_subprocesses(run_task, tasks, n_processes, limit, skip):
        task = message.task
        if isinstance(message, Output):
            if task.rules == (ALL_RULES,):
                pending.setdefault(task.key(ALL_RULES), []).append(message.value)
            else:
                results.append([message.value])
            continue
        assert isinstance(message, Ended)
        if message.status == LIMIT:
            too_long.add(kind(task))
        rows = pending.pop(task.key(ALL_RULES), [])
        left = [rule for rule in task.rules if task.key(rule) not in results]
        if rows and message.status == OK:
            results.append(rows)
            left = []
        status = "the rule returned no decisions" if message.status == OK else message.status
        results.append(_failed_row(task, rule, status) for rule in left)
        done += 1
        report(done, len(tasks))
    results.rewrite()


def _failed_row(task: Task, rule: str, status: str) -> Row:
    """Return the row of a rule without result."""
    return (*task.key(rule), status, *[_NAN] * (len(_COLUMNS) - _N_KEY - 2), 0)


def run_task(task: Task) -> Iterator[Row]:
    """Fit the models of a family, apply its rules, and score their decisions."""
    features = task.learner.features
    split = load_split(task.source.path, task.fold, task.seed, features=features)
    problem = make_problem(split, task.learner, task.seed)
    left = set(task.rules)
    for outcome in task.family.run(problem):
        if outcome.rule not in left and task.rules != (ALL_RULES,):
            continue
        key = task.key(outcome.rule)
        record, f = make_record(key, outcome, split.Y_test)
        with atomic_file(_rows_file(task.folder, key)) as file:
            np.save(file, f.astype(np.float32))
        yield tuple(record)
        left.discard(outcome.rule)
        if not left:
            return


def _run_peer(
    name: str, problem: Problem, *, module: str = _PEERS, python: str = "", limit: float = 600.0
) -> Iterator[Outcome]:
    """Run another package in its own environment, and F-optimise its probabilities."""
    peers = import_module(module)
    X, Y, X_test, _, seed = problem
    run = peers.run_peer(peers.PEERS[name], python, X, Y, X_test, seed=seed, limit=limit)
    for rule, labels in run.labels.items():
        expected_f = run.expected_f.get(rule)
        yield Outcome(rule, {1.0: labels}, expected_f, run.fit_s, run.predict_s, run.peak_mib)
    if run.proba is not None:
        nonempty = bool(Y.any(axis=1).all())
        start = time.perf_counter()
        decided = {b: from_marginals(run.proba, beta=b, nonempty=nonempty) for b in BETAS}
        seconds = run.predict_s + (time.perf_counter() - start) / len(BETAS)
        labels = {beta: _densify(decision.labels) for beta, decision in decided.items()}
        expected_f = decided[BETAS[0]].expected_f
        yield Outcome("fgfm", labels, expected_f, run.fit_s, seconds, run.peak_mib)


def _densify(labels: Any) -> Any:
    return labels.toarray() if sparse.issparse(labels) else labels
