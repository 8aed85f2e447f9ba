"""The synthetic experiment of Gasse and Aussem (2016), from nothing to its figure.

Four structures of label factors, seven sizes of the training set, 100 random distributions of
each structure, 5000 test rows. A *cell* is one data set with one base learner; all methods are
given the same rows and the same folds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import PolynomialFeatures

from fgfm._utils.blocks import n_threads
from fgfm._utils.validation import check_beta, check_choice, check_count, check_flag
from fgfm.classifier import FGFMClassifier
from fgfm.experiments._results import ResultFile, Row
from fgfm.experiments._runner import Progress, run_tasks
from fgfm.experiments._statistics import Record, Summary, summarise
from fgfm.factors import ILFCompo, published_grouping
from fgfm.metrics import f_measure
from fgfm.ridge import RidgeLogistic
from fgfm.synthetic import STRUCTURES, LabelNetwork, Sample, factor_sizes_of, paper_data

__all__ = ["LEARNERS", "METHODS", "SIZES", "PaperResults", "reproduce", "run_cell"]

Partition = list[npt.NDArray[np.int64]]

SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
METHODS = ("gfm", "true", "ilf", "independent", "threshold", "bayes")
LEARNERS = ("linear", "interactions")
_INTERACTIONS = ("largest", "all", "none")
_ALPHA = 0.01  # of the paper's tests, which it does not correct for their number
_DEGREE = 4  # of the interactions


def _share(text: str) -> float:
    """Read a number from 0 to 1."""
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise ValueError(text)
    return value


_COLUMNS: dict[str, Any] = {
    "structure": str,
    "n": int,
    "repetition": int,
    "learner": str,
    "method": str,
    "f": _share,
    "f_exact": _share,
    "factors": str,
}
_KEY = 5  # columns


class Settings(NamedTuple):
    """What the results of a cell depend on, beside its name."""

    seed: int = 0
    beta: float = 1.0
    n_test: int = 5000
    published: bool = False


class Cell(NamedTuple):
    """One data set, one base learner, and what is to be computed of it."""

    structure: tuple[int, ...]
    n: int
    repetition: int
    learner: str
    methods: tuple[str, ...]
    settings: Settings

    def key(self, method: str) -> Row:
        """Give the key of the row of a method.

        Parameters
        ----------
        method : str
            The method.

        Returns
        -------
        tuple
            Structure, size, repetition, learner and method.
        """
        return structure_name(self.structure), self.n, self.repetition, self.learner, method


class PaperResults(NamedTuple):
    """What `reproduce` gives.

    Attributes
    ----------
    records : list of Record
        One for each structure, size, repetition, learner and method.
    summary : Summary
        Means, paired differences, factors, and what became of the paper's findings.
    folder : Path
        Where ``results.csv`` is.
    """

    records: list[Record]
    summary: Summary
    folder: Path


def structure_name(sizes: Sequence[int]) -> str:
    """Write the sizes of the factors.

    Parameters
    ----------
    sizes : sequence of int
        The sizes.

    Returns
    -------
    str
        The sizes with + between them.

    Examples
    --------
    >>> structure_name((6, 2))
    '6+2'
    """
    return "+".join(map(str, sizes))


def reproduce(
    out: str | os.PathLike[str],
    *,
    reps: int = 100,
    sizes: Sequence[int] = SIZES,
    structures: Sequence[Any] = tuple(STRUCTURES),
    methods: Sequence[str] = METHODS,
    interactions: str = "largest",
    beta: float = 1.0,
    seed: int = 0,
    n_test: int = 5000,
    published: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> PaperResults:
    """Run the synthetic experiment of the paper.

    A folder keeps the results. What it holds already is not computed again, so that a run that
    was stopped goes on, and a larger one begins where a smaller one ended.

    Parameters
    ----------
    out : str or path-like
        The folder, made if need be: ``results.csv`` grows cell by cell, ``settings.json`` says
        what they depend on.
    reps : int, default=100
        Number of random distributions of each structure.
    sizes : sequence of int, default=(50, 100, 200, 500, 1000, 2000, 5000)
        Numbers of training rows.
    structures : sequence of int or of tuple, default=(1, 2, 3, 4)
        Structures of the paper, or sizes of other label factors.
    methods : sequence of str, optional
        Of "gfm" (one factor), "true" (F-GFM with the true factors), "ilf" (F-GFM with those that
        ILF-Compo finds), "independent", "threshold" (labels of probability above 0.5) and "bayes"
        (the optimum, from the exact distribution); all by default.
    interactions : {"largest", "all", "none"}, default="largest"
        For which sizes a second base learner is run: logistic regression with all products of up
        to four features, which can represent the truth. The paper's is linear in the features.
    beta : float, default=1.0
        The beta of the F-measure that is maximised and measured.
    seed : int, default=0
        Seeds everything.
    n_test : int, default=5000
        Number of test rows.
    published : bool, default=False
        Estimate as the paper's scripts do: probabilities that need not sum up, penalised
        intercepts, a reference class without weights, and a grouping of labels that reads half of
        the tests.
    n_jobs : int, optional
        How many processes, in joblib's meaning. It does not change the results.
    progress : callable, optional
        Called with the number of cells that are done, and of all that were to do.

    Returns
    -------
    PaperResults
        Records, and their summary.

    Examples
    --------
    >>> import tempfile
    >>> from fgfm.experiments import reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = reproduce(
    ...         folder, reps=2, sizes=[50], structures=[4], methods=["gfm", "bayes"]
    ...     )
    >>> len(results.records)  # 2 distributions, 2 learners, 2 methods
    8
    """
    settings = Settings(
        check_count(seed, "seed", 0),
        check_beta(beta),
        check_count(n_test, "n_test", 1),
        check_flag(published, "published"),
    )
    check_choice(interactions, "interactions", _INTERACTIONS)
    factor_sizes = [factor_sizes_of(s, f"structures[{k}]") for k, s in enumerate(structures)]
    training = sorted({check_count(n, f"sizes[{k}]", 2) for k, n in enumerate(sizes)})
    methods = list(dict.fromkeys(methods))
    for k, method in enumerate(methods):
        check_choice(method, f"methods[{k}]", METHODS)
    for name, given in (("structures", factor_sizes), ("sizes", training), ("methods", methods)):
        if not len(given):
            raise ValueError(f"{name} is empty: there must be at least one")
    cells = [
        Cell(structure, n, repetition, learner, tuple(methods), settings)
        for repetition in range(1, check_count(reps, "reps", 1) + 1)
        for structure in dict.fromkeys(factor_sizes)
        for n in training
        for learner in LEARNERS
        if learner == "linear"
        or interactions == "all"
        or (interactions == "largest" and n == training[-1])
    ]
    for structure in factor_sizes:
        paper_data(structure, 1, 1, n_test=1)  # raises if the tables would be too large
    n_threads(n_jobs)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    bound = settings._asdict() | {"fgfm": version("fgfm")}
    with ResultFile(folder / "results.csv", _COLUMNS, _KEY, bound).opened() as results:
        missing = [
            cell._replace(methods=tuple(m for m in cell.methods if cell.key(m) not in results))
            for cell in cells
        ]
        run_tasks(run_cell, [c for c in missing if c.methods], results, n_jobs, progress)
        wanted = dict.fromkeys(cell.key(m) for cell in cells for m in cell.methods)
        records = [Record(*results.rows[key]) for key in wanted]
    about = settings._asdict() | {"reps": int(reps)}
    return PaperResults(records, summarise(records, about), folder)


def run_cell(cell: Cell) -> list[Row]:
    """Fit the methods to one data set, and measure what they decide.

    Parameters
    ----------
    cell : Cell
        The data set, the learner and the methods.

    Returns
    -------
    list of tuple
        The row of each method: its key, the mean F-measure on the test rows, its exact
        expectation, and the label factors.
    """
    seed, beta, n_test, published = cell.settings
    network, train, test = paper_data(
        cell.structure, cell.repetition, cell.n, n_test=n_test, seed=seed
    )
    inputs, proba = network.inputs()  # equal rows get equal decisions: these are all there are
    at = test.X.astype(np.int64) @ (1 << np.arange(network.n_features))
    name_of_cell = np.random.SeedSequence([seed, cell.repetition, cell.n, *cell.structure])
    folds = int(name_of_cell.generate_state(1)[0] >> 1)  # the same for all methods
    fitted: dict[str, FGFMClassifier] = {}
    expand = PolynomialFeatures(
        _DEGREE if cell.learner == "interactions" else 1,
        interaction_only=True,
        include_bias=False,
    ).fit(inputs)

    def model(partition: Partition) -> FGFMClassifier:  # numpydoc ignore=GL08
        name = partition_name(partition)
        if name not in fitted:
            fitted[name] = FGFMClassifier(
                RidgeLogistic(penalize_intercept=published, reference_class=published),
                factors=partition,
                method="two-step",
                coherent=not published,
                nonempty=False,
                beta=beta,
                random_state=folds,
            ).fit(expand.transform(train.X), train.Y)
        return fitted[name]

    rows: list[Row] = []
    for method in cell.methods:
        partition = _partition(method, network, train, published)
        if method == "bayes":
            labels = network.decide(inputs, beta=beta).labels
        elif method == "threshold":
            labels = model(partition).predict_proba(expand.transform(inputs)) > 0.5
        else:
            labels = model(partition).predict(expand.transform(inputs))
        f = f_measure(test.Y, labels[at], beta)
        exact = float(proba @ network.expected_f(inputs, labels, beta=beta))
        rows.append((*cell.key(method), f, exact, partition_name(partition)))
    return rows


def _partition(method: str, network: LabelNetwork, train: Sample, published: bool) -> Partition:
    """Give the label factors of a method."""
    labels = np.arange(network.n_labels)
    if method == "gfm":
        return [labels]
    if method in ("true", "bayes"):
        return network.factors
    if method == "ilf":
        grouping = "published" if published else "components"
        return find_factors(train.X, train.Y, grouping)
    return list(labels[:, None])


def find_factors(X: Any, Y: Any, grouping: str = "components") -> Partition:
    """Find label factors with the paper's settings.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Features.
    Y : array-like of shape (n, m)
        Labels.
    grouping : {"components", "published"}, default="components"
        Connected components, or the grouping of the authors' scripts.

    Returns
    -------
    list of ndarray
        The labels of each factor.
    """
    finder = ILFCompo("mi", _ALPHA, correction=None).fit(X, Y)
    if grouping == "published":
        return published_grouping(finder.p_values_, _ALPHA)
    factors: Partition = finder.factors_
    return factors


def partition_name(factors: Sequence[Any]) -> str:
    """Write label factors.

    Parameters
    ----------
    factors : sequence of sequences of int
        The labels of each factor.

    Returns
    -------
    str
        Labels with spaces, and factors with bars between them.

    Examples
    --------
    >>> partition_name([[0, 2], [1]])
    '0 2|1'
    """
    return "|".join(" ".join(str(int(label)) for label in factor) for factor in factors)
