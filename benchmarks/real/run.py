"""The benchmark on real data: rules, base learners and other packages, on standard splits.

A *task* is one fold of a data set with one base learner and one family of rules. It has a process
of its own, which is ended when its time is over, and each of its rows is kept as soon as it is
there.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from scipy import sparse

from benchmarks.real.isolation import LIMIT, Answer, End, one_line, run_apart
from benchmarks.real.records import ANY, OK, Key, Record, measured
from benchmarks.real.rules import (
    BETAS,
    FAMILIES,
    LEARNERS,
    RULES,
    Family,
    Learner,
    Outcome,
    Problem,
    make_problem,
)
from benchmarks.real.splits import Source, find_sources, fingerprint, load_split
from benchmarks.real.summary import Standings, standings
from fgfm._utils.atomic import atomic_file
from fgfm._utils.blocks import n_threads
from fgfm._utils.validation import check_choice, check_count, check_flag
from fgfm.decision import from_marginals
from fgfm.experiments._results import ResultFile, Row
from fgfm.experiments._runner import Progress

__all__ = ["LEARNERS", "RULES", "BenchmarkResults", "benchmark", "run_task"]

_KEY = 4  # columns
_PEERS = "benchmarks.real.peer_packages"
_OTHER_FOLD = "limit in another fold"  # nothing is gained by trying the rest
_COLUMNS: dict[str, Any] = get_type_hints(Record)
_NAN = float("nan")


class Task(NamedTuple):
    """One fold, one base learner and one family of rules."""

    source: Source
    fold: int
    learner_name: str
    learner: Learner
    family: Family
    rules: tuple[str, ...]  # of the family, those that are wanted
    seed: int
    folder: Path

    def key(self, rule: str) -> Key:
        """Give the key of the row of a rule.

        Parameters
        ----------
        rule : str
            The rule.

        Returns
        -------
        tuple
            Data set, fold, learner and rule.
        """
        return self.source.name, self.fold, self.learner_name, rule


class BenchmarkResults(NamedTuple):
    """What `benchmark` gives.

    Attributes
    ----------
    records : list of Record
        One for each data set, fold, learner and rule.
    summary : Standings
        Scores of the data sets, mean ranks, differences with intervals, and errors.
    folder : Path
        Where ``results.csv`` is.
    """

    records: list[Record]
    summary: Standings
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
    """Compare rules, base learners and other packages on real data.

    Data sets are used in their standard split where they have one, else in five folds. Small ones
    come first, so that there soon is something to read. Results are kept in ``results.csv`` as
    they come, and the F-measures of test rows in the folder ``rows``; a run that was stopped, by
    whatever means, is taken up where it was by the same call. Each task, one fold with one learner
    and the rules that share models, runs in a process of its own: in a script, call this under
    ``if __name__ == "__main__"``.

    Parameters
    ----------
    out : str or path-like
        The folder of the results.
    data : str, path-like or list of them, optional
        A folder of data sets, or files and names as ``openml:yeast``, that `fgfm.data.load` reads.
        By default the folder that the environment variable FGFM_DATA names.
    datasets : sequence of str, optional
        Names of data sets, those of their files; all by default.
    learners : sequence of str, default=("ridge",)
        Base learners: "ridge" (the default of `FGFMClassifier`), "forest" and "boosting".
    rules : sequence of str, optional
        What makes label sets; all by default. "default": `FGFMClassifier` as it is. Of a model of
        each label: "half" (probability above 0.5), "threshold" (the best single one),
        "thresholds" (the best for each label), "topk" (as many labels as are most probable),
        "independent", "tilted". With all labels in one factor: "two-step", "direct", "powerset".
        "ilf": factors by tests. "lp": the most probable label set. "chain": a classifier chain.
    peers : sequence of str, optional
        Other packages to compare with, each in an environment of its own: "f1-maximizer",
        "dacaf", "boomer", "mlknn", "rakel", "napkinxc". The rule "fgfm" decides by
        `fgfm.decision.from_marginals` on the probabilities of a package that gives any.
    limit : float, default=600.0
        Seconds that a task may take. Where one fold takes longer, the others are not tried.
    seed : int, default=0
        Seeds everything.
    n_jobs : int, optional
        How many processes, in joblib's meaning. It changes nothing but times.
    retry : bool, default=False
        Compute again what had failed or taken too long.
    progress : callable, optional
        Called with the number of tasks that are done, and of all that were to do.

    Returns
    -------
    BenchmarkResults
        Records, and their summary.

    Notes
    -----
    Rules that share models each count the whole time to fit them; the peak of memory is that of
    the process until the rule was done, libraries included.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from fgfm import data
    >>> from benchmarks.real import benchmark
    >>> X, Y = make_multilabel_classification(60, n_classes=3, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data.save(data.Dataset(X, Y), f"{folder}/toy.npz")
    ...     results = benchmark(f"{folder}/out", data=folder, rules=["half", "independent"])
    >>> [(r.fold, r.rule, r.status) for r in results.records[:3]]
    [(0, 'half', 'ok'), (0, 'independent', 'ok'), (1, 'half', 'ok')]
    """
    families = _families(rules)
    learners, peers = list(dict.fromkeys(learners)), list(dict.fromkeys(peers))
    for k, name in enumerate(learners):
        check_choice(name, f"learners[{k}]", tuple(LEARNERS))
    for k, name in enumerate(peers):
        check_choice(name, f"peers[{k}]", tuple(import_module(_PEERS).PEERS))
    if not ((learners and families) or peers):
        raise ValueError("learners or rules are empty, and so are peers: nothing is to be done")
    if not (isinstance(limit, (int, float)) and limit > 0.0):
        raise ValueError(f"limit is {limit!r}: it must be a positive number of seconds")
    check_flag(retry, "retry")
    settings = {"seed": check_count(seed, "seed", 0), "fgfm": version("fgfm")}
    processes = n_threads(n_jobs)
    sources = find_sources(data, datasets)
    folder = Path(out)
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    named = [(name, LEARNERS[name], family) for name in learners for family in families]
    named += [(name, LEARNERS["ridge"], Family((ANY,), partial(_peer, name))) for name in peers]
    tasks = [
        Task(source, fold, name, learner, family, family.rules, seed, folder)
        for source in sources
        for fold in range(source.folds)
        for name, learner, family in named
    ]
    with ResultFile(folder / "results.csv", _COLUMNS, _KEY, settings).opened() as results:
        _check_data(folder / "data.json", sources)
        results.discard(_stale_keys(results, folder, retry))
        missing = [task for task in map(partial(_missing, results), tasks) if task.rules]
        missing = _prepared(missing, peers, folder, limit, results)
        _run(missing, results, processes, limit, progress)
        wanted = {t.key(rule) for t in tasks for rule in t.family.rules}
        folds = {(t.source.name, t.fold) for t in tasks}
        records = [
            Record(*row)
            for key, row in sorted(results.rows.items())
            if key in wanted or (key[2] in peers and key[:2] in folds)
        ]
    return BenchmarkResults(records, standings(records, folder / "rows", seed), folder)


def _check_data(path: Path, sources: Sequence[Source]) -> None:
    """Keep what tells the data sets from others of the same names, or raise if these are there."""
    known: dict[str, str] = {}
    if path.exists():
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
    found = {source.name: fingerprint(source) for source in sources}
    for name, digest in found.items():
        if known.get(name, digest) != digest:
            raise ValueError(
                f"data has another {name} than the results in {path.parent} are of: choose "
                "another folder"
            )
    if found.keys() - known.keys():
        with atomic_file(path) as file:
            file.write((json.dumps(known | found, indent=1, sort_keys=True) + "\n").encode())


def _families(rules: Sequence[str]) -> list[Family]:
    """Give the families of rules, less the rules that are not wanted."""
    known = tuple(rule for family in FAMILIES for rule in family.rules)
    for k, rule in enumerate(rules):
        check_choice(rule, f"rules[{k}]", known)
    wanted = [
        family._replace(rules=tuple(rule for rule in family.rules if rule in rules))
        for family in FAMILIES
    ]
    return [family for family in wanted if family.rules]


def _rows_file(folder: Path, key: Row) -> Path:
    """Name the file of the F-measures of test rows."""
    return folder / "rows" / (".".join(map(str, key)) + ".npy")


def _stale_keys(results: ResultFile, folder: Path, retry: bool) -> list[Row]:
    """Give the keys of results that are to be computed again; those of a peer go together."""
    stale = [key for key, row in results.rows.items() if _stale(row, folder, retry)]
    peers = {key[:3] for key in stale if key[2] not in LEARNERS}
    return [key for key in results.rows if key in set(stale) or key[:3] in peers]


def _stale(row: Row, folder: Path, retry: bool) -> bool:
    """Tell whether a result is to be computed again."""
    if row[_KEY] == OK:
        return not _rows_file(folder, row[:_KEY]).exists()
    return retry


def _missing(results: ResultFile, task: Task) -> Task:
    """Give a task with those rules that have no result."""
    if task.rules == (ANY,):  # a peer's rules are known when it has run
        there = any(key[:3] == task.key(ANY)[:3] for key in results.rows)
        return task._replace(rules=() if there else task.rules)
    return task._replace(rules=tuple(r for r in task.rules if task.key(r) not in results))


def _prepared(
    tasks: list[Task], peers: Sequence[str], folder: Path, limit: float, results: ResultFile
) -> list[Task]:
    """Make the environments of peers; tasks of one that cannot be had end here."""
    for name in peers:
        mine = [task for task in tasks if task.learner_name == name]
        if not mine:
            continue
        module = import_module(_PEERS)
        try:
            python = module.prepare(module.PEERS[name], folder / "peers")
        except module.PeerError as error:
            results.append(_failed(task, ANY, one_line(error)) for task in mine)
            tasks = [task for task in tasks if task.learner_name != name]
        else:
            run = partial(_peer, name, module=_PEERS, python=os.fspath(python), limit=limit)
            tasks = [
                task._replace(family=Family((ANY,), run)) if task.learner_name == name else task
                for task in tasks
            ]
    return tasks


def _run(
    tasks: Sequence[Task],
    results: ResultFile,
    processes: int,
    limit: float,
    progress: Progress | None,
) -> None:
    """Run tasks, and keep what they give."""
    tell: Callable[[int, int], object] = progress or (lambda done, total: None)
    done = 0
    tell(done, len(tasks))
    over: set[tuple[str, str, tuple[str, ...]]] = set()  # what took too long in one fold
    held: dict[Key, list[Row]] = {}  # rows of peers, whose rules are known when all are there

    def kind(task: Task) -> tuple[str, str, tuple[str, ...]]:  # numpydoc ignore=GL08
        return task.source.name, task.learner_name, task.family.rules

    def skip(task: Task) -> str | None:  # numpydoc ignore=GL08
        return _OTHER_FOLD if kind(task) in over else None

    for message in run_apart(run_task, tasks, processes, limit, skip):
        task = message.task
        if isinstance(message, Answer):
            if task.rules == (ANY,):
                held.setdefault(task.key(ANY), []).append(message.value)
            else:
                results.append([message.value])
            continue
        assert isinstance(message, End)
        if message.status == LIMIT:
            over.add(kind(task))
        rows = held.pop(task.key(ANY), [])
        left = [rule for rule in task.rules if task.key(rule) not in results]
        if rows and message.status == OK:
            results.append(rows)
            left = []
        status = "the rule decided nothing" if message.status == OK else message.status
        results.append(_failed(task, rule, status) for rule in left)
        done += 1
        tell(done, len(tasks))
    results.rewrite()


def _failed(task: Task, rule: str, status: str) -> Row:
    """Give the row of a rule that gave nothing."""
    return (*task.key(rule), status, *[_NAN] * (len(_COLUMNS) - _KEY - 2), 0)


def run_task(task: Task) -> Iterator[Row]:
    """Fit the models of a family, apply its rules, and measure what they decide.

    Parameters
    ----------
    task : Task
        What is to be done.

    Yields
    ------
    tuple
        The row of each rule that is wanted.
    """
    split = load_split(task.source.path, task.fold, task.seed)
    problem = make_problem(split, task.learner, task.seed)
    left = set(task.rules)
    for outcome in task.family.run(problem):
        if outcome.rule not in left and task.rules != (ANY,):
            continue
        key = task.key(outcome.rule)
        record, f = measured(key, outcome, split.Y_test)
        with atomic_file(_rows_file(task.folder, key)) as file:
            np.save(file, f.astype(np.float32))
        yield tuple(record)
        left.discard(outcome.rule)
        if not left:
            return


def _peer(
    name: str, problem: Problem, *, module: str = _PEERS, python: str = "", limit: float = 600.0
) -> Iterator[Outcome]:
    """Let another package decide, in its own environment."""
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
        labels = {beta: _dense(decision.labels) for beta, decision in decided.items()}
        expected_f = decided[BETAS[0]].expected_f
        yield Outcome("fgfm", labels, expected_f, run.fit_s, seconds, run.peak_mib)


def _dense(labels: Any) -> Any:
    return labels.toarray() if sparse.issparse(labels) else labels
