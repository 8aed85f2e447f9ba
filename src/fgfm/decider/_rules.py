"""The rules that decide: rows one by one, thresholds on entries, or one class per row.

A rule has ``fit(validation)``, ``choose(entries)``, the labels of `predict`, and
``decide(entries)``, labels with their expected F-measure. `follows` names the parameters that may
change after `fit`.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import decide_reweighted_rows
from fgfm.cardinality import of_marginals
from fgfm.decider._certificates import Certified, certify_rows, certify_thresholds
from fgfm.decider._entries import Entries
from fgfm.decider._exponents import tempered
from fgfm.decider._floors import best_entries, row_sizes
from fgfm.decider._large_batches import (
    as_counts,
    best_cuts,
    best_cuts_with_floors,
    cut_between,
    large_batch_f,
    nearest_counts,
)
from fgfm.decision import Constraints, Decision, from_cardinalities, from_classes, from_marginals
from fgfm.decision._objective import Objective

__all__ = ["ClassRule", "RowRule", "Settings", "ThresholdRule", "Validation", "make_rule"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Chosen = npt.NDArray[np.int8]


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
    threads: int
    form: str  # of y, as in `LabelTable`
    names: list[Any]  # of the labels
    missed: bool  # whether true items without a label were passed
    counted: Any  # positions of the classes that count for "micro", or None

    @property
    def one_problem(self) -> bool:
        """Whether all entries together have one F-measure."""
        return self.form == "flat" or (self.average == "micro" and self.form != "classes")

    @property
    def limits(self) -> dict[str, Any]:
        """The limits of a label set as `fgfm.decision` takes them."""
        return {"min_labels": self.least, "max_labels": self.most}

    def check(self) -> None:
        """Raise unless the parameters can be combined, and some label set has the limits."""
        limited = self.least != 0 or self.most is not None or self.constraints is not None
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
            self.objective(m).constraints(m)

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

    def objective(self, m: int) -> Objective:
        """Return the objective of rows with m labels."""
        constraints = self.constraints
        if isinstance(constraints, Constraints):
            constraints = constraints.numbered(m, self.names)
        return Objective.checked(
            *(self.beta, self.zero_division, self.nonempty, 1),
            **self.limits,
            constraints=constraints,
        )


class Validation(NamedTuple):
    """The rows that a rule is fitted to, those that certify floors, and all true labels."""

    entries: Entries
    weight: Floats
    labels: Any  # (n, m), dense or CSR
    used: Integers  # rows of positive weight
    apart: Integers  # rows that certify floors


class Rule:
    """A rule with the parameters of its decision, and what `fit` learned."""

    follows = frozenset({"n_jobs", "verbose"})
    # What is learned; None if there is no such thing.
    thresholds: Any = None
    weights: Any = None
    certified: Any = None
    most: int | None = None

    def __init__(self, model: Any, settings: Settings) -> None:
        self.model, self.settings = model, settings

    def learned(self) -> dict[str, Any]:
        """Return what `fit` learned, for `restored`."""
        names = ("thresholds", "weights", "certified", "most")
        return {name: getattr(self, name) for name in names}

    def restored(self, learned: dict[str, Any]) -> Self:
        """Return this rule with what another one learned."""
        vars(self).update(learned)
        return self


class RowRule(Rule):
    """The label set of a row that maximises its expected F-measure, each row by itself."""

    _OF_ROWS = frozenset(
        {
            *("beta", "zero_division", "nonempty", "min_labels", "max_labels", "constraints"),
            *("min_precision", "min_recall"),
        }
    )

    def __init__(self, model: Any, settings: Settings) -> None:
        super().__init__(model, settings)
        self.floors = settings.floors
        if settings.confidence is None:
            self.follows = Rule.follows | self._OF_ROWS

    def learned(self) -> dict[str, Any]:
        """Return what `fit` learned: the floors of a certificate."""
        certificate = {"floors": self.floors} if self.settings.confidence is not None else {}
        return super().learned() | certificate

    def fit(self, validation: Validation) -> RowRule:
        """Certify the floors if `confidence` is set; there is nothing else to learn."""
        if self.settings.confidence is not None:
            self.floors, self.certified = certify_rows(self, validation)
        return self

    def choose(self, entries: Entries) -> Chosen:
        """Return the entries (n, K) of the label set of each row, 0 or 1."""
        return self.decide(entries)[0]

    def decide(self, entries: Entries) -> tuple[Chosen, Floats]:
        """Return the entries (n, K) of the label set of each row, and its expected F-measure."""
        return self.decide_with(entries, self.floors)

    def decide_with(self, entries: Entries, floors: dict[str, float]) -> tuple[Chosen, Floats]:
        """Decide rows with some floors."""
        settings, model = self.settings, self.model
        check_stored(entries, settings)
        chosen = np.zeros(entries.p.shape, dtype=np.int8)
        expected_f = np.empty(len(chosen))
        objective = settings.objective(entries.m)
        most = entries.m if settings.most is None else settings.most
        missed = model.missed_items()

        def decide(rows: Any, p: Floats, d: Floats, least: int, most: int) -> None:
            labels, f = np.zeros(p.shape, dtype=np.int8), np.empty(len(p))
            arguments = (p, d, *model.exponents, *missed, objective.kernel_argument, least, most)
            decide_reweighted_rows(*arguments, labels, f)
            chosen[rows], expected_f[rows] = labels, f

        def decide_block(rows: slice) -> None:
            p, d = model.predict(entries.take(rows))
            if settings.constraints is not None:
                chosen[rows], expected_f[rows] = self._constrained(p, d)
            elif not floors:
                decide(rows, p, d, settings.least, most)
            else:
                options = floors, settings.zero_division, settings.nonempty
                pairs = np.stack(row_sizes(p, d, model.exponents, *options), axis=1)
                pairs[pairs[:, 0] > pairs[:, 1]] = 0  # no set has the floors: none
                for pair in np.unique(pairs, axis=0):
                    same = np.flatnonzero((pairs == pair).all(axis=1))
                    decide(rows.start + same, p[same], d[same], *pair.tolist())

        model.run_blocks(entries, settings.threads, decide_block)
        return chosen, expected_f

    def _constrained(self, p: Floats, d: Floats) -> Any:
        """Decide rows whose label sets have constraints."""
        settings = self.settings
        P = of_marginals(tempered(p, *self.model.exponents), d, method="condition")
        constraints = settings.constraints
        if isinstance(constraints, Constraints):
            constraints = constraints.numbered(p.shape[1], settings.names)
        return from_cardinalities(
            P,
            distribution=d,
            beta=settings.beta,
            zero_division=settings.zero_division,
            nonempty=settings.nonempty,
            constraints=constraints,
            n_jobs=1,
            **settings.limits,
        )


class ThresholdRule(Rule):
    r"""Thresholds on probabilities, for the F-measure of labels or of all entries.

    For large batches the best threshold tends to :math:`V / (1 + \beta^2)`, V the F-measure to
    expect. `decide` decides the rows of a batch together, exactly.
    """

    def fit(self, validation: Validation) -> ThresholdRule:
        """Find the thresholds with the largest F-measure of the model on the validation rows."""
        settings = self.settings
        entries, weight = validation.entries.take(validation.used), validation.weight
        marginals, weight = self._marginals(entries), weight[validation.used]
        problems = marginals.as_one_label() if settings.one_problem else marginals
        if settings.floors:
            cuts, short = best_cuts_with_floors(
                problems, weight, settings.beta, settings.zero_division, settings.floors
            )
            self._warn(short)
        elif settings.least or settings.most is not None:
            cuts = self._cuts_with_limits(marginals, nearest_counts(weight))
        else:
            counts = as_counts(weight)
            if counts is None:
                measure = settings.beta, settings.zero_division
                cuts = best_cuts(problems, weight, *measure, self._rate() * weight.sum())
            else:
                copies = marginals.take(np.repeat(np.arange(len(counts)), counts))
                f = np.atleast_1d(self.decide_marginals(copies)[1])
                cuts = f / (1.0 + settings.beta**2)
            cuts = cut_between(problems, cuts)
        self.thresholds = float(cuts[0]) if settings.one_problem else cuts
        if settings.confidence is not None:
            self._certify(validation)
        return self

    def choose(self, entries: Entries) -> Chosen:
        """Return the entries (n, K) above their threshold, up to the limits of a row."""
        return self.choose_marginals(self._marginals(entries))

    def choose_marginals(self, p: Entries) -> Chosen:
        """Return the entries (n, K) that marginals of the model are chosen at."""
        settings = self.settings
        check_stored(p, settings)
        most = self.most if self.most is not None else settings.most
        gain = p.p - p.of_label(np.broadcast_to(self.thresholds, (p.m,)))
        if self.weights is not None:
            gain *= p.of_label(self.weights)
        if p.labels is not None:
            gain = np.where(p.labels < p.m, gain, -np.inf)
        return best_entries(gain, settings.least, p.m if most is None else most).astype(np.int8)

    def decide(self, entries: Entries) -> tuple[Any, Any]:
        """Decide a batch: the entries (n, K), and the F-measure of each problem."""
        p = self._marginals(entries)
        if self.certified is None:
            return self.decide_marginals(p)
        chosen = self.choose_marginals(p)
        return chosen, self.expected_f(p, chosen)

    def expected_f(self, p: Entries, chosen: Chosen) -> Any:
        """Return the F-measure of chosen entries in the limit of many rows like these."""
        settings = self.settings
        p = p.as_one_label() if settings.one_problem else p
        missed = self._rate() * len(chosen)
        f = large_batch_f(p, chosen, settings.beta, settings.zero_division, missed)
        return float(f[0]) if settings.one_problem else f

    def _rate(self) -> float:
        """Return the mean number of missed items of a row."""
        settings, missed = self.settings, self.model.missed
        limited = settings.floors or settings.least or settings.most is not None
        if missed is None or not settings.one_problem or limited:
            return 0.0
        return float(missed.rate)

    def _marginals(self, entries: Entries) -> Any:
        return self.model.marginals(entries, self.settings.threads)

    def decide_marginals(self, p: Entries) -> tuple[Chosen, Any]:
        """Decide rows with marginals p together: the entries (n, K) and the F-measures."""
        settings = self.settings
        matrix, missed = p.to_matrix(sparse.csr_array), self._rate()
        if settings.form == "flat":
            missed *= len(p.p)  # of all rows, which are one problem
            matrix = matrix.toarray().ravel() if sparse.issparse(matrix) else matrix.ravel()
        decision = from_marginals(
            matrix,
            average=settings.average if settings.form != "flat" else "macro",
            beta=settings.beta,
            zero_division=settings.zero_division,
            missed=missed or None,
            n_jobs=settings.threads,
            **settings.limits,
            **dict[str, Any](settings.floors),
        )
        labels = decision.labels
        if settings.form == "flat":
            labels = labels[:, None]
        return p.choose(labels).astype(np.int8), decision.expected_f

    def _cuts_with_limits(self, p: Entries, counts: Integers) -> Floats:
        """Return the thresholds of repeated rows with limits, and set the weights of labels.

        One more row of probability p changes F = N / D of a label by ((1 + beta^2) p - F) / D.
        """
        settings = self.settings
        p = p.take(np.repeat(np.arange(len(counts)), counts))
        chosen, f = self.decide_marginals(p)
        if settings.average != "micro":
            total = p.by_label(p.p)
            size = settings.beta**2 * total + p.by_label(chosen)
            weights = (total if settings.average == "weighted" else 1.0) / np.maximum(size, 1.0)
            self.weights = weights / weights.max()
        return np.atleast_1d(f) / (1.0 + settings.beta**2)

    def _certify(self, validation: Validation) -> None:
        """Move the thresholds until the rows kept apart show that the floors hold."""
        result: Certified = certify_thresholds(self, validation)
        self.thresholds, self.certified, self.most = result

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


class ClassRule(Rule):
    r"""One class for each row: macro and weighted F of classes, micro F of those that count.

    One more row of class probability :math:`p_c` changes :math:`F = N / D` of a class, or of those
    that count, by :math:`((1 + \beta^2) p_c - F) / D` if it is decided for c. So a row has the
    class with the largest weight times :math:`p_c` minus threshold. With "micro" the threshold of
    the background is 1 and its weight next to nothing: a row gets its most probable class that
    counts if this is above the threshold, and otherwise that of the background.
    """

    _BACKGROUND = 1e-12

    def fit(self, validation: Validation) -> ClassRule:
        """Find the thresholds and weights of the best decision for the validation rows."""
        settings = self.settings
        beta2, counted = settings.beta**2, settings.counted
        entries = self.model.marginals(validation.entries.take(validation.used), 1)
        counts = nearest_counts(validation.weight[validation.used])
        p = np.repeat(entries.p, counts, axis=0)
        labels, f = self.in_sample = self._decide(p)
        if counted is not None:
            best = Entries(entries.p[:, counted].max(axis=1, keepdims=True), None, 1)
            self.thresholds, self.weights = (
                np.ones(entries.m),
                np.full(entries.m, self._BACKGROUND),
            )
            self.thresholds[counted] = cut_between(best, np.array([f / (1.0 + beta2)]))[0]
            self.weights[counted] = 1.0
            return self
        mean = p.sum(axis=0)
        sizes = beta2 * mean + np.bincount(labels, minlength=p.shape[1])  # D
        weights = (mean if settings.average == "weighted" else 1.0) / np.maximum(sizes, 1.0)
        self.thresholds, self.weights = f / (1.0 + beta2), weights / weights.max()
        return self

    def choose(self, entries: Entries) -> Chosen:
        """Return the class of each row as entries (n, C), 0 or 1."""
        return self.choose_marginals(self.model.marginals(entries, 1))

    def choose_marginals(self, p: Entries) -> Chosen:
        """Return the class of rows with probabilities p of the model."""
        return best_entries(self.weights * (p.p - self.thresholds), 1, 1).astype(np.int8)

    def expected_f(self, p: Entries, chosen: Chosen) -> Any:
        """Return the F-measure of each class, or of those that count, for many rows like these."""
        settings = self.settings
        if settings.counted is None:
            return large_batch_f(p, chosen, settings.beta, settings.zero_division)
        part = Entries(p.p[:, settings.counted], None, len(settings.counted)).as_one_label()
        chosen = chosen[:, settings.counted]
        return float(large_batch_f(part, chosen, settings.beta, settings.zero_division)[0])

    def decide(self, entries: Entries) -> tuple[Chosen, Any]:
        """Decide the classes of a batch: entries (n, C), and F of each class or of all."""
        labels, f = self._decide(self.model.marginals(entries, 1).p)
        return (labels[:, None] == np.arange(entries.m)).astype(np.int8), f

    def _decide(self, p: Floats) -> Decision:
        settings = self.settings
        return from_classes(
            p,
            average=settings.average,
            labels=settings.counted,
            beta=settings.beta,
            zero_division=settings.zero_division,
            n_jobs=settings.threads,
        )


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
