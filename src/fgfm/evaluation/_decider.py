"""Cross-validation of a decider, beside thresholds on the same probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone

from fgfm._utils.rows import take_rows
from fgfm.decider import FDecider
from fgfm.evaluation._scores import HeldOut, intervals
from fgfm.metrics import FDifference, FInterval


class DeciderEvaluation(NamedTuple):
    """F-measures of three rules for rows that they were not fitted to.

    Attributes
    ----------
    f : dict of str to float
        The F-measure of "decider"; of "half", labels with a probability above 0.5; of
        "threshold", labels with a probability above one threshold, or one for each label, that
        are best on the training rows: the better of the two.
    intervals : dict of str to FInterval
        Their 95 % intervals.
    differences : dict of str to FDifference
        That of "decider" minus that of each other rule, with a ``verdict``.
    thresholds : tuple of float
        The thresholds of all folds.
    n_rows : int
        Number of rows.
    folds : int
        Number of folds.
    """

    f: dict[str, float]
    intervals: dict[str, FInterval]
    differences: dict[str, FDifference]
    thresholds: tuple[float, ...]
    n_rows: int
    folds: int


def evaluate_decider(
    decider: FDecider,
    proba: Any,
    Y: Any,
    *,
    folds: int = 5,
    random_state: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> DeciderEvaluation:
    """Cross-validate a decider on validation rows, beside thresholds on the probabilities.

    Every row is decided once, by rules that were fitted to the rows of the other folds; the
    F-measure, of the average and beta of the decider, is that of all rows together.

    Parameters
    ----------
    decider : FDecider
        The decider; it is cloned before it is fitted.
    proba : ndarray or CSR of shape (n, m)
        Probabilities, or scores if the decider takes them.
    Y : ndarray, data frame or CSR of shape (n, m)
        True labels, 0 or 1; sparse if `proba` is.
    folds : int, default=5
        Number of folds; at most one for each row.
    random_state : int, default=0
        Seed for shuffling rows into folds.
    progress : callable, optional
        Called with the number of finished folds and that of all.

    Returns
    -------
    DeciderEvaluation
        The F-measure of each rule.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm import FDecider
    >>> from fgfm.evaluation import evaluate_decider
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((300, 4)) ** 2
    >>> Y = (rng.random((300, 4)) < truth).astype(int)
    >>> for rule, f in evaluate_decider(FDecider(), truth**2, Y).f.items():
    ...     print(f"{rule:<10} {f:.2f}")
    decider    0.68
    half       0.47
    threshold  0.69
    """
    truth = sparse.csr_array(Y) if sparse.issparse(Y) else np.asarray(Y).astype(np.bool_)
    n = truth.shape[0]
    fold_of = _folds(truth, folds, random_state)
    folds = int(fold_of.max()) + 1
    parts = [np.flatnonzero(fold_of == k) for k in range(folds)]
    decided = []
    for k, test in enumerate(parts):
        train = np.flatnonzero(fold_of != k)
        decided.append(clone(decider).fit(proba[train], take_rows(Y, train)).predict(proba[test]))
        if progress is not None:
            progress(k + 1, folds)
    half = 0.0 if decider.scores else 0.5
    held_out = HeldOut(proba, truth, parts, decider.beta, decider.zero_division, half)
    sets, thresholds = held_out.rules(decider.average, held_out.in_order(decided))
    options = {"beta": decider.beta, "zero_division": decider.zero_division}
    of_rules, differences = intervals(truth, sets, average=decider.average, **options)
    of_rules = {"decider": of_rules.pop("f_optimal"), **of_rules}
    f = {rule: found.f for rule, found in of_rules.items()}
    return DeciderEvaluation(f, of_rules, differences, thresholds, n, folds)


def _folds(truth: Any, folds: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the fold of each row; rows with labels are spread evenly over the folds."""
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
    fold_of = np.empty(n, dtype=np.int64)
    fold_of[order] = np.arange(n) % min(folds, n)
    return fold_of
