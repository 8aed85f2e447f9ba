"""What `FDecider` and `FClassifier` do with fitted probabilities: decide, score, compare."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._label_sets import LabelSetMixin
from fgfm._utils.label_table import format_labels, read_true_labels
from fgfm._utils.names import check_same_index
from fgfm._utils.rows import as_frames
from fgfm._utils.validation import check_fraction, check_same_rows, label_sets
from fgfm.decider._entries import Entries
from fgfm.decider._inputs import Probabilities, list_table
from fgfm.decider._known_rows import check_new_rows, row_digests
from fgfm.decider._missed import read_missed, with_missed
from fgfm.decider._report import (
    add_threshold_intervals,
    compare,
    rivals,
    warn_if_optimistic,
)
from fgfm.decision import Decision
from fgfm.metrics import (
    AbstentionRange,
    abstention_threshold,
    f_abstention_threshold,
    f_interval,
    f_lower_bound,
    f_measure,
    mean_lower_bound,
)

__all__ = ["DeciderMixin"]

Floats = npt.NDArray[np.float64]


class _Compared(NamedTuple):
    """Rows as they are decided, and as they truly are."""

    decider: Any
    rule: Any
    rows: Probabilities
    labels: Any  # of `predict`, (n, m) or of the classes that count, dense or CSR
    truth: Any
    expected: Any  # F-measures of these labels


class DeciderMixin(LabelSetMixin):
    """The methods of `FDecider` and `FClassifier`, which read rows in different forms.

    A subclass also has `_known_rows`, digests of the rows of `fit`, and `_fitted`, which returns
    the fitted `FDecider`.
    """

    average: str
    labels: Any
    _known_rows: Any

    def _takes_classes(self) -> bool:
        """Return whether a flat y may have more than two classes."""
        several = self.average in ("macro", "weighted")
        return several or (self.average == "micro" and self.labels is not None)

    def _read(self, X: Any) -> Probabilities:
        """Return the probabilities of rows."""
        raise NotImplementedError

    def _row_values(self, X: Any, rows: Probabilities) -> Entries:
        """Return the values by which rows of `fit` are recognised."""
        raise NotImplementedError

    def _compared(self, X: Any, y: Any) -> _Compared:
        """Return rows as they are decided, each by itself, and as they truly are."""
        rows, decider = self._read(X), self._fitted()
        check_same_index(X=rows.X, y=y)
        rule = decider._fitted_rule()
        chosen, expected = rule.predict(rule.read(rows.entries))
        labels = rows.entries.to_labels(chosen, rows.matrix_kind)
        if rows.kind is list:
            truth = list_table(y, rows.entries.counts()).labels
        else:
            truth = read_true_labels(y, decider)
        labels, truth = map(rule.settings.that_count, (labels, truth))
        expected = decider._shifted(expected, decider.average)
        return _Compared(decider, rule, rows, labels, truth, expected)

    def _labels(self, X: Any) -> Any:
        """Return labels (n, m), dense or CSR, each row decided by itself."""
        rows = self._read(X)
        rule = self._fitted()._fitted_rule()
        return rows.entries.to_labels(rule.choose(rule.read(rows.entries)), rows.kind)

    def decide(self, X: Any, *, average: str | None = None) -> Decision:
        """Compute F-optimal label sets and their expected F-measure.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of arrays
            Rows, as in `fit`.
        average : {"samples", "macro", "weighted", "micro"}, optional
            The F-measure to maximise, by default that of `fit`. But for "samples" the rows of X
            are decided together.

        Returns
        -------
        Decision
            ``labels`` of shape (n, m), 0 or 1, and ``expected_f``: of shape (n,) for "samples",
            (m,) for "macro" and "weighted", a number for "micro". With a flat y, ``labels`` of
            shape (n,), 0 or 1, and a number; with more than two classes, their names and an
            expectation for each. ``labels`` is sparse if X has sparse probabilities or names,
            a data frame if X is one, and a list of arrays if X and y were lists in `fit`.
        """
        return self._decide_rows(self._read(X), average)

    def _decide_rows(self, rows: Probabilities, average: str | None) -> Decision:
        """Decide rows that have been read."""
        decider = self._fitted()
        average = decider.average if average is None else average
        rule = decider._rule_of(average)
        chosen, expected_f = rule.decide(rule.read(rows.entries))
        expected_f = decider._shifted(expected_f, average)
        labels = rows.entries.to_labels(chosen, rows.kind)
        if decider._label_form == "flat":
            labels = (labels.toarray() if sparse.issparse(labels) else labels)[:, 0]
        elif decider._label_form == "classes":
            labels = format_labels(labels, "classes", "", decider.classes_)
        frames = as_frames(labels, expected_f, rows.X, decider._column_names(), average)
        return Decision(*frames)

    def score(self, X: Any, y: Any, sample_weight: Any = None, missed: Any = None) -> float:
        """Compute the F-measure of the predictions, for the average and beta of this estimator.

        A warning says where it is below the F-measure to expect by more than chance: the rows of
        `fit` were then easier than these, for instance training rows of the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of arrays
            Rows, as in `fit`.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            True labels.
        sample_weight : array-like of shape (n,), optional
            Sample weights.
        missed : array-like of shape (n,), optional
            Numbers of true items without a column or candidate, as in ``fit``.

        Returns
        -------
        float
            The F-measure: with "samples", the mean over rows.
        """
        check_same_index(X=X, y=y, sample_weight=sample_weight)
        decider, rule, rows, labels, truth, expected = self._compared(X, y)
        settings, measure = rule.settings, rule.settings.measure
        if missed is not None:
            settings._replace(missed=True).check()
            measure["average"] = "samples" if measure["average"] == "samples" else "micro"
            numbers = read_missed(missed, rows.X, labels.shape[0])
            labels, truth = with_missed(labels, truth, numbers)
        if sample_weight is None:
            warn_if_optimistic(expected, truth, labels, decider._n_rows, measure)
        return float(f_measure(truth, labels, sample_weight=sample_weight, **measure))

    def predict_proba(self, X: Any) -> Any:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of arrays
            Rows, as in `fit`.

        Returns
        -------
        ndarray or sparse matrix of shape (n, m), or list of arrays
            The probability of each label under the learned model. With a flat y the probabilities
            of its classes; with lists those of the candidates of each row.
        """
        return self._proba_of_rows(self._read(X))

    def _proba_of_rows(self, rows: Probabilities) -> Any:
        """Return the calibrated probabilities of rows that have been read."""
        decider = self._fitted()
        rule = decider._fitted_rule()
        p = rule.model.marginals(rows.entries, rule.threads).to_matrix(rows.kind)
        if decider._label_form != "flat":
            return p
        p = p.toarray() if sparse.issparse(p) else p
        is_last = decider._classes[-1] == decider.classes_[-1]  # the positive one
        return np.hstack([1.0 - p, p] if is_last else [p, 1.0 - p])

    def lower_bound(self, X: Any, y: Any, confidence: float = 0.95) -> float:
        """Compute a lower confidence bound on the F-measure of new rows.

        With a probability of at least `confidence`, the mean F-measure of the predictions for new
        rows, or with a flat y of two classes that of the positive one, is at least the bound. This
        holds for any number of rows, whatever the model and its calibration are worth, if

        - X and y are rows drawn from the distribution of the new rows, and
        - they were used neither to train the model, nor in ``fit``, nor to choose between models.
          Rows of ``fit`` are recognised and refused.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of arrays
            Probabilities (n, m), as in ``fit``.
        y : array-like, sparse matrix or data frame of shape (n, m)
            True labels.
        confidence : float in (0, 1), default=0.95
            Least probability that the bound holds.

        Returns
        -------
        float
            The bound.

        See Also
        --------
        fgfm.metrics.mean_lower_bound : The bound for other measures.
        fgfm.metrics.f_lower_bound : The bound of a flat y.
        fgfm.metrics.f_interval : Intervals of all averages, which hold for many rows.

        Notes
        -----
        With a matrix y, for the average "samples" only: macro- and micro-averaged F-measures are
        not means over rows.
        """
        decider, rule, _, labels, truth, _ = self._new_rows(X, y)
        if rule.settings.form == "flat":
            return f_lower_bound(truth[:, 0], labels[:, 0], confidence, beta=decider.beta)
        f = f_measure(truth, labels, per_row=True, **rule.settings.measure)
        return mean_lower_bound(f, confidence)

    def select(self, X: Any, y: Any, target: float, confidence: float = 0.95) -> Any:
        r"""Find which rows to answer so that their F-measure reaches a target.

        Answer new rows whose `expected_f` is at least the threshold, and abstain from the others:
        with a probability of at least `confidence`, the mean F-measure of answered rows is at
        least `target`. This rests on what `lower_bound` rests on: X and y are rows drawn from the
        distribution of the new rows, used neither for the model, nor in ``fit``.

        With a flat y of two classes, abstain where `predict_proba` of the positive class is
        between two values: the F-measure of the positive class in the other rows is at least
        `target`.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of arrays
            Probabilities (n, m), as in ``fit``.
        y : array-like, sparse matrix or data frame of shape (n, m)
            True labels.
        target : float in (0, 1)
            F-measure that answered rows must reach.
        confidence : float in (0, 1), default=0.95
            Least probability that they do.

        Returns
        -------
        AbstentionThreshold or AbstentionRange
            ``threshold``, infinite if no rows qualify; ``answered``, the fraction of the given
            rows above it, and ``mean_f``, their mean F-measure. With a flat y ``low`` and
            ``high``, between which to abstain, ``answered`` and ``f``.

        See Also
        --------
        fgfm.metrics.abstention_threshold : The same for other measures and scores.
        fgfm.metrics.f_abstention_threshold : The same for a flat y and any score.

        Notes
        -----
        Rows of a flat y are ranked by what they are expected to add to
        :math:`(1 + \beta^2) y h - t (\beta^2 y + h)`, t the target, whose mean over answered rows
        must be positive. To reach a precision or a recall, fit with `min_precision` or
        `min_recall` and `confidence`.
        """
        decider, rule, rows, labels, truth, expected = self._new_rows(X, y)
        if rule.settings.form != "flat":
            f = f_measure(truth, labels, per_row=True, **rule.settings.measure)
            return abstention_threshold(expected, f, target, confidence)
        t, beta2 = check_fraction(target, "target"), decider.beta**2
        p, cut = rule.read(rows.entries).p[:, 0], rule.thresholds
        pair = truth[:, 0], labels[:, 0]
        gain = np.where(pair[1] > 0, (1.0 + beta2 - t * beta2) * p - t, -t * beta2 * p)
        found = f_abstention_threshold(gain, *pair, t, confidence, beta=decider.beta)
        low, high = (
            -found.threshold / (t * beta2),
            (found.threshold + t) / (1.0 + beta2 - t * beta2),
        )
        return AbstentionRange(min(low, cut), max(high, cut), found.answered, found.mean_f)

    def thresholds_interval(self, X: Any, y: Any, confidence: float = 0.95) -> tuple[Any, Any]:
        r"""Compute how far rows determine the best thresholds.

        The best threshold is :math:`V / (1 + \beta^2)`, V the largest F-measure, which that of the
        predictions estimates: an interval of one is an interval of the other. From the rows of
        `fit` it says how certain ``thresholds_`` are, which are mostly closer to the best ones
        than its ends; other rows say whether they are still right.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of arrays
            Rows, as in ``fit``.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            True labels.
        confidence : float in (0, 1), default=0.95
            Probability that the interval of a label covers, in the limit of many rows.

        Returns
        -------
        low, high : ndarray of shape (m,) or float
            Ends of the intervals, one for each of ``thresholds_``.

        See Also
        --------
        fgfm.metrics.f_interval : The interval of the F-measure.

        Examples
        --------
        >>> import numpy as np
        >>> from fgfm import FDecider
        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(300) ** 2
        >>> y = (rng.random(300) < p).astype(int)
        >>> decider = FDecider().fit(p, y)
        >>> low, high = decider.thresholds_interval(p, y)
        >>> round(low, 2), round(decider.thresholds_, 2), round(high, 2)
        (0.34, 0.38, 0.4)
        """
        rule = self._fitted()._fitted_rule()
        if rule.thresholds is None or rule.settings.floors:
            reason = "min_precision and min_recall move the thresholds"
            if rule.thresholds is None:
                reason = "average is 'samples': rows have no threshold"
            raise ValueError(f"{reason}, which are otherwise F / (1 + beta^2)")
        given, measure = self._compared(X, y), rule.settings.measure
        if np.ndim(rule.thresholds) and measure["average"] != "micro":
            measure["average"] = None
        found = f_interval(given.truth, given.labels, confidence=confidence, **measure)
        scale = 1.0 + measure["beta"] ** 2
        return found.low / scale, found.high / scale

    def report(self, X: Any, y: Any) -> Any:
        """Compare the predictions with thresholds on the same probabilities, label by label.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of arrays
            Rows, as in ``fit``, best others than those of ``fit``.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            True labels.

        Returns
        -------
        pandas.DataFrame
            For each label, and overall by the average of this estimator, the rows "decider",
            "p > 0.5" and "tuned"; with more than two classes "decider" and "largest p"; with
            scores "score > 0" and "largest score". The columns: "f", with the ends "low" and
            "high" of its 95 % interval (`f_interval`); "difference", the F-measure minus that of
            the last row of the label, and its "verdict", "better", "worse" or "level"
            (`f_difference`); "precision", "recall", "predicted" (the share of rows) and
            "threshold"; with "macro", "weighted" and "micro", and without floors,
            "threshold_low" and "threshold_high", the interval of the threshold of "decider"
            (`thresholds_interval`).

        Notes
        -----
        The thresholds of "tuned" are tuned on four fifths of these rows and used for the others:
        one for each label with "macro" and "weighted", otherwise one for all; "threshold" is the
        mean of five. Those of "decider" are thresholds of ``predict_proba``, which is calibrated,
        the others those of X.

        Examples
        --------
        >>> import numpy as np
        >>> from fgfm import FDecider
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.random((600, 2)) ** 2
        >>> Y = (rng.random((600, 2)) < truth).astype(int)
        >>> decider = FDecider(average="macro").fit(truth[:300] ** 2, Y[:300])
        >>> report = decider.report(truth[300:] ** 2, Y[300:])
        >>> report.loc["overall", ["f", "low", "high", "difference", "verdict"]].round(2)
                     f   low  high  difference verdict
        decision
        decider   0.71  0.66  0.76        0.02   level
        p > 0.5   0.47  0.40  0.54       -0.22   worse
        tuned     0.69  0.64  0.74         NaN
        """
        decider, rule, rows, labels, truth, expected = self._compared(X, y)
        settings, thresholds = rule.settings, rule.thresholds
        warn_if_optimistic(expected, truth, labels, decider._n_rows, settings.measure)
        if thresholds is not None and np.ndim(thresholds):
            thresholds = settings.that_count(thresholds[None])[0]
        rules = {"decider": (labels, np.nan if thresholds is None else thresholds)}
        names, p = settings.names, rows.entries.to_matrix(rows.matrix_kind)
        if settings.form == "classes":
            best = settings.that_count(p.argmax(axis=1)[:, None] == np.arange(p.shape[1]))
            rules["largest score" if decider.scores else "largest p"] = best, np.nan
            names = settings.that_count(np.array([names]))[0].tolist()
        else:
            truth = label_sets(truth, "y")
            if sparse.issparse(p):
                truth = sparse.csr_array(truth)
            elif sparse.issparse(truth):
                truth = truth.toarray().astype(np.bool_)
            rules |= rivals(p, truth, decider.scores, **settings.measure)
        if rows.kind is list:
            names = list(range(rows.entries.m))
        table = compare(rules, truth, names, **settings.measure)
        if thresholds is not None and not settings.floors:
            add_threshold_intervals(table, settings.measure["average"], settings.beta)
        if rows.kind is list:
            table["predicted"] *= truth.shape[0] * rows.entries.m / rows.entries.counts().sum()
            return table.loc[["overall"]]
        return table

    def _new_rows(self, X: Any, y: Any) -> _Compared:
        """Return rows that a guarantee can rest on."""
        decider = self._fitted()
        flat = decider._label_form == "flat"
        if not flat and (decider.average != "samples" or not decider.multilabel_):
            raise ValueError(
                f"average is {decider.average!r}: the guarantee needs average='samples' and a "
                "matrix y, or a flat y of two classes, since other F-measures are not means over "
                "rows; fgfm.metrics.f_interval has intervals of all averages, for many rows"
            )
        compared = self._compared(X, y)
        Y = label_sets(compared.truth, "y")
        check_same_rows([len(compared.rows.entries.p), Y.shape[0]], ["X", "y"])
        check_new_rows(self._known_rows, row_digests(self._row_values(X, compared.rows), Y))
        if flat and sparse.issparse(compared.labels):
            return compared._replace(labels=compared.labels.toarray())
        return compared
