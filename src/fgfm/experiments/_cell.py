"""One cell of the paper's experiment: a data set, a base learner, and all methods.

A *cell* is one data set with one base learner. All methods of a cell use the same training rows
and the same folds, so that methods are compared by paired differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import PolynomialFeatures

from fgfm.experiments._records import Record
from fgfm.experiments._result_file import Row
from fgfm.factors import ILFCompo, published_grouping
from fgfm.gfm import FGFMClassifier
from fgfm.metrics import f_measure
from fgfm.ridge import RidgeLogistic
from fgfm.synthetic import LabelNetwork, Sample, paper_data

Partition = list[npt.NDArray[np.int64]]
Key = tuple[str, int, int, str, str]  # structure, size, repetition, learner, method

METHODS = ("gfm", "true", "ilf", "independent", "threshold", "bayes")
LEARNERS = ("linear", "interactions")
ESTIMATES = ("published", "ours")
_ALPHA = 0.01  # level of the paper's tests, not corrected for their number
_DEGREE = 4  # of the products of features: every label has four features as parents


class Settings(NamedTuple):
    """What the results of all cells of a run depend on."""

    seed: int = 0
    beta: float = 1.0
    n_test: int = 5000
    estimates: str = "published"  # as in the authors' scripts; "ours": defaults of this package


class Cell(NamedTuple):
    """A data set, a base learner, and the methods to run."""

    structure: tuple[int, ...]  # sizes of the label factors
    n: int  # training rows
    repetition: int  # number of the random distribution, from 1
    learner: str
    methods: tuple[str, ...]
    settings: Settings

    def key(self, method: str) -> Key:
        """Return the key of a method's row in the results file."""
        return structure_name(self.structure), self.n, self.repetition, self.learner, method


def structure_name(sizes: Sequence[int]) -> str:
    """Format the sizes of label factors.

    Examples
    --------
    >>> structure_name((6, 2))
    '6+2'
    """
    return "+".join(map(str, sizes))


def partition_name(factors: Sequence[Any]) -> str:
    """Format label factors.

    Examples
    --------
    >>> partition_name([[0, 2], [1]])
    '0 2|1'
    """
    return "|".join(" ".join(str(int(label)) for label in factor) for factor in factors)


def run_cell(cell: Cell) -> list[Row]:
    """Fit the methods to one data set and score their decisions."""
    seed, beta, n_test, estimates = cell.settings
    network, train, test = paper_data(
        cell.structure, cell.repetition, cell.n, n_test=n_test, seed=seed
    )
    # Features are binary and few: decide once for each of the 2^p inputs that can occur.
    inputs, proba = network.inputs()  # (2^p, p), (2^p,)
    index = test.X.astype(np.int64) @ (1 << np.arange(network.n_features))  # (n_test,)
    models = _Models(cell, train, inputs)
    rows: list[Row] = []
    for method in cell.methods:
        partition = _partition(method, network, train, estimates)
        if method == "bayes":
            labels = network.decide(inputs, beta=beta).labels
        elif method == "threshold":
            labels = models.fitted(partition).predict_proba(models.features) > 0.5
        else:
            labels = models.fitted(partition).predict(models.features)
        f = float(f_measure(test.Y, labels[index], beta))
        f_exact = float(proba @ network.expected_f(inputs, labels, beta=beta))
        rows.append(tuple(Record(*cell.key(method), f, f_exact, partition_name(partition))))
    return rows


class _Models:
    """The classifiers of a cell; methods with the same label factors share one."""

    def __init__(self, cell: Cell, train: Sample, inputs: npt.NDArray[Any]) -> None:
        self.settings = cell.settings
        seeds = [cell.settings.seed, cell.repetition, cell.n, *cell.structure]
        state = np.random.SeedSequence(seeds).generate_state(1)[0]
        self.random_state = int(state >> 1)  # the same folds for all methods
        expand = PolynomialFeatures(
            _DEGREE if cell.learner == "interactions" else 1,
            interaction_only=True,
            include_bias=False,
        ).fit(inputs)
        self.X, self.Y = expand.transform(train.X), train.Y
        self.features = expand.transform(inputs)
        self._by_factors: dict[str, FGFMClassifier] = {}

    def fitted(self, partition: Partition) -> FGFMClassifier:
        """Return the classifier with the given label factors, fitted once."""
        name = partition_name(partition)
        if name not in self._by_factors:
            published = self.settings.estimates == "published"
            self._by_factors[name] = FGFMClassifier(
                RidgeLogistic(penalize_intercept=published, reference_class=published),
                factors=partition,
                method="two-step",
                coherent=not published,
                nonempty=False,
                beta=self.settings.beta,
                random_state=self.random_state,
            ).fit(self.X, self.Y)
        return self._by_factors[name]


def _partition(method: str, network: LabelNetwork, train: Sample, estimates: str) -> Partition:
    """Return the label factors of a method."""
    labels = np.arange(network.n_labels)
    if method == "gfm":
        return [labels]
    if method in ("true", "bayes"):
        return network.factors
    if method == "ilf":
        return find_factors(train.X, train.Y, estimates)
    return list(labels[:, None])


def find_factors(X: Any, Y: Any, estimates: str = "published") -> Partition:
    """Find label factors by ILF-Compo with the paper's settings."""
    finder = ILFCompo("mi", _ALPHA, correction=None).fit(X, Y)
    if estimates == "published":
        return published_grouping(finder.p_values_, _ALPHA)
    factors: Partition = finder.factors_
    return factors
