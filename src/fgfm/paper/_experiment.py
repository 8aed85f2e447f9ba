"""Run the synthetic experiment of Gasse and Aussem (2016).

Four structures of label factors, seven sizes of the training set, 100 random distributions of
each structure, 5000 test rows. The results of each network are a file, so that a run that was
stopped continues where it ended.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import numpy.typing as npt
from sklearn.utils.parallel import delayed

from fgfm._factor_models import FactorModels, check_learner
from fgfm._utils.atomic import atomic_file
from fgfm._utils.blocks import n_threads
from fgfm._utils.parallel import one_blas_thread, run_jobs
from fgfm._utils.validation import check_beta, check_choice, check_count
from fgfm.decision import from_factors
from fgfm.factors import ILFCompo, published_grouping
from fgfm.paper._networks import STRUCTURES, LabelNetwork, factor_sizes_of, mean_f, paper_data
from fgfm.paper._summary import Record, Summary, summarise
from fgfm.ridge import RidgeLogistic

Factor = tuple[int, ...]
Partition = tuple[Factor, ...]
Progress = Callable[[int, int], object]  # called with the finished and with all networks

METHODS = ("gfm", "true", "ilf", "independent", "threshold", "bayes")
SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
_ESTIMATES = ("published", "ours")
_ALPHA = 0.01  # level of the paper's tests, not corrected for their number
_DEGREE = 4  # of the products of features: every label has four features as parents


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


class Task(NamedTuple):
    """A random network, and the results to compute from it."""

    structure: Factor  # sizes of the label factors
    repetition: int  # number of the network, from 1
    fits: tuple[tuple[int, str, bool], ...]  # training rows, learner, on products of features
    methods: tuple[str, ...]
    estimator: Any  # the base learner, None for that of the paper
    estimates: str  # "published" as in the authors' scripts, "ours" the defaults of this package
    beta: float
    seed: int
    n_test: int


def reproduce(
    out: str | os.PathLike[str],
    *,
    estimator: Any = None,
    estimates: str = "published",
    reps: int = 100,
    sizes: Sequence[int] = SIZES,
    structures: Sequence[Any] = tuple(STRUCTURES),
    methods: Sequence[str] = METHODS,
    interactions: str | None = None,
    beta: float = 1.0,
    seed: int = 0,
    n_test: int = 5000,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> PaperResults:
    """Run the synthetic experiment of Gasse and Aussem (2016).

    The results of a network are stored in the output folder when they are complete, and are not
    computed again by a call with the same arguments: a run that was stopped continues where it
    ended, and a run with more repetitions extends one with fewer.

    Parameters
    ----------
    out : str or path-like
        Output folder, created if necessary. It has a file for each network, by a hash of the
        arguments, in ``published/networks`` or ``ours/networks``.
    estimator : scikit-learn classifier, optional
        The base learner, with ``predict_proba``, for two and more classes. By default that of the
        paper, `fgfm.ridge.RidgeLogistic`.
    estimates : {"published", "ours", "both"}, default="published"
        How probabilities are estimated. "published": as in the authors' scripts: P need not be
        coherent, intercepts are penalised, multinomial models have a reference class, and
        learned factors come from half of the tests. "ours": the estimates of this package, with
        coherent P, free intercepts and connected components. "both" runs one after the other.
        Intercepts and reference classes are those of the paper's base learner only.
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
    interactions : {"largest", "all", "none"}, optional
        Sizes for which the base learner is also fitted to all products of up to four features,
        with which a linear one can represent the true distribution. By default "largest" for the
        base learner of the paper, which is linear, and "none" for another.
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
    check_choice(interactions, "interactions", (None, "largest", "all", "none"))
    if estimator is not None:
        check_learner(estimator)
    beta = check_beta(beta)
    for name, value, least in (("seed", seed, 0), ("n_test", n_test, 1), ("reps", reps, 1)):
        check_count(value, name, least)
    for name, values in (("structures", structures), ("sizes", sizes), ("methods", methods)):
        if not len(values):
            raise ValueError(f"{name} is empty: it must have one element or more")
    training = sorted({check_count(n, f"sizes[{k}]", 2) for k, n in enumerate(sizes)})
    for k, method in enumerate(methods):
        check_choice(method, f"methods[{k}]", METHODS)
    factor_sizes = [factor_sizes_of(s, f"structures[{k}]") for k, s in enumerate(structures)]
    for structure in factor_sizes:
        paper_data(structure, 1, 1, n_test=1)  # raises if the probability tables are too large
    n_threads(n_jobs)  # raises if n_jobs is invalid
    linear, products, default = "linear", "interactions", "largest"
    if estimator is not None:
        linear, default = type(estimator).__name__, "none"
        products = f"{linear}, products"
    second = {"all": training, "largest": training[-1:], "none": []}[interactions or default]
    fits = [(n, linear, False) for n in training] + [(n, products, True) for n in second]
    fits.sort(key=lambda fit: fit[0])
    distinct = tuple(dict.fromkeys(methods))
    folder, paths = Path(out), {}
    for kind in _ESTIMATES if estimates == "both" else (estimates,):
        (folder / kind / "networks").mkdir(parents=True, exist_ok=True)
        tasks = [
            Task(structure, k, tuple(fits), distinct, estimator, kind, beta, seed, n_test)
            for k in range(1, reps + 1)
            for structure in factor_sizes
        ]
        paths[kind] = {_path(folder / kind, task): task for task in tasks}
    todo = {p: task for of in paths.values() for p, task in of.items() if not p.exists()}
    _compute(todo, n_jobs, progress or (lambda finished, total: None))
    runs = {}
    for kind, of in paths.items():
        records = [record for path in of for record in _read(path)]
        settings = {"seed": seed, "beta": beta, "n_test": n_test, "estimates": kind}
        runs[kind] = PaperRun(records, summarise(records, settings, reps))
    return PaperResults(runs, folder)


def _path(folder: Path, task: Task) -> Path:
    """Return the file of the results of a task, which has a hash of all that they depend on."""
    digest = joblib.hash((task, version("fgfm")))[:16]
    name = f"{'+'.join(map(str, task.structure))[:60]}_{task.repetition}_{digest}.json"
    return folder / "networks" / name


def _read(path: Path) -> list[Record]:
    try:
        return [Record(*fields) for fields in json.loads(path.read_text(encoding="utf-8"))]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a file of results: {error}; remove it") from error


def _compute(todo: dict[Path, Task], n_jobs: int | None, progress: Progress) -> None:
    """Compute the results of networks, and store those of each when they come."""
    progress(0, len(todo))
    jobs = (delayed(_run_alone)(path, task) for path, task in todo.items())
    try:
        for finished, (path, records) in enumerate(run_jobs(jobs, n_jobs, ordered=False), 1):
            with atomic_file(path) as file:  # floats keep all their digits
                file.write(json.dumps(records, indent=0).encode())
            progress(finished, len(todo))
    except BrokenExecutor as error:
        raise ChildProcessError(
            "a worker process was killed, perhaps because memory ran out; finished results are "
            "kept, and the same call continues from there"
        ) from error


def _run_alone(path: Path, task: Task) -> tuple[Path, list[Record]]:
    with one_blas_thread:  # the processes use all cores already
        return path, run_network(task)


# One network


def run_network(task: Task) -> list[Record]:
    """Fit all methods to the data sets of a network, and score their decisions."""
    structure, repetition, fits, methods, _, _, beta, seed, n_test = task
    largest = max(n for n, *_ in fits)
    network, train, test = paper_data(structure, repetition, largest, n_test=n_test, seed=seed)
    # Features are binary and few: decide once for each of the 2^p inputs that can occur.
    inputs, proba = network.inputs()  # (2^p, p), (2^p,)
    best = network.decide(inputs, beta=beta).labels
    decided: list[npt.NDArray[np.int8]] = []
    of_record: list[tuple[int, str, str, Partition]] = []
    for n, same_rows in itertools.groupby(fits, key=lambda fit: fit[0]):
        X, Y = train.X[:n], train.Y[:n]  # a sample begins with the smaller ones
        state = np.random.SeedSequence([seed, repetition, n, *structure]).generate_state(1)[0]
        folds = int(state >> 1)  # the same for all methods
        factors = {k: _factors(k, network, X, Y, task.estimates) for k in methods}
        for _, learner, products in same_rows:
            data = _features(X, products), Y, _features(inputs, products)
            labels = {"bayes": best} | _decide(factors, *data, folds, task)
            decided += [labels[method] for method in methods]
            of_record += [(n, learner, method, factors[method]) for method in methods]
    # F of all decisions on the test rows, and its expectation under the true distribution
    h, row = np.concatenate(decided), np.tile(np.arange(len(inputs)), len(decided))
    P, d_0 = _frequencies(test.Y, test.X, len(inputs))
    f = mean_f(P, d_0, row, h.astype(np.float64), beta).reshape(len(decided), -1)
    exact = network.expected_f(inputs[row], h, beta=beta).reshape(len(decided), -1)
    # row by row, so that the last bits do not depend on the number of rows
    means = f.sum(axis=1).tolist(), (exact * proba).sum(axis=1).tolist()
    name = "+".join(map(str, structure))
    return [
        Record(name, n, repetition, learner, method, f_test, f_exact, _name(parts))
        for (n, learner, method, parts), f_test, f_exact in zip(of_record, *means, strict=True)
    ]


def _factors(method: str, network: LabelNetwork, X: Any, Y: Any, estimates: str) -> Partition:
    """Return the label factors of a method."""
    labels = range(network.n_labels)
    if method in ("independent", "threshold"):
        return tuple((label,) for label in labels)
    learned = {"true": network.factors, "bayes": network.factors, "gfm": [np.array(labels)]}
    factors = learned.get(method) or find_factors(X, Y, estimates)
    return tuple(tuple(factor.tolist()) for factor in factors)


def find_factors(X: Any, Y: Any, estimates: str = "published") -> list[npt.NDArray[np.int64]]:
    """Find label factors by ILF-Compo with the paper's settings."""
    finder = ILFCompo("mi", _ALPHA, correction=None).fit(X, Y)
    if estimates == "published":
        return published_grouping(finder.p_values_, _ALPHA)
    factors: list[npt.NDArray[np.int64]] = finder.factors_
    return factors


def _features(X: Any, products: bool) -> npt.NDArray[np.float64]:
    """Return the features of a base learner: X, or all products of up to four columns."""
    p = X.shape[1]
    if not products:
        return np.asarray(X, dtype=np.float64)
    chosen = [c for k in range(1, _DEGREE + 1) for c in itertools.combinations(range(p), k)]
    return np.stack([X[:, list(c)].prod(axis=1) for c in chosen], axis=1).astype(np.float64)


def _decide(
    partitions: dict[str, Partition], X: Any, Y: Any, inputs: Any, folds: int, task: Task
) -> dict[str, npt.NDArray[np.int8]]:
    """Return the decisions of each method for all inputs; the same factors are fitted once."""
    partitions = {method: parts for method, parts in partitions.items() if method != "bayes"}
    distinct = list(dict.fromkeys(itertools.chain.from_iterable(partitions.values())))
    if not distinct:
        return {}
    published = task.estimates == "published"
    ridge = RidgeLogistic(penalize_intercept=published, reference_class=published)
    models = FactorModels(coherent=not published)
    models.fit(
        ridge if task.estimator is None else task.estimator, X, Y, distinct, random_state=folds
    )
    estimates = dict(zip(distinct, models.estimate(inputs), strict=True))
    optimal: dict[Partition, Any] = {}
    labels: dict[str, npt.NDArray[np.int8]] = {}
    for method, parts in partitions.items():
        if method == "threshold":
            p = np.hstack([estimates[factor].P[:, 0] for factor in parts])
            labels[method] = (p > 0.5).astype(np.int8)
            continue
        if parts not in optimal:
            Ps, ds = zip(*(estimates[factor] for factor in parts), strict=True)
            optimal[parts] = from_factors(Ps, parts, distributions=ds, beta=task.beta).labels
        labels[method] = optimal[parts]
    return labels


def _frequencies(
    Y: Any, X: Any, n_inputs: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the shares of rows by input, as probabilities of input and label set together.

    P (inputs, m, m) has those of label i among s labels, d_0 (inputs,) those of no label.
    """
    n, m = Y.shape
    index = X.astype(np.int64) @ (1 << np.arange(X.shape[1]))  # (n,)
    cell = index * (m + 1) + Y.sum(axis=1)
    P = [np.bincount(cell, weights=y, minlength=n_inputs * (m + 1)) / n for y in Y.T]
    number = np.bincount(cell, minlength=n_inputs * (m + 1)).reshape(n_inputs, m + 1)
    by_size = np.stack(P, axis=1).reshape(n_inputs, m + 1, m)
    return by_size[:, 1:].transpose(0, 2, 1), number[:, 0] / n


def _name(factors: Partition) -> str:
    """Format label factors, as '0 2|1'."""
    return "|".join(" ".join(map(str, factor)) for factor in factors)
