"""Fit or load a classifier, decide for rows not used for fitting, and score the decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline

from fgfm._old_classifier import FGFMClassifier
from fgfm._utils.names import check_same_index, check_same_names, column_names
from fgfm._utils.progress import current_callback, report_progress
from fgfm._utils.rows import take_rows
from fgfm._utils.validation import real_array
from fgfm.classifier import FClassifier
from fgfm.decision import from_marginals
from fgfm.evaluation._scores import AVERAGES, Decided, Evaluation, score
from fgfm.metrics import best_threshold, f_measure

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]


def evaluate(
    model: Any,
    X: Any,
    Y: Any,
    X_test: Any = None,
    Y_test: Any = None,
    *,
    folds: int = 5,
    inner_folds: int | None = 3,
    random_state: int = 0,
    progress: Callable[[int, int, str, int, int], object] | None = None,
    partial: Callable[[int, float, float], object] | None = None,
) -> Evaluation:
    """Fit a model, decide for rows not used for fitting, and score the decisions.

    Scores are of all rows together: in cross-validation every row is decided once, so that rare
    labels count as often as they occur. Labels that are neither true nor decided in any row are
    left out of the macro F-measure.

    Parameters
    ----------
    model : FGFMClassifier, FClassifier, or a pipeline that ends with one
        The model; it is cloned before it is fitted.
    X : array-like, sparse matrix or data frame of shape (n, p)
        Features, or what the first step of the pipeline takes.
    Y : array-like of shape (n, m)
        Labels, 0 or 1, or NaN if not observed; the columns of a data frame are their names. Rows
        with labels that were not observed are fitted to, and never scored.
    X_test, Y_test : optional
        Rows to decide for. By default those of (X, Y), by cross-validation.
    folds : int, default=5
        Number of folds of the cross-validation.
    inner_folds : int, default=3
        Number of folds within the training rows whose held-out probabilities choose the single
        threshold; the label factors are those found on all training rows. 0 uses probabilities
        of rows that the model was fitted to: quicker, but thresholds tend to be too high. None,
        with cross-validation, uses those of the other folds: one fit per fold instead of four.
    random_state : int, default=0
        Seed for shuffling rows into folds.
    progress : callable, optional
        Called with the number of finished fits, the number of all fits, and the stage of the
        current fit: its name, the steps done, and the steps in all.
    partial : callable, optional
        Called after each fold with the number of folds done, and the mean instance F-measure in
        this fold of the F-optimal rule and of the threshold 0.5.

    Returns
    -------
    Evaluation
        Measures with standard errors.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from fgfm import FGFMClassifier
    >>> from fgfm.evaluation import evaluate
    >>> X, Y = make_multilabel_classification(400, n_classes=6, n_labels=3, random_state=0)
    >>> model = FGFMClassifier("ridge", factors="independent", random_state=0)
    >>> found = evaluate(model, X, Y, folds=3)
    >>> for rule, f in found.measures["instance_f"].items():
    ...     print(f"{rule:<10} {f.value:.3f}")
    f_optimal  0.688
    half       0.646
    threshold  0.682
    """
    check_same_index(X=X, Y=Y)
    check_same_index(X_test=X_test, Y_test=Y_test)
    check_same_names(column_names(Y_test), column_names(Y), "Y_test", "Y")
    labels, scored = _split_missing(Y, "Y")
    from_others = inner_folds is None and X_test is None
    inner_folds = (0 if from_others else 3) if inner_folds is None else inner_folds
    _check_folds(folds, inner_folds, len(scored), X_test is None)
    objective = _objective(model)
    if X_test is not None:
        truth, test = _split_missing(Y_test, "Y_test")
        fits = _Fits(model, inner_folds, random_state, progress, n_runs=1)
        part, _ = fits.decide(X, Y, np.arange(len(labels)), take_rows(X_test, test), test)
        return score([part], truth, *objective, 0, fits.threshold_from)
    fits = _Fits(model, inner_folds, random_state, progress, n_runs=folds)
    parts, held_out = [], np.empty(labels.shape)
    for train, test in _splits(np.arange(len(labels)), scored, folds, random_state):
        part, held_out[test] = fits.decide(X, Y, train, take_rows(X, test), test, from_others)
        parts.append(part)
        if partial is not None:
            f = [
                f_measure(labels[test], sets, beta=objective[0], zero_division=objective[1])
                for sets in (part.sets["samples"]["f_optimal"], part.sets["samples"]["half"])
            ]
            partial(len(parts), *f)
    if from_others:
        for part in parts:
            others = np.setdiff1d(scored, part.rows)
            _choose_thresholds(
                part, held_out[part.rows], held_out[others], labels[others], objective
            )
        fits.threshold_from = "the rows of the other folds"
    return score(parts, labels, *objective, folds, fits.threshold_from)


def evaluate_fitted(model: Any, X: Any, Y: Any, *, random_state: int = 0) -> Evaluation:
    """Score the decisions of a fitted model for rows not used for fitting.

    Parameters
    ----------
    model : FGFMClassifier, FClassifier, or a pipeline that ends with one
        The fitted model.
    X : array-like, sparse matrix or data frame of shape (n, p)
        Features, or what the first step of the pipeline takes.
    Y : array-like of shape (n, m)
        Labels, 0 or 1. Rows with NaN, a label that was not observed, are left out.
    random_state : int, default=0
        Seed for splitting the rows into halves: the threshold for each half is chosen on the
        other, because there are no training rows.

    Returns
    -------
    Evaluation
        Measures with standard errors.
    """
    beta, zero_division = _objective(model)
    check_same_index(X=X, Y=Y)
    names = getattr(_final_classifier(model), "label_names_in_", None)
    check_same_names(column_names(Y), names, "Y", "fit")
    labels, scored = _split_missing(Y, "Y")
    if len(scored) < 2:
        raise ValueError(f"len(Y) is {len(scored)}: an evaluation needs at least 2 rows")
    part, proba = _decide(model, take_rows(X, scored), scored)
    truth = labels[scored]
    halves = list(KFold(2, shuffle=True, random_state=random_state).split(truth))
    for average in AVERAGES:
        sets = np.zeros(truth.shape, dtype=np.bool_)
        for other, half in halves:
            t = best_threshold(proba[other], truth[other], beta, zero_division, average)
            part.thresholds[average] += (t,)
            sets[half] = proba[half] > t
        part.sets[average]["threshold"] = sets
    return score([part], labels, beta, zero_division, 0, "the other half of the rows")


class _Fits:
    """Fit and apply the models of one evaluation, and report the progress."""

    def __init__(
        self, model: Any, inner_folds: int, seed: int, progress: Any, n_runs: int
    ) -> None:
        self.model, self.inner_folds, self.seed = model, inner_folds, seed
        self.progress = progress
        self.done, self.total = 0, n_runs * (1 + inner_folds)
        self.threshold_from = (
            f"training rows, by {inner_folds}-fold cross-validation within them"
            if inner_folds
            else "training rows, by the models that were fitted to them"
        )

    def decide(
        self,
        X: Any,
        Y: Any,
        train: Any,
        X_test: Any,
        test: npt.NDArray[np.int64],
        without_threshold: bool = False,
    ) -> tuple[Decided, Floats]:
        """Fit to training rows, choose the threshold on them, and decide for test rows.

        Returns the decisions, and the probabilities that they are made from.
        """
        model = self._fit(self.model, take_rows(X, train), take_rows(Y, train))
        part, proba_test = _decide(model, X_test, test)
        if not without_threshold:
            labels, scored = _split_missing(Y, "Y")
            rows = np.intersect1d(train, scored)
            proba = self._training_proba(model, X, Y, train, rows)
            _choose_thresholds(part, proba_test, proba[rows], labels[rows], _objective(model))
        return part, proba_test

    def _training_proba(
        self, model: Any, X: Any, Y: Any, train: Any, rows: npt.NDArray[np.int64]
    ) -> Floats:
        """Return an array with probabilities of some training rows, held out in inner folds."""
        proba = np.empty(np.shape(Y))
        if self.inner_folds == 0:
            proba[rows] = model.predict_proba(take_rows(X, rows))
            return proba
        inner = clone(self.model)
        # The threshold hardly depends on the label factors: they are not searched again.
        if isinstance(fitted := _final_classifier(model), FGFMClassifier):
            found = [factor.tolist() for factor in fitted.factors_]
            _final_classifier(inner).set_params(factors=found)
        for kept, held_out in _splits(train, rows, self.inner_folds, self.seed):
            fitted = self._fit(inner, take_rows(X, kept), take_rows(Y, kept))
            proba[held_out] = fitted.predict_proba(take_rows(X, held_out))
        return proba

    def _fit(self, model: Any, X: Any, Y: Any) -> Any:
        outer = current_callback()

        def report(stage: str, done: int, of: int) -> None:
            if self.progress is not None:
                self.progress(self.done, self.total, stage, done, of)
            elif outer is not None:
                outer(stage, done, of)

        with report_progress(report):
            fitted = clone(model).fit(X, Y)
        self.done += 1
        return fitted


def _choose_thresholds(
    part: Decided, proba: Floats, others: Floats, truth: Labels, objective: tuple[float, float]
) -> None:
    """Choose the best thresholds for other rows, and decide by them."""
    for average in AVERAGES:
        t = best_threshold(others, truth, *objective, average)
        part.thresholds[average] += (t,)
        part.sets[average]["threshold"] = proba > t


def _final_classifier(model: Any) -> Any:
    """Return the classifier itself, or the last step of a pipeline."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(last, (FGFMClassifier, FClassifier)):
        raise TypeError(
            f"model is {type(model).__name__}: it must be an FClassifier, or a pipeline that "
            "ends with one"
        )
    return last


def _objective(model: Any) -> tuple[float, float]:
    """Return beta and zero_division of the F-measure that a model maximises."""
    classifier = _final_classifier(model)
    return classifier.beta, classifier.zero_division


def _check_folds(folds: int, inner_folds: int, n: int, crossed: bool) -> None:
    if crossed and not 2 <= folds <= n:
        if n < 2:
            raise ValueError(f"len(Y) is {n}: cross-validation needs at least 2 rows")
        raise ValueError(f"folds is {folds}: it must be from 2 to {n}, the number of rows")
    n_train = n - -(-n // folds) if crossed else n  # of the smallest training part
    if inner_folds != 0 and not 2 <= inner_folds <= n_train:
        raise ValueError(
            f"inner_folds is {inner_folds}: it must be 0, or from 2 to {n_train}, the number of "
            "training rows"
        )


def _split_missing(Y: Any, name: str) -> tuple[Labels, npt.NDArray[np.int64]]:
    """Return labels as booleans, and the rows without NaN or -1, labels not observed."""
    values = real_array(Y, name, ("row", "label"))
    missing = (values == -1) | (values != values)  # NaN
    complete = np.flatnonzero(~missing.any(axis=1))
    if len(values) and not len(complete):
        raise ValueError(
            f"{name} has no row in which all labels were observed: only such rows can be scored"
        )
    return values > 0, complete


def _splits(
    rows: npt.NDArray[np.int64], scored: npt.NDArray[np.int64], folds: int, seed: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield training and test rows; those that are not scored are in all training parts."""
    for _, test in KFold(folds, shuffle=True, random_state=seed).split(scored):
        yield np.setdiff1d(rows, scored[test]), scored[test]


def _decide(model: Any, X: Any, rows: npt.NDArray[np.int64]) -> tuple[Decided, Floats]:
    """Decide by the rules without a tuned threshold; return the probabilities too."""
    classifier = _final_classifier(model)
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        X = model[:-1].transform(X)
    labels, expected_f = map(np.asarray, classifier.decide(X, average="samples"))
    proba = classifier.predict_proba(X)
    sets = {"samples": {"f_optimal": labels.astype(np.bool_), "half": proba > 0.5}}
    beta, zero_division = _objective(model)
    for average in ("macro", "micro"):
        together = from_marginals(proba, beta=beta, zero_division=zero_division, average=average)
        sets[average] = sets["samples"] | {"f_optimal": together.labels.astype(np.bool_)}
    thresholds: dict[str, tuple[float, ...]] = dict.fromkeys(AVERAGES, ())
    return Decided(
        rows, sets, expected_f, thresholds, len(getattr(classifier, "factors_", ()))
    ), proba
