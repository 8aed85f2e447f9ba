"""The decision as an ONNX model, which runs where Python does not.

Exporting needs the package onnx (``pip install fgfm[onnx]``); running the model needs any runtime
of ONNX, and not fgfm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fgfm._utils.optional import import_optional
from fgfm._utils.validation import (
    check_beta,
    check_choice,
    check_count,
    check_flag,
    check_zero_division,
)
from fgfm.decision._quadrature import nodes

__all__ = ["export_decision"]

_LEAST_OPSET = 18  # reductions take their axes as an input
_TIE = {"float32": 2e-6, "float64": 1e-12}  # as for arrays of PyTorch: docs/gpu.md

# Formulas and rules for ties are those of `fgfm.decision._array_api.measure_f`. With the labels in
# order of falling probability x, zeta = z^(beta^2) and u = 1 - zeta, the value of the k first is
#
#     V_k = sum_r W_kr D_r A_kr,              W_kr = (1 + beta^2) w_r z_r^k zeta_r,
#     D_r = prod_i (1 - x_i u_r),             A_kr = sum_{i <= k} x_i / (1 - x_i u_r).
#
# The peak is lowered by a difference: the optimiser of ONNX Runtime removes the factor 1 - 1e-12
# as if it were 1.
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
    peak = ReduceMax <keepdims = 1> (V, label_axis)
    slack = Mul (peak, tie)
    level = Sub (peak, slack)
    tied = GreaterOrEqual (V, level)
    tied_number = Cast <to = 6> (tied)
    at = ArgMax <axis = 1, keepdims = 1> (tied_number)
    value = GatherElements <axis = 1> (V, at)
"""
# The empty set wins its ties. `empty_value` is the value of 0/0.
_WITH_EMPTY = """
    empty_true = ReduceProd <keepdims = 1> (rest, label_axis)
    empty = Mul (empty_true, empty_value)
    empty_slack = Mul (empty, tie)
    empty_level = Add (empty, empty_slack)
    wins = Greater (peak, empty_level)
    expected = Where (wins, value, empty)
"""
# p(|y| > 0) = sum_i x_i prod_{j < i} (1 - x_j), without cancellation where all x are tiny.
_NONEMPTY = """
    log_rest = Log (rest)
    log_before = CumSum <exclusive = 1> (log_rest, label)
    before = Exp (log_before)
    first = Mul (x, before)
    present = ReduceSum <keepdims = 1> (first, label_axis)
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
    expected_f = Squeeze (expected, label_axis)
"""


def export_decision(
    n_labels: int,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    logits: bool = False,
    dtype: str = "float32",
    opset: int = _LEAST_OPSET,
) -> Any:
    r"""Return the decision from marginals as an ONNX model.

    The model maximises :math:`E[F_\beta(y, h)]` over all label sets h, assuming labels independent
    given the row, as `fgfm.decision.from_marginals` does. It sorts the probabilities of a row, and
    computes the values of all set sizes from products and cumulative sums, in time and memory
    proportional to the number of labels.

    Parameters
    ----------
    n_labels : int
        The number of labels, m.
    beta : float, default=1.0
        Recall is considered `beta` times as important as precision.
    zero_division : float, default=1.0
        The value of 0/0, an empty decision where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Condition on the true set not being empty. A row in which no label is possible gets the
        empty set and an expectation of NaN.
    logits : bool, default=False
        Whether the input holds logits, of which the probabilities are the sigmoid.
    dtype : {"float32", "float64"}, default="float32"
        The type of the input, of the arithmetic and of ``expected_f``.
    opset : int, default=18
        The version of ONNX's operator set, 18 or more.

    Returns
    -------
    onnx.ModelProto
        A model with the input ``proba``, or ``logits``, of shape (rows, m), and the outputs
        ``labels``, int8 of shape (rows, m), and ``expected_f``, of shape (rows,).

    See Also
    --------
    fgfm.decision.from_marginals : The same decision in Python.
    fgfm.torch.FDecision : The decision as a layer of a PyTorch network.

    Notes
    -----
    In float64 the label sets are those of `fgfm.decision.from_marginals`. In float32 set sizes
    whose values differ by less than a relative 2e-6 count as equal, so that another of the best
    sets may be chosen. A graph cannot raise errors: probabilities are clipped to [0, 1], and a row
    with NaN has an expectation of NaN.

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
    m = check_count(n_labels, "n_labels", 1)
    beta = check_beta(beta)
    zero_division = check_zero_division(zero_division)
    nonempty = check_flag(nonempty, "nonempty")
    logits = check_flag(logits, "logits")
    check_choice(dtype, "dtype", tuple(_TIE))
    opset = check_count(opset, "opset", _LEAST_OPSET)
    onnx = import_optional("onnx", "exporting a decision", "onnx")

    source = "logits" if logits else "proba"
    to_marginals = f"marginals = {'Sigmoid' if logits else 'Identity'} ({source})"
    body = to_marginals + _VALUES + (_NONEMPTY if nonempty else _WITH_EMPTY) + _LABELS
    real = {"float32": "float", "float64": "double"}[dtype]
    graph = onnx.parser.parse_graph(
        f"fgfm_decision ({real}[rows, {m}] {source})"
        f" => (int8[rows, {m}] labels, {real}[rows] expected_f) {{ {body} }}"
    )
    constants = _integers(m) | {
        name: np.asarray(value, dtype=dtype)
        for name, value in _reals(m, beta, zero_division, dtype).items()
    }
    used = {name for node in graph.node for name in node.input}
    graph.initializer.extend(
        onnx.numpy_helper.from_array(value, name)
        for name, value in constants.items()
        if name in used
    )
    imports = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(
        graph,
        producer_name="fgfm",
        opset_imports=imports,
        ir_version=onnx.helper.find_min_ir_version_for(imports),
    )
    # Names inside the graph must differ from those of the model that it is merged with.
    model = onnx.compose.add_prefix(model, "fgfm_", rename_inputs=False, rename_outputs=False)
    onnx.checker.check_model(model, full_check=True)
    return model


def _reals(m: int, beta: float, zero_division: float, dtype: str) -> dict[str, Any]:
    """Return the constants of type `dtype`."""
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
        "tie": _TIE[dtype],
        "zeta": zeta,
        "W": np.exp(k * log_z) * ((1.0 + beta2) * weight * zeta),  # (m, R)
    }


def _integers(m: int) -> dict[str, Any]:
    """Return the integer constants."""
    return {
        "all_labels": np.array([m]),
        "label": np.array(1),
        "label_axis": np.array([1]),
        "last_axis": np.array([2]),
        "sizes": np.arange(m)[None, :],
    }


def __dir__() -> list[str]:
    return __all__
