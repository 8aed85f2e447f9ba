"""`FDecision` and `DiceDecision`, PyTorch layers that decide at the end of a network.

They need PyTorch (``pip install fgfm[torch]``) and must be imported explicitly:
``import fgfm.torch``.
"""

from __future__ import annotations

import math

try:
    import torch
except ImportError as error:
    raise ImportError("fgfm.torch needs PyTorch: pip install 'fgfm[torch]'") from error

from fgfm import decision
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
    inputs: torch.Tensor,
    beta: float,
    zero_division: float,
    nonempty: bool,
    measure: str,
    average: str,
    from_logits: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return tensors of the right shape, dtype and device for tracing."""
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
