"""What the benchmark compares: base learners, and rules that make label sets of their models.

Rules that share models are a *family*, which is fitted once. To add a rule, add a `Family` to
`FAMILIES`: a function that gives an `Outcome` for each of its rules.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.multioutput import ClassifierChain

from fgfm._utils.blocks import row_blocks
from fgfm.classifier import FGFMClassifier
from fgfm.decision import Decision, from_cardinalities, from_marginals
from fgfm.estimation._fitting import LearnerSettings, fit_models
from fgfm.estimation._reweighted import ReweightedStrategy
from fgfm.estimation._tilted import TiltedStrategy
from fgfm.evaluation import best_threshold
from fgfm.ridge import RidgeLogistic

__all__ = [
    "BETAS",
    "DEFAULT",
    "FAMILIES",
    "LEARNERS",
    "RULES",
    "THRESHOLD",
    "Family",
    "Learner",
    "Outcome",
    "Problem",
    "best_thresholds",
    "make_problem",
]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]

BETAS = (1.0, 2.0, 0.5)
DEFAULT = "default"  # the rule that the others are compared with
THRESHOLD = "threshold"  # the best single one
_DENSE_BYTES = 1 << 30  # of features that may be made dense


class Learner(NamedTuple):
    """A base learner.

    Attributes
    ----------
    make : callable
        Gives a new one; None stands for the default of `FGFMClassifier`.
    dense : bool
        It needs dense features.
    """

    make: Callable[[], Any]
    dense: bool = False


class Problem(NamedTuple):
    """Rows to learn from, rows to decide for, and the base learner."""

    X_train: Any
    Y_train: Labels
    X_test: Any
    learner: Any
    seed: int

    def classifier(self, **parameters: Any) -> FGFMClassifier:
        """Make a classifier with the base learner, not fitted."""
        return FGFMClassifier(self.learner, random_state=self.seed, **parameters)


class Outcome(NamedTuple):
    """What a rule decided for the test rows.

    Attributes
    ----------
    rule : str
        The rule.
    labels : dict of float to ndarray of shape (n, m)
        The decisions for each beta; where one is missing, that for beta 1 serves.
    expected_f : ndarray of shape (n,) or None
        The F-measure that the rule expects of its decisions for beta 1, if it expects any.
    fit_s, predict_s : float
        Seconds to fit, and to decide for beta 1. Rules that share models all count their time.
    peak_mib : float or None
        The most memory that was taken; None is that of this process.
    """

    rule: str
    labels: dict[float, Labels]
    expected_f: Floats | None
    fit_s: float
    predict_s: float
    peak_mib: float | None = None


class Family(NamedTuple):
    """Rules that share models, and what applies them, as a function that can be imported."""

    rules: tuple[str, ...]
    run: Callable[[Problem], Iterator[Outcome]]


def make_problem(split: Any, learner: Learner, seed: int) -> Problem:
    """Make a problem of a split; features become dense if the learner needs that.

    Parameters
    ----------
    split : Split
        Rows of training and of test.
    learner : Learner
        The base learner.
    seed : int
        Seeds whatever is random.

    Returns
    -------
    Problem
        The problem.
    """
    X_train, X_test = split.X_train, split.X_test
    if learner.dense and sparse.issparse(X_train):
        size = 8 * X_train.shape[1] * (X_train.shape[0] + X_test.shape[0])
        if size > _DENSE_BYTES:
            raise ValueError(
                f"the learner needs dense features, of {size / 2**20:.0f} MiB: they may have "
                f"{_DENSE_BYTES / 2**20:.0f} MiB at most"
            )
        X_train, X_test = X_train.toarray(), X_test.toarray()
    return Problem(X_train, split.Y_train, X_test, learner.make(), seed)


class _Clock:
    """Seconds since the last time that it was read."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    def read(self) -> float:
        now = time.perf_counter()
        passed, self.start = now - self.start, now
        return passed


def _optimal(rule: str, model: FGFMClassifier, X: Any, fit_s: float) -> Outcome:
    """Decide by a fitted classifier, for each beta."""
    clock = _Clock()
    first = model.set_params(beta=BETAS[0]).decide(X)
    predict_s = clock.read()
    labels = {BETAS[0]: first.labels}
    for beta in BETAS[1:]:
        labels[beta] = model.set_params(beta=beta).decide(X).labels
    return Outcome(rule, labels, first.expected_f, fit_s, predict_s)


def _classifier(rule: str, parameters: dict[str, Any], problem: Problem) -> Iterator[Outcome]:
    """Fit a classifier, and decide by it."""
    clock = _Clock()
    model = problem.classifier(**parameters).fit(problem.X_train, problem.Y_train)
    yield _optimal(rule, model, problem.X_test, clock.read())


def _powerset(problem: Problem) -> Iterator[Outcome]:
    """Model label sets: the F-optimal ones, and the most probable ones."""
    clock = _Clock()
    model = problem.classifier(factors="single", method="powerset")
    model.fit(problem.X_train, problem.Y_train)
    fit_s = clock.read()
    yield _optimal("powerset", model, problem.X_test, fit_s)
    clock.read()
    yield Outcome("lp", {1.0: model.predict_mode(problem.X_test)}, None, fit_s, clock.read())


def _chain(problem: Problem) -> Iterator[Outcome]:
    """Model each label given those before it."""
    learner = problem.learner
    if learner is None:
        learner = RidgeLogistic(random_state=problem.seed)
    elif learner.get_params().get("random_state", 0) is None:
        learner = clone(learner).set_params(random_state=problem.seed)  # the chain does not do so
    clock = _Clock()
    chain = ClassifierChain(learner, random_state=problem.seed)
    chain.fit(problem.X_train, problem.Y_train)
    fit_s = clock.read()
    labels = chain.predict(problem.X_test).astype(np.int8)
    yield Outcome("chain", {1.0: labels}, None, fit_s, clock.read())


class _Models:
    """The models that the rules of one family share: of each label, and of their number.

    Parameters
    ----------
    problem : Problem
        What they are fitted to.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        Y = problem.Y_train.astype(np.bool_)
        self.parts = {"tilted": TiltedStrategy(), DEFAULT: ReweightedStrategy()}
        for part in self.parts.values():
            targets = part.make_targets(Y, np.ones(len(Y), dtype=np.bool_))
        settings = LearnerSettings(problem.learner, random_state=problem.seed)
        self.models, held_out = fit_models(
            problem.X_train, targets, None, settings, out_of_fold=True
        )
        assert held_out is not None
        first = len(targets) - Y.shape[1]  # that of the number comes first, if there is one
        self.labels = slice(first, len(targets))
        self.held_out = held_out.positive_proba(self.labels)  # (n, m)
        if self.parts[DEFAULT].needs_out_of_fold():
            self.parts[DEFAULT].fit_out_of_fold(held_out, Y, None)
        self.nonempty = bool(Y.any(axis=1).all())

    def marginals(self) -> Floats:
        """Give the probabilities of the labels of the test rows."""
        X = self.problem.X_test
        rows = row_blocks(X.shape[0], 16 * self.held_out.shape[1])
        return np.concatenate(
            [self.models.predictions(X[r]).positive_proba(self.labels) for r in rows]
        )

    def optimal(self, rule: str, fit_s: float) -> Outcome:
        """Decide by an estimate of P, for each beta."""
        X, part = self.problem.X_test, self.parts[rule]
        decided: dict[float, list[Decision]] = {beta: [] for beta in BETAS}
        seconds = 0.0
        for rows in row_blocks(X.shape[0], 8 * part.floats_per_row()):
            clock = _Clock()
            P, d = part.combine(self.models.predictions(X[rows]))
            for beta in BETAS:
                decided[beta].append(
                    from_cardinalities(P, distribution=d, beta=beta, nonempty=self.nonempty)
                )
                if beta == BETAS[0]:
                    seconds += clock.read()
        labels = {
            b: np.concatenate([one.labels for one in blocks]) for b, blocks in decided.items()
        }
        expected = np.concatenate([one.expected_f for one in decided[BETAS[0]]])
        return Outcome(rule, labels, expected, fit_s, seconds)


def _marginals(problem: Problem) -> Iterator[Outcome]:
    """Apply the rules that need one model of each label, and one of the number of labels."""
    Y = problem.Y_train.astype(np.bool_)
    clock = _Clock()
    shared = _Models(problem)
    fit_s = clock.read()
    p = shared.marginals()
    proba_s = clock.read()
    yield Outcome("half", _above(p, 0.5), None, fit_s, proba_s + clock.read())
    clock.read()
    decided = {b: from_marginals(p, beta=b, nonempty=shared.nonempty) for b in BETAS}
    seconds = proba_s + clock.read() / len(BETAS)
    labels = {beta: decision.labels for beta, decision in decided.items()}
    yield Outcome("independent", labels, decided[1.0].expected_f, fit_s, seconds)
    clock.read()
    number = np.unique(Y.sum(axis=1))  # the classes of the first model, of one label too
    size = number[shared.models.predictions(problem.X_test).predict_proba(0).argmax(axis=1)]
    yield Outcome("topk", {1.0: _largest(p, size)}, None, fit_s, proba_s + clock.read())
    for rule in shared.parts:
        yield shared.optimal(rule, fit_s)
    for rule, choose in ((THRESHOLD, _single_threshold), ("thresholds", best_thresholds)):
        clock.read()
        chosen = {beta: choose(shared.held_out, Y, beta) for beta in BETAS}
        chosen_s = clock.read() / len(BETAS)
        labels = {beta: _above(p, t)[1.0] for beta, t in chosen.items()}
        seconds = proba_s + clock.read() / len(BETAS)
        yield Outcome(rule, labels, None, fit_s + chosen_s, seconds)


def _above(p: Floats, threshold: float | Floats) -> dict[float, Labels]:
    return {1.0: (p > threshold).astype(np.int8)}


def _largest(p: Floats, size: npt.NDArray[np.int64]) -> Labels:
    """Give, in each row, as many of the most probable labels as `size` says."""
    order = np.argsort(-p, axis=1, kind="stable")
    labels = np.zeros(p.shape, dtype=np.int8)
    chosen = (np.arange(p.shape[1]) < size[:, None]).astype(np.int8)
    np.put_along_axis(labels, order, chosen, axis=1)
    return labels


def _single_threshold(proba: Floats, labels: npt.NDArray[np.bool_], beta: float) -> float:
    return best_threshold(proba, labels, beta, 1.0)


def best_thresholds(proba: Floats, labels: npt.NDArray[np.bool_], beta: float = 1.0) -> Floats:
    """Give, for each label by itself, the threshold of best F-measure over rows.

    Parameters
    ----------
    proba : ndarray of shape (n, m)
        Probabilities.
    labels : ndarray of shape (n, m)
        True labels.
    beta : float, default=1.0
        How many times as important recall is as precision.

    Returns
    -------
    ndarray of shape (m,)
        Thresholds, half-way between two probabilities; of equally good ones the highest. It is 1
        for a label that no row has.

    Examples
    --------
    >>> best_thresholds(np.array([[0.1], [0.3], [0.2]]), np.array([[0], [1], [0]], dtype=bool))
    array([0.25])
    """
    n = len(proba)
    order = np.argsort(-proba, axis=0, kind="stable")
    p = np.take_along_axis(proba, order, axis=0)  # (n, m) falling
    found = np.cumsum(np.take_along_axis(labels, order, axis=0), axis=0)  # (n, m)
    size = beta**2 * labels.sum(axis=0) + np.arange(1, n + 1)[:, None]
    below = np.concatenate([p[1:], np.zeros((1, p.shape[1]))])
    f = np.where(p > below, (1.0 + beta**2) * found / size, -1.0)  # equal ones stay together
    last = f.argmax(axis=0)
    column = np.arange(p.shape[1])
    middle = (p[last, column] + below[last, column]) / 2.0
    return np.where(labels.any(axis=0), middle, 1.0)


def _ridge() -> None:
    """Give what stands for the default learner."""


def _forest() -> RandomForestClassifier:
    return RandomForestClassifier(100, min_samples_leaf=2, n_jobs=1)


def _boosting() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(early_stopping=False)


LEARNERS = {
    "ridge": Learner(_ridge),
    "forest": Learner(_forest),
    "boosting": Learner(_boosting, dense=True),
}


def _simple(rule: str, **parameters: Any) -> Family:
    """Make the family of one classifier."""
    return Family((rule,), partial(_classifier, rule, parameters))


FAMILIES: list[Family] = [
    Family(
        (DEFAULT, "half", THRESHOLD, "thresholds", "topk", "independent", "tilted"),
        _marginals,
    ),
    _simple("ilf", factors="ilf", method="two-step"),
    _simple("two-step", factors="single", method="two-step"),
    _simple("direct", factors="single", method="direct"),
    Family(("powerset", "lp"), _powerset),
    Family(("chain",), _chain),
]
RULES = tuple(rule for family in FAMILIES for rule in family.rules)
