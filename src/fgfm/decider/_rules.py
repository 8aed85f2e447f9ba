"""The rules that decide: rows one by one, thresholds on entries, or one class per row.

A rule has ``fit(validation)`` and ``read(entries)``, what it decides on. From this ``choose`` has
the labels of each row by itself, ``predict`` these and the F-measures to expect of them, and
``decide`` the best labels of a batch with their expected F-measures. `follows` names the
parameters that may change after `fit`.
"""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import Objective as KernelObjective
from fgfm._kernels import decide_reweighted_rows, reweight_marginals
from fgfm._utils.blocks import n_threads
from fgfm.cardinality import of_marginals
from fgfm.decider._certificates import certify_rows, certify_thresholds
from fgfm.decider._entries import Entries, best_entries
from fgfm.decider._label_set_model import tempered
from fgfm.decider._large_batches import (
    as_counts,
    best_cuts,
    best_cuts_with_floors,
    cut_between,
    large_batch_f,
    nearest_counts,
)
from fgfm.decision import from_classes
from fgfm.decision._factors import Cardinalities
from fgfm.decision._floors import warn_about_floors
from fgfm.decision._marginals import Marginals
from fgfm.decision._objective import Objective
from fgfm.decision._problem import decide_together

__all__ = ["Settings", "ThresholdRule", "Validation", "check_stored", "make_rule"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Chosen = npt.NDArray[np.int8]

_ROUNDING = 1e-12  # by which an expectation may be below a floor
_ALWAYS = frozenset({"n_jobs", "verbose"})
_OF_ROWS = _ALWAYS | {
    *("beta", "zero_division", "nonempty", "min_labels", "max_labels", "constraints"),
    *("min_precision", "min_recall"),
}


class Settings(NamedTuple):
    """Checked parameters of the decision, and the form of the labels."""

    average: str
    beta: float
    zero_division: float
    nonempty: bool
    least: int
    most: int | None
    constraints: Any
    floors: dict[str, float]  # "min_precision", "min_recall", as far as they are set
    confidence: float | None
    n_jobs: int | None
    form: str  # of y, as in `LabelTable`
    names: list[Any]  # of the labels
    missed: bool  # whether true items without a label were passed
    counted: Any  # positions of the classes that count for "micro", or None

    @property
    def one_problem(self) -> bool:
        """Whether all entries together have one F-measure."""
        return self.form == "flat" or (self.average == "micro" and self.form != "classes")

    @property
    def limited(self) -> bool:
        """Whether the number of labels of a row has limits."""
        return self.least != 0 or self.most is not None

    @property
    def measure(self) -> dict[str, Any]:
        """The F-measure, as arguments of `f_measure`."""
        average = "macro" if self.form == "flat" else self.average
        return {"beta": self.beta, "average": average, "zero_division": self.zero_division}

    def that_count(self, table: Any) -> Any:
        """Return the columns of the classes that count, which are all columns mostly."""
        return table if self.counted is None else table[:, self.counted]

    def check(self) -> None:
        """Raise unless the parameters can be combined, and some label set has the limits."""
        limited = self.limited or self.constraints is not None
        by_row = self.average == "samples" and self.form not in ("flat", "classes")
        if not by_row and (self.constraints is not None or (self.form == "flat" and limited)):
            reason = "y is flat" if self.form == "flat" else f"average is {self.average!r}"
            raise ValueError(
                f"{reason}: constraints are about the label set of a row, and need a matrix y and "
                "average='samples'"
            )
        if self.floors and (limited or self.form == "classes"):
            other = "min_labels, max_labels and constraints" if limited else "classes"
            raise ValueError(f"{' and '.join(self.floors)} cannot be combined with {other}")
        if self.missed:
            self._check_missed(limited and self.average != "samples")
        if self.form == "lists" and self.average in ("macro", "weighted"):
            raise ValueError(
                f"average is {self.average!r} and X and y are lists: the places of a list are no "
                "labels that have an F-measure; it must be 'samples' or 'micro'"
            )
        if limited:
            m = max(self.least, self.most or 0) if self.form == "lists" else len(self.names)
            self.objective().constraints(m)

    def _check_missed(self, limited: bool) -> None:
        """Raise if missed items cannot be combined with the other parameters."""
        others = {
            "a flat y of more than two classes": self.form == "classes",
            " and ".join(self.floors): bool(self.floors),
            "constraints": self.constraints is not None,
            f"min_labels and max_labels for average={self.average!r}": limited,
        }
        other = next((name for name, applies in others.items() if applies), None)
        if other is not None:
            raise ValueError(f"missed cannot be combined with {other}")
        if self.average in ("macro", "weighted") and self.form != "flat":
            raise ValueError(
                f"missed cannot be combined with average={self.average!r}: items that no label "
                "stands for belong to a row, not to a label"
            )

    def objective(self) -> Objective:
        """Return the objective of the decision."""
        return Objective.checked(
            *(self.beta, self.zero_division, self.nonempty, self.n_jobs),
            *(self.least, self.most, self.constraints, self.names),
            **self.floors,
        )


class Validation(NamedTuple):
    """The rows that a rule is fitted to, those that certify floors, and all true labels."""

    entries: Entries
    Y: Floats  # (n, K), the true labels at the entries
    weight: Floats
    labels: Any  # (n, m), dense or CSR
    used: Integers  # rows of positive weight
    apart: Integers  # rows that certify floors


class Rule:
    """A rule with the parameters of its decision, and what `fit` learned."""

    # What is learned; None if there is no such thing.
    thresholds: Any = None
    class_weights: Any = None
    certified: Any = None
    max_labels: int | None = None

    def __init__(self, model: Any, settings: Settings) -> None:
        self.model, self.settings = model, settings

    def with_settings(self, settings: Settings) -> Self:
        """Return this rule with other settings, and what it learned."""
        rule = copy(self)
        rule.settings = settings
        return rule

    @property
    def follows(self) -> frozenset[str]:
        """The parameters that may change after `fit`."""
        return _ALWAYS

    @property
    def threads(self) -> int:
        """The number of threads that decide."""
        return n_threads(self.settings.n_jobs)

    def read(self, entries: Entries) -> Entries:
        """Return the marginals of the model."""
        marginals: Entries = self.model.marginals(entries, self.threads)
        return marginals


class RowRule(Rule):
    """The label set of a row that maximises its expected F-measure, each row by itself."""

    certified_floors: Any = None  # on the expectation of each row

    @property
    def follows(self) -> frozenset[str]:
        """The parameters of a row, unless floors are certified for those of `fit`."""
        return _ALWAYS if self.settings.confidence is not None else _OF_ROWS

    def fit(self, validation: Validation) -> RowRule:
        """Certify the floors if `confidence` is set; there is nothing else to learn."""
        if self.settings.confidence is not None:
            self.certified_floors, self.certified = certify_rows(self, validation)
        return self

    def read(self, entries: Entries) -> Entries:
        """Return the entries, from which the model predicts label sets."""
        return entries

    def choose(self, entries: Entries) -> Chosen:
        """Return the entries (n, K) of the label set of each row, 0 or 1."""
        return self.decide(entries)[0]

    def predict(self, entries: Entries) -> tuple[Chosen, Floats]:
        """Return what `decide` does."""
        return self.decide(entries)

    def decide(self, entries: Entries) -> tuple[Chosen, Floats]:
        """Return the entries (n, K) of the label set of each row, and its expected F-measure."""
        certified = self.certified_floors
        return self.decide_with(entries, self.settings.floors if certified is None else certified)

    def decide_with(self, entries: Entries, floors: dict[str, float]) -> tuple[Chosen, Floats]:
        """Decide rows with some floors."""
        settings, model = self.settings, self.model
        check_stored(entries, settings)
        chosen = np.zeros(entries.p.shape, dtype=np.int8)
        expected_f = np.empty(len(chosen))
        options = settings.zero_division, settings.nonempty
        objective = KernelObjective(settings.beta**2, *options)
        limits = settings.least, entries.m if settings.most is None else settings.most
        missed = model.missed_items()

        def decide(rows: Any, p: Floats, d: Floats, least: int, most: int) -> None:
            labels, f = np.zeros(p.shape, dtype=np.int8), np.empty(len(p))
            arguments = (p, d, *model.exponents, *missed, objective, least, most)
            decide_reweighted_rows(*arguments, labels, f)
            chosen[rows], expected_f[rows] = labels, f

        def decide_block(rows: slice) -> None:
            p, d = model.predict(entries.take(rows))
            if settings.constraints is not None:
                P = of_marginals(tempered(p, *model.exponents), d, method="condition")
                problem = Cardinalities.read(P, d)
                objective = settings.objective()._replace(threads=1)
                chosen[rows], expected_f[rows] = problem.decide_rows(objective)
            elif not floors:
                decide(rows, p, d, *limits)
            else:
                pairs = np.stack(self._sizes(p, d, floors), axis=1)
                pairs[pairs[:, 0] > pairs[:, 1]] = 0  # no set has the floors: none
                for pair in np.unique(pairs, axis=0):
                    same = np.flatnonzero((pairs == pair).all(axis=1))
                    decide(rows.start + same, p[same], d[same], *pair.tolist())

        model.run_blocks(entries, self.threads, decide_block)
        return chosen, expected_f

    def _sizes(self, p: Floats, d: Floats, floors: dict[str, float]) -> tuple[Integers, Integers]:
        """Return the least and the largest size of the label set of each row that has the floors.

        p and d are those of `LabelSetModel.predict`. The k most probable labels have the largest
        expected precision, which falls with k, and recall, which rises. The least size is greater
        than the largest one if no set has the floors.
        """
        settings, exponents = self.settings, self.model.exponents
        n, K = p.shape
        least, most = np.zeros(n, dtype=np.int64), np.full(n, K)
        # Labels that are not stored are impossible, though d may have that many.
        p = np.pad(p, ((0, 0), (0, max(d.shape[1] - 1 - K, 0))))
        share = np.where(settings.nonempty & (d[:, :1] < 1.0), 1.0 - d[:, :1], 1.0)  # (n, 1)
        if "min_precision" in floors:
            hits = np.empty(p.shape)
            reweight_marginals(p, d, *exponents, hits)
            sizes = np.arange(1, p.shape[1] + 1)
            precision = np.cumsum(-np.sort(-hits, axis=1), axis=1) / sizes / share
            most = np.minimum((precision >= floors["min_precision"] - _ROUNDING).sum(axis=1), K)
        if "min_recall" in floors:
            P = of_marginals(tempered(p, *exponents), d, method="condition")  # (n, K, S)
            parts = -np.sort(-(P / np.arange(1, P.shape[2] + 1)).sum(axis=2), axis=1)
            recall = np.pad(np.cumsum(parts, axis=1), ((0, 0), (1, 0))) / share  # of 0 .. K labels
            recall += 0.0 if settings.nonempty else settings.zero_division * d[:, :1]
            least = (recall < floors["min_recall"] - _ROUNDING).sum(axis=1)
        return least, most


class ThresholdRule(Rule):
    r"""Thresholds on probabilities, for the F-measure of labels or of all entries.

    For large batches the best threshold tends to :math:`V / (1 + \beta^2)`, V the F-measure to
    expect. `decide` decides the rows of a batch together, exactly.
    """

    def fit(self, validation: Validation) -> ThresholdRule:
        """Find the thresholds with the largest F-measure of the model on the validation rows."""
        settings = self.settings
        p, weight = self.read(validation.entries.take(validation.used)), validation.weight
        weight = weight[validation.used]
        problems = p.as_one_label() if settings.one_problem else p
        measure, counts = (settings.beta, settings.zero_division), as_counts(weight)
        if settings.floors:
            cuts, short = best_cuts_with_floors(problems, weight, *measure, settings.floors)
            self._warn(short)
        elif settings.limited:
            cuts = self._cuts_with_limits(p.repeat(nearest_counts(weight)))
        else:
            if counts is None:
                cuts = best_cuts(problems, weight, *measure, self._rate() * weight.sum())
            else:
                f = np.atleast_1d(self.decide_batch(p.repeat(counts))[1])
                cuts = f / (1.0 + settings.beta**2)
            cuts = cut_between(problems, cuts)
        self.thresholds = float(cuts[0]) if settings.one_problem else cuts
        if settings.confidence is not None:
            self.thresholds, self.certified, self.max_labels = certify_thresholds(self, validation)
        return self

    def choose(self, p: Entries) -> Chosen:
        """Return the entries (n, K) above their threshold, up to the limits of a row."""
        check_stored(p, self.settings)
        gain = p.p - p.of_label(np.broadcast_to(self.thresholds, (p.m,)))
        if self.class_weights is not None:
            gain *= p.of_label(self.class_weights)
        if p.labels is not None:
            gain = np.where(p.labels < p.m, gain, -np.inf)
        least, most = self._limits()
        return best_entries(gain, least, p.m if most is None else most).astype(np.int8)

    def _limits(self) -> tuple[int, int | None]:
        """Return the least and the largest number of labels of a row."""
        most = self.settings.most if self.max_labels is None else self.max_labels
        return self.settings.least, most

    def predict(self, p: Entries) -> tuple[Chosen, Any]:
        """Return what `choose` does, and its F-measure in the limit of many rows like these."""
        chosen, settings = self.choose(p), self.settings
        problems = p.as_one_label() if settings.one_problem else p
        missed = self._rate() * len(chosen)
        f = large_batch_f(problems, chosen, settings.beta, settings.zero_division, missed)
        return chosen, float(f[0]) if settings.one_problem else f

    def decide(self, p: Entries) -> tuple[Chosen, Any]:
        """Decide a batch: the entries (n, K), and the F-measure of each problem."""
        return self.decide_batch(p) if self.certified is None else self.predict(p)

    def decide_batch(self, p: Entries) -> tuple[Chosen, Any]:
        """Decide a batch without certificates."""
        settings, missed = self.settings, self._rate()
        matrix, average = p.to_matrix(sparse.csr_array), settings.average
        flat = settings.form == "flat"
        if flat:
            matrix = matrix.toarray().ravel() if sparse.issparse(matrix) else matrix.ravel()
            average, missed = "macro", missed * len(p.p)  # of all rows, which are one problem
        objective = settings.objective()._replace(nonempty=False, threads=self.threads)
        problem = Marginals.read(matrix, missed=missed or None)
        labels, f = decide_together(problem, objective, average)
        if settings.floors:
            warn_about_floors(objective, average, flat=flat)
        return p.choose(labels).astype(np.int8), f[0] if flat else f

    def left_out_f(self, validation: Validation) -> tuple[Floats, Floats]:
        """Return F of labels as expected and as obtained, rows left out of the calibration."""
        used = validation.used
        entries, weight = validation.entries.take(used), validation.weight[used]
        counts = nearest_counts(weight)
        p = self.model.left_out_marginals(entries, validation.Y[used], weight)
        chosen, expected = self.decide_batch(p.repeat(counts))
        return expected, self._obtained(validation, counts, chosen)

    def _obtained(self, validation: Validation, counts: Integers, chosen: Chosen) -> Floats:
        """Return the F-measure of entries that are chosen in repeated rows."""
        used, settings = validation.used, self.settings
        truth = validation.entries.take(used)._replace(p=validation.Y[used]).repeat(counts)
        total = np.asarray(validation.labels[used].T @ counts).ravel()
        missed = total - truth.by_label(truth.p)
        return large_batch_f(truth, chosen, settings.beta, settings.zero_division, missed)

    def _rate(self) -> float:
        """Return the mean number of missed items of a row."""
        settings, missed = self.settings, self.model.missed
        if missed is None or not settings.one_problem or settings.floors or settings.limited:
            return 0.0
        return float(missed.rate)

    def _cuts_with_limits(self, p: Entries) -> Floats:
        """Return the thresholds of rows with limits, and set the weights of labels.

        One more row of probability p changes F = N / D of a label by ((1 + beta^2) p - F) / D.
        """
        settings = self.settings
        chosen, f = self.decide_batch(p)
        if settings.average != "micro":
            total = p.by_label(p.p)
            self._set_weights(total, settings.beta**2 * total + p.by_label(chosen))
        return np.atleast_1d(f) / (1.0 + settings.beta**2)

    def _set_weights(self, total: Floats, sizes: Floats) -> None:
        """Set the weights of labels from their expected numbers, and their D."""
        weights = (total if self.settings.average == "weighted" else 1.0) / np.maximum(sizes, 1.0)
        self.class_weights = weights / weights.max()

    def _warn(self, short: list[tuple[int, str, float]]) -> None:
        """Warn of problems without a threshold that has the floors."""
        if not short:
            return
        settings = self.settings
        label, name, largest = short[0]
        floors = " and ".join(f"{n}={value:g}" for n, value in settings.floors.items())
        reach = f"the largest expected {name} is {largest:.4g}"
        if settings.one_problem:
            text = f"no label is decided for, since no set satisfies {floors}: {reach}"
        else:
            text = (
                f"{len(short)} labels get the empty set, since no other one satisfies {floors}: "
                f"the first is label {settings.names[label]!r}, where {reach}"
            )
        warnings.warn(text, UserWarning, stacklevel=5)


class ClassRule(ThresholdRule):
    r"""One class for each row: macro and weighted F of classes, micro F of those that count.

    One more row of class probability :math:`p_c` changes :math:`F = N / D` of a class, or of those
    that count, by :math:`((1 + \beta^2) p_c - F) / D` if it is decided for c. So a row has the
    class with the largest weight times :math:`p_c` minus threshold. With "micro" the threshold of
    the background is 1 and its weight next to nothing: a row gets its most probable class that
    counts if this is above the threshold, and otherwise that of the background.
    """

    _BACKGROUND = 1e-12

    def _limits(self) -> tuple[int, int | None]:
        return 1, 1

    def with_settings(self, settings: Settings) -> Self:
        """Return this rule with other settings, for one class per row as before."""
        return super().with_settings(settings._replace(least=1, most=1))

    def fit(self, validation: Validation) -> ClassRule:
        """Find the thresholds and weights of the best decision for the validation rows."""
        settings = self.settings
        beta2, counted = settings.beta**2, settings.counted
        p = self.read(validation.entries.take(validation.used))
        counts = nearest_counts(validation.weight[validation.used])
        copies = p.repeat(counts)
        chosen, f = self.decide(copies)
        if counted is None:
            self.in_sample_f = f, self._obtained(validation, counts, chosen)
            total = copies.p.sum(axis=0)
            self._set_weights(total, beta2 * total + chosen.sum(axis=0))
            self.thresholds = f / (1.0 + beta2)
            return self
        best = Entries(p.p[:, counted].max(axis=1, keepdims=True), None, 1)
        self.thresholds, self.class_weights = np.ones(p.m), np.full(p.m, self._BACKGROUND)
        self.thresholds[counted] = cut_between(best, np.array([f / (1.0 + beta2)]))[0]
        self.class_weights[counted] = 1.0
        return self

    def predict(self, p: Entries) -> tuple[Chosen, Any]:
        """Return the class of each row, and F of each class, or of those that count."""
        chosen, settings = self.choose(p), self.settings
        measure = settings.beta, settings.zero_division
        if settings.counted is None:
            return chosen, large_batch_f(p, chosen, *measure)
        counted = Entries(p.p[:, settings.counted], None, len(settings.counted)).as_one_label()
        return chosen, float(large_batch_f(counted, chosen[:, settings.counted], *measure)[0])

    def decide(self, p: Entries) -> tuple[Chosen, Any]:
        """Decide the classes of a batch: entries (n, C), and F of each class or of all."""
        settings = self.settings
        labels, f = from_classes(
            p.p,
            average=settings.average,
            labels=settings.counted,
            beta=settings.beta,
            zero_division=settings.zero_division,
            n_jobs=settings.n_jobs,
        )
        return (labels[:, None] == np.arange(p.m)).astype(np.int8), f


def make_rule(model: Any, settings: Settings) -> Any:
    """Return the rule of an average and a form of y, to be fitted."""
    if settings.form == "classes":
        return ClassRule(model, settings)
    if settings.form != "flat" and settings.average == "samples":
        return RowRule(model, settings)
    return ThresholdRule(model, settings)


def check_stored(entries: Entries, settings: Settings) -> None:
    """Raise if sparse rows store too few labels for the limits, or the rule needs all."""
    if entries.labels is None:
        return
    if settings.constraints is not None:
        raise ValueError(
            "constraints is given and X is sparse: constraints need a dense X, since the labels "
            "that are not stored take no part in a decision"
        )
    stored = (entries.labels < entries.m).sum(axis=1)
    if (stored < settings.least).any():
        row = int(np.argmax(stored < settings.least))
        raise ValueError(
            f"min_labels is {settings.least} and row {row} of X has {stored[row]} stored labels: "
            "it must have as many"
        )
