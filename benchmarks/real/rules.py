"""Decision rules of the benchmark.

Rules that share models form a *family*, which is fitted once. To add a rule, append a `Family` to
`FAMILIES`: its function yields an `Outcome` for each of its rules.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.multioutput import ClassifierChain

from benchmarks.real.problem import BETAS, Family, Outcome, Problem
from fgfm import FGFMClassifier
from fgfm._utils.blocks import row_blocks
from fgfm.decision import Decision, from_cardinalities, from_marginals
from fgfm.estimation._fitting import fit_models
from fgfm.estimation._learner import LearnerSettings
from fgfm.estimation._methods import METHODS
from fgfm.evaluation import best_threshold
from fgfm.ridge import RidgeLogistic

__all__ = ["DEFAULT", "FAMILIES", "RULES", "THRESHOLD", "best_thresholds"]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]

DEFAULT = "default"  # the rule that the others are compared with
THRESHOLD = "threshold"  # the best single threshold


class _Clock:
    """A stopwatch that restarts whenever it is read."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    def read(self) -> float:
        """Return the seconds since the last reading."""
        now = time.perf_counter()
        passed, self.start = now - self.start, now
        return passed


# --- classifiers ------------------------------------------------------------------------------


def _decide(rule: str, model: FGFMClassifier, X: Any, fit_s: float) -> Outcome:
    """Decide by a fitted classifier, for each beta."""
    clock = _Clock()
    first = model.set_params(beta=BETAS[0]).decide(X)
    predict_s = clock.read()
    labels = {BETAS[0]: first.labels}
    for beta in BETAS[1:]:
        labels[beta] = model.set_params(beta=beta).decide(X).labels
    return Outcome(rule, labels, first.expected_f, fit_s, predict_s)


def _run_classifier(rule: str, parameters: dict[str, Any], problem: Problem) -> Iterator[Outcome]:
    """Fit a classifier and decide by it."""
    clock = _Clock()
    model = problem.classifier(**parameters).fit(problem.X_train, problem.Y_train)
    yield _decide(rule, model, problem.X_test, clock.read())


def _run_powerset(problem: Problem) -> Iterator[Outcome]:
    """Model whole label sets: decide for the F-optimal set, and for the most probable one."""
    clock = _Clock()
    model = problem.classifier(factors="single", method="powerset")
    model.fit(problem.X_train, problem.Y_train)
    fit_s = clock.read()
    yield _decide("powerset", model, problem.X_test, fit_s)
    clock.read()
    yield Outcome("lp", {1.0: model.predict_mode(problem.X_test)}, None, fit_s, clock.read())


def _run_chain(problem: Problem) -> Iterator[Outcome]:
    """Fit a classifier chain: one model per label, given the labels before it."""
    learner = problem.learner
    if learner == "ridge":
        learner = RidgeLogistic(random_state=problem.seed)
    elif learner.get_params().get("random_state", 0) is None:  # ClassifierChain does not set it
        learner = clone(learner).set_params(random_state=problem.seed)
    clock = _Clock()
    chain = ClassifierChain(learner, random_state=problem.seed)
    chain.fit(problem.X_train, problem.Y_train)
    fit_s = clock.read()
    labels = chain.predict(problem.X_test).astype(np.int8)
    yield Outcome("chain", {1.0: labels}, None, fit_s, clock.read())


# --- rules that share one model per label -----------------------------------------------------


class _LabelModels:
    """Models of each label and of the number of labels, and their held-out probabilities.

    The rules "tilted" and "default" combine these models in different ways; the thresholds are
    chosen on the held-out probabilities. The public classes fit models for one estimate only, so
    that this uses the internal functions behind them.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        Y = problem.Y_train.astype(np.bool_)
        self.methods = {"tilted": METHODS["tilted"](True), DEFAULT: METHODS["reweighted"](True)}
        for method in self.methods.values():
            # the same targets for both
            targets = method.make_targets(Y, np.ones(len(Y), dtype=np.bool_), 0)
        settings = LearnerSettings(problem.learner, random_state=problem.seed)
        self.models, held_out = fit_models(problem.X_train, targets, None, settings, held_out=True)
        assert held_out is not None
        # the model of the number of labels, if there is one, comes before those of the labels
        self.labels = range(len(targets) - Y.shape[1], len(targets))
        self.held_out = held_out.positive(self.labels)  # (n, m)
        if self.methods[DEFAULT].needs_held_out:
            self.methods[DEFAULT].learn(held_out, Y, None)
        self.nonempty = bool(Y.any(axis=1).all())

    def marginals(self) -> Floats:
        """Return the probabilities of the labels of the test rows."""
        X = self.problem.X_test
        blocks = row_blocks(X.shape[0], 16 * self.held_out.shape[1])
        return np.concatenate(
            [self.models.predictions(X[rows]).positive(self.labels) for rows in blocks]
        )

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the most probable number of labels of each test row."""
        classes = np.unique(self.problem.Y_train.astype(np.bool_).sum(axis=1))
        proba = self.models.predictions(self.problem.X_test).proba(0)  # (n, classes)
        return np.asarray(classes[proba.argmax(axis=1)])

    def decide(self, rule: str, fit_s: float) -> Outcome:
        """Decide by an estimate of P, for each beta."""
        X, method = self.problem.X_test, self.methods[rule]
        decided: dict[float, list[Decision]] = {beta: [] for beta in BETAS}
        seconds = 0.0
        for rows in row_blocks(X.shape[0], 8 * method.floats_per_row):
            clock = _Clock()
            P, d = method.estimate(self.models.predictions(X[rows]))
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


def _run_label_models(problem: Problem) -> Iterator[Outcome]:
    """Apply the rules that need one model per label, and one of the number of labels."""
    Y = problem.Y_train.astype(np.bool_)
    clock = _Clock()
    models = _LabelModels(problem)
    fit_s = clock.read()
    p = models.marginals()  # (n, m)
    proba_s = clock.read()
    yield Outcome("half", {1.0: _above(p, 0.5)}, None, fit_s, proba_s + clock.read())
    clock.read()
    decided = {b: from_marginals(p, beta=b, nonempty=models.nonempty) for b in BETAS}
    seconds = proba_s + clock.read() / len(BETAS)
    labels = {beta: decision.labels for beta, decision in decided.items()}
    yield Outcome("independent", labels, decided[1.0].expected_f, fit_s, seconds)
    clock.read()
    top = _most_probable(p, models.sizes())
    yield Outcome("topk", {1.0: top}, None, fit_s, proba_s + clock.read())
    for rule in models.methods:
        yield models.decide(rule, fit_s)
    for rule, choose in ((THRESHOLD, best_threshold), ("thresholds", best_thresholds)):
        clock.read()
        chosen = {beta: choose(models.held_out, Y, beta) for beta in BETAS}
        choose_s = clock.read() / len(BETAS)
        labels = {beta: _above(p, t) for beta, t in chosen.items()}
        seconds = proba_s + clock.read() / len(BETAS)
        yield Outcome(rule, labels, None, fit_s + choose_s, seconds)


def _above(p: Floats, threshold: Any) -> Labels:
    return np.asarray(p > threshold, dtype=np.int8)


def _most_probable(p: Floats, sizes: npt.NDArray[np.int64]) -> Labels:
    """Return the most probable labels of each row, as many as its entry of `sizes`."""
    order = np.argsort(-p, axis=1, kind="stable")
    labels = np.zeros(p.shape, dtype=np.int8)
    chosen = (np.arange(p.shape[1]) < sizes[:, None]).astype(np.int8)
    np.put_along_axis(labels, order, chosen, axis=1)
    return labels


def best_thresholds(proba: Floats, labels: npt.NDArray[np.bool_], beta: float = 1.0) -> Floats:
    """Return for each label the threshold with the best F-measure over rows (macro)."""
    n = len(proba)
    order = np.argsort(-proba, axis=0, kind="stable")
    p = np.take_along_axis(proba, order, axis=0)  # (n, m), descending
    hits = np.cumsum(np.take_along_axis(labels, order, axis=0), axis=0)  # (n, m)
    size = beta**2 * labels.sum(axis=0) + np.arange(1, n + 1)[:, None]  # (n, m)
    below = np.concatenate([p[1:], np.zeros((1, p.shape[1]))])
    # a threshold cannot separate equal probabilities: those cuts get -1
    f = np.where(p > below, (1.0 + beta**2) * hits / size, -1.0)
    last = f.argmax(axis=0)
    column = np.arange(p.shape[1])
    middle = (p[last, column] + below[last, column]) / 2.0
    return np.where(labels.any(axis=0), middle, 1.0)


def _single(rule: str, **parameters: Any) -> Family:
    """Return the family of one classifier."""
    return Family((rule,), partial(_run_classifier, rule, parameters))


FAMILIES: list[Family] = [
    Family(
        (DEFAULT, "half", THRESHOLD, "thresholds", "topk", "independent", "tilted"),
        _run_label_models,
    ),
    _single("ilf", factors="ilf", method="two-step"),
    _single("two-step", factors="single", method="two-step"),
    _single("direct", factors="single", method="direct"),
    Family(("powerset", "lp"), _run_powerset),
    Family(("chain",), _run_chain),
]
RULES = tuple(rule for family in FAMILIES for rule in family.rules)
