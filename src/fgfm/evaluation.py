"""How good label sets are: the F-optimal rule against thresholds, on rows that no model saw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline

from fgfm._utils.progress import current_callback, report_progress
from fgfm.classifier import FGFMClassifier
from fgfm.metrics import calibration_bins, f_measure

__all__ = ["MEASURES", "RULES", "Evaluation", "Value", "evaluate", "evaluate_fitted"]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]

MEASURES = (
    "instance_f",
    "micro_f",
    "macro_f",
    "jaccard",
    "hamming_loss",
    "subset_accuracy",
    "labels_per_row",
)
RULES = ("f_optimal", "half", "threshold")
_BINS = 10
_MOST_THRESHOLDS = 1000


class Value(NamedTuple):
    """A mean, or a score of all rows together, and its standard error."""

    value: float
    standard_error: float  # NaN where there is nothing to tell it from


class Evaluation(NamedTuple):
    """What three rules made of the same models, on rows that these did not see.

    Attributes
    ----------
    measures : dict
        ``measures[measure][rule]`` is a `Value`. The measures: the mean F-measure of rows, micro
        and macro F-measure, mean Jaccard index, Hamming loss, share of exact matches, and labels
        per row. The rules: "f_optimal", the set of largest expected F-measure; "half", labels of
        probability above 0.5; "threshold", above the one threshold of best F-measure.
    gains : dict
        ``gains[rule]``: by how much the F-measure of "f_optimal" is higher, compared row by row.
    expected_f : Value
        The mean F-measure that the models expected of their own decisions.
    excess : Value
        Expected minus obtained F-measure: above 0 where models promise too much.
    bin_difference : float
        Mean absolute difference of the two over ten bins of rows of similar expectation.
    true_labels_per_row : float
        Mean number of true labels.
    n_rows : int
        Number of rows that were decided.
    folds : int
        Number of folds; standard errors are over these, or over rows where it is 0.
    thresholds : tuple of float
        The thresholds of each fold.
    threshold_from : str
        What they were chosen on.
    factors : tuple of int
        The number of label factors of each model.
    """

    measures: dict[str, dict[str, Value]]
    gains: dict[str, Value]
    expected_f: Value
    excess: Value
    bin_difference: float
    true_labels_per_row: float
    n_rows: int
    folds: int
    thresholds: tuple[float, ...]
    threshold_from: str
    factors: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """Give plain dictionaries, lists and numbers, for JSON; NaN becomes None.

        Returns
        -------
        dict
            One entry for each attribute.
        """
        return {name: _plain(value) for name, value in self._asdict().items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Value):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


class _Decided(NamedTuple):
    """What was decided for some rows."""

    rows: npt.NDArray[np.int64]
    sets: dict[str, Labels]
    expected_f: Floats
    thresholds: tuple[float, ...]
    n_factors: int


def evaluate(
    model: Any,
    X: Any,
    Y: Any,
    X_test: Any = None,
    Y_test: Any = None,
    *,
    folds: int = 5,
    inner_folds: int = 3,
    random_state: int = 0,
    progress: Callable[[int, int, str, int, int], object] | None = None,
) -> Evaluation:
    """Fit a model, decide for rows that it did not see, and score the decisions.

    Scores are of all rows together: in cross-validation every row is decided once, so that rare
    labels count as often as they occur. A label that is neither true nor decided for in any row
    is left out of the macro F-measure.

    Parameters
    ----------
    model : FGFMClassifier, or a pipeline that ends with one
        Not fitted: clones of it are.
    X : ndarray or sparse matrix of shape (n, p)
        Features.
    Y : array-like of shape (n, m)
        Labels, 0 or 1; a data frame gives them names.
    X_test, Y_test : optional
        Rows to decide for. By default those of (X, Y), by cross-validation.
    folds : int, default=5
        Folds of the cross-validation.
    inner_folds : int, default=3
        The threshold is chosen on probabilities of the training rows that models gave which did
        not see them, in as many folds, with the label factors found before. 0 takes the
        probabilities of the models that did see them, which costs nothing, and favours too high
        thresholds.
    random_state : int, default=0
        Shuffles rows into folds.
    progress : callable, optional
        Called with the number of fits done, of all fits, and what the current one is at: a name,
        how many are done, and of how many.

    Returns
    -------
    Evaluation
        Measures, and how sure they are.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from fgfm import FGFMClassifier
    >>> from fgfm.evaluation import evaluate
    >>> X, Y = make_multilabel_classification(400, n_classes=6, n_labels=3, random_state=0)
    >>> found = evaluate(FGFMClassifier(factors="independent", random_state=0), X, Y, folds=3)
    >>> for rule, f in found.measures["instance_f"].items():
    ...     print(f"{rule:<10} {f.value:.3f}")
    f_optimal  0.688
    half       0.646
    threshold  0.682
    """
    labels = _labels(Y)
    _check_folds(folds, inner_folds, len(labels), X_test is None)
    work = _Work(model, inner_folds, random_state, progress)
    if X_test is not None:
        decided = work.decide(X, Y, np.arange(len(labels)), X_test, np.arange(X_test.shape[0]), 1)
        return _scored([decided], _labels(Y_test), *work.objective(), 0, work.threshold_from)
    splitter = KFold(folds, shuffle=True, random_state=random_state)
    parts = [
        work.decide(X, Y, train, X[test], test, folds)
        for train, test in splitter.split(np.zeros(len(labels)))
    ]
    return _scored(parts, labels, *work.objective(), folds, work.threshold_from)


def evaluate_fitted(model: Any, X: Any, Y: Any, *, random_state: int = 0) -> Evaluation:
    """Score the decisions of a fitted model for rows that it did not see.

    Parameters
    ----------
    model : FGFMClassifier, or a pipeline that ends with one
        Fitted.
    X : ndarray or sparse matrix of shape (n, p)
        Features.
    Y : array-like of shape (n, m)
        Labels, 0 or 1.
    random_state : int, default=0
        Halves the rows: there are none of training, so that the threshold for each half is chosen
        on the other.

    Returns
    -------
    Evaluation
        Measures, and how sure they are.
    """
    classifier = final_classifier(model)
    labels = _labels(Y)
    if len(labels) < 2:
        raise ValueError(f"Y has {len(labels)} rows: an evaluation needs two at least")
    part, proba = _rules(model, X, np.arange(len(labels)))
    beta, zero_division = classifier.beta, classifier.zero_division
    sets = np.zeros(labels.shape, dtype=np.bool_)
    thresholds = []
    for there, here in KFold(2, shuffle=True, random_state=random_state).split(labels):
        t = best_threshold(proba[there], labels[there], beta, zero_division)
        thresholds.append(t)
        sets[here] = proba[here] > t
    part.sets["threshold"] = sets
    part = part._replace(thresholds=tuple(thresholds))
    return _scored([part], labels, beta, zero_division, 0, "the other half of the rows")


class _Work:
    """Fits of one evaluation."""

    def __init__(self, model: Any, inner_folds: int, seed: int, progress: Any) -> None:
        self.model, self.inner_folds, self.seed = model, inner_folds, seed
        self.progress = progress
        self.classifier = final_classifier(model)
        self.fits = 0
        self.threshold_from = (
            f"training rows, by {inner_folds}-fold cross-validation within them"
            if inner_folds
            else "training rows, by the models that were fitted to them"
        )

    def objective(self) -> tuple[float, float]:
        return self.classifier.beta, self.classifier.zero_division

    def decide(
        self, X: Any, Y: Any, train: Any, X_test: Any, test: npt.NDArray[np.int64], runs: int
    ) -> _Decided:
        """Fit to training rows, decide for test rows, and choose the threshold for them."""
        total = runs * (1 + self.inner_folds)
        model = self._fit(self.model, X[train], _rows(Y, train), total)
        part, proba_test = _rules(model, X_test, test)
        proba = self._inner(model, X, Y, train, total)
        t = best_threshold(proba, _labels(Y)[train], *self.objective())
        part.sets["threshold"] = proba_test > t
        return part._replace(thresholds=(t,))

    def _inner(self, model: Any, X: Any, Y: Any, train: Any, total: int) -> Floats:
        """Give probabilities of the training rows."""
        if self.inner_folds == 0:
            return np.asarray(model.predict_proba(X[train]))
        inner = clone(self.model)
        # the search for factors is not what the threshold depends on
        found = [factor.tolist() for factor in final_classifier(model).factors_]
        final_classifier(inner).set_params(factors=found)
        proba = np.empty((len(train), _labels(Y).shape[1]))
        splitter = KFold(self.inner_folds, shuffle=True, random_state=self.seed)
        for there, here in splitter.split(train):
            fitted = self._fit(inner, X[train[there]], _rows(Y, train[there]), total)
            proba[here] = fitted.predict_proba(X[train[here]])
        return proba

    def _fit(self, model: Any, X: Any, Y: Any, total: int) -> Any:
        outer = current_callback()

        def tell(what: str, done: int, of: int) -> None:
            if self.progress is not None:
                self.progress(self.fits, total, what, done, of)
            elif outer is not None:
                outer(what, done, of)

        with report_progress(tell):
            fitted = clone(model).fit(X, Y)
        self.fits += 1
        return fitted


def final_classifier(model: Any) -> FGFMClassifier:
    """Give the classifier that a model is, or ends with.

    Parameters
    ----------
    model : FGFMClassifier or Pipeline
        The model.

    Returns
    -------
    FGFMClassifier
        The classifier.
    """
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(last, FGFMClassifier):
        raise TypeError(
            f"model is {type(model).__name__}: it must be an FGFMClassifier, or a pipeline that "
            "ends with one"
        )
    return last


def _check_folds(folds: int, inner_folds: int, n: int, crossed: bool) -> None:
    if crossed and not 2 <= folds <= n:
        if n < 2:
            raise ValueError(f"there is {n} row: cross-validation needs two or more")
        raise ValueError(f"folds is {folds}: it must be from 2 to {n}, the number of rows")
    smallest = n - -(-n // folds) if crossed else n  # rows of training
    if inner_folds != 0 and not 2 <= inner_folds <= smallest:
        raise ValueError(
            f"inner_folds is {inner_folds}: it must be 0, or from 2 to {smallest}, the number of "
            "training rows"
        )


def _labels(Y: Any) -> Labels:
    return np.asarray(Y).astype(np.bool_)


def _rows(Y: Any, index: Any) -> Any:
    return Y.iloc[index] if hasattr(Y, "iloc") else Y[index]


def _rules(model: Any, X: Any, rows: npt.NDArray[np.int64]) -> tuple[_Decided, Floats]:
    """Decide by the rules that need no training rows; give the probabilities too."""
    classifier = final_classifier(model)
    features = X
    if isinstance(model, Pipeline):
        features = model[:-1].transform(X) if len(model.steps) > 1 else X
    decision = classifier.decide(features)
    proba = classifier.predict_proba(features)
    sets = {"f_optimal": decision.labels.astype(np.bool_), "half": proba > 0.5}
    return _Decided(rows, sets, decision.expected_f, (), len(classifier.factors_)), proba


def best_threshold(proba: Floats, labels: Labels, beta: float, zero_division: float) -> float:
    """Give the threshold of probabilities with the best mean F-measure of rows.

    Parameters
    ----------
    proba : ndarray of shape (n, m)
        Probabilities.
    labels : ndarray of shape (n, m)
        True labels.
    beta : float
        How many times as important recall is as precision.
    zero_division : float
        What an empty decision is worth where the true set is empty.

    Returns
    -------
    float
        The threshold, half-way between two probabilities; of equally good ones that which is
        nearest to the middle of their range.
    """
    values = np.unique(proba)
    if len(values) > _MOST_THRESHOLDS:  # as fine as it matters
        values = np.unique(np.quantile(values, np.linspace(0.0, 1.0, _MOST_THRESHOLDS)))
    middle = (values[1:] + values[:-1]) / 2.0
    candidates = np.concatenate([[0.0], middle, [values[-1]]])  # (T,)
    size = beta**2 * labels.sum(axis=1)  # (n,)
    total = np.zeros(len(candidates))
    for row, y, weight in zip(proba, labels, size, strict=True):
        # how many labels of the row, and how many true ones, are above each candidate
        order = np.sort(row)
        above = len(row) - np.searchsorted(order, candidates, side="right")
        mine = np.sort(row[y])
        both = len(mine) - np.searchsorted(mine, candidates, side="right")
        f = np.full(len(candidates), zero_division)
        np.divide((1.0 + beta**2) * both, weight + above, out=f, where=weight + above > 0.0)
        total += f
    best = candidates[total >= total.max() - 1e-9 * len(labels)]
    return float(best[np.argmin(np.abs(best - 0.5 * (best[0] + best[-1])))])


def _scored(
    parts: list[_Decided],
    labels: Labels,
    beta: float,
    zero_division: float,
    folds: int,
    threshold_from: str,
) -> Evaluation:
    """Score what was decided in all folds together; standard errors are over folds, or rows."""
    rows = np.concatenate([part.rows for part in parts])
    truth = labels[rows]  # in the order of the decisions
    sets = {
        rule: np.concatenate([part.sets[rule] for part in parts])
        for rule in RULES
        if rule in parts[0].sets
    }
    expected = np.concatenate([part.expected_f for part in parts])
    ends = np.cumsum([len(part.rows) for part in parts])[:-1] if folds else None

    def spread(influence: Floats) -> float:
        """Give the standard error of a mean of rows, over folds or rows."""
        values = influence if ends is None else _fold_means(influence, ends)
        return (
            float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
        )

    measures: dict[str, dict[str, Value]] = {measure: {} for measure in MEASURES}
    obtained: dict[str, Floats] = {}
    for rule, decided in sets.items():
        obtained[rule] = f_measure(truth, decided, beta, zero_division=zero_division, per_row=True)
        scores = scores_of(truth, decided, obtained[rule], beta)
        for measure, (value, influence) in scores.items():
            measures[measure][rule] = Value(value, spread(influence))
    f = obtained["f_optimal"]
    gains = {
        rule: Value(float((f - other).mean()), spread(f - other))
        for rule, other in obtained.items()
        if rule != "f_optimal"
    }
    silent = int(np.isnan(expected).sum())
    if silent:
        raise ValueError(
            f"{silent} of {len(expected)} rows give every label the probability 0, which "
            "contradicts nonempty: nothing can be expected of them"
        )
    bins = calibration_bins(expected, f, _BINS)
    gap = np.abs(bins.expected - bins.obtained)
    return Evaluation(
        measures,
        gains,
        Value(float(expected.mean()), spread(expected)),
        Value(float((expected - f).mean()), spread(expected - f)),
        float(np.average(gap, weights=bins.n_rows)),
        float(truth.sum(axis=1).mean()),
        len(rows),
        folds,
        tuple(t for part in parts for t in part.thresholds),
        threshold_from,
        tuple(part.n_factors for part in parts),
    )


def _fold_means(influence: Floats, ends: Any) -> Floats:
    return np.array([part.mean() for part in np.split(influence, ends)])


def scores_of(
    truth: Labels, decided: Labels, f: Floats, beta: float
) -> dict[str, tuple[float, Floats]]:
    """Give each measure, and for each row what it would add to it: the mean is the measure.

    A ratio of sums, as the micro F-measure is, is linear in rows to first order; the spread of
    these terms is its standard error (the delta method).
    """
    both = truth & decided
    union = (truth | decided).sum(axis=1)
    jaccard = np.ones(len(truth))
    np.divide(both.sum(axis=1), union, out=jaccard, where=union > 0)
    wrong = truth != decided
    means = {
        "instance_f": f,
        "jaccard": jaccard,
        "hamming_loss": wrong.mean(axis=1),
        "subset_accuracy": (~wrong.any(axis=1)).astype(np.float64),
        "labels_per_row": decided.sum(axis=1).astype(np.float64),
    }
    scores = {name: (float(values.mean()), values) for name, values in means.items()}
    top = (1.0 + beta**2) * both.astype(np.float64)  # (n, m)
    bottom = beta**2 * truth.astype(np.float64) + decided  # (n, m)
    scores["micro_f"] = _ratio(top.sum(axis=1)[:, None], bottom.sum(axis=1)[:, None])
    scores["macro_f"] = _ratio(top, bottom)
    return {name: scores[name] for name in MEASURES}


def _ratio(top: Floats, bottom: Floats) -> tuple[float, Floats]:
    """Give the mean over columns of sum(top) / sum(bottom), and the terms of each row."""
    occurs = bottom.any(axis=0)
    if not occurs.any():  # nothing is true, and nothing was decided for
        return 1.0, np.ones(len(top))
    top, bottom = top[:, occurs], bottom[:, occurs]
    size = bottom.mean(axis=0)  # (columns,)
    ratio = top.mean(axis=0) / size
    terms = (top / size - bottom * (ratio / size)).mean(axis=1)  # (n,) of mean 0
    return float(ratio.mean()), float(ratio.mean()) + terms
