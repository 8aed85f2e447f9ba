"""Run the synthetic experiment of Gasse and Aussem (2016).

Four structures of label factors, seven sizes of the training set, 100 random distributions of
each structure, 5000 test rows. Results are stored network by network, so that a run that was
stopped continues where it ended.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.parallel import delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fgfm._factor_models import fit_factor_models
from fgfm._utils.atomic import atomic_file
from fgfm._utils.blocks import n_threads
from fgfm._utils.parallel import run_jobs
from fgfm._utils.validation import check_beta, check_choice, check_count
from fgfm.decision import from_factors
from fgfm.factors import ILFCompo, published_grouping
from fgfm.paper._networks import STRUCTURES, LabelNetwork, factor_sizes_of, mean_f, paper_data
from fgfm.paper._summary import Record, Summary, summarise
from fgfm.ridge import RidgeLogistic

__all__ = ["METHODS", "SIZES", "PaperResults", "PaperRun", "find_factors", "reproduce"]

Factor = tuple[int, ...]
Key = tuple[str, int, int, str, str]  # structure, size, repetition, learner, method
Progress = Callable[[int, int], object]  # called with the finished and with all networks

METHODS = ("gfm", "true", "ilf", "independent", "threshold", "bayes")
SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
_ESTIMATES = ("published", "ours")
_ALPHA = 0.01  # level of the paper's tests, not corrected for their number
_DEGREE = 4  # of the products of features: every label has four features as parents
_PARSERS = (str, int, int, str, str, float, float, str)  # of the fields of a record


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


class Settings(NamedTuple):
    """What all results of a run depend on."""

    seed: int
    beta: float
    n_test: int
    estimates: str  # "published" as in the authors' scripts, "ours" the defaults of this package


class Task(NamedTuple):
    """A random network, and the results to compute from it."""

    structure: Factor  # sizes of the label factors
    repetition: int  # number of the network, from 1
    keys: tuple[Key, ...]
    settings: Settings


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
        subfolder ``published`` or ``ours``: ``results.csv`` grows network by network,
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
        Called with the number of finished networks, and the number of those to compute.

    Returns
    -------
    PaperResults
        Records and their summaries.

    Examples
    --------
    >>> import tempfile
    >>> from fgfm.paper import reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = reproduce(
    ...         folder, reps=2, sizes=[50], structures=[4], methods=["gfm", "bayes"]
    ...     )
    >>> len(results.runs["published"].records)  # 2 distributions, 2 learners, 2 methods
    8
    """
    check_choice(estimates, "estimates", (*_ESTIMATES, "both"))
    check_choice(interactions, "interactions", ("largest", "all", "none"))
    seed, beta = check_count(seed, "seed", 0), check_beta(beta)
    n_test, reps = check_count(n_test, "n_test", 1), check_count(reps, "reps", 1)
    factor_sizes = [factor_sizes_of(s, f"structures[{k}]") for k, s in enumerate(structures)]
    training = sorted({check_count(n, f"sizes[{k}]", 2) for k, n in enumerate(sizes)})
    for k, method in enumerate(methods):
        check_choice(method, f"methods[{k}]", METHODS)
    for name, values in (("structures", structures), ("sizes", sizes), ("methods", methods)):
        if not len(values):
            raise ValueError(f"{name} is empty: it must have one element or more")
    n_threads(n_jobs)  # raises if n_jobs is invalid
    for structure in factor_sizes:
        paper_data(structure, 1, 1, n_test=1)  # raises if the probability tables are too large
    models = [(n, "linear") for n in training]
    if interactions != "none":
        second = training if interactions == "all" else training[-1:]
        models = sorted(models + [(n, "interactions") for n in second], key=lambda one: one[0])
    networks = {
        (structure, repetition): [
            ("+".join(map(str, structure)), n, repetition, learner, method)
            for n, learner in models
            for method in dict.fromkeys(methods)
        ]
        for repetition in range(1, reps + 1)
        for structure in factor_sizes
    }
    folder = Path(out)
    runs = {}
    for kind in _ESTIMATES if estimates == "both" else (estimates,):
        settings = Settings(seed, beta, n_test, kind)
        runs[kind] = _Run(folder / kind, settings, networks)
    total, finished = sum(len(run.tasks) for run in runs.values()), 0
    if progress is not None:
        progress(0, total)
    for run in runs.values():
        for _ in run.compute(n_jobs):
            finished += 1
            if progress is not None:
                progress(finished, total)
    return PaperResults({kind: run.results(reps) for kind, run in runs.items()}, folder)


class _Run:
    """The results of one kind of estimates, and the file in which they are stored."""

    def __init__(
        self, folder: Path, settings: Settings, networks: dict[tuple[Factor, int], list[Key]]
    ) -> None:
        self.settings = settings
        self.path = folder / "results.csv"
        self.keys = [key for keys in networks.values() for key in keys]
        folder.mkdir(parents=True, exist_ok=True)
        self.stored = _read_results(self.path)
        _check_settings(folder / "settings.json", settings, bool(self.stored))
        self.tasks = []
        for (structure, repetition), keys in networks.items():
            missing = tuple(key for key in keys if key not in self.stored)
            if missing:
                self.tasks.append(Task(structure, repetition, missing, settings))

    def compute(self, n_jobs: int | None) -> Iterable[None]:
        """Compute and store what is missing; yield after every network."""
        if not self.tasks:
            return
        self._rewrite()  # without an incomplete last line
        try:
            for records in run_jobs(map(delayed(run_network), self.tasks), n_jobs, ordered=False):
                with self.path.open("a", encoding="utf-8", newline="") as file:
                    file.write(_format(records))
                self.stored.update((record[:5], record) for record in records)
                yield
        except BrokenExecutor as error:
            raise ChildProcessError(
                "a worker process was killed, perhaps because memory ran out; finished results "
                "are kept, and the same call continues from there"
            ) from error
        self._rewrite()

    def _rewrite(self) -> None:
        """Write all results in the order of their keys: the same results give the same bytes."""
        text = ",".join(Record._fields) + "\n" + _format(r for _, r in sorted(self.stored.items()))
        with atomic_file(self.path) as file:
            file.write(text.encode())

    def results(self, reps: int) -> PaperRun:
        """Return the records of the run, and their summary."""
        records = [self.stored[key] for key in self.keys]
        return PaperRun(records, summarise(records, self.settings._asdict() | {"reps": reps}))


def _format(records: Iterable[Record]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(records)  # floats keep all their digits
    return text.getvalue()


def _read_results(path: Path) -> dict[Key, Record]:
    """Read stored results, without an incomplete last line that a killed program left."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    head = ",".join(Record._fields)
    if lines[:1] != [head]:
        raise ValueError(f"{path} is not a results file: its first line must be {head!r}")
    stored: dict[Key, Record] = {}
    for number, fields in enumerate(csv.reader(lines[1:]), start=2):
        try:
            record = Record(*(parse(v) for parse, v in zip(_PARSERS, fields, strict=True)))
        except ValueError:
            record = None
        if record is None or not (0.0 <= record.f <= 1.0 and 0.0 <= record.f_exact <= 1.0):
            raise ValueError(
                f"{path}, line {number} is not a row of results: {','.join(fields)!r}"
            ) from None
        stored[record[:5]] = record
    return stored


def _check_settings(path: Path, settings: Settings, required: bool) -> None:
    """Store the settings of the results, or raise if other settings are stored."""
    own = settings._asdict() | {"fgfm": version("fgfm")}
    if not path.exists():
        if required:
            raise ValueError(
                f"{path} is missing: the settings of the results beside it are unknown. Choose "
                "another folder"
            )
        with atomic_file(path) as file:
            file.write((json.dumps(own, indent=2) + "\n").encode())
        return
    try:
        stored = dict(json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: it must have the settings of a run") from error
    changed = [
        f"{name} = {stored.get(name)!r}, not {own.get(name)!r}"
        for name in sorted(own.keys() | stored.keys())
        if own.get(name) != stored.get(name)
    ]
    if changed:
        raise ValueError(
            f"{os.fspath(path.parent)} contains results of another run: {', '.join(changed)}. "
            "Choose another folder"
        )


# One network


def run_network(task: Task) -> list[Record]:
    """Fit all methods to the data sets of a network, and score their decisions."""
    with threadpool_limits(1):  # the processes use all cores already
        return _run_network(*task)


def _run_network(
    structure: Factor, repetition: int, keys: tuple[Key, ...], settings: Settings
) -> list[Record]:
    seed, beta, n_test, estimates = settings
    largest = max(n for _, n, *_ in keys)
    network, train, test = paper_data(structure, repetition, largest, n_test=n_test, seed=seed)
    # Features are binary and few: decide once for each of the 2^p inputs that can occur.
    inputs, proba = network.inputs()  # (2^p, p), (2^p,)
    index = test.X.astype(np.int64) @ (1 << np.arange(network.n_features))  # (n_test,)
    decided: list[npt.NDArray[np.int8]] = []
    partitions: list[list[Factor]] = []
    best = network.decide(inputs, beta=beta).labels
    for n, group in itertools.groupby(keys, key=lambda key: key[1]):
        X, Y = train.X[:n], train.Y[:n]  # a sample begins with the smaller ones
        state = np.random.SeedSequence([seed, repetition, n, *structure]).generate_state(1)[0]
        wanted = list(group)
        of_method = {
            method: _factors(method, network, X, Y, estimates)
            for method in dict.fromkeys(key[4] for key in wanted)
        }
        for learner in dict.fromkeys(key[3] for key in wanted):
            methods = [key[4] for key in wanted if key[3] == learner]
            labels = _decide(
                {method: of_method[method] for method in methods if method != "bayes"},
                _features(X, learner),
                Y,
                _features(inputs, learner),
                settings,
                int(state >> 1),  # the same folds for all methods
            )
            decided += [best if method == "bayes" else labels[method] for method in methods]
            partitions += [of_method[method] for method in methods]
    # F of all decisions on the test rows, and its expectation under the true distribution
    h, at = np.concatenate(decided), np.tile(np.arange(len(inputs)), len(keys))
    P = _frequencies(test.Y, index, len(inputs))
    f = mean_f(P.P, P.d_0, at, h.astype(np.float64), beta**2, 1.0).reshape(len(keys), -1)
    exact = network.expected_f(inputs[at], h, beta=beta).reshape(len(keys), -1)
    # row by row, so that the last bits do not depend on the number of rows
    means = f.sum(axis=1), (exact * proba).sum(axis=1)
    scores = zip(keys, *means, partitions, strict=True)
    return [Record(*key, float(f), float(e), _name(factors)) for key, f, e, factors in scores]


def _factors(method: str, network: LabelNetwork, X: Any, Y: Any, estimates: str) -> list[Factor]:
    """Return the label factors of a method."""
    labels = tuple(range(network.n_labels))
    if method == "gfm":
        return [labels]
    if method in ("true", "bayes"):
        return [tuple(factor.tolist()) for factor in network.factors]
    if method == "ilf":
        return [tuple(map(int, factor)) for factor in find_factors(X, Y, estimates)]
    return [(label,) for label in labels]


def find_factors(X: Any, Y: Any, estimates: str = "published") -> list[npt.NDArray[np.int64]]:
    """Find label factors by ILF-Compo with the paper's settings."""
    finder = ILFCompo("mi", _ALPHA, correction=None).fit(X, Y)
    if estimates == "published":
        return published_grouping(finder.p_values_, _ALPHA)
    factors: list[npt.NDArray[np.int64]] = finder.factors_
    return factors


def _features(X: Any, learner: str) -> npt.NDArray[np.float64]:
    """Return the features of a base learner: X, or also the products of up to four columns."""
    p = X.shape[1]
    if learner == "linear":
        return np.asarray(X, dtype=np.float64)
    products = [c for k in range(1, _DEGREE + 1) for c in itertools.combinations(range(p), k)]
    return np.stack([X[:, list(c)].prod(axis=1) for c in products], axis=1).astype(np.float64)


def _decide(
    factors_of: dict[str, list[Factor]],
    X: Any,
    Y: Any,
    inputs: Any,
    settings: Settings,
    random_state: int,
) -> dict[str, npt.NDArray[np.int8]]:
    """Return the decisions of each method for all inputs; the same factors are fitted once."""
    published = settings.estimates == "published"
    distinct = list(dict.fromkeys(itertools.chain.from_iterable(factors_of.values())))
    if not distinct:
        return {}
    models = fit_factor_models(
        RidgeLogistic(penalize_intercept=published, reference_class=published),
        X,
        Y,
        distinct,
        coherent=not published,
        random_state=random_state,
    )
    estimates = dict(zip(distinct, models.estimate(inputs), strict=True))
    decisions: dict[str, npt.NDArray[np.int8]] = {}
    for method, factors in factors_of.items():
        same = [m for m in decisions if m != "threshold" and factors_of[m] == factors]
        if method == "threshold":
            p = np.hstack([estimates[factor].P[:, 0] for factor in factors])
            decisions[method] = (p > 0.5).astype(np.int8)
        elif same:
            decisions[method] = decisions[same[0]]
        else:
            Ps, ds = zip(*(estimates[factor] for factor in factors), strict=True)
            decision = from_factors(Ps, factors, distributions=ds, beta=settings.beta)
            decisions[method] = decision.labels
    return decisions


class Frequencies(NamedTuple):
    """Shares of test rows by input, as probabilities of input and label set together."""

    P: npt.NDArray[np.float64]  # (inputs, m, m): with label i, among s labels
    d_0: npt.NDArray[np.float64]  # (inputs,): without a label


def _frequencies(Y: Any, index: npt.NDArray[np.int64], n_inputs: int) -> Frequencies:
    """Return the shares of rows with labels Y (n, m); `index` (n,) are their inputs."""
    n, m = Y.shape
    cell = index * (m + 1) + Y.sum(axis=1)
    P = [np.bincount(cell, weights=y, minlength=n_inputs * (m + 1)) / n for y in Y.T]
    number = np.bincount(cell, minlength=n_inputs * (m + 1)).reshape(n_inputs, m + 1)
    return Frequencies(
        np.stack(P, axis=1).reshape(n_inputs, m + 1, m)[:, 1:].transpose(0, 2, 1), number[:, 0] / n
    )


def _name(factors: Sequence[Factor]) -> str:
    """Format label factors, as '0 2|1'."""
    return "|".join(" ".join(map(str, factor)) for factor in factors)
