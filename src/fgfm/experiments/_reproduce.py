"""Run the synthetic experiment of Gasse and Aussem (2016).

Four structures of label factors, seven sizes of the training set, 100 random distributions of
each structure, 5000 test rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.utils.parallel import delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fgfm._utils.blocks import n_threads
from fgfm._utils.parallel import run_jobs
from fgfm._utils.validation import check_beta, check_choice, check_count
from fgfm.experiments._cell import ESTIMATES, LEARNERS, METHODS, Cell, Settings, run_cell
from fgfm.experiments._records import Record, Summary
from fgfm.experiments._result_file import ResultFile, Row
from fgfm.experiments._summary import summarise
from fgfm.synthetic import STRUCTURES, factor_sizes_of, paper_data

Progress = Callable[[int, int], object]  # called with the finished and with all tasks

SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
_INTERACTIONS = ("largest", "all", "none")


def _parse_share(text: str) -> float:
    """Parse a number from 0 to 1."""
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise ValueError(text)
    return value


_PARSERS = (str, int, int, str, str, _parse_share, _parse_share, str)  # of the fields of a record
_N_KEY = 5  # leading columns that identify a row


class PaperRun(NamedTuple):
    """Results with one kind of estimates."""

    records: list[Record]  # one for each structure, size, repetition, learner and method
    summary: Summary


class PaperResults(NamedTuple):
    """Results of `reproduce`.

    Attributes
    ----------
    runs : dict
        ``runs[estimates]``, for "published" and "ours", has the ``records`` of single runs, named
        tuples (structure, n, repetition, learner, method, f, f_exact, factors), and their
        ``summary``: means, paired differences, factor scores and the paper's findings.
    folder : Path
        The output folder.
    """

    runs: dict[str, PaperRun]
    folder: Path


def reproduce(
    out: str | os.PathLike[str],
    *,
    estimates: str = "published",
    reps: int = 100,
    sizes: Sequence[int] = SIZES,
    structures: Sequence[Any] = tuple(STRUCTURES),
    methods: Sequence[str] = METHODS,
    interactions: str = "largest",
    beta: float = 1.0,
    seed: int = 0,
    n_test: int = 5000,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> PaperResults:
    """Run the synthetic experiment of Gasse and Aussem (2016).

    Results are stored in the output folder as they are computed, and stored results are not
    computed again: a run that was stopped continues where it ended, and a larger run extends a
    smaller one.

    Parameters
    ----------
    out : str or path-like
        Output folder, created if necessary. The results of each kind of estimates are in its
        subfolder ``published`` or ``ours``: ``results.csv`` grows cell by cell,
        ``settings.json`` records what the results depend on.
    estimates : {"published", "ours", "both"}, default="published"
        How probabilities are estimated. "published": as in the authors' scripts: P need not be
        coherent, intercepts are penalised, multinomial models have a reference class, and
        learned factors come from half of the tests. "ours": the estimates of this package, with
        coherent P, free intercepts and connected components. "both" runs one after the other.
    reps : int, default=100
        Number of random distributions of each structure.
    sizes : sequence of int, default=(50, 100, 200, 500, 1000, 2000, 5000)
        Numbers of training rows.
    structures : sequence of int or of tuple, default=(1, 2, 3, 4)
        Structures of the paper, or sizes of other label factors.
    methods : sequence of str, optional
        Any of "gfm" (one factor), "true" (F-GFM with the true factors), "ilf" (F-GFM with the
        factors that ILF-Compo learns), "independent" (F-GFM with one factor per label),
        "threshold" (labels with a probability above 0.5) and "bayes" (the optimal decision from
        the true distribution); all by default.
    interactions : {"largest", "all", "none"}, default="largest"
        Sizes for which a second base learner is run: logistic regression with all products of up
        to four features, which can represent the true distribution. The paper's base learner is
        linear in the features.
    beta : float, default=1.0
        The beta of the F-measure that is maximised and scored.
    seed : int, default=0
        Random seed of the whole experiment.
    n_test : int, default=5000
        Number of test rows.
    n_jobs : int, optional
        Number of processes, as in joblib. Results do not depend on it.
    progress : callable, optional
        Called with the number of finished cells, and the number of cells to compute.

    Returns
    -------
    PaperResults
        Records and their summaries.

    Examples
    --------
    >>> import tempfile
    >>> from fgfm.experiments import reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = reproduce(
    ...         folder, reps=2, sizes=[50], structures=[4], methods=["gfm", "bayes"]
    ...     )
    >>> len(results.runs["published"].records)  # 2 distributions, 2 learners, 2 methods
    8
    """
    check_choice(estimates, "estimates", (*ESTIMATES, "both"))
    settings = Settings(
        check_count(seed, "seed", 0), check_beta(beta), check_count(n_test, "n_test", 1)
    )
    cells = _cells(reps, sizes, structures, methods, interactions, settings)
    n_threads(n_jobs)  # raises if n_jobs is invalid
    kinds = ESTIMATES if estimates == "both" else (estimates,)
    return PaperResults(_run_all(Path(out), kinds, cells, int(reps), n_jobs, progress), Path(out))


def _cells(
    reps: int,
    sizes: Sequence[int],
    structures: Sequence[Any],
    methods: Sequence[str],
    interactions: str,
    settings: Settings,
) -> list[Cell]:
    """Validate the arguments and return the cells of the experiment."""
    check_choice(interactions, "interactions", _INTERACTIONS)
    factor_sizes = [factor_sizes_of(s, f"structures[{k}]") for k, s in enumerate(structures)]
    training = sorted({check_count(n, f"sizes[{k}]", 2) for k, n in enumerate(sizes)})
    methods = list(dict.fromkeys(methods))
    for k, method in enumerate(methods):
        check_choice(method, f"methods[{k}]", METHODS)
    for name, given in (("structures", factor_sizes), ("sizes", training), ("methods", methods)):
        if not given:
            raise ValueError(f"{name} is empty: it must have one element or more")
    for structure in factor_sizes:
        paper_data(structure, 1, 1, n_test=1)  # raises if the probability tables are too large
    return [
        Cell(structure, n, repetition, learner, tuple(methods), settings)
        for repetition in range(1, check_count(reps, "reps", 1) + 1)
        for structure in dict.fromkeys(factor_sizes)
        for n in training
        for learner in LEARNERS
        if learner == "linear"
        or interactions == "all"
        or (interactions == "largest" and n == training[-1])
    ]


def _run_all(
    folder: Path,
    kinds: Sequence[str],
    cells: Sequence[Cell],
    reps: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> dict[str, PaperRun]:
    """Compute the missing results of each kind of estimates, and summarise them."""
    columns = dict(zip(Record._fields, _PARSERS, strict=True))
    with ExitStack() as stack:
        plans: list[tuple[Settings, ResultFile, list[Cell]]] = []
        for kind in kinds:
            settings = cells[0].settings._replace(estimates=kind)
            (folder / kind).mkdir(parents=True, exist_ok=True)
            stored = settings._asdict() | {"fgfm": version("fgfm")}
            file = ResultFile(folder / kind / "results.csv", columns, _N_KEY, stored)
            stack.enter_context(file.opened())
            missing = []
            for cell in cells:
                methods = tuple(m for m in cell.methods if cell.key(m) not in file)
                if methods:
                    missing.append(cell._replace(methods=methods, settings=settings))
            plans.append((settings, file, missing))
        total, finished = sum(len(missing) for _, _, missing in plans), 0
        runs = {}
        for settings, file, missing in plans:
            for done in run_tasks(run_cell, missing, file, n_jobs):
                if progress is not None:
                    progress(finished + done, total)
            finished += len(missing)
            wanted = dict.fromkeys(cell.key(m) for cell in cells for m in cell.methods)
            records = [Record(*file.rows[key]) for key in wanted]
            summary = summarise(records, settings._asdict() | {"reps": reps})
            runs[settings.estimates] = PaperRun(records, summary)
    return runs


def run_tasks(
    work: Callable[[Any], list[Row]], tasks: Sequence[Any], results: ResultFile, n_jobs: int | None
) -> Iterator[int]:
    """Run tasks, append the rows of each to the results when it ends, and yield how many ended.

    With joblib backends that return all results at the end (Ray's, or "multiprocessing"), the
    rows of all but the first task are appended then.
    """
    yield 0
    for done, rows in enumerate(_compute(work, tasks, n_jobs), start=1):
        results.append(rows)
        yield done
    if tasks:
        results.rewrite()


def _compute(
    work: Callable[[Any], list[Row]], tasks: Sequence[Any], n_jobs: int | None
) -> Iterator[list[Row]]:
    """Yield the rows of each task, in the order in which the tasks end."""
    # The first task runs in this process: an error in it is shown with its traceback.
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
