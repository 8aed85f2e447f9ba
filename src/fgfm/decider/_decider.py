"""FDecider: F-optimal decisions from the probabilities of a fitted model."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.blocks import n_threads
from fgfm._utils.label_table import (
    LabelTable,
    separated_texts,
    set_label_attributes,
)
from fgfm._utils.names import (
    check_same_index,
    check_same_names,
    column_names,
    is_unnamed,
)
from fgfm._utils.parallel import one_blas_thread
from fgfm._utils.parameters import check_parameters, record_parameters
from fgfm._utils.validation import (
    check_beta,
    check_choice,
    check_flag,
    check_fraction,
    check_zero_division,
    resolve_nonempty,
    row_weights,
)
from fgfm.decider._calibration import CALIBRATORS, make_calibrator
from fgfm.decider._certificates import rows_apart
from fgfm.decider._class_model import ClassModel
from fgfm.decider._entries import Entries
from fgfm.decider._inputs import (
    Probabilities,
    check_class_order,
    check_count,
    known_columns,
    on_host,
    read_probabilities,
    read_truth,
)
from fgfm.decider._known_rows import known_rows, row_digests
from fgfm.decider._label_set_model import LabelSetModel
from fgfm.decider._large_batches import expectation_shift, shifted
from fgfm.decider._methods import DeciderMixin
from fgfm.decider._mismatch import warn_about_mismatch
from fgfm.decider._missed import read_missed
from fgfm.decider._rules import (
    Settings,
    ThresholdRule,
    Validation,
    check_stored,
    make_rule,
)
from fgfm.decision._classes import counted_classes
from fgfm.decision._problem import AVERAGES

__all__ = ["FDecider"]

Floats = npt.NDArray[np.float64]

_FEW_ROWS = 20


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
        Importance of recall relative to precision.
    average : {"samples", "macro", "weighted", "micro", "binary"}, default="samples"
        The F-measure to maximise: the mean over rows, the mean over labels, with equal weights or
        weighted by their numbers of rows, or that of all rows and labels together. With a flat y
        of two classes it is the F-measure of the positive one, whatever the average; "binary" is
        for such a y only. Of more classes it is the mean over them, "macro" or "weighted", or
        "micro" over those in `labels`.
    labels : sequence, optional
        With a flat y of more than two classes and "micro": the classes that count. The others are
        a background, such as "no relation": F compares the rows of classes that count with the
        rows that are decided for one.
    calibration : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        "sigmoid" fits a slope and a shift of the logits for each label, shrunk towards common
        values by as much as the rows show that labels agree, and one bend for all labels.
        "isotonic" fits an isotonic regression for each label, and needs thousands of validation
        rows. None takes the probabilities as they are. "auto" is "sigmoid". Scores need a
        calibration.
    nonempty : {"auto"} or bool, default="auto"
        Condition decisions for the rows' F-measure on a true label set that is not empty. "auto"
        does so if no validation row is empty.
    zero_division : float, default=1.0
        Value of an empty prediction if the true set is empty, from 0 to 1.
    min_labels, max_labels : int, default=0 and None
        Least and largest number of labels of a row. With "macro" and "micro" `predict` ranks the
        labels of a row by what they add to the F-measure.
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
    pos_label : object, optional
        With a flat y of two classes: the class whose F-measure is maximised. It can be left out if
        the classes are 0 and 1, -1 and 1, or False and True.
    scores : bool, default=False
        Whether X has scores instead of probabilities: real numbers of any unit and offset, higher
        for more probable labels, such as logits, margins, similarities, distances with a minus.
        Labels may have units of their own.
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
        The labels: their names, or 0 to m - 1. With a flat y its classes; with lists 0 and 1.
    multilabel_ : bool
        False if y was flat.
    label_names_in_ : ndarray of shape (m,)
        Names of the labels: the columns of y, or those of X if y has none.
    nonempty_ : bool
        Whether no validation row is empty; always False with a flat y.
    n_features_in_ : int
        Number of columns of X, if it has any.
    feature_names_in_ : ndarray of shape (m,)
        Columns of X, if it has string column names.

    See Also
    --------
    FClassifier : The same around a model, which it fits and cross-validates.
    fgfm.decision.from_marginals : Decisions without validation rows.

    Notes
    -----
    X may be an array, a data frame (pandas or polars), a sparse matrix (entries that are not
    stored are labels that are absent), a tensor, or a list of arrays (n, 2), one per label, as
    ``predict_proba`` of scikit-learn's forests returns. With a flat y it has the probabilities of
    the positive class, or a column for each class.

    Rows may also name their labels: a dict ``{"label": p}``, a list of pairs ``("label", p)``, or
    one of dicts ``{"label": "label", "score": p}``, as pipelines of transformers return them. Then
    y lists the names of the labels of each row, or is a data frame. Labels that `fit` has not seen
    are an error. If X and y are lists of 1-D arrays, each row has candidates of its own, as in
    retrieval and detection: all share one calibration, `predict`, `predict_proba` and `decide`
    return lists of arrays, and the average is "samples" or "micro". (Lists of numbers are such
    lists if their lengths differ, else a matrix.)

    Names of columns and, in pandas, of rows are compared: X and y must have the same in `fit`, and
    later ones those of `fit`, all in the same order, or there is an error. Columns without names,
    which pandas calls 0 to m - 1 and polars ``column_0`` and so on, are matched by position,
    unless the other names are the same numbers in another order.

    The macro- and micro-averaged F-measure are those of a batch of rows. `decide` maximises their
    expectation for the batch that it is given; `predict` compares each row with `thresholds_`, so
    that a row's labels do not depend on other rows. For large batches both tend to the same.
    `expected_f` of "macro" and "weighted" is shifted towards what the validation rows obtain.
    "micro" takes the entries of a row as independent of each other, which does not matter if there
    are many rows.

    Where rows store or name some labels only, sets are chosen from these, and true labels that are
    not stored count as `missed` ones do in `fit` (but for "macro" and "weighted", and with limits
    or floors where all rows are one problem: there `expected_f` is too high).

    A certificate is about the labels of `predict`: with "macro", "micro" and a flat y, precision
    is the expected number of hits by that of predictions, and recall by that of true labels, over
    many new rows; with "samples" they are means over the rows that get labels, and over those that
    have labels. It rests on what `lower_bound` rests on: the model was not trained on the
    validation rows, which are drawn independently from the distribution of the new rows.

    The validation rows are used up: for `lower_bound` and `select` take others.

    Parameters may be changed after `fit` where that needs no fit: with "samples" those of the
    decision of a row (beta, floors without a certificate, limits, constraints, `nonempty`,
    `zero_division`). Otherwise `predict` and `decide` refuse a changed parameter.

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
        labels: Any = None,
        calibration: str | None = "auto",
        nonempty: Any = "auto",
        zero_division: float = 1.0,
        min_labels: int = 0,
        max_labels: int | None = None,
        constraints: Any = None,
        min_precision: float | None = None,
        min_recall: float | None = None,
        confidence: float | None = None,
        pos_label: Any = None,
        scores: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.beta = beta
        self.average = average
        self.labels = labels
        self.calibration = calibration
        self.nonempty = nonempty
        self.zero_division = zero_division
        self.min_labels = min_labels
        self.max_labels = max_labels
        self.constraints = constraints
        self.min_precision = min_precision
        self.min_recall = min_recall
        self.confidence = confidence
        self.pos_label = pos_label
        self.scores = scores
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._takes_classes()
        tags.classifier_tags.multi_label = True
        tags.input_tags.one_d_array = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not self.scores
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, missed: Any = None) -> FDecider:
        """Learn from validation rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list
            Probabilities of m labels, which a model predicts for rows that it was not trained on,
            of shape (n, m); or scores, with ``scores=True``. A list may have arrays, or names of
            labels with their probabilities (see Notes of the class).
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,), or list of arrays
            True labels, 0 or 1, one column each; NaN or -1 for a label that is not known, which
            takes no part in the calibration, nor its row in the number of labels. A flat y may
            have any classes: of more than two, X has the probabilities, one column for each in
            sorted order. Lists or sets of the names of labels, one for each row, are those of the
            columns of X, or, if these have no names, of the labels in sorted order.
        sample_weight : array-like of shape (n,), optional
            Sample weights: weight 2 is a row twice, weight 0 none.
        missed : array-like of shape (n,), optional
            Numbers of true items that no column or candidate of a row stands for, such as
            those below the end of a list. They are learned given the number of true labels, and
            count in decisions as in ``from_marginals(missed=)``. For "samples", "micro" and a
            flat y.

        Returns
        -------
        FDecider
            The fitted estimator.
        """
        self._check_parameters()
        X = on_host(X)
        table = read_truth(X, y, type(self).__name__)
        if table.form == "flat" and getattr(X, "shape", ())[1:] > (2,):
            check_count(X.shape[1], table, X, y)
        table = self._checked_labels(table, y)
        return self._fit_table(X, y, table, sample_weight, missed)

    def _fit_table(
        self,
        X: Any,
        y: Any,
        table: LabelTable,
        sample_weight: Any,
        missed: Any = None,
        *,
        foreign: bool = True,
        cardinality: Any = None,
    ) -> FDecider:
        """Learn from validation rows whose labels y are in a checked table.

        `foreign` probabilities may have columns that do not belong to y. `cardinality` (n, S + 1)
        are distributions of the number of labels by a further model.
        """
        check_same_index(X=X, y=y, sample_weight=sample_weight)
        self._column_names_in = names = known_columns(X, y, table)
        if table.form not in ("flat", "classes") and names is not None and not is_unnamed(names):
            table = table._replace(names=names)
        set_label_attributes(self, table)
        rows = read_probabilities(self, X, table.form, table.classes, reset=True)
        entries = rows.entries._replace(cardinality=cardinality)
        n = len(entries.p)
        check_count(entries.m, table, X, y)
        weight = row_weights(sample_weight, n, "X")
        used = np.flatnonzero(weight)
        self._known_rows = known_rows(row_digests(entries.take(used), table.labels[used]))
        apart = np.empty(0, dtype=np.int64)
        if self.confidence is not None:
            apart = rows_apart(self.confidence, weight, table)
            weight[apart] = 0.0
            used = np.flatnonzero(weight)
        Y = entries.choose(table.labels)  # (n, K)
        _check_rows(table, weight)
        if table.observed is not None and entries.labels is not None:
            raise ValueError(
                "y has labels that are missing, and X is sparse: missing labels need a dense X"
            )
        if not Y[used].any():
            raise ValueError(
                "X stores no probability of a true label: sparse probabilities must have an entry "
                "for most of the labels of y"
            )
        self._missed = missed is not None
        others = np.zeros(n, dtype=np.int64) if missed is None else read_missed(missed, X, n)
        if self._missed and table.observed is not None:
            raise ValueError("missed cannot be combined with labels of y that are missing")
        if entries.labels is not None:  # true labels that are not stored
            sizes = np.asarray(table.labels.sum(axis=1)).ravel()
            others = others + sizes - Y.sum(axis=1).astype(np.int64)
        self.nonempty_ = self.multilabel_ and _all_have_labels(table, used, others)
        settings = self._settings(self.average)
        settings.check()
        check_stored(entries, settings)
        if foreign:
            warn_about_mismatch(rows, Y, weight, table, settings.names)
        calibrator = make_calibrator(self.calibration, scores=self.scores)
        with one_blas_thread:  # which is faster for small matrices, and reproducible
            if table.form == "classes":
                model: Any = ClassModel(calibrator).fit(entries, Y, weight)
            else:
                model = LabelSetModel(calibrator, one_for_all=table.form == "lists")
                model.fit(entries, Y, weight, observed=table.observed, missed=others)
        validation = Validation(entries, Y, weight, table.labels, used, apart)
        self._rule = make_rule(model, settings).fit(validation)
        for name in ("thresholds", "class_weights", "certified", "max_labels"):
            self.__dict__.pop(f"{name}_", None)  # of an earlier fit
            if getattr(self._rule, name) is not None:
                setattr(self, f"{name}_", getattr(self._rule, name))
        self._expectation_shift = 0.0
        # Missing labels have no F-measure; floors are promises about the calibrated model.
        smooth = hasattr(calibrator, "predict_left_out") and table.observed is None
        if smooth and not settings.floors and table.form not in ("flat", "lists"):
            if table.form != "classes":
                macro = ThresholdRule(model, self._settings("macro", plain=True))
                self._expectation_shift = expectation_shift(*macro.left_out_f(validation))
            elif settings.counted is None:
                self._expectation_shift = expectation_shift(*self._rule.in_sample_f)
        self._n_rows = len(used)
        record_parameters(self)
        return self

    def _checked_labels(self, table: LabelTable, y: Any) -> LabelTable:
        """Return labels that the parameters apply to, of two classes the positive one last."""
        if table.form == "classes" and not self._takes_classes():
            raise ValueError(
                f"Only binary classification is supported with average={self.average!r}: y is "
                f"flat and has {len(table.classes)} classes, which need average='macro', "
                "'weighted', or 'micro' with labels that list the classes that count"
                f"{separated_texts(y, '; y ')}"
            )
        if table.form != "classes" and self.labels is not None:
            form = "flat with two classes" if table.form == "flat" else "a matrix"
            raise ValueError(
                f"labels is {self.labels!r} and y is {form}: it lists the classes that count of a "
                "flat y with more than two classes"
            )
        if self.average == "binary" and table.form != "flat":
            raise ValueError(
                "average is 'binary' and y is a matrix: it must be one of "
                f"{', '.join(map(repr, AVERAGES))}"
            )
        if table.form != "flat":
            if self.pos_label is not None:
                reason = "a matrix" if table.form != "classes" else "flat with more than 2 classes"
                raise ValueError(
                    f"pos_label is {self.pos_label!r} and y is {reason}: it is the positive one "
                    "of two classes"
                )
            return table
        classes = table.classes.tolist()
        if self.pos_label is None:
            # As scikit-learn's f1_score: of other classes none is the positive one.
            if len(classes) == 2 and classes not in ([0, 1], [-1, 1]):
                raise ValueError(
                    f"y has the classes {classes[0]!r} and {classes[1]!r}, and pos_label is None: "
                    "pos_label must say of which class the F-measure is maximised"
                )
            return table
        if self.pos_label not in classes:
            raise ValueError(
                f"pos_label is {self.pos_label!r}: it must be a class of y, which are "
                f"{' and '.join(map(repr, classes))}"
            )
        if self.pos_label == classes[-1]:
            return table
        return table._replace(labels=~table.labels, classes=table.classes[::-1])

    def _shifted(self, expected_f: Any, average: str) -> Any:
        """Return expected F-measures of labels, shifted to what validation rows obtain."""
        several = self.multilabel_ or self._label_form == "classes"
        if several and average in ("macro", "weighted") and self._expectation_shift:
            return shifted(expected_f, self._expectation_shift)
        return expected_f

    def _settings(self, average: str, *, plain: bool = False) -> Settings:
        """Return the parameters of the decision; `plain` ones have no limits and no floors."""
        floors = {"min_precision": self.min_precision, "min_recall": self.min_recall}
        counted = None
        if self._label_form == "classes":
            counted = counted_classes(self.labels, average, self.classes_.tolist(), "y")
        return Settings(
            average="macro" if average == "binary" else average,
            beta=float(self.beta),
            zero_division=float(self.zero_division),
            nonempty=resolve_nonempty(self.nonempty, self.nonempty_),
            least=0 if plain else self.min_labels,
            most=None if plain else self.max_labels,
            constraints=None if plain else self.constraints,
            floors={} if plain else {k: v for k, v in floors.items() if v is not None},
            confidence=None if plain else self.confidence,
            n_jobs=self.n_jobs,
            form=self._label_form,
            names=self._names(),
            counted=counted,
            missed=self._missed,
        )

    def _check_parameters(self) -> None:
        """Raise if a constructor parameter is invalid."""
        check_beta(self.beta)
        check_zero_division(self.zero_division)
        check_choice(self.average, "average", (*AVERAGES, "binary"))
        check_choice(self.calibration, "calibration", tuple(CALIBRATORS))
        check_flag(self.scores, "scores")
        if self.scores and self.calibration is None:
            raise ValueError(
                "scores is True and calibration is None: scores become probabilities by a "
                "calibration, 'auto' or 'isotonic'; without one X must have probabilities"
            )
        floors = {"min_precision": self.min_precision, "min_recall": self.min_recall}
        for name, value in floors.items():
            if value is not None:
                check_zero_division(value, name)
        if self.confidence is not None:
            check_fraction(self.confidence, "confidence")
            if not any(floors.values()):
                raise ValueError(
                    f"confidence is {self.confidence}: it is that of min_precision and "
                    "min_recall, of which one must be given"
                )
        n_threads(self.n_jobs)
        resolve_nonempty(self.nonempty, auto=False)

    def _fitted_rule(self) -> Any:
        """Return the rule of `fit`, with parameters that were changed since, where they may be."""
        if not check_parameters(self, self._rule.follows):
            return self._rule
        self._check_parameters()
        settings = self._settings(self.average)
        settings.check()
        return self._rule.with_settings(settings)

    def _rule_of(self, average: str) -> Any:
        """Return the rule that decides for an average; only that of `fit` has thresholds."""
        check_choice(average, "average", (*AVERAGES, "binary"))
        rule = self._fitted_rule()
        if average == self.average:
            return rule
        if not self.multilabel_:
            raise ValueError(
                f"average is {average!r} and y was flat in fit: its F-measure is that of "
                f"average={self.average!r}"
            )
        settings = self._settings(average)
        settings.check()
        if settings.confidence is not None:
            raise ValueError(
                f"average is {average!r} and confidence is {self.confidence}: the certificate is "
                f"that of average={self.average!r}"
            )
        return make_rule(rule.model, settings)

    def _read(self, X: Any) -> Probabilities:
        if not hasattr(self, "_rule"):
            check_is_fitted(self)  # which raises, in ten times the time
        if type(X) is not np.ndarray:
            if not self.multilabel_:
                check_class_order(X, self.classes_)
            check_same_names(column_names(X), self._column_names_in, "X", "fit")
        return read_probabilities(self, X, self._label_form, self._classes, reset=False)

    def _row_values(self, X: Any, rows: Probabilities) -> Entries:
        return rows.entries

    def _names(self) -> list[Any]:
        """Return the names of the m labels or classes, or that of the positive class."""
        if self._label_form == "flat":
            return [self._classes.tolist()[-1]]
        if self._label_form == "lists":
            return ["candidates"]
        names = self.label_names_in_ if hasattr(self, "label_names_in_") else self.classes_
        return list(np.asarray(names).tolist())

    def _column_names(self) -> list[Any]:
        settings = self._rule.settings
        one = settings.form == "flat" or settings.counted is not None
        names: list[Any] = ["labels"] if one else settings.names
        return names


def _all_have_labels(table: LabelTable, used: Any, missed: Any) -> bool:
    """Return whether no row is empty, of those in use with all labels known."""
    if table.observed is not None:
        used = used[table.observed[used].all(axis=1)]
    sizes = np.asarray(table.labels[used].sum(axis=1)).ravel() + missed[used]
    return bool(len(sizes) and (sizes > 0).all())


def _check_rows(table: LabelTable, weight: Floats) -> None:
    """Raise if there is nothing to learn from."""
    labels = table.labels[np.flatnonzero(weight)]
    n = int(np.count_nonzero(weight))
    if n < 2:
        raise ValueError(
            f"n_samples={n}: FDecider needs at least 2 validation rows with a positive weight, "
            "and some hundreds to learn from"
        )
    if n < _FEW_ROWS:
        warnings.warn(
            f"n_samples={n}: FDecider learns little from so few validation rows; it needs some "
            "hundreds",
            UserWarning,
            stacklevel=4,
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
