"""`FDecision` and `DiceDecision`, PyTorch layers that decide at the end of a network.

They need PyTorch (``pip install fgfm[torch]``) and must be imported explicitly:
``import fgfm.torch``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

try:
    import torch
except ImportError as error:
    raise ImportError("fgfm.torch needs PyTorch: pip install 'fgfm[torch]'") from error

from fgfm import decision
from fgfm._decision_graph import of_decider, source_of
from fgfm._graph import Step
from fgfm._utils.validation import (
    check_axes,
    check_beta,
    check_choice,
    check_count,
    check_flag,
    check_zero_division,
)
from fgfm.decision import Decision
from fgfm.decision._arrays import place_of

__all__ = ["DiceDecision", "FDecision"]

_MEASURES = {"dice": "f", "iou": "jaccard"}
_SCHEMA = (
    "(Tensor inputs, float beta, float zero_division, bool nonempty, str measure, str average,"
    " bool from_logits) -> (Tensor, Tensor)"
)


_AXES = {"samples": 1, "macro": 0, "micro": (0, 1)}


@torch.library.custom_op("fgfm::decide", mutates_args=(), schema=_SCHEMA)
def _decide(
    inputs: torch.Tensor,
    beta: float,
    zero_division: float,
    nonempty: bool,
    measure: str,
    average: str,
    from_logits: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Decide in one PyTorch operator, which torch.compile and torch.export do not trace into."""
    place_of({"inputs": inputs})
    check_axes(tuple(inputs.shape), "inputs", ("row", "label"))
    try:
        labels, expected_f = decision.from_marginals(
            inputs,
            logits=from_logits,
            beta=beta,
            zero_division=zero_division,
            nonempty=nonempty,
            measure=measure,
            average=average,
            n_jobs=torch.get_num_threads(),
        )
    except ValueError as error:
        error.add_note("proba is the inputs")
        raise
    dtype = torch.float64 if inputs.dtype == torch.float64 else torch.float32
    # an output may not be a view of another
    return labels.contiguous(), expected_f.to(dtype, copy=True)


@_decide.register_fake
def _decide_without_values(
    inputs: torch.Tensor, *settings: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return tensors of the right shape, dtype and device for tracing."""
    average = settings[4]
    dtype = torch.float64 if inputs.dtype == torch.float64 else torch.float32
    labels = torch.empty_like(inputs, dtype=torch.int8, memory_format=torch.contiguous_format)
    n, m = inputs.shape
    shape = {"samples": (n,), "macro": (m,), "micro": ()}[average]
    return labels, inputs.new_empty(shape, dtype=dtype)


class FDecision(torch.nn.Module):
    r"""Layer that returns the label sets of largest expected F-measure, for inference.

    Maximises :math:`E[F_\beta(y, h)]` over all label sets h, assuming labels independent given the
    row, with the sigmoid of the inputs as marginals. The layer has no parameters and no gradient:
    train the network on its logits, for instance by binary cross-entropy, and decide with this
    layer. It is a single operator for ``torch.compile`` and ``torch.export``.

    Parameters
    ----------
    beta : float, default=1.0
        Recall is considered `beta` times as important as precision.
    zero_division : float, default=1.0
        The value of 0/0, an empty decision where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Condition on the true set not being empty.
    average : {"samples", "macro", "micro"}, default="samples"
        Whether to maximise the F-measure of each row, of each label over the rows of a batch, or
        of all entries of a batch together.
    from_logits : bool, default=True
        Whether the inputs are logits or probabilities.

    See Also
    --------
    fgfm.decision.from_marginals : The function that the layer calls.
    """

    @staticmethod
    def from_decider(decider: Any) -> torch.nn.Module:
        """Return the calibrated decision of a fitted decider as a module.

        The module is made of PyTorch operations on float64 values, all rows at once, which
        ``torch.compile`` and ``torch.export`` trace into; it has no parameters and no gradient.

        Parameters
        ----------
        decider : FDecider or FClassifier
            A fitted decider; of an `FClassifier` the module takes what ``estimator_`` predicts.

        Returns
        -------
        torch.nn.Module
            A module that takes a tensor of what `FDecider` was fitted to, probabilities or scores,
            of shape (n, m), or (n,) of a flat y of two classes. It returns the labels of
            ``predict``, int8, and the expected F-measures of rows with the average "samples",
            otherwise the probabilities of ``predict_proba``; float64 of float64 inputs, else
            float32. Labels of a flat y are 1 for the positive class; of more than two classes they
            are indices of ``classes_``.

        Raises
        ------
        ValueError
            If the decider is not fitted, or has limits, floors or constraints that cannot be
            exported (`fgfm.onnx.export_decision`).

        Notes
        -----
        Inputs are not checked: probabilities are clipped to [0, 1], and NaN spoils its row.
        """
        return _CalibratedDecision(decider)

    def __init__(
        self,
        beta: float = 1.0,
        *,
        zero_division: float = 1.0,
        nonempty: bool = False,
        average: str = "samples",
        from_logits: bool = True,
    ) -> None:
        super().__init__()
        self.beta = check_beta(beta)
        self.zero_division = check_zero_division(zero_division)
        self.nonempty = check_flag(nonempty, "nonempty")
        check_choice(average, "average", tuple(_AXES))
        self.average = average
        self.from_logits = check_flag(from_logits, "from_logits")

    def forward(self, inputs: torch.Tensor) -> Decision:
        """Decide for each row, or for the batch.

        Parameters
        ----------
        inputs : tensor of shape (n, m)
            Logits or probabilities. Half precision is converted to float32.

        Returns
        -------
        Decision
            ``labels``, int8 of shape (n, m), and ``expected_f`` of shape (n,), of shape (m,) for
            ``average="macro"``, 0-D for ``"micro"``; on the same device.
        """
        if not isinstance(inputs, torch.Tensor):
            raise TypeError(f"inputs is {type(inputs).__name__}: it must be a tensor")
        return Decision(
            *_decide(
                inputs.detach(),
                self.beta,
                self.zero_division,
                self.nonempty,
                "f",
                self.average,
                self.from_logits,
            )
        )

    def extra_repr(self) -> str:
        """Return the parameters for the repr of the layer.

        Returns
        -------
        str
            The text between the parentheses.
        """
        return (
            f"beta={self.beta:g}, zero_division={self.zero_division:g}, "
            f"nonempty={self.nonempty}, average={self.average!r}, from_logits={self.from_logits}"
        )


class CalibratedLabels(NamedTuple):
    """Labels and calibrated probabilities, where rows have no expected F-measure."""

    labels: torch.Tensor
    calibrated: torch.Tensor


class _CalibratedDecision(torch.nn.Module):
    """The graph of a decider, computed by PyTorch operations."""

    def __init__(self, decider: Any) -> None:
        super().__init__()
        decider = vars(decider).get("decider_", decider)
        graph = of_decider(decider, "float64")
        self.scores = decider.scores
        self.average = decider.average
        self._flat = not decider.multilabel_ and len(decider.classes_) == 2
        columns = (1,) if decider.scores else (1, 2)
        self._columns = columns if self._flat else (decider.n_features_in_,)
        self._source = source_of(decider.scores)
        self._steps = graph.steps
        self._outputs = {name: value.name for name, value in graph.outputs.items()}
        for name, values in graph.constants.items():
            self.register_buffer(name, torch.as_tensor(values), persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move constants to the device of a conversion; they keep their precision."""

        def moved(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(fn(tensor.new_empty(0)).device)

        module: Any = super()
        return module._apply(moved, recurse)

    def forward(self, inputs: torch.Tensor) -> Decision | CalibratedLabels:
        """Decide rows of probabilities or scores."""
        if not isinstance(inputs, torch.Tensor):
            raise TypeError(f"inputs is {type(inputs).__name__}: it must be a tensor")
        values = inputs.detach()
        if self._flat and values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or values.shape[1] not in self._columns:
            raise ValueError(
                f"inputs has shape {tuple(inputs.shape)}: it must have 2 dimensions, and "
                f"{' or '.join(map(str, self._columns))} columns"
            )
        known = {self._source: values, **dict(self.named_buffers())}
        for step in self._steps:
            found = _computed(step, [known[name] for name in step.inputs])
            known.update(zip(step.outputs, found, strict=True))
        labels, value = (known[name] for name in self._outputs.values())
        value = value.to(torch.float64 if inputs.dtype == torch.float64 else torch.float32)
        if "expected_f" in self._outputs:
            return Decision(labels, value)
        return CalibratedLabels(labels, value)

    def extra_repr(self) -> str:
        """Return the parameters for the repr of the layer."""
        return f"average={self.average!r}, scores={self.scores}"


_OPERATORS: dict[str, Any] = {
    "Add": torch.add,
    "And": torch.logical_and,
    "Div": torch.div,
    "Exp": torch.exp,
    "Gather": lambda table, places: table[places],
    "GatherElements": lambda x, places: torch.gather(x, 0, places),
    "Greater": torch.gt,
    "GreaterOrEqual": torch.ge,
    "LessOrEqual": torch.le,
    "Log": torch.log,
    "Max": torch.maximum,
    "Min": torch.minimum,
    "Mul": torch.mul,
    "Neg": torch.neg,
    "ScatterElements": lambda x, places, entries: torch.scatter(x, 0, places, entries),
    "Sigmoid": torch.sigmoid,
    "Sqrt": torch.sqrt,
    "Sub": torch.sub,
    "Transpose": lambda x: x.transpose(0, 1),
    "Where": torch.where,
}


def _computed(step: Step, inputs: list[torch.Tensor]) -> Any:
    """Return the values of an operation of a graph: operators of ONNX, axes from the front."""
    x, settings = inputs[0], step.settings
    axis = settings.get("axis", 0)
    match step.operator:
        case "ArgMax":
            value = torch.argmax(x, axis, keepdim=True)
        case "Cast":
            value = x.to(getattr(torch, settings["to"]))
        case "Clip":
            value = torch.minimum(torch.maximum(x, inputs[1]), inputs[2])
        case "Concat":
            value = torch.cat(inputs, axis)
        case "CumSum":
            value = _partial_sums(x, **settings)
        case "ReduceMax":
            value = torch.amax(x, axis, keepdim=True)
        case "ReduceProd":
            value = torch.prod(x, axis, keepdim=True)
        case "ReduceSum":
            value = torch.sum(x, axis, keepdim=True)
        case "Slice":
            parts = (
                slice(*ends) for ends in zip(settings["start"], settings["stop"], strict=True)
            )
            of_axes = dict(zip(axis, parts, strict=True))
            value = x[tuple(of_axes.get(a, slice(None)) for a in range(max(axis) + 1))]
        case "Softmax":
            value = torch.softmax(x, axis)
        case "Split":
            return torch.split(x, x.shape[axis] // len(step.outputs), axis)
        case "Squeeze":
            value = x.squeeze(axis)
        case "TopK":  # of equal values the first
            values, places = torch.sort(x, dim=0, descending=True, stable=True)
            return values[: settings["k"]], places[: settings["k"]]
        case "Unsqueeze":
            value = x.unsqueeze(axis)
        case _:
            value = _OPERATORS[step.operator](*inputs)
    return (value,)


def _partial_sums(x: torch.Tensor, exclusive: bool, reverse: bool) -> torch.Tensor:
    """Return partial sums along the first axis."""
    x = x.flip(0) if reverse else x
    if exclusive:
        x = torch.cat([torch.zeros_like(x[:1]), x[:-1]])
    total = torch.cumsum(x, 0)
    return total.flip(0) if reverse else total


class DiceDecision(torch.nn.Module):
    r"""Layer that returns the masks of largest expected Dice coefficient, or IoU, for inference.

    Maximises :math:`E[2 |y \cap h| / (|y| + |h|)]`, or :math:`E[|y \cap h| / |y \cup h|]`, over
    all masks h, assuming pixels independent given the image, with the sigmoid of the inputs as
    their probabilities. Each mask, of one image and one class, is decided by itself. The layer has
    no parameters and no gradient. It is a single operator for ``torch.compile`` and
    ``torch.export``.

    Parameters
    ----------
    spatial_dims : int, default=2
        The number of last axes that hold the pixels, or voxels, of one mask. All axes before them
        (batch, class) number the masks.
    measure : {"dice", "iou"}, default="dice"
        The measure whose expectation is maximised: the Dice coefficient, or the intersection over
        union (Jaccard index).
    zero_division : float, default=1.0
        The value of 0/0, an empty mask where the true mask is empty, from 0 to 1.
    nonempty : bool, default=False
        Condition on the true mask not being empty.
    from_logits : bool, default=True
        Whether the inputs are logits or probabilities.

    See Also
    --------
    FDecision : The same for rows of labels, with any beta.

    Examples
    --------
    >>> import torch
    >>> from fgfm.torch import DiceDecision
    >>> proba = torch.tensor([[[0.9, 0.4], [0.4, 0.1]], [[0.1, 0.2], [0.0, 0.1]]])
    >>> masks, expected_dice = DiceDecision(from_logits=False)(proba)
    >>> masks
    tensor([[[1, 1],
             [1, 0]],
    <BLANKLINE>
            [[0, 0],
             [0, 0]]], dtype=torch.int8)
    >>> expected_dice.round(decimals=3)
    tensor([0.7140, 0.6480])
    """

    def __init__(
        self,
        spatial_dims: int = 2,
        *,
        measure: str = "dice",
        zero_division: float = 1.0,
        nonempty: bool = False,
        from_logits: bool = True,
    ) -> None:
        super().__init__()
        self.spatial_dims = check_count(spatial_dims, "spatial_dims", 1)
        check_choice(measure, "measure", tuple(_MEASURES))
        self.measure = measure
        self.zero_division = check_zero_division(zero_division)
        self.nonempty = check_flag(nonempty, "nonempty")
        self.from_logits = check_flag(from_logits, "from_logits")

    def forward(self, inputs: torch.Tensor) -> Decision:
        """Decide each mask.

        Parameters
        ----------
        inputs : tensor of shape (..., height, width)
            Logits or probabilities. Half precision is converted to float32.

        Returns
        -------
        Decision
            ``labels``, the masks, int8 of the shape of the inputs, and ``expected_f``, the
            expected Dice coefficients or IoU, of the shape of the leading axes; on the same
            device.
        """
        if not isinstance(inputs, torch.Tensor):
            raise TypeError(f"inputs is {type(inputs).__name__}: it must be a tensor")
        if inputs.ndim < self.spatial_dims:
            raise ValueError(
                f"inputs has shape {tuple(inputs.shape)}: it must have at least "
                f"{self.spatial_dims} dimensions (spatial_dims)"
            )
        leading = inputs.shape[: inputs.ndim - self.spatial_dims]
        spatial = inputs.shape[inputs.ndim - self.spatial_dims :]
        rows = inputs.detach().reshape(math.prod(leading), math.prod(spatial))
        labels, expected_f = _decide(
            rows,
            1.0,
            self.zero_division,
            self.nonempty,
            _MEASURES[self.measure],
            "samples",
            self.from_logits,
        )
        return Decision(labels.reshape(inputs.shape), expected_f.reshape(leading))

    def extra_repr(self) -> str:
        """Return the parameters for the repr of the layer.

        Returns
        -------
        str
            The text between the parentheses.
        """
        return (
            f"spatial_dims={self.spatial_dims}, measure={self.measure!r}, "
            f"zero_division={self.zero_division:g}, nonempty={self.nonempty}, "
            f"from_logits={self.from_logits}"
        )


def __dir__() -> list[str]:
    return __all__
