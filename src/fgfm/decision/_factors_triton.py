"""Decisions from small factors, by a Triton kernel for CUDA tensors of PyTorch.

Formulas are those of `fgfm.decision._factors_array_api`; the kernel is that of
`fgfm.decision._array_api.columns_triton`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import triton

from fgfm.decision._array_api.backend import Backend, work_bytes
from fgfm.decision._array_api.columns_triton import (
    Tables,
    decide_table,
    make_tables,
    settings_of,
)
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._quadrature import nodes

__all__ = ["decide_factors"]


@lru_cache(maxsize=64)
def _tables(beta: float, m: int, S: int, settings: Any, dtype: Any, device: Any) -> Tables:
    """Return scale_q, zeta_q^s and the weights z_q^k, (Q, m + 8), of the rule for m labels."""
    rule = nodes(beta, m, m)
    s = np.arange(1, triton.next_power_of_2(S) + 1)
    zeta = np.exp(beta * beta * rule.log_z[:, None] * s)  # (Q, padded S)
    scale = (1.0 + beta * beta) * rule.weight
    powers = np.exp(rule.log_z[:, None] * np.arange(1, m + 9))
    return make_tables(settings, s[:S], [scale, zeta], powers, None, dtype, device)


def decide_factors(
    backend: Backend, parts: Sequence[Any], place: Any, objective: Objective
) -> Decision | None:
    """Decide from the P of factors of one shape, each (n, L, S); None if some may not be valid.

    `place` is the position of each label among the labels of the factors.
    """
    n, L, S = parts[0].shape
    m = len(parts) * L
    tables = _tables(
        objective.beta, m, S, settings_of(backend, objective), backend.dtype, backend.device
    )
    tables = tables._replace(column=place.argsort().to(torch.int32))  # the inverse permutation
    rows = max(1, work_bytes(backend) // (m * S * parts[0].element_size()))
    blocks = []
    for start in range(0, n, rows):
        P = torch.stack([part[start : start + rows] for part in parts], dim=1)  # (n, F, L, S)
        block = decide_table(backend, P, m, tables, objective)
        if block is None:
            return None
        blocks.append(block)
    labels, expected = zip(*blocks, strict=True)
    return Decision(torch.cat(labels), torch.cat(expected))
