"""FDecider: F-optimal decisions from the probabilities of a fitted model."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fgfm._kernels import decide_reweighted_rows
from fgfm._utils.blocks import n_threads
from fgfm._utils.label_table import (
    LabelTable,
    read_labels,
    read_true_labels,
    set_label_attributes,
)
from fgfm._utils.names import (
    check_same_index,
    check_same_names,
    column_names,
    known_names,
    made_up,
)
from fgfm._utils.parallel import one_blas_thread
from fgfm._utils.rows import as_frames
from fgfm._utils.validation import (
    check_average,
    check_beta,
    check_choice,
    check_flag,
    check_fraction,
    check_zero_division,
    label_sets,
    resolve_nonempty,
    row_weights,
)
from fgfm.cardinality import of_marginals
from fgfm.decider._certificates import certify_floors, rows_apart
from fgfm.decider._class_model import ClassModel, class_rule
from fgfm.decider._expectation import expectation_shift, shifted
from fgfm.decider._floors import best_entries, row_sizes
from fgfm.decider._inputs import (
    Probabilities,
    check_class_order,
    check_labels_match,
    count_rows,
    on_host,
    read_probabilities,
)
from fgfm.decider._joint_model import JointModel
from fgfm.decider._known_rows import check_new_rows, known_rows, row_digests
from fgfm.decider._report import compare, rivals
from fgfm.decision import (
    Constraints,
    Decision,
    from_cardinalities,
    from_classes,
    from_marginals,
)
from fgfm.decision._objective import Objective
from fgfm.estimation._calibration import IsotonicCalibrator, NoCalibrator, ShrunkCalibrator
from fgfm.estimation._entries import Entries
from fgfm.estimation._exponent import powered
from fgfm.estimation._label_sets import LabelSetMixin
from fgfm.estimation._weighted import as_counts, limit_f, nearest_counts
from fgfm.metrics import (
    AbstentionThreshold,
    abstention_threshold,
    f_measure,
    mean_lower_bound,
)

__all__ = ["DeciderMixin", "FDecider"]

Floats = npt.NDArray[np.float64]

_CALIBRATORS: dict[str | None, Any] = {
    "auto": ShrunkCalibrator,
    "sigmoid": ShrunkCalibrator,
    "isotonic": partial(IsotonicCalibrator, with_margin=True),
    None: NoCalibrator,
}


class DeciderMixin(LabelSetMixin):
    """The methods of `FDecider` and `FDeciderCV`, which read rows in different forms.

    A subclass also has `_known_rows`, digests of the rows of `fit`.
    """

    _known_rows: Any

    def _read(self, X: Any) -> Probabilities:
        """Return the probabilities of rows."""
        raise NotImplementedError

    def _row_values(self, X: Any, given: Probabilities) -> Entries:
        """Return the values by which rows of `fit` are recognised."""
        raise NotImplementedError

    def _labels(self, X: Any) -> Any:
        """Return labels (n, m), dense or CSR, each row decided by itself."""
        given = self._read(X)
        return self._fitted()._predict_labels(given)

    def decide(self, X: Any) -> Decision:
        """Compute F-optimal label sets and their expected F-measure.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of arrays
            Rows, as in `fit`.

        Returns
        -------
        Decision
            ``labels`` of shape (n, m), 0 or 1, and ``expected_f``: of shape (n,) for "samples",
            (m,) for "macro" and "weighted", a number for "micro". With a flat y, ``labels`` of
            shape (n,), 0 or 1, and a number; with more than two classes, their names and an
            expectation for each. ``labels`` is sparse if X has sparse probabilities, and a data
            frame if X is one.
        """
        given, decider = self._read(X), self._fitted()
        labels, expected_f = decision = decider._decide(given.entries, given.sparse_class)
        frames = as_frames(labels, expected_f, given.X, decider._column_names(), decider.average)
        return Decision(*frames, decision.gap)

    def predict_proba(self, X: Any) -> Any:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of arrays
            Rows, as in `fit`.

        Returns
        -------
        ndarray or sparse matrix of shape (n, m)
            The probability of each label under the learned model. With a flat y the probabilities
            of its classes.
        """
        given, decider = self._read(X), self._fitted()
        p = decider._marginals(given.entries).to_matrix(given.sparse_class)
        if decider._label_form != "flat":
            return p
        p = p.toarray() if sparse.issparse(p) else p
        return np.hstack([1.0 - p, p])[:, : len(decider.classes_)]

    def lower_bound(self, X: Any, y: Any, confidence: float = 0.95) -> float:
        """Compute a lower confidence bound on the mean F-measure of new rows.

        With a probability of at least `confidence`, the mean F-measure of the predictions for new
        rows is at least the bound. This holds for any number of rows, whatever the model and its
        calibration are worth, if

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

        Notes
        -----
        For the average "samples" and a matrix y only: macro- and micro-averaged F-measures are not
        means over rows.
        """
        return mean_lower_bound(self._row_f(X, y)[1], confidence)

    def select(
        self, X: Any, y: Any, target: float, confidence: float = 0.95
    ) -> AbstentionThreshold:
        """Find which rows to answer so that their mean F-measure reaches a target.

        Answer new rows whose `expected_f` is at least the threshold, and abstain from the others:
        with a probability of at least `confidence`, the mean F-measure of answered rows is at
        least `target`. This rests on what `lower_bound` rests on: X and y are rows drawn from the
        distribution of the new rows, used neither for the model, nor in ``fit``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of arrays
            Probabilities (n, m), as in ``fit``.
        y : array-like, sparse matrix or data frame of shape (n, m)
            True labels.
        target : float in (0, 1)
            Mean F-measure that answered rows must reach.
        confidence : float in (0, 1), default=0.95
            Least probability that they do.

        Returns
        -------
        AbstentionThreshold
            ``threshold``, infinite if no rows qualify; ``answered``, the fraction of the given
            rows above it, and ``mean_f``, their mean F-measure.

        See Also
        --------
        fgfm.metrics.abstention_threshold : The same for other measures and scores.
        """
        return abstention_threshold(*self._row_f(X, y), target, confidence)

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
            Columns "f", "precision", "recall", "predicted" (the share of rows) and "threshold";
            for each label, and overall by the average of this estimator, the rows "decider",
            "p > 0.5" and "tuned". The last has thresholds tuned on these very rows, which flatters
            them: one for each label with "macro" and "weighted", otherwise one for all. With more
            than two classes there are only the rows "decider" and "largest p". The thresholds of
            "decider" are those of ``predict_proba``, which is calibrated, the others those of X.

        Examples
        --------
        >>> import numpy as np
        >>> from fgfm import FDecider
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.random((600, 2)) ** 2
        >>> Y = (rng.random((600, 2)) < truth).astype(int)
        >>> decider = FDecider(average="macro").fit(truth[:300] ** 2, Y[:300])
        >>> report = decider.report(truth[300:] ** 2, Y[300:])
        >>> report.loc["overall", ["f", "predicted"]].round(2)
                     f  predicted
        decision
        decider   0.71       0.44
        p > 0.5   0.47       0.15
        tuned     0.73       0.36
        """
        given, decider = self._read(X), self._fitted()
        check_same_index(X=given.X, y=y)
        truth = label_sets(read_true_labels(y, decider), "y")
        p = given.entries.to_matrix(given.sparse_class)
        if sparse.issparse(p):
            truth = sparse.csr_array(truth)
        elif sparse.issparse(truth):
            truth = truth.toarray().astype(np.bool_)
        options: dict[str, Any] = {"beta": decider.beta, "zero_division": decider.zero_division}
        options["average"] = decider._score_average()
        thresholds = vars(decider).get("thresholds_", np.nan)
        rules = {"decider": (decider._predict_labels(given), thresholds)}
        if decider._label_form == "classes":
            best = p.argmax(axis=1)[:, None] == np.arange(p.shape[1])
            rules["largest p"] = (best, np.nan)
        else:
            rules |= rivals(p, truth, **options)
        names = decider._column_names() if decider._label_form != "flat" else decider.classes_[-1:]
        return compare(rules, truth, list(names), **options)

    def _row_f(self, X: Any, y: Any) -> tuple[Floats, Floats]:
        """Return the expected and the obtained F-measure of each row."""
        given, decider = self._read(X), self._fitted()
        if decider._per_batch:
            found = f"average is {decider.average!r}" if decider.multilabel_ else "y is flat"
            raise ValueError(
                f"{found}: the guarantee needs average='samples' and a matrix y, since other "
                "F-measures are not means over rows"
            )
        check_same_index(X=given.X, y=y)
        Y = read_labels(
            *(y, len(given.entries.p), type(self).__name__),
            keep_sparse=True,
            allow_lists="label_names_in_" in vars(decider),
            names=vars(decider).get("label_names_in_"),
        ).labels
        check_new_rows(self._known_rows, row_digests(self._row_values(X, given), Y))
        labels, expected_f = decider._decide_rows(given.entries, given.sparse_class)
        f = f_measure(
            read_true_labels(y, decider),
            labels,
            decider.beta,
            zero_division=decider.zero_division,
            per_row=True,
        )
        return expected_f, f


class FDecider(DeciderMixin, BaseEstimator):  # type: ignore[misc]
    r"""F-optimal decisions from the probabilities of any fitted model.

    `fit` takes the probabilities that a model predicts for validation rows, which it was not
    trained on, and their true labels. From them it learns to calibrate the probabilities, and how
    many labels a row has. Then `predict` and `decide` return the label sets that maximise the
    expected F-measure.

    With :math:`q_i` the calibrated probability of label i, a row has the label set y with
    probability

    .. math:: p(y) \propto g(|y|) \prod_i \bigl(q_i^t / (1 - q_i)^u\bigr)^{y_i},

    where g gives the number of labels its learned distribution
    :math:`d_s \propto \exp(b_s) \, \pi_s^a` (:math:`\pi` is that of independent labels; the
    probability of no label is calibrated apart, if rows without labels exist), and t and u are 1
    for independent labels and less where labels exclude each other.

    Parameters
    ----------
    beta : float, default=1.0
        Importance of recall relative to precision. With "macro" and "micro" it takes effect in
        `fit`, which computes `thresholds_`.
    average : {"samples", "macro", "weighted", "micro"}, default="samples"
        The F-measure to maximise: the mean over rows, the mean over labels, with equal weights or
        weighted by their numbers of rows, or that of all rows and labels together. With a flat y
        of two classes it is the F-measure of the second one. More classes need "macro", the mean
        over them.
    calibration : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        "sigmoid" fits a slope and a shift of the logits for each label, shrunk towards common
        values by as much as the rows show that labels agree, and one bend for all labels.
        "isotonic" fits an isotonic regression for each label, and needs thousands of validation
        rows. None takes the probabilities as they are. "auto" is "sigmoid".
    nonempty : {"auto"} or bool, default="auto"
        Condition decisions for the rows' F-measure on a true label set that is not empty. "auto"
        does so if no validation row is empty.
    zero_division : float, default=1.0
        Value of an empty prediction if the true set is empty, from 0 to 1.
    min_labels, max_labels : int, default=0 and None
        Least and largest number of labels of a row. With "macro" and "micro" they take effect in
        `fit`, and `predict` ranks the labels of a row by what they add to the F-measure.
    constraints : fgfm.decision.Constraints, optional
        Further constraints on the label set of a row.
    min_precision, min_recall : float, optional
        Least expected precision and recall, from 0 to 1: of each row for "samples", of each label
        for "macro" and "weighted", of all together for "micro", of the positive class for a flat y
        of two classes. With "samples" `predict` chooses the best label set of a row that has both,
        or none. Otherwise `fit` finds the thresholds with the largest F-measure among those that
        have both on the validation rows; where there are none, nothing is predicted, and a warning
        says what is possible.
    confidence : float, optional
        Certify the floors: with at least this probability, they hold for new rows drawn like the
        validation rows, for all certified labels at once with "macro" and "weighted"; with
        "samples" for the mean over rows. A random half of the validation rows learns everything,
        the other half certifies. Where a floor cannot be certified, a warning says what was
        reached and how many rows would be needed, and the decisions are those nearest to it.
    logits : bool, default=False
        Whether X has logits instead of probabilities.
    n_jobs : int, optional
        Number of threads that decide, as in joblib. It does not change the result.

    Attributes
    ----------
    thresholds_ : ndarray of shape (m,) or float
        With "macro" and "weighted" one threshold per label, with "micro" or a flat y one for all:
        `predict` compares `predict_proba` with it.
    class_weights_ : ndarray of shape (m,)
        With a flat y of more than two classes: `predict` chooses the class with the largest
        ``class_weights_ * (predict_proba(X) - thresholds_)``. So do "macro" and "weighted" with
        `min_labels` or `max_labels`, for as many labels as these allow.
    certified_ : bool or ndarray of bool of shape (m,)
        With `confidence`: whether the floors are certified; with "macro" and "weighted" of each
        label. False where nothing is predicted.
    max_labels_ : int
        With `confidence`, "micro" and `min_precision`: the largest number of labels that a row
        gets, which is that of the rows of the fit.
    classes_ : ndarray
        The labels: their names, or 0 to m - 1. With a flat y its classes.
    multilabel_ : bool
        False if y was flat.
    label_names_in_ : ndarray of shape (m,)
        Names of the labels: the columns of y, or those of X if y has none.
    nonempty_ : bool
        Whether no validation row is empty; always False with a flat y.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (m,)
        Columns of X, if it has string column names.

    See Also
    --------
    FDeciderCV : The same around a model, which it fits and cross-validates.
    fgfm.decision.from_marginals : Decisions without validation rows.

    Notes
    -----
    X may be an array, a data frame (pandas or polars), a sparse matrix (entries that are not
    stored are labels that are absent), a tensor, or a list of arrays (n, 2), one per label, as
    ``predict_proba`` of scikit-learn's forests returns. A binary model with a flat y may have the
    two columns of its ``predict_proba``, or the probabilities of the positive class alone. A model
    of more classes has one column for each, whose probabilities sum to 1.

    Names of columns and, in pandas, of rows are compared, not only strings: X and y must have the
    same in `fit`, and later ones those of `fit`, all in the same order, or there is an error.
    Columns without names, which pandas calls 0 to m - 1 and polars ``column_0`` and so on, are
    matched by position, unless the other names are the same numbers in another order.

    The macro- and micro-averaged F-measure are those of a batch of rows. `decide` maximises their
    expectation for the batch that it is given; `predict` compares each row with `thresholds_`, so
    that a row's labels do not depend on other rows. For large batches both tend to the same.
    `expected_f` of "macro" and "weighted" is shifted towards what the validation rows obtain, of
    labels each row left out of the calibration.
    "micro" takes the entries of a row as independent of each other, which does not matter if there
    are many rows.

    The label sets of sparse rows are chosen from the stored labels. True labels that are not
    stored are not counted: store enough labels that few are missed, or `expected_f` is too high.

    What a certificate is about: with "macro", "micro" and a flat y, precision is the expected
    number of hits by that of predictions, and recall by that of true labels, over many new rows.
    With "samples" they are means over the rows that get labels, and over those that have labels
    (``precision_score(..., average="samples", zero_division=np.nan)`` of scikit-learn). It holds
    for the labels of `predict`, and `decide` then returns the same, with the expected F-measure of
    a large batch. It rests on what `lower_bound` rests on: the model was not trained on the
    validation rows, which are drawn independently from the distribution of the new rows.

    The validation rows are used up: for `lower_bound` and `select` take others.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm import FDecider
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((600, 4)) ** 2  # what a row's labels are drawn from
    >>> Y = (rng.random((600, 4)) < truth).astype(int)
    >>> proba = truth**2  # a model that is too sure of absent labels
    >>> decider = FDecider().fit(proba[:300], Y[:300])
    >>> decider.predict(proba[300:302])
    array([[0, 0, 0, 0],
           [0, 1, 1, 0]])
    >>> round(decider.score(proba[300:], Y[300:]), 2)
    0.64
    >>> round(float(decider.expected_f(proba[300:]).mean()), 2)
    0.66
    """

    def __init__(
        self,
        *,
        beta: float = 1.0,
        average: str = "samples",
        calibration: str | None = "auto",
        nonempty: Any = "auto",
        zero_division: float = 1.0,
        min_labels: int = 0,
        max_labels: int | None = None,
        constraints: Any = None,
        min_precision: float | None = None,
        min_recall: float | None = None,
        confidence: float | None = None,
        logits: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.beta = beta
        self.average = average
        self.calibration = calibration
        self.nonempty = nonempty
        self.zero_division = zero_division
        self.min_labels = min_labels
        self.max_labels = max_labels
        self.constraints = constraints
        self.min_precision = min_precision
        self.min_recall = min_recall
        self.confidence = confidence
        self.logits = logits
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.average == "macro"
        tags.classifier_tags.multi_label = True
        tags.input_tags.one_d_array = True
        tags.input_tags.sparse = not self.logits
        tags.input_tags.positive_only = not self.logits
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FDecider:
        """Learn from validation rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of arrays
            Probabilities of m labels, which a model predicts for rows that it was not trained on,
            of shape (n, m); or logits, with ``logits=True``.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            True labels, 0 or 1, one column each; NaN or -1 for a label that is not known, which
            takes no part in the calibration, nor its row in the number of labels. A flat y may
            have any classes: of more than two, X has the probabilities, one column for each in
            sorted order. Lists or sets of the names of labels, one for each row, are those of the
            columns of X, or, if these have no names, of the labels in sorted order.
        sample_weight : array-like of shape (n,), optional
            Sample weights: weight 2 is a row twice, weight 0 none.

        Returns
        -------
        FDecider
            The fitted estimator.
        """
        self._check_parameters()
        X = on_host(X)
        n = count_rows(X)
        names = column_names(X)
        table = read_labels(
            y,
            n,
            type(self).__name__,
            keep_sparse=True,
            allow_missing=True,
            allow_classes=True,
            allow_lists=True,
            names=None if names is None or made_up(names) else names,
        )
        return self._fit_table(X, y, table, sample_weight)

    def _fit_table(self, X: Any, y: Any, table: LabelTable, sample_weight: Any) -> FDecider:
        """Learn from validation rows whose labels y are in a table."""
        self._check_form(table)
        given = read_probabilities(self, X, table.form, reset=True)
        n = len(given.entries.p)
        entries = given.entries
        check_labels_match(given, y, table)
        check_same_index(X=X, sample_weight=sample_weight)
        self._column_names_in = names = known_names(table.names, column_names(X))
        if table.form not in ("flat", "classes") and names is not None and not made_up(names):
            table = table._replace(names=names)
        set_label_attributes(self, table)
        weight = row_weights(sample_weight, n, "X")
        used = np.flatnonzero(weight)
        self._known_rows = known_rows(row_digests(entries.at(used), table.labels[used]))
        apart = rows_apart(self.confidence, weight, table)
        weight[apart] = 0.0
        Y = entries.choose(table.labels)  # (n, K)
        _check_rows(table, weight)
        if table.observed is not None and entries.labels is not None:
            raise ValueError(
                "y has labels that are missing, and X is sparse: missing labels need a dense X"
            )
        if not Y[weight > 0.0].any():
            raise ValueError(
                "X stores no probability of a true label: sparse probabilities must have an entry "
                "for most of the labels of y"
            )
        seen = weight > 0.0
        missing: dict[str, Any] = {}
        if table.observed is not None:
            missing["observed"] = table.observed
            seen &= table.observed.all(axis=1)
        kept = np.asarray(table.labels.sum(axis=1)).ravel()[seen]
        self.nonempty_ = bool(kept.size and (kept > 0).all()) and self.multilabel_
        self._check_limits(given)
        kind: Any = ClassModel if table.form == "classes" else JointModel
        model = kind(_CALIBRATORS[self.calibration]())
        with one_blas_thread:  # which is faster for small matrices, and reproducible
            self._model = model.fit(entries, Y, weight, **missing)
        in_sample = self._fit_rule(entries, weight)
        self._expectation_shift = 0.0
        # Missing labels have no F-measure; floors are promises about the calibrated model.
        smooth = self.calibration in ("auto", "sigmoid")
        if smooth and self._macro and not (missing or self._floors):
            used = np.flatnonzero(weight)
            copies = np.repeat(np.arange(len(used)), nearest_counts(weight[used]))
            if in_sample is None:
                left_out = self._model.left_out_marginals(entries.at(used), Y[used], weight[used])
                labels, expected_f = self._decide_batch(left_out.at(copies), sparse.csr_array)
            else:
                labels, expected_f = in_sample
                labels = labels[:, None] == np.arange(entries.m)
            obtained = f_measure(
                label_sets(table.labels[used[copies]], "y"),
                labels,
                self.beta,
                average=None,
                zero_division=self.zero_division,
            )
            self._expectation_shift = expectation_shift(np.asarray(expected_f), obtained)
        if self.confidence is not None:
            certify_floors(self, entries, table.labels, (np.flatnonzero(weight), apart))
        return self

    def _fit_rule(self, entries: Entries, weight: Floats) -> Decision | None:
        """Learn what decides rows one by one, if the average is one of a batch.

        Returns the decision for the validation rows where they have classes.
        """
        self._fitted_average = self.average
        self._fitted_limits = self.min_labels, self.max_labels
        for name in ("thresholds_", "class_weights_", "certified_", "max_labels_", "_row_floors"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if not self._per_batch:
            return None
        used = np.flatnonzero(weight)
        marginals, weight = self._marginals(entries.at(used)), weight[used]
        if self._label_form == "classes":
            p = np.repeat(marginals.p, nearest_counts(weight), axis=0)
            self.thresholds_: Any
            self.thresholds_, self.class_weights_, decision = class_rule(
                p, self.beta, self.zero_division
            )
            return decision
        # For large batches the optimal cut tends to V / (1 + beta^2), V the expected F.
        if self._floors:
            cut = self._floored_cut(marginals, nearest_counts(weight))
        elif self._limited:
            cut = self._limited_cut(marginals, nearest_counts(weight))
        else:
            cut = self._batch_f(marginals, weight) / (1.0 + self.beta**2)
        self.thresholds_ = cut if cut.ndim else float(cut)
        return None

    def _batch_f(self, p: Entries, weight: Floats) -> Floats:
        """Return the F-measure to expect of weighted rows, one value per problem."""
        counts = as_counts(weight)
        if counts is not None:
            copies = p.at(np.repeat(np.arange(len(counts)), counts))
            return np.asarray(self._decide_batch(copies, sparse.csr_array).expected_f)
        values = limit_f(
            p.as_one_label() if self._one_problem else p, weight, self.beta, self.zero_division
        )
        return values[0] if self._one_problem else values

    def _floored_cut(self, p: Entries, counts: Any) -> Floats:
        """Return the thresholds of the decision for repeated rows that satisfies the floors."""
        p = p.at(np.repeat(np.arange(len(counts)), counts))
        labels, f = self._decide_batch(p, sparse.csr_array)
        chosen = p.choose(labels.reshape(len(p.p), -1)) > 0.0
        p = p.as_one_label() if self._one_problem else p
        of = np.broadcast_to(np.arange(p.m) if p.labels is None else p.labels, chosen.shape)
        lowest, highest = np.full(p.m + 1, np.inf), np.zeros(p.m + 1)  # chosen, and not chosen
        np.minimum.at(lowest, of[chosen], p.p[chosen])
        np.maximum.at(highest, of[~chosen], p.p[~chosen])
        lowest, highest = lowest[:-1], highest[:-1]
        # The usual cut, unless a floor moves it; nothing is above 1.
        cut = np.asarray(f) / (1.0 + self.beta**2)
        middle = np.where(np.isinf(lowest), 1.0, 0.5 * (np.minimum(lowest, 1.0) + highest))
        cut = np.where((highest <= cut) & (cut < lowest) & np.isfinite(lowest), cut, middle)
        return cut[0] if self._one_problem else cut

    def _limited_cut(self, p: Entries, counts: Any) -> Floats:
        """Return the thresholds of repeated rows with limits, and set the weights of labels.

        One more row of probability p changes F = N / D of a label by ((1 + beta^2) p - F) / D.
        """
        p = p.at(np.repeat(np.arange(len(counts)), counts))
        labels, f = self._decide_batch(p, sparse.csr_array)
        if self.average != "micro":
            total = p.by_label(p.p)
            size = self.beta**2 * total + np.asarray(labels.sum(axis=0, dtype=np.int64)).ravel()
            weights = (total if self.average == "weighted" else 1.0) / np.maximum(size, 1.0)
            self.class_weights_ = weights / weights.max()
        return np.asarray(f) / (1.0 + self.beta**2)

    @property
    def _limited(self) -> bool:
        """Whether the number of labels of a row is limited."""
        return self.max_labels is not None or self.min_labels != 0

    @property
    def _one_problem(self) -> bool:
        """Whether all entries are one problem, if rows are not."""
        return not self.multilabel_ or self.average == "micro"

    @property
    def _macro(self) -> bool:
        """Whether each label, or class, is a problem."""
        several = self.multilabel_ or self._label_form == "classes"
        return several and self.average in ("macro", "weighted")

    @property
    def _floors(self) -> dict[str, Any]:
        """The floors that are given, as `from_marginals` takes them."""
        floors = {"min_precision": self.min_precision, "min_recall": self.min_recall}
        return {name: value for name, value in floors.items() if value is not None}

    @property
    def _per_batch(self) -> bool:
        """Whether a problem has several rows."""
        return self.average != "samples" or not self.multilabel_

    def _check_parameters(self) -> None:
        """Raise if a constructor parameter is invalid."""
        check_beta(self.beta)
        check_zero_division(self.zero_division)
        check_average(self.average)
        check_choice(self.calibration, "calibration", tuple(_CALIBRATORS))
        check_flag(self.logits, "logits")
        for name, value in self._floors.items():
            check_zero_division(value, name)
        if self.confidence is not None:
            check_fraction(self.confidence, "confidence")
            if not any(self._floors.values()):
                raise ValueError(
                    f"confidence is {self.confidence}: it is that of min_precision and "
                    "min_recall, of which one must be given"
                )
        n_threads(self.n_jobs)
        resolve_nonempty(self.nonempty, auto=False)

    def _check_form(self, table: LabelTable) -> None:
        """Raise if the average does not apply to the labels."""
        if table.form == "classes" and self.average != "macro":
            raise ValueError(
                f"Only binary classification is supported with average={self.average!r}: y is "
                f"flat and has {len(table.classes)} classes, which need average='macro'"
            )

    def _check_limits(self, given: Probabilities) -> None:
        """Raise if no label set of a row satisfies the constraints, or if they do not apply."""
        limited = self.constraints is not None or self._limited
        flat = not self.multilabel_
        if self._per_batch and (self.constraints is not None or (flat and limited)):
            found = "y is flat" if flat else f"average is {self.average!r}"
            raise ValueError(
                f"{found}: constraints are about the label set of a row, and need a matrix y and "
                "average='samples'"
            )
        if self._floors and (limited or self._label_form == "classes"):
            found = "min_labels, max_labels and constraints" if limited else "classes"
            raise ValueError(f"{' and '.join(self._floors)} cannot be combined with {found}")
        if limited:
            nonempty = resolve_nonempty(self.nonempty, self.nonempty_)
            limits = self._limits(given.entries)
            Objective.checked(1.0, 1.0, nonempty, None, **limits).constraints(given.entries.m)

    def _limits(self, entries: Entries) -> dict[str, Any]:
        """Return the constraints as `fgfm.decision` takes them."""
        if entries.labels is not None:
            if self.constraints is not None:
                raise ValueError(
                    "constraints is given and X is sparse: constraints need a dense X, since the "
                    "labels that are not stored take no part in a decision"
                )
            stored = (entries.labels < entries.m).sum(axis=1)
            if (stored < self.min_labels).any():
                row = int(np.argmax(stored < self.min_labels))
                raise ValueError(
                    f"min_labels is {self.min_labels} and row {row} of X has {stored[row]} stored "
                    "labels: it must have as many"
                )
        constraints = self.constraints
        if isinstance(constraints, Constraints):
            constraints = constraints.numbered(entries.m, self._column_names())
        return {
            "min_labels": self.min_labels,
            "max_labels": self.max_labels,
            "constraints": constraints,
        }

    def _read(self, X: Any) -> Probabilities:
        check_is_fitted(self)
        if not self.multilabel_:
            check_class_order(X, self.classes_)
        check_same_names(column_names(X), self._column_names_in, "X", "fit")
        return read_probabilities(self, X, self._label_form, reset=False)

    def _row_values(self, X: Any, given: Probabilities) -> Entries:
        return given.entries

    def _score_average(self) -> Any:
        return self.average if self.multilabel_ else "macro"

    def _decide(self, entries: Entries, kind: Any) -> Decision:
        """Decide rows: labels as an array, or as `kind`, a class of CSR."""
        if not self._per_batch:
            return self._decide_rows(entries, kind)
        labels, expected_f = decision = self._decide_batch(self._marginals(entries), kind)
        if not (self._macro and self._expectation_shift):
            return decision
        return Decision(labels, shifted(expected_f, self._expectation_shift), decision.gap)

    def _column_names(self) -> list[Any]:
        return list(vars(self).get("label_names_in_", super()._column_names()))

    def _predict_labels(self, given: Probabilities) -> Any:
        """Return labels (n, m), dense or CSR, each row by itself."""
        entries = given.entries
        if not self._per_batch:
            return self._decide_rows(entries, given.sparse_class).labels
        if self.multilabel_ and self.average != self._fitted_average:
            raise ValueError(
                f"average is {self.average!r} and was {self._fitted_average!r} in fit, which "
                "computes the thresholds of 'macro' and 'micro': fit again"
            )
        if self._fitted_limits != (self.min_labels, self.max_labels):
            raise ValueError(
                f"min_labels and max_labels are {self.min_labels} and {self.max_labels}, and in "
                f"fit, which computes the thresholds of {self.average!r}, they were "
                f"{self._fitted_limits[0]} and {self._fitted_limits[1]}: fit again"
            )
        return entries.to_labels(
            self._choose_entries(self._marginals(entries)), given.sparse_class
        )

    def _choose_entries(self, p: Entries) -> Any:
        """Return the entries (n, K) that are above their threshold, up to the limits of a row."""
        limits = self._limits(p)
        least, most = limits["min_labels"], limits["max_labels"]
        if self._label_form == "classes":
            least = most = 1
        most = vars(self).get("max_labels_", p.m if most is None else most)
        gain = p.p - p.of_label(np.broadcast_to(self.thresholds_, (p.m,)))
        if "class_weights_" in vars(self):
            gain *= p.of_label(self.class_weights_)
        if p.labels is not None:
            gain = np.where(p.labels < p.m, gain, -np.inf)
        return best_entries(gain, least, most).astype(np.int8)

    def _marginals(self, entries: Entries) -> Entries:
        """Return the probability of each entry under the model."""
        model: JointModel | ClassModel = self._model
        return model.marginals(entries, n_threads(self.n_jobs))

    def _decide_rows(self, entries: Entries, kind: Any) -> Decision:
        """Decide each row by itself."""
        floors = vars(self).get("_row_floors", self._floors)
        chosen, expected_f = self._choose_rows(entries, floors)
        return Decision(entries.to_labels(chosen, kind), expected_f)

    def _choose_rows(self, entries: Entries, floors: dict[str, float]) -> tuple[Any, Floats]:
        """Return the entries (n, K) of the label set of each row, and the expected F-measures."""
        chosen = np.zeros(entries.p.shape, dtype=np.int8)
        expected_f = np.empty(len(chosen))
        nonempty = resolve_nonempty(self.nonempty, self.nonempty_)
        limits = self._limits(entries)
        objective = Objective.checked(self.beta, self.zero_division, nonempty, 1, **limits)
        objective.constraints(entries.m)  # which raises if there is no such set
        exponents = self._model.exponents
        most = entries.m if self.max_labels is None else self.max_labels

        def decide(rows: Any, p: Floats, d: Floats, least: int, most: int) -> None:
            labels, f = np.zeros(p.shape, dtype=np.int8), np.empty(len(p))
            given = (p, d, *exponents, *objective.kernel_arguments, least, most)
            decide_reweighted_rows(*given, labels, f)
            chosen[rows], expected_f[rows] = labels, f

        def decide_block(rows: slice) -> None:
            p, d = self._model.predict(entries.at(rows))
            if limits["constraints"] is not None:
                P = of_marginals(powered(p, *exponents), d, method="condition")
                chosen[rows], expected_f[rows] = from_cardinalities(
                    P,
                    distribution=d,
                    beta=self.beta,
                    zero_division=self.zero_division,
                    nonempty=nonempty,
                    n_jobs=1,
                    **limits,
                )
                return
            if not floors:
                decide(rows, p, d, self.min_labels, most)
                return
            sizes = row_sizes(p, d, exponents, floors, self.zero_division, nonempty)
            pairs = np.stack(sizes, axis=1)
            pairs[pairs[:, 0] > pairs[:, 1]] = 0  # no set has the floors: none
            for pair in np.unique(pairs, axis=0):
                same = np.flatnonzero((pairs == pair).all(axis=1))
                decide(rows.start + same, p[same], d[same], *pair.tolist())

        self._model.run_blocks(entries, n_threads(self.n_jobs), decide_block)
        return chosen, expected_f

    def _decide_batch(self, marginals: Entries, kind: Any) -> Decision:
        """Decide all rows together: one problem per label or class, or one for all entries."""
        if self.confidence is not None and "certified_" in vars(self):
            return self._decide_certified(marginals, kind)
        p = marginals.to_matrix(kind)
        if self._label_form == "classes":
            labels, expected_f = decision = from_classes(
                p, beta=self.beta, zero_division=self.zero_division, n_jobs=self.n_jobs
            )
            return Decision(self.classes_[labels], expected_f, decision.gap)
        if not self.multilabel_:
            p = p.toarray().ravel() if sparse.issparse(p) else p.ravel()
        return from_marginals(
            p,
            average=self.average if self.multilabel_ else "macro",
            beta=self.beta,
            zero_division=self.zero_division,
            n_jobs=self.n_jobs,
            min_labels=self.min_labels,
            max_labels=self.max_labels,
            **self._floors,
        )

    def _decide_certified(self, p: Entries, kind: Any) -> Decision:
        """Return the labels of `predict`, and their F-measure in the limit of many rows."""
        chosen = self._choose_entries(p)
        labels = p.to_labels(chosen, kind)
        if not self.multilabel_:
            labels = labels.toarray().ravel() if sparse.issparse(labels) else labels.ravel()
        p = p.as_one_label() if self._one_problem else p
        size = self.beta**2 * p.by_label(p.p) + p.by_label(chosen)
        hits = (1.0 + self.beta**2) * p.by_label(p.p * chosen)
        of_none = np.full(len(size), float(self.zero_division))
        f = np.divide(hits, size, out=of_none, where=size > 0.0)
        return Decision(labels, float(f[0]) if self._one_problem else f)


def _check_rows(table: LabelTable, weight: Floats) -> None:
    """Raise if there is nothing to learn from."""
    labels = table.labels[np.flatnonzero(weight)]
    n = int(np.count_nonzero(weight))
    if n < 2:
        raise ValueError(
            f"n_samples={n}: FDecider needs at least 2 validation rows with a positive weight, "
            "and some hundreds to learn from"
        )
    if table.form == "flat" and (labels.all() or not labels.any()):
        raise ValueError(
            "y has one class in rows of positive weight: validation rows of both classes are "
            "needed"
        )
    if not labels.sum():
        raise ValueError(
            "y has no positive label: validation rows without any label cannot show how probable "
            "labels are"
        )
