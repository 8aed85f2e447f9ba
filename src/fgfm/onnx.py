"""Decisions as ONNX models, which run where Python does not.

Exporting needs the package onnx (``pip install fgfm[onnx]``); running the model needs any runtime
of ONNX, and not fgfm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fgfm._decision_graph import TIE, of_decider, of_marginals, source_of
from fgfm._graph import Graph, Step
from fgfm._utils.optional import import_optional
from fgfm._utils.validation import (
    check_beta,
    check_choice,
    check_count,
    check_flag,
    check_zero_division,
)

__all__ = ["export_decision"]

_LEAST_OPSET = 18  # reductions take their axes as an input
_NUMBERS = {"float32": 1, "int8": 3, "int32": 6, "int64": 7, "float64": 11}  # of types in ONNX
_OWN = {"beta": 1.0, "zero_division": 1.0, "nonempty": False, "logits": False}  # of a decider


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
        ``predict_proba``; its outputs have shape (rows,), with label 1 for the positive class.
        With more than two classes ``labels`` are indices of ``classes_``, int64 of shape (rows,),
        and ``calibrated`` has shape (rows, m).

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
    check_choice(dtype, "dtype", tuple(TIE))
    opset = check_count(opset, "opset", _LEAST_OPSET)
    if not hasattr(decider, "average"):
        m = check_count(decider, "decider", 1)
        graph = of_marginals(m, dtype, **settings)
        source, shape = source_of(settings["logits"]), ["rows", m]
        outputs = {"labels": ("int8", shape), "expected_f": (dtype, ["rows"])}
        return _model(graph, (source, dtype, shape), outputs, opset)
    given = [f"{name}={value}" for name, value in settings.items() if value != _OWN[name]]
    if given:
        raise ValueError(f"{given[0]} is given with a decider, which has its own: leave it out")
    decider = vars(decider).get("decider_", decider)
    graph = of_decider(decider, dtype)
    m, flat = decider.n_features_in_, not decider.multilabel_
    several = flat and len(decider.classes_) > 2
    columns = m if several or not flat else 1 if decider.scores else "classes"
    shape = ["rows"] if flat else ["rows", m]
    outputs = {
        "labels": ("int64" if several else "int8", shape),
        "calibrated": (dtype, ["rows", m] if several else shape),
        "expected_f": (dtype, ["rows"]),
    }
    return _model(graph, (source_of(decider.scores), dtype, ["rows", columns]), outputs, opset)


def _model(graph: Graph, given: tuple[Any, ...], outputs: dict[str, Any], opset: int) -> Any:
    """Return a checked model with an input and outputs of some names, types and shapes.

    Other names get a prefix, since they must differ from those of a model that is merged.
    """
    onnx = import_optional("onnx", "exporting a decision", "onnx")
    public = {value.name: name for name, value in graph.outputs.items()}
    names = {given[0]: given[0], **public}
    nodes = []
    for step in graph.steps:
        inputs, settings = _node(graph, step)
        arguments = [[names.get(x, f"fgfm_{x}") for x in part] for part in (inputs, step.outputs)]
        nodes.append(onnx.helper.make_node(step.operator, *arguments, **settings))

    def described(name: str, dtype: str, shape: list[Any]) -> Any:
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return onnx.helper.make_tensor_value_info(name, kind, shape)

    used = {name for node in nodes for name in node.input}
    imports = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            nodes,
            "fgfm_decision",
            [described(*given)],
            [described(name, *outputs[name]) for name in graph.outputs],
            [
                onnx.numpy_helper.from_array(values, f"fgfm_{name}")
                for name, values in graph.constants.items()
                if f"fgfm_{name}" in used
            ],
        ),
        producer_name="fgfm",
        opset_imports=imports,
        ir_version=onnx.helper.find_min_ir_version_for(imports),
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _node(graph: Graph, step: Step) -> tuple[list[str], dict[str, Any]]:
    """Return the inputs and the attributes of a node of ONNX."""
    inputs, settings = list(step.inputs), dict(step.settings)

    def add(*values: Any) -> None:
        inputs.extend(graph.constant(np.array(value)).name for value in values)

    match step.operator:
        case "ReduceSum" | "ReduceMax" | "ReduceProd":
            add([settings.pop("axis")])
            settings["keepdims"] = 1
        case "Squeeze" | "Unsqueeze":
            add([settings.pop("axis")])
        case "ArgMax":
            settings["keepdims"] = 1
        case "CumSum":
            add(0)
            settings = {name: int(value) for name, value in settings.items()}
        case "Slice":
            add(*(settings.pop(name) for name in ("start", "stop", "axis")))
        case "Split":
            settings["num_outputs"] = len(step.outputs)
        case "TopK":
            add([settings.pop("k")])
            settings["axis"] = 0
        case "GatherElements" | "ScatterElements":
            settings["axis"] = 0
        case "Cast":
            settings["to"] = _NUMBERS[settings["to"]]
    return inputs, settings


def __dir__() -> list[str]:
    return __all__
