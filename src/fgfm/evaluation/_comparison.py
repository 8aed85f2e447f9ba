"""Decision rules compared on held-out probabilities."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.metrics import FDifference, FInterval, f_difference, f_interval
from fgfm.metrics._best_threshold import above_tuned

Integers = npt.NDArray[np.int64]


class Comparison(NamedTuple):
    """F-measures of three decision rules, for rows that they were not fitted to.

    Attributes
    ----------
    f : dict of str to FInterval
        The F-measure of each rule with its 95 % interval. The rules: "f_optimal", the label sets
        of largest expected F-measure; "half", labels with a probability above 0.5; "threshold",
        labels with a probability above one threshold, or one for each label, that are best for
        the F-measure of other rows: the better of the two.
    differences : dict of str to FDifference
        That of "f_optimal" minus that of each other rule, with a ``verdict``.
    thresholds : tuple of float
        The thresholds of all folds, one or one for each label.
    n_rows : int
        Number of rows.
    folds : int
        Number of folds; 0 for a model that was fitted before.
    """

    f: dict[str, FInterval]
    differences: dict[str, FDifference]
    thresholds: tuple[float, ...]
    n_rows: int
    folds: int


class HeldOut(NamedTuple):
    """Held-out probabilities of rows, and their true labels.

    Attributes
    ----------
    proba : ndarray or CSR of shape (n, m)
        The probabilities, or scores.
    truth : ndarray or CSR of shape (n, m)
        True labels, sparse if the probabilities are.
    parts : list of ndarray
        The rows of each part; the thresholds of a part are tuned on the other parts.
    folds : int
        Number of folds in which these probabilities were predicted; 0 if by a single model.
    beta, zero_division : float
        The F-measure.
    half : float
        What the rule "half" compares with: 0.5, or 0 if `proba` has scores.
    """

    proba: Any
    truth: Any
    parts: Sequence[Integers]
    folds: int
    beta: float
    zero_division: float
    half: float = 0.5

    def compare(self, average: str, optimal: Any) -> tuple[Comparison, dict[str, Any]]:
        """Compare F-optimal label sets (n, m) with thresholds; return the sets of all rules, too.

        Labels that are neither true nor decided are left out of the macro F-measure.
        """
        measure: dict[str, Any] = {"average": average, "beta": self.beta}
        tuned = []
        for each in (False, True):
            sets, thresholds = above_tuned(
                self.proba,
                self.truth,
                self.parts,
                each=each,
                zero_division=self.zero_division,
                **measure,
            )
            tuned.append((sets, tuple(np.ravel(np.array(thresholds)).tolist())))
        measure["zero_division"] = math.nan if average == "macro" else self.zero_division
        rules = {"f_optimal": optimal, "half": self.proba > self.half}
        with warnings.catch_warnings():  # on few rows: once is enough
            warnings.filterwarnings("ignore", "only|labels that fewer", UserWarning)
            one, each_one = (f_interval(self.truth, sets, **measure) for sets, _ in tuned)
            best = int(each_one.f > one.f)
            rules["threshold"], chosen = tuned[best]
            f = {name: f_interval(self.truth, sets, **measure) for name, sets in rules.items()}
            differences = {
                name: f_difference(self.truth, optimal, rules[name], **measure)
                for name in ("half", "threshold")
            }
        n = self.truth.shape[0]
        return Comparison(f, differences, chosen, n, self.folds), rules


def spread_folds(truth: Any, folds: int, seed: int) -> list[Integers]:
    """Return the rows of each fold; rows with labels are spread evenly over the folds."""
    n = truth.shape[0]
    has_labels = np.asarray(truth.sum(axis=1)).ravel() > 0
    if folds < 2:
        raise ValueError(f"folds is {folds}: it must be 2 or more")
    if n < 3 or has_labels.sum() < 2:
        raise ValueError(
            f"Y has {n} rows, {has_labels.sum()} of them with labels: cross-validation needs at "
            "least 3 rows, and labels in 2 of them"
        )
    order = np.random.default_rng(seed).permutation(n)
    order = order[np.argsort(has_labels[order], kind="stable")]
    folds = min(folds, n)
    return [np.sort(order[k::folds]) for k in range(folds)]
