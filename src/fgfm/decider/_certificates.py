"""Certify floors on precision and recall by rows kept apart (docs/design.md, "Certified floors").

The candidates are thresholds, or floors on the expectation of each row. They are made from one
half of the validation rows, and tested on the other half.

References
----------
Angelopoulos, A. N., Bates, S., Candes, E. J., Jordan, M. I. and Lei, L. (2025). Learn then test:
Calibrating predictive algorithms to achieve risk control. Annals of Applied Statistics 19(2).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import bdtrc

from fgfm._utils.label_table import LabelTable
from fgfm.decider._entries import Entries, best_entries
from fgfm.decider._large_batches import CLOSE
from fgfm.metrics import mean_lower_bound

__all__ = ["certify_rows", "certify_thresholds", "rows_apart"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]
Halves = tuple[Integers, Integers]  # numbers of the rows of the fit, and of those kept apart

_CANDIDATES = 48  # thresholds at most, on either side of the best one in expectation
_STEPS = 16  # candidates of rows, between a floor and 1
_STAKES = 32


def rows_apart(confidence: float, weight: Floats, table: LabelTable) -> Integers:
    """Return the numbers of the rows that certify floors: half of them."""
    other = weight[(weight != 0.0) & (weight != 1.0)]
    if table.observed is not None or len(other):
        missing = "y has labels that are missing"
        found = missing if table.observed is not None else f"sample_weight has a {other[0]:g}"
        raise ValueError(
            f"confidence is {confidence} and {found}: floors are certified by rows that are drawn "
            "independently, each with all labels and a weight of 0 or 1"
        )
    used = np.random.default_rng(0).permutation(np.flatnonzero(weight))  # whatever the rows are
    return np.sort(used[: len(used) // 2])


def certify_rows(rule: Any, validation: Any) -> tuple[dict[str, float], bool]:
    """Return floors on the expectation of each row, for which the floors of a rule hold.

    What is certified is the mean precision or recall of rows.
    """
    confidence, floors = rule.settings.confidence, _positive(rule.settings.floors)
    halves = validation.used, validation.apart

    def draws(rows: Integers, part: float) -> list[Draws]:
        entries, truth = validation.entries.take(rows), validation.labels[rows]
        chosen, _ = rule.decide_with(entries, _raised(floors, part))
        hits = (chosen * entries.choose(truth)).sum(axis=1)
        n_true = np.asarray(truth.sum(axis=1)).ravel()
        sizes = {"min_precision": chosen.sum(axis=1), "min_recall": n_true}
        shares = [(hits / np.maximum(k, 1))[k > 0] for k in (sizes[name] for name in floors)]
        return [Draws(x, False, float(x.mean()) if len(x) else 0.0) for x in shares]

    path = [1.0 - step / _STEPS for step in range(1, _STEPS + 1)]
    samples: list[Any] = [partial(draws, rows) for rows in halves]
    certificate = _certify(path, 0.0, samples, list(floors.values()), 1.0 - confidence)
    _warn(confidence, floors, {"": certificate}, halves)
    return _raised(floors, certificate.candidate), certificate.certified


def certify_thresholds(rule: Any, validation: Any) -> tuple[Any, Any, int | None]:
    """Return thresholds near those of a fitted rule, for which its floors hold.

    Also return for which they are certified, and the largest number of labels of a row, or None.
    Of several labels, each has its share of the error (Bonferroni).
    """
    settings = rule.settings
    floors = _positive(settings.floors)
    halves = validation.used, validation.apart
    fitting, apart = (
        list(_problems(rule, validation.entries.take(rows), validation.labels[rows]))
        for rows in halves
    )
    best = np.atleast_1d(rule.thresholds).astype(np.float64)
    # A label that is not predicted needs no certificate, and has none.
    tested = [j for j, rows in enumerate(fitting) if (rows.q > best[j]).any()]
    alpha = (1.0 - settings.confidence) / max(len(tested), 1)
    certificates = {
        j: _certify_threshold(fitting[j], apart[j], best[j], floors, alpha) for j in tested
    }
    certified = np.zeros(len(best), dtype=np.bool_)
    for j, certificate in certificates.items():
        best[j], certified[j] = certificate.candidate, certificate.certified
    names = [""] if settings.one_problem else settings.names
    named = {names[j]: certificate for j, certificate in certificates.items()}
    _warn(settings.confidence, floors, named, halves)
    if not settings.one_problem:
        return best, certified, None
    bounded = settings.form != "flat" and tested and "min_precision" in floors
    most = certificates[0].most if bounded else None
    return float(best[0]), bool(certified[0]), most


def _positive(floors: dict[str, float]) -> dict[str, float]:
    """Return the floors that ask for something."""
    return {name: value for name, value in floors.items() if value > 0.0}


class Draws(NamedTuple):
    """Independent values in [0, 1] whose expectation is at least a floor if the floor holds."""

    values: Floats
    binary: bool  # values are 0 or 1, whatever the rows
    reached: float  # precision or recall of these rows


class ProblemRows(NamedTuple):
    """Rows of one problem: the entries of one label (K = 1), or those of all labels."""

    q: Floats  # (n, K) probabilities
    truth: Labels  # (n, K)
    n_true: Integers  # (n,) numbers of true labels, which may include some that are no entries
    m: int = 1  # number of labels

    def draws(self, threshold: float, most: int, floors: dict[str, float]) -> list[Draws]:
        r"""Return the draws of each floor if rows get up to `most` labels above a threshold.

        With TP hits among k predictions of a row, :math:`E[TP] / E[k] \ge f` if and only if
        :math:`f + (TP - f k) / c` has a mean of at least f over the rows with k > 0, where c is
        the largest k. For recall, k is the number of true labels.
        """
        chosen = best_entries(self.q - threshold, 0, most)
        hits = (chosen & self.truth).sum(axis=1)
        found = []
        for name, f in floors.items():
            k, c = chosen.sum(axis=1), most
            if name == "min_recall":
                k, c = self.n_true, self.m
            values = (f + (hits - f * k) / c)[k > 0]
            found.append(Draws(values, c == 1, float(hits.sum() / max(k.sum(), 1))))
        return found


def _candidates(q: Floats, best: float, floors: dict[str, float], alpha: float) -> list[float]:
    """Return thresholds for probabilities q, which include `best`, the safest one first.

    With a floor on precision there are higher thresholds than `best`, with one on recall lower
    ones.
    """
    values = -np.sort(-q[q > 0.0])
    n, k = len(values), int((values > best).sum())
    counts = [k]
    floor = floors.get("min_precision", 1.0)
    if floor < 1.0:
        fewest = min(k, math.ceil(math.log(alpha) / math.log(floor)))  # that can pass a test
        counts += np.geomspace(fewest, k, _CANDIDATES).astype(int).tolist()
    if "min_recall" in floors:
        counts += np.geomspace(k, n, _CANDIDATES).astype(int).tolist()
    # No threshold is among equal probabilities, whose rows it could not tell apart.
    ends = 1 + np.flatnonzero(np.append(values[1:] < (1.0 - CLOSE) * values[:-1], True))
    counts = ends[np.searchsorted(ends, counts)].tolist()
    middle = 0.5 * (values + np.append(values[1:], 0.0))
    candidates = sorted(set(counts), reverse="min_precision" not in floors)
    return [
        best if i == counts[0] else 0.0 if i == n else float(middle[i - 1]) for i in candidates
    ]


class Certificate(NamedTuple):
    """The candidate that is chosen, and what is known of it."""

    candidate: float
    certified: bool
    reached: list[float]  # precision or recall of the rows kept apart, for each floor
    missing: float  # how many times as many rows would do; infinite if more rows do not help
    most: int = 0  # labels of a row


def _certify(
    path: list[float],
    best: float,
    draws: list[Callable[[float], list[Draws]]],
    floors: list[float],
    alpha: float,
) -> Certificate:
    """Find the candidate nearest to the best one at which the floors hold, with an error of alpha.

    The path and the draws of the fitting rows, which the candidates were made from, decide where
    tests start: at the candidate with the strongest evidence. They go on towards the best one, and
    end with the first that fails. The order does not depend on the rows kept apart, so that there
    is no correction for the number of tests (fixed sequence testing), and none for two floors,
    since a candidate has to pass both tests.
    """
    fitting, apart = draws
    growth = [_growth(fitting(candidate), floors) for candidate in path]
    start, end = int(np.argmax(growth)), path.index(best)
    chosen = None
    for candidate in path[start : end + 1] if start <= end else path[end : start + 1][::-1]:
        found = apart(candidate)
        if not all(_exceeds(x, f, alpha) for x, f in zip(found, floors, strict=True)):
            break
        chosen = candidate
    candidate = path[start] if chosen is None else chosen
    found = apart(candidate)
    grown = 0.5 * (_growth(fitting(candidate), floors) + _growth(found, floors))
    missing = max(1.0, math.log(1.0 / alpha) / grown) if grown > 0.0 else math.inf
    return Certificate(candidate, chosen is not None, [x.reached for x in found], missing)


def _certify_threshold(
    fitting: ProblemRows, apart: ProblemRows, best: float, floors: dict[str, float], alpha: float
) -> Certificate:
    """Certify a threshold, for up to a number of labels of a row.

    A floor on precision bounds this number by that of the fitting rows, since the number of rows
    that a certificate needs is proportional to it.
    """
    path = _candidates(fitting.q, best, floors, alpha)
    most = fitting.q.shape[1]
    if "min_precision" in floors:
        most = max(1, int((fitting.q > min(path)).sum(axis=1).max()))
    samples: list[Any] = [
        partial(rows.draws, most=most, floors=floors) for rows in (fitting, apart)
    ]
    return _certify(path, best, samples, list(floors.values()), alpha)._replace(most=most)


def _problems(rule: Any, entries: Entries, labels: Any) -> Iterator[ProblemRows]:
    """Yield the rows of each problem whose floors are certified by themselves."""
    q = rule.read(entries)
    if rule.settings.one_problem:
        n_true = np.asarray(labels.sum(axis=1)).ravel()
        yield ProblemRows(q.p, q.choose(labels) > 0.0, n_true, q.m)
        return
    if q.labels is None:
        for j in range(q.m):
            truth = labels[:, [j]]
            truth = (truth.toarray() if sparse.issparse(truth) else truth) > 0
            yield ProblemRows(q.p[:, [j]], truth, truth[:, 0].astype(np.int64))
        return
    # Rows without an entry and without the label count neither as predictions nor as true ones.
    stored, true = q.to_matrix(sparse.coo_array), sparse.coo_array(labels)
    where = [np.append(a, b) for a, b in zip(stored.coords, true.coords, strict=True)]
    n_entries, n_labels = len(stored.data), len(true.data)
    p, truth = (
        sparse.csc_array((np.append(a, b), where), shape=labels.shape)  # with the same entries
        for a, b in [
            (stored.data, np.zeros(n_labels)),
            (np.zeros(n_entries, np.int64), np.ones(n_labels, np.int64)),
        ]
    )
    for start, end in pairwise(p.indptr):
        is_true = truth.data[start:end]
        yield ProblemRows(p.data[start:end, None], is_true[:, None] > 0, is_true)


def _raised(floors: dict[str, float], part: float) -> dict[str, float]:
    """Return floors that are raised by a part of their distance to 1."""
    return {name: value + part * (1.0 - value) for name, value in floors.items()}


def _exceeds(x: Draws, floor: float, alpha: float) -> bool:
    """Test, at level alpha, whether the expectation of draws is greater than a floor."""
    n = len(x.values)
    if x.binary:  # the exact test; P(Binomial(n, floor) >= hits)
        hits = round(float(x.values.sum()))
        return hits > 0 and bool(bdtrc(hits - 1, n, floor) <= alpha)
    return n > 0 and mean_lower_bound(x.values, 1.0 - alpha) > floor


def _growth(found: list[Draws], floors: list[float]) -> float:
    """Return the evidence for the floors: the least logarithm of the wealth of the best fixed bet.

    For values 0 and 1 this is n times the relative entropy, the exponent of the binomial tail. A
    test of level alpha needs about log(1 / alpha). Where the mean is below the floor, it is their
    difference, which is negative.
    """
    evidence = []
    for x, floor in zip(found, floors, strict=True):
        values, counts = np.unique(x.values, return_counts=True)
        stakes = np.arange(_STAKES) / (_STAKES * max(floor, 1e-6))
        growth = float((counts @ np.log1p(np.outer(values - floor, stakes))).max())
        mean = float(x.values.mean()) if len(x.values) else 0.0
        evidence.append(growth or min(mean - floor, 0.0))
    return min(evidence)


def _warn(
    confidence: float, floors: dict[str, float], found: dict[Any, Certificate], halves: Halves
) -> None:
    """Warn about floors that are not certified, of labels that `found` names."""
    failed = [name for name, certificate in found.items() if not certificate.certified]
    if not failed:
        return
    first = found[failed[0]]
    given = " and ".join(f"{name}={value:g}" for name, value in floors.items())
    reached = " and ".join(f"{value:.3g}" for value in first.reached)
    where = f" for {len(failed)} of {len(found)} labels, the first is {failed[0]}"
    needed = "more rows like these would not certify it"
    given_rows = sum(map(len, halves))
    if first.missing == 1.0:
        needed = f"a few more validation rows than these {given_rows:,} may certify it"
    elif math.isfinite(first.missing):
        rows = round(first.missing * given_rows)
        needed = f"about {rows:,} validation rows like these would certify it"
    warnings.warn(
        f"{given} is not certified with confidence={confidence:g}{'' if failed == [''] else where}"
        f": on the {len(halves[1]):,} rows kept apart it is {reached}; {needed}",
        UserWarning,
        stacklevel=5,
    )
