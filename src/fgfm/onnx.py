"""Decisions as ONNX models, which run where Python does not.

Exporting needs the package onnx (``pip install fgfm[onnx]``); running the model needs any runtime
of ONNX, and not fgfm.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from fgfm._utils.optional import import_optional
from fgfm._utils.validation import (
    check_beta,
    check_choice,
    check_count,
    check_flag,
    check_zero_division,
    resolve_nonempty,
)
from fgfm.decision._quadrature import nodes

__all__ = ["export_decision"]

_LEAST_OPSET = 18  # reductions take their axes as an input
_TIE = {"float32": 2e-6, "float64": 1e-12}  # as for arrays of PyTorch: docs/gpu.md
_CERTAIN = 1e-12  # distance that probabilities keep from 0 and 1
_POOL_FLOOR = 1e-9  # of `LogLinearPool`
_OWN = {"beta": 1.0, "zero_division": 1.0, "nonempty": False, "logits": False}  # of a decider
_TYPES = {"float32": ("float", 1), "float64": ("double", 11)}  # names and numbers in ONNX

# Formulas and rules for ties are those of `fgfm._kernels.marginals`. With the labels in
# order of falling probability x, zeta = z^(beta^2) and u = 1 - zeta, the value of the k first is
#
#     V_k = sum_r W_kr D_r A_kr,              W_kr = (1 + beta^2) w_r z_r^k zeta_r,
#     D_r = prod_i (1 - x_i u_r),             A_kr = sum_{i <= k} x_i / (1 - x_i u_r).
_VALUES = """
    given = Clip (marginals, zero, one)
    x, order = TopK <axis = 1> (given, all_labels)
    rest = Sub (one, x)
    x_r = Unsqueeze (x, last_axis)
    rest_r = Unsqueeze (rest, last_axis)
    part = Mul (x_r, zeta)
    sum = Add (rest_r, part)
    own = Max (sum, tiny)
    D = ReduceProd <keepdims = 1> (own, label_axis)
    share = Div (x_r, own)
    A = CumSum (share, label)
    AD = Mul (A, D)
    terms = Mul (AD, W)
    V = ReduceSum <keepdims = 0> (terms, last_axis)
"""
# The peak is lowered by a difference: the optimiser of ONNX Runtime removes the factor 1 - 1e-12
# as if it were 1.
_BEST = """
    peak = ReduceMax <keepdims = 1> (V, label_axis)
    slack = Mul (peak, tie)
    level = Sub (peak, slack)
    tied = GreaterOrEqual (V, level)
    tied_number = Cast <to = 6> (tied)
    at = ArgMax <axis = 1, keepdims = 1> (tied_number)
    value = GatherElements <axis = 1> (V, at)
"""
_NONE = "none = ReduceProd <keepdims = 1> (rest, label_axis)"  # p(|y| = 0)
# The empty set wins its ties. `empty_value` is the value of 0/0.
_WITH_EMPTY = """
    empty = Mul (none, empty_value)
    empty_slack = Mul (empty, tie)
    empty_level = Add (empty, empty_slack)
    wins = Greater (peak, empty_level)
    expected = Where (wins, value, empty)
"""
# p(|y| > 0) = sum_i x_i prod_{j < i} (1 - x_j), without cancellation where all x are tiny.
_PRESENT = """
    log_rest = Log (rest)
    log_before = CumSum <exclusive = 1> (log_rest, label)
    before = Exp (log_before)
    first = Mul (x, before)
    present = ReduceSum <keepdims = 1> (first, label_axis)
"""
_NONEMPTY = """
    wins = Greater (peak, zero)
    conditional = Div (value, present)
    expected = Where (wins, conditional, undefined)
"""
# `order` is a permutation, so that every entry of the scattered array is overwritten.
_LABELS = """
    inside = LessOrEqual (sizes, at)
    taken = And (inside, wins)
    chosen = Cast <to = 3> (taken)
    labels = ScatterElements <axis = 1> (chosen, order, chosen)
    of_row = Squeeze (expected, label_axis)
    expected_f = Cast <to = {to_real}> (of_row)
"""

# An FDecider, in double precision. Outputs of loops are transposed: ONNX Runtime 1.31 divides by
# zero where `scan_output_axes` is 1 and there are no rows.
#
# The calibrators are those of `fgfm.decider._calibration`.
_SHRUNK = """
    p = Clip (given, least_given, most_given)
    log_p = Log (p)
    absent_p = Sub (one, p)
    log_absent = Log (absent_p)
    logit = Sub (log_p, log_absent)
    x = Sub (logit, center)
    v = Add (log_p, log_absent)
    sloped = Mul (x, slopes)
    shifted = Add (sloped, shifts)
    bent = Mul (v, bend)
    eta = Add (shifted, bent)
    variance_2 = Mul (x, slope_variances)
    variance_1 = Add (variance_2, double_covariances)
    variance_x = Mul (variance_1, x)
    variance = Add (variance_x, shift_variances)
    variance_part = Mul (variance, pi_8)
    inflation = Add (variance_part, one)
    deviation = Sqrt (inflation)
    mean = Div (eta, deviation)
    q = Sigmoid (mean)
"""
# Linear interpolation; `knots`, `levels` and `rises` have one row per label, padded with infinity.
_ISOTONIC = """
    p = Max (given, first_knots)
    columns_q = Scan <num_scan_inputs = 4, scan_input_axes = [1, 0, 0, 0],
        body = interpolate (double[N] p_i, double[K] x_i, double[K] y_i, double[K] rise_i)
            => (double[N] q_i) {
        p_column = Unsqueeze (p_i, label_axis)
        reached = GreaterOrEqual (p_column, x_i)
        reached_number = Cast <to = 7> (reached)
        count = ReduceSum <keepdims = 0> (reached_number, label_axis)
        at_knot = Sub (count, label)
        knot = Gather (x_i, at_knot)
        level_i = Gather (y_i, at_knot)
        rise = Gather (rise_i, at_knot)
        beyond = Sub (p_i, knot)
        risen = Mul (beyond, rise)
        q_i = Add (risen, level_i)
    }> (p, knots, levels, rises)
    regressed = Transpose <perm = [1, 0]> (columns_q)
    q = Clip (regressed, margin, most)
"""
_UNCHANGED = "q = Clip (given, margin, most)"
_CALIBRATIONS = {
    "IsotonicCalibrator": _ISOTONIC,
    "NoCalibrator": _UNCHANGED,
    "ShrunkCalibrator": _SHRUNK,
}
_ONE_LABEL = """
    not_q = Sub (one, q)
    d = Concat <axis = 1> (not_q, q)
"""
# The distribution d of the number of labels: `LabelSetModel.predict` of `fgfm.decider`.
# Numbers that no validation row has get a shift of minus infinity.
_NUMBERS = """
    rows = Shape <end = 1> (q)
    width_numbers = Concat <axis = 0> (rows, numbers)
    no_label = Expand (unit, width_numbers)
    independent = Scan <num_scan_inputs = 1, scan_input_axes = [1],
        body = add_label (double[N, S] pi, double[N] q_i) => (double[N, S] more) {
        q_column = Unsqueeze (q_i, label_axis)
        c_column = Sub (one, q_column)
        without = Mul (pi, c_column)
        fewer = Pad (pi, to_right)
        with = Mul (fewer, q_column)
        more = Add (without, with)
    }> (no_label, q)
    pi_raised = Max (independent, floor)
    log_pi = Log (pi_raised)
    pooled = Mul (log_pi, pool_weight)
    eta_numbers = Add (pooled, pool_shifts)
"""
_NUMBERS_ALL_PRESENT = "d = Softmax <axis = 1> (eta_numbers)"
_NUMBERS_WITH_NONE = """
    pi_none = Gather <axis = 1> (independent, first_number)
    pi_some = Sub (one, pi_none)
    top = ReduceMax <keepdims = 1> (q, label_axis)
    some = Concat <axis = 1> (pi_some, top)
    no = Sub (one, some)
    some_raised = Max (some, floor)
    no_raised = Max (no, floor)
    log_some = Log (some_raised)
    log_no = Log (no_raised)
    of_some = MatMul (log_some, some_weights)
    of_no = MatMul (log_no, some_weights)
    of_number = Where (is_none, of_no, of_some)
    eta_all = Add (eta_numbers, of_number)
    d = Softmax <axis = 1> (eta_all)
"""
# The odds of `_kernels/reweighted.hpp`, times a common factor, which cancels.
_ODDS = """
    sure = Clip (q, certain, most_certain)
    log_sure = Log (sure)
    not_sure = Sub (one, sure)
    log_not_sure = Log (not_sure)
    log_odds_present = Mul (log_sure, exponent_present)
    log_odds_absent = Mul (log_not_sure, exponent_absent)
    log_odds = Sub (log_odds_present, log_odds_absent)
"""
_SORTED = "l, order = TopK <axis = 1> (log_odds, all_labels)"
_UNSORTED = "l = Identity (log_odds)"
# With e_s of the labels after i and R(s) = e_s / e_{s-1}, label i is one of the s labels that are
# left with probability r_i(s) = w_i / (R(s) + w_i), and with it
#
#     R(s)  <-  (R(s) + w_i) (1 - r_i(s - 1)):
#
# positive terms, and none too large or too small. D(s) is the weight of s labels being left before
# label i: the sum of D(s) r_i(s) is its marginal probability if D starts with d_s, and its part of
# V_k if D starts with d_s zeta_r^(s - 1) for each node r.
_INCLUDED = """
    l_most = ReduceMax <keepdims = 1> (l, label_axis)
    l_least = ReduceMin <keepdims = 1> (l, label_axis)
    l_sum = Add (l_most, l_least)
    middle = Mul (l_sum, half)
    l_centred = Sub (l, middle)
    w = Exp (l_centred)
    d_some = Slice (d, label_axis, numbers, label_axis)
    R_start = Mul (d_some, zero)
    R_end, r = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
        scan_output_directions = [1],
        body = ratios (double[N, S] R, double[N] w_i) => (double[N, S] R_next, double[N, S] r_i) {
        w_column = Unsqueeze (w_i, label_axis)
        R_sum = Add (R, w_column)
        r_i = Div (w_column, R_sum)
        not_r = Div (R, R_sum)
        not_before = Pad (not_r, to_right, one)
        R_next = Mul (not_before, R_sum)
    }> (R_start, w)
    d_node = Unsqueeze (d_some, label_axis)
    D_start = Mul (d_node, powers)
    D_end, columns_included = Scan <num_scan_inputs = 1,
        body = leave (double[N, Z, S] D, double[N, S] r_i)
            => (double[N, Z, S] D_next, double[N, Z] included_i) {
        r_node = Unsqueeze (r_i, label_axis)
        taken_now = Mul (D, r_node)
        included_i = ReduceSum <keepdims = 0> (taken_now, last_axis)
        left = Sub (D, taken_now)
        fewer_left = Pad (taken_now, to_left)
        D_next = Add (left, fewer_left)
    }> (D_start, r)
    included = Transpose <perm = [1, 0, 2]> (columns_included)
"""
_VALUES_INCLUDED = """
    A = CumSum (included, label)
    terms = Mul (A, W)
    V_any = ReduceSum <keepdims = 0> (terms, last_axis)
    V = Where (allowed, V_any, minus_one)
    none = Gather <axis = 1> (d, first_number)
    present = ReduceSum <keepdims = 1> (d_some, label_axis)
"""
_MARGINALS_INCLUDED = """
    included_rows = Squeeze (included, last_axis)
    marginals = Min (included_rows, one)
"""
_ABOVE = """
    above = Greater (marginals, thresholds)
    chosen = Cast <to = 3> (above)
    calibrated_rows = Cast <to = {to_real}> (marginals)
"""
_MATRIX = "labels = Identity (chosen) calibrated = Identity (calibrated_rows)"
_FLAT = """
    labels = Squeeze (chosen, label_axis)
    calibrated = Squeeze (calibrated_rows, label_axis)
"""
# Classes: `fgfm.decider._class_model.ClassModel`, and the rule of `class_weights_`.
_POOLED = """
    raised = Max (given, least_given)
    log_raised = Log (raised)
    sloped = Mul (log_raised, pool_weight)
    eta = Add (sloped, pool_shifts)
    marginals = Softmax <axis = 1> (eta)
"""
_NORMALISED = """
    total = ReduceSum <keepdims = 1> (q, label_axis)
    marginals = Div (q, total)
"""
_LARGEST = """
    beyond_threshold = Sub (marginals, thresholds)
    class_value = Mul (beyond_threshold, class_weights)
    labels = ArgMax <axis = 1, keepdims = 0> (class_value)
    calibrated = Cast <to = {to_real}> (marginals)
"""


def export_decision(
    decider: Any,
    /,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    logits: bool = False,
    dtype: str = "float32",
    opset: int = _LEAST_OPSET,
) -> Any:
    r"""Return a decision as an ONNX model.

    Of a fitted `FDecider` the model calibrates probabilities and decides each row as ``predict``
    does. Without one it maximises :math:`E[F_\beta(y, h)]` over all label sets h, assuming labels
    independent given the row, as `fgfm.decision.from_marginals` does.

    Parameters
    ----------
    decider : FDecider, FClassifier or int
        A fitted decider, or the number of labels m for the decision from marginals. Of an
        `FClassifier` the model takes the probabilities of ``estimator_``.
    beta : float, default=1.0
        Recall is considered `beta` times as important as precision. This and the next three are
        for a number of labels only: a decider has its own.
    zero_division : float, default=1.0
        The value of 0/0, an empty decision where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Condition on the true set not being empty. A row in which no label is possible gets the
        empty set and an expectation of NaN.
    logits : bool, default=False
        Whether the input holds logits, of which the probabilities are the sigmoid.
    dtype : {"float32", "float64"}, default="float32"
        The type of the input and of the other outputs than ``labels``, and, from a number of
        labels, of the arithmetic. A decider computes in float64.
    opset : int, default=18
        The version of ONNX's operator set, 18 or more.

    Returns
    -------
    onnx.ModelProto
        A model with the input ``proba``, or ``logits``, of shape (rows, m), and the outputs
        ``labels``, int8 of shape (rows, m), and ``expected_f``, of shape (rows,). A decider of the
        average "macro" or "micro" has the output ``calibrated``, of shape (rows, m), instead of
        ``expected_f``. One of a flat y takes one column or, of probabilities, the two of
        ``predict_proba``; its outputs have shape (rows,), with label 1 for ``classes_[1]``. With
        more than two classes ``labels`` are indices of ``classes_``, int64 of shape (rows,), and
        ``calibrated`` has shape (rows, m).

    Raises
    ------
    ValueError
        If a parameter is invalid, or the decider is not fitted or has `constraints`.

    See Also
    --------
    fgfm.decision.from_marginals : The same decision in Python.
    fgfm.torch.FDecision : The decision as a layer of a PyTorch network.

    Notes
    -----
    The labels of a decider are those of ``predict``, and so are those of
    `fgfm.decision.from_marginals` in float64. From a number of labels in float32, set sizes whose
    values differ by less than a relative 2e-6 count as equal, so that another of the best sets may
    be chosen. A graph cannot raise errors: probabilities are clipped to [0, 1], and a row
    with NaN has an expectation of NaN.

    From a number of labels, time and memory are proportional to it; of a decider they are
    proportional to it times the largest number of labels of a validation row.

    ``onnx.compose.merge_models`` joins it to the model that predicts the probabilities; both need
    the same `opset` and ``ir_version``.

    Examples
    --------
    >>> import fgfm
    >>> model = fgfm.onnx.export_decision(3)
    >>> [output.name for output in model.graph.output]
    ['labels', 'expected_f']
    >>> import onnxruntime
    >>> session = onnxruntime.InferenceSession(model.SerializeToString())
    >>> proba = np.array([[0.8, 0.45, 0.4], [0.1, 0.2, 0.05]], dtype=np.float32)
    >>> labels, expected_f = session.run(None, {"proba": proba})
    >>> labels
    array([[1, 1, 1],
           [0, 0, 0]], dtype=int8)
    >>> expected_f.round(4)
    array([0.6674, 0.684 ], dtype=float32)
    """
    settings: dict[str, Any] = {
        "beta": check_beta(beta),
        "zero_division": check_zero_division(zero_division),
        "nonempty": check_flag(nonempty, "nonempty"),
        "logits": check_flag(logits, "logits"),
    }
    check_choice(dtype, "dtype", tuple(_TIE))
    opset = check_count(opset, "opset", _LEAST_OPSET)
    if hasattr(decider, "average"):
        given = [f"{name}={value}" for name, value in settings.items() if value != _OWN[name]]
        if given:
            raise ValueError(
                f"{given[0]} is given with a decider, which has its own: leave it out"
            )
        graph, constants = _of_decider(vars(decider).get("decider_", decider))
    else:
        graph, constants = _of_marginals(check_count(decider, "decider", 1), dtype, **settings)
    real, number = _TYPES[dtype]
    return _model(
        graph.replace("{real}", real).replace("{to_real}", str(number)), constants, opset
    )


def _of_marginals(
    m: int, dtype: str, beta: float, zero_division: float, nonempty: bool, logits: bool
) -> tuple[str, dict[str, Any]]:
    """Return the graph and the constants of the decision from m marginals."""
    source = "logits" if logits else "proba"
    body = [
        f"marginals = {'Sigmoid' if logits else 'Identity'} ({source})",
        *(_VALUES, _BEST),
        *((_PRESENT, _NONEMPTY) if nonempty else (_NONE, _WITH_EMPTY)),
        _LABELS,
    ]
    graph = (
        f"fgfm_decision ({{real}}[rows, {m}] {source})"
        f" => (int8[rows, {m}] labels, {{real}}[rows] expected_f) {{ {' '.join(body)} }}"
    )
    reals = _reals(m, beta, zero_division, _TIE[dtype])
    return graph, _integers(m) | {
        name: np.asarray(value, dtype=dtype) for name, value in reals.items()
    }


def _of_decider(decider: Any) -> tuple[str, dict[str, Any]]:
    """Return the graph and the constants of a fitted FDecider.

    Calibrators are told apart by name, since their module imports scikit-learn.
    """
    if not hasattr(decider, "_learned"):
        raise ValueError(f"decider is {decider!r}: it must be fitted")
    if decider.constraints is not None:
        raise ValueError(
            "decider has constraints, which cannot be exported: only min_labels and max_labels can"
        )
    if not decider.multilabel_ and len(decider.classes_) > 2:
        return _of_classes(decider)
    by_row = decider.multilabel_ and decider.average == "samples"
    decider._fitted_rule()  # which refuses parameters that changed since fit
    # What only rows, or only batches, can have
    other = ["min_precision", "min_recall"] if by_row else ["max_labels", "max_labels_"]
    if any(getattr(decider, name, None) is not None for name in other) or (
        decider.min_labels and not by_row
    ):
        found = "floors of each row" if by_row else "limits on the number of labels of a row"
        raise ValueError(
            f"decider has {found} with average={decider.average!r}, which cannot be exported"
        )
    return _decider_graph(decider, by_row), _decider_constants(decider, by_row)


def _decider_graph(decider: Any, by_row: bool) -> str:
    """Return the graph of an FDecider, which decides by expected F, or by thresholds."""
    model, m = decider._model, decider.n_features_in_
    source, to_proba = ("logits", "Sigmoid") if decider.logits else ("proba", "Identity")
    columns, shape = str(m), f"rows, {m}"
    if not decider.multilabel_:
        columns, shape = "1" if decider.logits else "classes", "rows"
    body = [
        f"columns = Gather <axis = 1> ({source}, taken_columns) raw = Cast <to = 11> (columns)"
        f" any = {to_proba} (raw) given = Clip (any, zero, one)",
        _CALIBRATIONS[type(model.calibrator).__name__],
    ]
    if m == 1:
        body.append(_ONE_LABEL)
    else:
        body.append(_NUMBERS)
        body.append(_NUMBERS_ALL_PRESENT if model.cardinalities[0] > 0 else _NUMBERS_WITH_NONE)
    body += [_ODDS, _SORTED if by_row else _UNSORTED, _INCLUDED]
    if by_row:
        other = "{real}[rows] expected_f"
        nonempty = resolve_nonempty(decider.nonempty, decider.nonempty_)
        body += [_VALUES_INCLUDED, _BEST, _NONEMPTY if nonempty else _WITH_EMPTY, _LABELS]
    else:
        other = f"{{real}}[{shape}] calibrated"
        body += [_MARGINALS_INCLUDED, _ABOVE, _MATRIX if decider.multilabel_ else _FLAT]
    return (
        f"fgfm_decider ({{real}}[rows, {columns}] {source})"
        f" => (int8[{shape}] labels, {other}) {{ {' '.join(body)} }}"
    )


def _of_classes(decider: Any) -> tuple[str, dict[str, Any]]:
    """Return the graph and the constants of a fitted FDecider of classes."""
    model, m = decider._model, decider.n_features_in_
    kind = type(model.calibrator).__name__
    reals = {"zero": 0.0, "one": 1.0, "thresholds": decider.thresholds_}
    reals["class_weights"] = decider.class_weights_
    if kind == "LogLinearPool":
        calibration = _POOLED
        reals["least_given"] = max(model.least, _POOL_FLOOR)
        reals["pool_weight"] = model.calibrator.weights_[0]
        reals["pool_shifts"] = model.calibrator.shifts_
    else:
        calibration = _CALIBRATIONS[kind] + _NORMALISED
        reals |= _calibration(model.calibrator)
    source, to_proba = (
        ("logits", "Softmax <axis = 1>") if decider.logits else ("proba", "Identity")
    )
    graph = (
        f"fgfm_decider ({{real}}[rows, {m}] {source})"
        f" => (int64[rows] labels, {{real}}[rows, {m}] calibrated) {{"
        f" raw = Cast <to = 11> ({source}) any = {to_proba} (raw) given = Clip (any, zero, one)"
        f" {calibration} {_LARGEST} }}"
    )
    return graph, _integers(m) | {name: np.asarray(value, float) for name, value in reals.items()}


def _decider_constants(decider: Any, by_row: bool) -> dict[str, Any]:
    """Return the constants of an FDecider."""
    model, m = decider._model, decider.n_features_in_
    S = 1 if m == 1 else max(1, int(model.cardinalities[-1]))
    reals = _reals(m, decider.beta, decider.zero_division, _TIE["float64"])
    if decider.min_labels > 0:
        reals["empty_value"] = 0.0  # less than the value of any other set
    reals |= _calibration(model.calibrator) | {
        "certain": _CERTAIN,
        "exponent_absent": model.exponents[1],
        "exponent_present": model.exponents[0],
        "half": 0.5,
        "minus_one": -1.0,
        "most_certain": 1.0 - _CERTAIN,
        "powers": reals["zeta"][:, None] ** np.arange(S) if by_row else np.ones((1, S)),
    }
    if not by_row:
        reals["thresholds"] = decider.thresholds_
    if m > 1:
        reals |= _pool(model.pool, model.cardinalities, S)
    k = np.arange(1, m + 1)
    most = m if decider.max_labels is None else decider.max_labels
    integers = _integers(m) | {
        "allowed": (decider.min_labels <= k) & (k <= most),
        "first_number": np.array([0]),
        "is_none": np.arange(S + 1) == 0,
        "numbers": np.array([S + 1]),
        "taken_columns": np.arange(m) if decider.multilabel_ else np.array([-1]),
        "to_left": np.array([0, 0, -1, 0, 0, 1]),
        "to_right": np.array([0, 1, 0, -1]),
    }
    return integers | {name: np.asarray(value, float) for name, value in reals.items()}


def _calibration(calibrator: Any) -> dict[str, Any]:
    """Return the constants of a calibrator of `FDecider`."""
    kind = type(calibrator).__name__
    if kind == "ShrunkCalibrator":
        least, most = calibrator.edges_
        return {
            "least_given": least,
            "most_given": most,
            "center": calibrator.center_,
            "slopes": calibrator.slopes_,
            "shifts": calibrator.shifts_,
            "bend": calibrator.bend_,
            "slope_variances": calibrator.slope_variances_,
            "double_covariances": 2.0 * calibrator.covariances_,
            "shift_variances": calibrator.shift_variances_,
            "pi_8": np.pi / 8.0,
        }
    if kind == "NoCalibrator":
        return {"margin": _CERTAIN, "most": 1.0 - _CERTAIN}
    # A label without a regressor keeps its probabilities.
    curves = [
        (np.zeros(1), np.zeros(1), np.ones(1))
        if regressor is None
        else _segments(regressor.X_thresholds_, regressor.y_thresholds_)
        for regressor in calibrator.regressors_
    ]
    length = max(len(knots) for knots, _, _ in curves)
    knots, levels, rises = (
        np.array([np.pad(part, (0, length - len(part)), constant_values=np.inf) for part in parts])
        for parts in zip(*curves, strict=True)
    )
    return {
        "first_knots": knots[:, 0],
        "knots": knots,
        "levels": levels,
        "rises": rises,
        "margin": calibrator.margin_,
        "most": 1.0 - calibrator.margin_,
    }


def _segments(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return the knots of an interpolation, and the level and the slope from each one on."""
    return x, y, np.append(np.diff(y) / np.diff(x), 0.0)


def _pool(pool: Any, cardinalities: Any, S: int) -> dict[str, Any]:
    """Return the constants of the distribution of the number of labels, 0 to S."""
    shifts = np.full(S + 1, -np.inf)
    shifts[cardinalities] = pool.shifts_
    return {
        "unit": np.eye(1, S + 1),
        "floor": _POOL_FLOOR,
        "pool_weight": pool.weights_[0],
        "pool_shifts": shifts,
        "some_weights": pool.weights_[1:, None],
    }


def _model(graph_text: str, constants: dict[str, Any], opset: int) -> Any:
    """Return a checked model of a graph in ONNX's text syntax."""
    onnx = import_optional("onnx", "exporting a decision", "onnx")
    graph = onnx.parser.parse_graph(graph_text)
    used = set(re.findall(r"\w+", graph_text))
    graph.initializer.extend(
        onnx.numpy_helper.from_array(value, name)
        for name, value in constants.items()
        if name in used
    )
    _add_prefix(graph, {value.name for value in (*graph.input, *graph.output)})
    imports = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(
        graph,
        producer_name="fgfm",
        opset_imports=imports,
        ir_version=onnx.helper.find_min_ir_version_for(imports),
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _add_prefix(graph: Any, kept: set[str]) -> None:
    """Rename all values but `kept`: they must differ from those of a model that is merged.

    Versions of onnx differ in what `onnx.compose.add_prefix` renames in the bodies of loops.
    """

    def prefixed(name: str) -> str:
        return name if name in kept else f"fgfm_{name}"

    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = prefixed(value.name)
    for node in graph.node:
        node.input[:] = map(prefixed, node.input)
        node.output[:] = map(prefixed, node.output)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _add_prefix(attribute.g, kept)


def _reals(m: int, beta: float, zero_division: float, tie: float) -> dict[str, Any]:
    """Return the real constants of the best set."""
    beta2 = beta * beta
    log_z, weight = nodes(beta, m, m)  # (R,)
    zeta = np.exp(beta2 * log_z)
    k = np.arange(1, m + 1)[:, None]
    return {
        "zero": 0.0,
        "one": 1.0,
        "tiny": 1e-30,  # 1 - x u where x is 1 and zeta underflows; W is negligible there
        "undefined": np.nan,
        "empty_value": zero_division,
        "tie": tie,
        "zeta": zeta,
        "W": np.exp(k * log_z) * ((1.0 + beta2) * weight * zeta),  # (m, R)
    }


def _integers(m: int) -> dict[str, Any]:
    """Return the integer constants of the best set."""
    return {
        "all_labels": np.array([m]),
        "label": np.array(1),
        "label_axis": np.array([1]),
        "last_axis": np.array([2]),
        "sizes": np.arange(m)[None, :],
    }


def __dir__() -> list[str]:
    return __all__
