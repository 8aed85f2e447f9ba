"""Decisions as graphs of array operations without loops, all rows at once.

Arrays are transposed, (labels, rows), so that partial sums over labels are sums of rows.

The set of k labels with the largest odds w_i has the expected F-measure

    V_k = (1 + beta^2) sum_s d_s A_k(s) / (beta^2 s + k),
    A_k(s) = sum_{i <= k} p(y_i = 1 | s),

as in ``reweighted.hpp``. With e_s the sum of the products of the odds of s labels, and
R_s = e_s / e_{s-1}, which falls with s, the probability P_s of a label given s labels satisfies

    P_s = w / R_s (1 - P_{s-1}),      P_0 = 0.

Upwards this is stable while w <= R_s, and downwards, from P_S, while w > R_s. The latter have
P_s > 1/2 for some s: they are among the 2 S labels of the largest odds. With pre_a and suf_b the
e_a of the labels before and the e_b of those behind a label, in falling order of odds,

    P_S = w sum_{a + b = S - 1} pre_a suf_b / e_S,

positive terms only. In units of the products of the largest odds, pre_a and e_s are at least 1, as
far as they are not 0, and at most the number of subsets. suf_b is in units of the product of
the odds of ranks S - b + 1 to S.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fgfm._graph import Graph, Value
from fgfm._utils.validation import resolve_nonempty
from fgfm.decision._quadrature import nodes

__all__ = ["TIE", "of_decider", "of_marginals", "source_of"]

TIE = {"float32": 2e-6, "float64": 1e-12}  # as for arrays of PyTorch: docs/large.md
_MARGIN = 1e-12  # distance that probabilities keep from 0 and 1
_CERTAIN = tuple(float(np.log(q / (1.0 - q))) for q in (_MARGIN, 1.0 - _MARGIN))  # their logits
_SURE = 1e-9  # the same of the probability of some label: `fgfm.decider._label_set_model`
_HUGE = 1e100  # bound of standardised scores: `fgfm.decider._quantiles`
_TINY = 1e-30  # 1 - x u where x is 1 and zeta underflows; its weight is negligible there


def source_of(logits: bool) -> str:
    """Return the name of the input."""
    return "logits" if logits else "proba"


def of_marginals(
    m: int, dtype: str, *, beta: float, zero_division: float, nonempty: bool, logits: bool
) -> Graph:
    """Return the graph of the decision from m independent marginals.

    With the labels in order of falling probability x, zeta = z^(beta^2) and u = 1 - zeta, the
    value of the k first is

        V_k = sum_r W_kr D_r A_kr,              W_kr = (1 + beta^2) w_r z_r^k zeta_r,
        D_r = prod_i (1 - x_i u_r),             A_kr = sum_{i <= k} x_i / (1 - x_i u_r).
    """
    graph = Graph(dtype)
    given = Value(graph, source_of(logits))
    given = (given.sigmoid() if logits else given.clip(0.0, 1.0)).transpose()  # (m, n)
    x, order = given.largest(m)
    log_z, weight = nodes(beta, m, m)  # (R,)
    zeta = np.exp(beta**2 * log_z)
    k = np.arange(1, m + 1)
    W = np.exp(k[:, None] * log_z) * ((1.0 + beta**2) * weight * zeta)  # (m, R)
    rest = 1.0 - x
    own = (rest.expand(1) + x.expand(1) * zeta[:, None]).at_least(_TINY)  # (m, R, n)
    V = ((x.expand(1) / own).cumsum() * own.prod() * W[:, :, None]).sum(1).squeeze(1)  # (m, n)
    if nonempty:  # p(|y| > 0) = sum_i x_i prod_{j < i} (1 - x_j): right where all x are tiny
        present = (x * rest.log().cumsum(exclusive=True).exp()).sum()
        labels, expected_f = _best(graph, V, m, None, present)
    else:
        labels, expected_f = _best(graph, V, m, rest.prod() * zero_division, None)
    graph.outputs = {"labels": labels.put(order, labels).transpose(), "expected_f": expected_f}
    return graph


def of_decider(decider: Any, dtype: str) -> Graph:
    """Return the graph of a fitted FDecider; its real outputs have a given type."""
    if not hasattr(decider, "_rule"):
        raise ValueError(f"decider is {decider!r}: it must be fitted")
    if decider._label_form == "lists":
        raise ValueError(
            "decider was fitted to lists, which cannot be exported: the rows of a graph have the "
            "same labels"
        )
    if decider.constraints is not None:
        raise ValueError(
            "decider has constraints, which cannot be exported: only min_labels and max_labels can"
        )
    if not hasattr(decider, "n_features_in_"):
        raise ValueError("decider was fitted to lists of arrays: it cannot be exported")
    decider._fitted_rule()  # which refuses parameters that changed since fit
    by_row = decider.multilabel_ and decider.average == "samples"
    # What only rows, or only batches, can have
    other = ["min_precision", "min_recall"] if by_row else ["max_labels", "max_labels_"]
    if any(getattr(decider, name, None) is not None for name in other) or (
        decider.min_labels and not by_row
    ):
        found = "floors of each row" if by_row else "limits on the number of labels of a row"
        raise ValueError(
            f"decider has {found} with average={decider.average!r}, which cannot be exported"
        )
    graph = Graph("float64")
    given = Value(graph, source_of(decider.scores)).cast("float64").transpose()  # (m, n)
    model, m = decider._rule.model, decider.n_features_in_
    flat = not decider.multilabel_
    if flat and len(decider.classes_) > 2:
        labels, other_output = _classes(decider, given)
        graph.outputs = {"labels": labels, "calibrated": other_output.transpose().cast(dtype)}
        return graph
    if flat:  # one column, or those of both classes
        given = given.row(-1 if decider._classes[-1] == decider.classes_[-1] else 0)
    given = given if decider.scores else given.clip(0.0, 1.0)
    logit = _calibrated(model.calibrator, given)
    if by_row:
        labels, expected_f = _decide_rows(graph, decider, logit)
        graph.outputs = {"labels": labels.transpose(), "expected_f": expected_f.cast(dtype)}
        return graph
    p = _marginals(graph, model, logit, m)
    labels = (p > np.atleast_1d(decider.thresholds_)[:, None]).cast("int8")
    labels, p = ((x.squeeze(0) if flat else x.transpose()) for x in (labels, p))
    graph.outputs = {"labels": labels, "calibrated": p.cast(dtype)}
    return graph


# Calibrators: the logits of the calibrated probabilities, (m, n). They are told apart by name,
# since their module imports scikit-learn. Formulas are those of `fgfm.decider._calibration`.


def _calibrated(calibrator: Any, given: Value) -> Value:
    """Return calibrated logits of probabilities or scores (m, n)."""
    return _CALIBRATIONS[type(calibrator).__name__](calibrator, given)


def _column(parameters: Any) -> Any:
    """Return parameters of labels, (m, 1)."""
    return np.asarray(parameters, dtype=np.float64)[:, None]


def _shrunk(calibrator: Any, p: Value) -> Value:
    p = p.clip(*calibrator.edges_)
    present, absent = p.log(), (1.0 - p).log()
    x = present - absent - calibrator.center_
    eta = x * _column(calibrator.slopes_) + (present + absent) * calibrator.bend_
    names = ("slope_variances_", "covariances_", "shift_variances_")
    a, b, c = (_column(np.pi / 8.0 * getattr(calibrator, name)) for name in names)
    inflation: Value = (x * a + 2.0 * b) * x + (1.0 + c)
    mean: Value = eta + _column(calibrator.shifts_)
    return mean / inflation.sqrt()


def _scores(calibrator: Any, given: Value) -> Value:
    maps = calibrator.quantiles_
    x = (given - _column(maps.centers_)) * _column(maps.rates_)
    return _shrunk(calibrator, _interpolated(x, maps.knots_, maps.levels_))


def _isotonic(calibrator: Any, given: Value) -> Value:
    # A label without a regressor keeps its probabilities.
    identity = np.array([0.0, 1.0])
    curves = [
        (identity, identity) if r is None else (r.X_thresholds_, r.y_thresholds_)
        for r in calibrator.regressors_
    ]
    width = 1 << max(len(knots) for knots, _ in curves).bit_length()
    knots = [np.pad(x, (0, width - len(x)), constant_values=np.inf) for x, _ in curves]
    levels = [np.pad(q, (0, width - len(q)), mode="edge") for _, q in curves]
    q = _interpolated(given, np.stack(knots), np.stack(levels))
    return _logit(q.clip(calibrator.margin_, 1.0 - calibrator.margin_))


def _interpolated(x: Value, knots: Any, levels: Any) -> Value:
    """Return x (m, n) mapped by tables (1 or m, W), as `fgfm.decider._quantiles` does.

    The knot below x is found by bisection, of all entries at once.
    """
    count, width = knots.shape
    last = knots[:, 1:] == np.inf
    gaps = np.where(last, 1.0, knots[:, 1:]) - np.where(last, 0.0, knots[:, :-1])
    rises = np.pad(np.where(last, 0.0, np.diff(levels)) / gaps, ((0, 0), (0, 1)))
    x = x.at_least(knots[:, :1]).at_most(_HUGE)
    at, step = x.graph.constant(width * np.arange(count)[:, None]), width // 2
    while step:
        higher = at + step
        at = x.graph.where(x >= higher.look_up(knots.ravel()), higher, at)
        step //= 2
    knot, rise, level = (at.look_up(table.ravel()) for table in (knots, rises, levels))
    return (x - knot) * rise + level


def _unchanged(calibrator: Any, p: Value) -> Value:
    return _logit(p.clip(_MARGIN, 1.0 - _MARGIN))


def _logit(p: Value) -> Value:
    return (p / (1.0 - p)).log()


_CALIBRATIONS = {
    "IsotonicCalibrator": _isotonic,
    "NoCalibrator": _unchanged,
    "ScoreCalibrator": _scores,
    "ShrunkCalibrator": _shrunk,
}


# The rules


def _classes(decider: Any, given: Value) -> tuple[Value, Value]:
    """Return the classes, (n,), and their probabilities, (m, n): `ClassModel`, `ClassRule`."""
    model = decider._rule.model
    pool = model.calibrator
    if type(pool).__name__ == "LogLinearPool":
        if model.of_classes is None:
            readings = [given.clip(0.0, 1.0).at_least(model.least)]
        else:
            odds = _calibrated(model.of_classes, given)
            readings = [(given * model.rate).softmax(), odds.softmax()]
        weighted = [
            p.at_least(pool.floor).log() * float(weight)
            for p, weight in zip(readings, pool.weights_, strict=True)
        ]
        p = (_total(weighted) + _column(pool.shifts_)).softmax()
    else:
        q = _calibrated(pool, given if decider.scores else given.clip(0.0, 1.0)).sigmoid()
        p = q / q.sum()
    gain = (p - _column(decider.thresholds_)) * _column(decider.class_weights_)
    return gain.argmax().squeeze(0), p


def _decide_rows(graph: Graph, decider: Any, logit: Value) -> tuple[Value, Value]:
    """Return the label set of each row, int8 (m, n), and its expected F-measure, (n,)."""
    m, beta2 = decider.n_features_in_, float(decider.beta) ** 2
    sets = _label_sets(graph, decider._rule.model, logit, m, m)
    k = np.arange(1, m + 1)[:, None]
    missed, given = decider._rule.model.missed_items()
    if not len(missed):
        missed, given = np.zeros(1), np.ones((len(sets.d), 1))
    none_missed = float(given[0, 0]) if missed[0] == 0.0 else 0.0
    terms = []
    for s, (d, first, forward) in enumerate(sets.by_number(), 1):
        P = graph.stack([first, forward.rows(sets.kept, m)]) if sets.kept < m else first
        share = (given[s] / (beta2 * (s + missed) + k)).sum(axis=1)[:, None, None]
        terms.append(P.cumsum() * (d.expand(1) * ((1.0 + beta2) * share)))  # (m, 1, n)
    V = _total(terms).squeeze(1)
    most = m if decider.max_labels is None else decider.max_labels
    if decider.min_labels > 0 or most < m:
        V = graph.where(graph.constant((decider.min_labels <= k) & (k <= most)), V, -1.0)
    if resolve_nonempty(decider.nonempty, decider.nonempty_):
        present = _total(sets.d[1:])
        if none_missed < 1.0:
            present = present + sets.d[0] * (1.0 - none_missed)
        labels, expected_f = _best(graph, V, m, None, present)
    else:
        # With min_labels every set that is allowed has a larger value.
        of_empty = 0.0 if decider.min_labels > 0 else float(decider.zero_division)
        empty = sets.d[0] * (of_empty * none_missed)
        labels, expected_f = _best(graph, V, m, empty, None)
    return labels.put(sets.order, labels), expected_f


def _marginals(graph: Graph, model: Any, logit: Value, m: int) -> Value:
    """Return the probability of each label under the model, (m, n)."""
    if m == 1:
        return logit.sigmoid()
    kept = min(m, 2 * _most(model))
    sets = _label_sets(graph, model, logit, m, kept)
    given = graph.stack(sets.d[1:]).expand(0)  # (1, S, n)
    p = (sets.first * given).sum(axis=1).squeeze(1)
    rest = p
    if kept < m:
        terms = [d.expand(1) * forward for d, _, forward in sets.by_number()]
        rest = _total(terms).rows(kept, kept + m).squeeze(1)
    return rest.put(sets.order, p).at_most(1.0)


def _best(
    graph: Graph, V: Value, m: int, empty: Value | None, present: Value | None
) -> tuple[Value, Value]:
    """Return the k first labels with the largest V_k, int8 (m, n), and that value, (n,).

    The smallest k wins ties. The set of no label has the value `empty`. If that is None, values
    are divided by `present`, p(|y| > 0), and are NaN where all are 0.
    """
    tie = TIE[graph.dtype]
    peak = V.max()
    # A difference, since the optimiser of ONNX Runtime replaces the factor 1 - 1e-12 by 1.
    best = peak - peak * tie <= V
    at = best.cast("int32").argmax()  # (1, n)
    value = V.take(at)
    if empty is None:
        wins = peak > 0.0
        expected_f = graph.where(wins, value / present, np.nan)
    else:
        wins = peak > empty + empty * tie
        expected_f = graph.where(wins, value, empty)
    labels = (graph.constant(np.arange(m)[:, None]) <= at) & wins
    return labels.cast("int8"), expected_f.squeeze(0)


# The label sets of a row, as above


class _LabelSets(NamedTuple):
    """The label sets of rows under a `LabelSetModel`.

    Odds are in falling order, (L, n). Where only the first are needed in order, these are
    followed by all labels in theirs, with odds of 0 where they are among the first.
    """

    order: Value  # the labels of the largest odds
    kept: int  # number of labels whose P_s is computed in both directions
    d: list[Value]  # probabilities of 0 to S labels, (1, n) each
    first: Value  # P_1 to P_S of these labels, (kept, S, n)
    forward: list[Value]  # those of all others behind them, (L, 1, n) each

    def by_number(self) -> Iterable[tuple[Value, Value, Value]]:
        """Return d_s and P_s for s from 1."""
        first = self.first.split(len(self.forward), axis=1)
        return zip(self.d[1:], first, self.forward, strict=True)


def _most(model: Any) -> int:
    """Return S, the largest number of labels."""
    return max(1, int(model.cardinalities[-1]))


def _label_sets(graph: Graph, model: Any, logit: Value, m: int, count: int) -> _LabelSets:
    """Return the label sets of rows with calibrated logits (m, n), the first `count` in order."""
    S = 1 if m == 1 else _most(model)
    kept = min(count, 2 * S)
    t, u = (float(exponent) for exponent in model.exponents)
    odds = logit.exp()
    absent = -(1.0 + odds).log()  # log(1 - q)
    tempered = logit.clip(*_CERTAIN) * t + absent * (t - u)
    largest, order = tempered.largest(count)
    w, plain = largest.exp(), odds.take(order)
    if count < m:
        none = largest * 0.0
        w = graph.stack([w, tempered.exp().put(order, none)])
        plain = graph.stack([plain, odds.put(order, none)])
    w, plain = w.expand(1), plain.expand(1)  # (L, 1, n)
    units, totals, products = _sums(w, plain, S, kept)
    unit_w, unit_plain = units.split(2, axis=1)  # (S + 1, 1, n)
    total_w, total_plain = totals.split(2, axis=1)
    first, forward = _given_number(w, unit_w, total_w, products, S, kept)
    if m == 1:
        return _LabelSets(order, kept, [absent.exp(), logit.sigmoid()], first, forward)
    # of independent labels
    log_pi = (total_plain.log() + unit_plain.log().cumsum()).squeeze(1) + absent.sum()
    top = plain.rows(0, 1).squeeze(1)
    d = _numbers(graph, model, log_pi, top / (1.0 + top))
    return _LabelSets(order, kept, d.split(S + 1), first, forward)


def _sums(w: Value, plain: Value, S: int, kept: int) -> tuple[Value, Value, Value]:
    """Return e_0 to e_S of tempered and of plain odds, (S + 1, 2, n), in units of products.

    The first result are the factors of these units, the odds of ranks 1 to S; the last are the
    parts of e_s in which labels are the last ones, of the first `kept` labels and tempered odds,
    (kept, S, n).
    """
    graph = w.graph
    odds = graph.stack([w, plain], axis=1)  # (L, 2, n)
    largest = odds.rows(0, S)
    one = odds.rows(0, 1) * 0.0 + 1.0
    totals, products, before = [one], [], None
    for inverse in (1.0 / largest).split(S):
        part = odds * inverse
        part = part if before is None else part * before
        totals.append(part.sum())
        products.append(part.first(kept, 1))
        before = part.cumsum(exclusive=True)
    return graph.stack([one, largest]), graph.stack(totals), graph.stack(products, axis=1)


def _given_number(
    w: Value, units: Value, totals: Value, products: Value, S: int, kept: int
) -> tuple[Value, list[Value]]:
    """Return P_1 to P_S of the first `kept` labels, and those of the recursion upwards of all."""
    graph, top = w.graph, w.rows(0, kept)
    steps = totals.rows(0, S) / (totals.rows(1, S + 1) * units.rows(1, S + 1))  # 1 / R_s
    ratios = [w * step for step in steps.split(S)]
    forward = [ratios[0]]
    for ratio in ratios[1:]:
        forward.append(ratio * (1.0 - forward[-1]))
    inverse = (1.0 / units).split(S + 1)
    behind, last = [top * 0.0 + 1.0], None  # suf_0 to suf_{S - 1} of the first labels
    for b in range(1, S):
        part = (w * inverse[S - b + 1]).at_most(1.0)
        last = (part if last is None else part * last).cumsum(exclusive=True, reverse=True)
        behind.append(last.rows(0, kept))
    P = (products * graph.stack(behind[::-1], axis=1)).sum(axis=1) / totals.rows(S, S + 1)
    of_top = top * steps.transpose(3)  # (kept, S, n)
    downwards = [P]
    for ratio in of_top.split(S, axis=1)[:0:-1]:
        downwards.append(1.0 - downwards[-1] / ratio)
    upwards = graph.stack([P.rows(0, kept) for P in forward], axis=1)
    return graph.where(of_top > 1.0, graph.stack(downwards[::-1], axis=1), upwards), forward


def _numbers(graph: Graph, model: Any, log_pi: Value, top: Value) -> Value:
    """Return the distribution of the number of labels, (S + 1, n): `LabelSetModel.predict`.

    `log_pi` (S + 1, n) is that of independent labels, `top` the largest probability of a label.
    Impossible numbers get a shift of minus infinity.
    """
    pool = model.pool
    shifts = np.full(_most(model) + 1, -np.inf)
    shifts[model.cardinalities] = pool.shifts_
    eta = log_pi.at_least(float(np.log(pool.floor))) * float(pool.weights_[0]) + shifts[:, None]
    if model.cardinalities[0] == 0:
        none = log_pi.rows(0, 1).exp()
        for weight, some in zip(pool.weights_[1:].tolist(), (1.0 - none, top), strict=True):
            some = some.clip(_SURE, 1.0 - _SURE)
            of_some, of_none = some.log() * weight, (1.0 - some).log() * weight
            is_none = np.arange(len(shifts))[:, None] == 0
            eta = eta + graph.where(graph.constant(is_none), of_none, of_some)
    return eta.softmax()


def _total(terms: list[Value]) -> Value:
    """Return the sum of values."""
    return functools.reduce(operator.add, terms)
