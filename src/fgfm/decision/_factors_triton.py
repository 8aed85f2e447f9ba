"""Decisions from small factors, by a Triton kernel for CUDA tensors of PyTorch.

Formulas are those of `fgfm.decision._factors_array_api`; the kernel is that of
`fgfm.decision._array_api.columns_triton`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import triton

from fgfm.decision._array_api.backend import Backend, work_bytes
from fgfm.decision._array_api.columns_triton import (
    SIZES,
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
    """Return scale_q, zeta_q^s and the weights z_q^k, (Q, sizes), of the rule for m labels."""
    rule = nodes(beta, m, m)
    s = np.arange(1, triton.next_power_of_2(S) + 1)
    zeta = np.exp(beta * beta * rule.log_z[:, None] * s)  # (Q, padded S)
    scale = (1.0 + beta * beta) * rule.weight
    powers = np.exp(rule.log_z[:, None] * np.arange(1, m + SIZES))
    return make_tables(settings, s[:S], [scale, zeta], powers, None, dtype, device)


def decide_factors(
    backend: Backend,
    parts: Sequence[Any],
    members: Sequence[npt.NDArray[np.int64]],
    objective: Objective,
) -> Decision | None:
    """Decide from the P of factors, each (n, m_f, S_f); return None if some may not be valid.

    `members` are the labels of each factor. All P are padded to the largest m_f and S_f.
    """
    n, F = parts[0].shape[0], len(parts)
    L, S = (max(part.shape[axis] for part in parts) for axis in (1, 2))
    m = sum(len(own_labels) for own_labels in members)
    settings = settings_of(backend, objective)
    tables = _tables(objective.beta, m, S, settings, backend.dtype, backend.device)
    column = np.zeros((F, L), dtype=np.int32)
    for positions, own_labels in zip(column, members, strict=True):
        positions[: len(own_labels)] = own_labels
    tables = tables._replace(column=torch.as_tensor(column, device=backend.device))
    rows = max(1, work_bytes(backend) // (F * L * S * backend.itemsize))
    blocks = []
    for start in range(0, n, rows):
        own = parts if rows >= n else [part[start : start + rows] for part in parts]
        P = _stacked(own, L, S, backend.dtype)
        block = decide_table(backend, P, m, tables, objective)
        if block is None:
            return None
        blocks.append(block)
    labels, expected = zip(*blocks, strict=True)
    return Decision(torch.cat(labels), torch.cat(expected))


def _stacked(parts: Sequence[Any], L: int, S: int, dtype: Any) -> Any:
    """Return the P of all factors, (n, F, L, S), padded with zeros."""
    if len({(part.shape, part.dtype) for part in parts}) == 1:
        return torch.stack(parts, dim=1)
    shape = (parts[0].shape[0], len(parts), L, S)
    P = torch.zeros(shape, dtype=dtype, device=parts[0].device)
    for f, part in enumerate(parts):
        P[:, f, : part.shape[1], : part.shape[2]] = part
    return P
