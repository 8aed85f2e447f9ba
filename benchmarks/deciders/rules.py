"""Rules that turn probabilities into label sets, tuned on validation rows.

A rule is a function of `Probabilities` that yields an `Outcome` for each average that it is made
for. It sees the labels of the validation rows only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import TunedThresholdClassifierCV

import fgfm
from benchmarks.deciders.probabilities import Probabilities
from fgfm.decision import from_marginals

__all__ = [
    "AVERAGES",
    "FDECIDER",
    "FDECIDER_ROWS",
    "GUARANTEE",
    "ORACLE",
    "PER_LABEL",
    "RAW",
    "RULES",
    "THRESHOLD",
    "Average",
    "Outcome",
    "averages_of",
    "label_cuts",
]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]
Average = Literal["samples", "macro", "micro"]

AVERAGES: tuple[Average, ...] = ("samples", "macro", "micro")
THRESHOLD, PER_LABEL, TUNED = "threshold", "per-label", "tuned-cv"
RAW, FDECIDER = "f-optimal", "fdecider"
ORACLE = "oracle"  # the best thresholds of the test rows, which no rule can know
FDECIDER_ROWS = "fdecider-rows"  # rows one by one, by the thresholds that FDecider keeps
GUARANTEE = "guarantee"  # FDecider fitted on half of the validation rows, bounded on the others
_CONFIDENCE = 0.95
_NAN = float("nan")


class Outcome(NamedTuple):
    """The decisions of a rule for the test rows."""

    average: Average
    labels: Labels
    tune_s: float
    decide_s: float
    expected_f: float = _NAN
    bound: float = _NAN


def decide_half(p: Probabilities) -> Iterator[Outcome]:
    """Take labels that are more probable than not."""
    for average in AVERAGES:
        start = time.perf_counter()
        labels = p.proba_test > 0.5
        yield Outcome(average, labels, 0.0, time.perf_counter() - start)


def decide_one_threshold(p: Probabilities) -> Iterator[Outcome]:
    """Take labels above the threshold with the best F1 of the validation rows."""
    for average in AVERAGES:
        start = time.perf_counter()
        grid = _threshold_grid(p.proba_val, p.Y_val)
        scores = [fgfm.f_measure(p.Y_val, p.proba_val >= t, average=average) for t in grid]
        threshold = grid[int(np.argmax(scores))]
        tuned = time.perf_counter()
        labels = p.proba_test >= threshold
        yield Outcome(average, labels, tuned - start, time.perf_counter() - tuned)


def _threshold_grid(proba: Floats, Y: Labels) -> Floats:
    """Return 0.01, ..., 0.99 and percentiles of the probabilities of true and of all labels."""
    percentiles = np.linspace(0.0, 100.0, 101)
    parts = [np.arange(1, 100) / 100.0, np.percentile(proba, percentiles)]
    if Y.any():
        parts.append(np.percentile(proba[Y.astype(bool)], percentiles))
    return np.unique(np.concatenate(parts))


def decide_per_label(p: Probabilities) -> Iterator[Outcome]:
    """Take labels above the threshold with the label's best F1 of the validation rows."""
    start = time.perf_counter()
    cuts = label_cuts(p.proba_val, p.Y_val)
    tuned = time.perf_counter()
    labels = p.proba_test > cuts
    yield from _for_each_average(labels, tuned - start, time.perf_counter() - tuned)


def label_cuts(proba: Floats, Y: Labels) -> Floats:
    """Return the threshold of each label with the best F1, of all that separate two rows."""
    n, m = proba.shape
    order = np.argsort(-proba, axis=0, kind="stable")
    p = np.take_along_axis(proba, order, axis=0)  # (n, m), decreasing
    hits = np.cumsum(np.take_along_axis(Y, order, axis=0), axis=0, dtype=np.int64)
    f = np.empty((n + 1, m))  # of the first k rows, for k = 0, ..., n
    f[0] = hits[-1] == 0
    f[1:] = 2.0 * hits / (np.arange(1, n + 1)[:, None] + hits[-1])
    f[1:n][p[1:] == p[:-1]] = -1.0  # no threshold separates equal probabilities
    edges = np.vstack([np.full(m, np.inf), (p[1:] + p[:-1]) / 2.0, p[-1] / 2.0])
    return np.asarray(np.take_along_axis(edges, f.argmax(axis=0)[None], axis=0)[0])


def decide_oracle(p: Probabilities) -> Iterator[Outcome]:
    """Take the best thresholds of the test rows: one, and for "macro" one per label."""
    known = p._replace(proba_val=p.proba_test, Y_val=p.Y_test)
    for one, per_label in zip(decide_one_threshold(known), decide_per_label(known), strict=True):
        yield per_label if one.average == "macro" else one


class _Identity(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted binary classifier whose feature is the probability of class 1."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> _Identity:
        """Return the estimator."""
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """Return the probabilities of both classes."""
        return np.hstack([1.0 - X, X])

    def predict(self, X: Floats) -> Labels:
        """Return the more probable class."""
        return (X[:, 0] > 0.5).astype(np.int64)


def decide_tuned(p: Probabilities) -> Iterator[Outcome]:
    """Take the threshold of each label from scikit-learn's TunedThresholdClassifierCV.

    A label that is constant on the validation rows keeps its constant. Where all its
    probabilities are equal, which scikit-learn refuses, its threshold is 0.5.
    """
    start = time.perf_counter()
    varies = p.Y_val.any(axis=0) & ~p.Y_val.all(axis=0)  # (m,)
    cuts = np.where(varies, 0.5, np.where(p.Y_val.any(axis=0), -np.inf, np.inf))  # (m,)
    model = TunedThresholdClassifierCV(_Identity(), scoring="f1", cv="prefit", refit=False)
    for k in np.flatnonzero(varies & (np.ptp(p.proba_val, axis=0) > 0.0)):
        cuts[k] = model.fit(p.proba_val[:, [k]], p.Y_val[:, k]).best_threshold_
    tuned = time.perf_counter()
    labels = p.proba_test >= cuts  # as scikit-learn compares
    yield from _for_each_average(labels, tuned - start, time.perf_counter() - tuned)


def _for_each_average(labels: Labels, tune_s: float, decide_s: float) -> Iterator[Outcome]:
    for average in AVERAGES:
        yield Outcome(average, labels, tune_s, decide_s)


def decide_raw(p: Probabilities) -> Iterator[Outcome]:
    """Maximise the expected F1 under the probabilities as they are; nothing is tuned."""
    for average in AVERAGES:
        start = time.perf_counter()
        labels, expected_f = from_marginals(p.proba_test, average=average)
        decide_s = time.perf_counter() - start
        yield Outcome(average, labels, 0.0, decide_s, float(np.mean(expected_f)))


def decide_fdecider(p: Probabilities) -> Iterator[Outcome]:
    """Fit `fgfm.FDecider` to the validation rows, and decide for all test rows together."""
    for average in AVERAGES:
        start = time.perf_counter()
        decider = fgfm.FDecider(average=average).fit(p.proba_val, p.Y_val)
        tuned = time.perf_counter()
        labels, expected_f = decider.decide(p.proba_test)
        decide_s = time.perf_counter() - tuned
        yield Outcome(average, labels, tuned - start, decide_s, float(np.mean(expected_f)))


def decide_fdecider_rows(p: Probabilities) -> Iterator[Outcome]:
    """Fit `fgfm.FDecider`, and decide each test row without regard to the others.

    For the average "samples" that is no different.
    """
    for average in averages_of(FDECIDER_ROWS):
        start = time.perf_counter()
        decider = fgfm.FDecider(average=average).fit(p.proba_val, p.Y_val)
        tuned = time.perf_counter()
        labels = decider.predict(p.proba_test)
        yield Outcome(average, labels, tuned - start, time.perf_counter() - tuned)


def decide_with_guarantee(p: Probabilities) -> Iterator[Outcome]:
    """Fit `fgfm.FDecider` to half of the validation rows, and bound its F1 by the others."""
    half = len(p.Y_val) // 2  # rows were shuffled
    start = time.perf_counter()
    decider = fgfm.FDecider(average="samples").fit(p.proba_val[:half], p.Y_val[:half])
    bound = decider.lower_bound(p.proba_val[half:], p.Y_val[half:], confidence=_CONFIDENCE)
    tuned = time.perf_counter()
    labels, expected_f = decider.decide(p.proba_test)
    decide_s = time.perf_counter() - tuned
    mean = float(np.mean(expected_f))
    yield Outcome("samples", labels, tuned - start, decide_s, mean, float(bound))


RULES: dict[str, Callable[[Probabilities], Iterator[Outcome]]] = {
    "half": decide_half,
    THRESHOLD: decide_one_threshold,
    PER_LABEL: decide_per_label,
    TUNED: decide_tuned,
    RAW: decide_raw,
    FDECIDER: decide_fdecider,
    FDECIDER_ROWS: decide_fdecider_rows,
    GUARANTEE: decide_with_guarantee,
    ORACLE: decide_oracle,
}


def averages_of(rule: str) -> tuple[Average, ...]:
    """Return the averages that a rule of `RULES` decides for."""
    return {FDECIDER_ROWS: AVERAGES[1:], GUARANTEE: AVERAGES[:1]}.get(rule, AVERAGES)
