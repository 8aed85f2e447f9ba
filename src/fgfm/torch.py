"""Decisions at the end of a PyTorch network.

Imported on its own (``import fgfm.torch``), since it needs PyTorch: install ``fgfm[torch]``.
"""

from __future__ import annotations

import torch

from fgfm import decision
from fgfm._utils.validation import check_beta, check_flag, check_zero_division
from fgfm.decision import Decision
from fgfm.decision._array_api.space import read_array

__all__ = ["FDecision"]


_SCHEMA = (
    "(Tensor inputs, float beta, float zero_division, bool nonempty, bool from_logits)"
    " -> (Tensor, Tensor)"
)


@torch.library.custom_op("fgfm::decide", mutates_args=(), schema=_SCHEMA)
def _decide(
    inputs: torch.Tensor, beta: float, zero_division: float, nonempty: bool, from_logits: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Decide, as one operation of PyTorch: what traces a network does not look inside."""
    proba, _ = read_array(inputs, "inputs", ("row", "label"))
    if proba.dtype != torch.float64:
        proba = proba.float()
    try:
        return decision.from_marginals(
            torch.sigmoid(proba) if from_logits else proba,
            beta=beta,
            zero_division=zero_division,
            nonempty=nonempty,
        )
    except ValueError as error:
        error.add_note("proba: the sigmoid of the inputs" if from_logits else "proba: the inputs")
        raise


@_decide.register_fake
def _decide_without_values(
    inputs: torch.Tensor, beta: float, zero_division: float, nonempty: bool, from_logits: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Give tensors of the right form, to what traces a network."""
    dtype = torch.float64 if inputs.dtype == torch.float64 else torch.float32
    labels = torch.empty_like(inputs, dtype=torch.int8, memory_format=torch.contiguous_format)
    return labels, inputs.new_empty((inputs.shape[0],), dtype=dtype)


class FDecision(torch.nn.Module):
    r"""The label sets of the largest expected F-measure, as the last layer at inference.

    Maximises :math:`E[F_\beta(y, h)]` over all label sets h, labels taken as independent given the
    row, with the sigmoid of the inputs as marginals. There is nothing to train, and no gradient:
    train the network on its logits, by the binary cross-entropy say, and decide with this layer.
    ``torch.compile`` and ``torch.export`` take it for one operation.

    Parameters
    ----------
    beta : float, default=1.0
        How many times as important recall is as precision.
    zero_division : float, default=1.0
        What an empty decision is worth where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Decide under the condition that the true set is not empty.
    from_logits : bool, default=True
        Whether the inputs are logits; else they are probabilities.

    See Also
    --------
    fgfm.decision.from_marginals : The function behind it.
    """

    def __init__(
        self,
        beta: float = 1.0,
        *,
        zero_division: float = 1.0,
        nonempty: bool = False,
        from_logits: bool = True,
    ) -> None:
        super().__init__()
        self.beta = check_beta(beta)
        self.zero_division = check_zero_division(zero_division)
        self.nonempty = check_flag(nonempty, "nonempty")
        self.from_logits = check_flag(from_logits, "from_logits")

    def forward(self, inputs: torch.Tensor) -> Decision:
        """Decide for each row.

        Parameters
        ----------
        inputs : tensor of shape (n, m)
            Logits or probabilities. Half precision is taken to float32 first.

        Returns
        -------
        Decision
            ``labels``, int8 of shape (n, m), and ``expected_f`` of shape (n,), on the same device.
        """
        if not isinstance(inputs, torch.Tensor):
            raise TypeError(f"inputs is {type(inputs).__name__}: it must be a tensor")
        return Decision(
            *_decide(
                inputs.detach(), self.beta, self.zero_division, self.nonempty, self.from_logits
            )
        )

    def extra_repr(self) -> str:
        """Write the settings.

        Returns
        -------
        str
            What stands between the brackets of the layer's repr.
        """
        return (
            f"beta={self.beta:g}, zero_division={self.zero_division:g}, "
            f"nonempty={self.nonempty}, from_logits={self.from_logits}"
        )
