"""Scratch arrays of `marginals`, allocated once for a block of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fgfm._kernels._compile import compiled

__all__ = ["BUCKETS", "CHUNK", "Workspace", "workspace"]

CHUNK = 128  # labels scanned together; a chunk without large labels is not read again
BUCKETS = 1024  # at most, when ranks are bounded without sorting


class Workspace(NamedTuple):
    """Scratch arrays for rows of m labels and quadrature rules of R nodes."""

    listed_p: Any  # (m + 1,) probabilities of the listed labels
    listed_index: Any  # (m + 1,) their indices
    window: Any  # (m + 1,) probabilities of the labels that can be last in an optimal set
    window_index: Any  # (m + 1,) their indices
    set_value: Any  # (m + 1,) V_k of the sets that end in the window
    spare: Any  # (m + 1,) for sorting
    spare_index: Any  # (m + 1,) for sorting
    bucket_count: Any  # (max(m, BUCKETS) + 2,) labels per bucket
    n_below: Any  # (m // CHUNK + 1,) labels below a threshold, per chunk
    log_z: Any  # (R,) the quadrature rule
    z: Any  # (R,)
    zeta: Any  # (R,) z^(beta^2)
    u: Any  # (R,) 1 - zeta
    weight: Any  # (R,)
    product: Any  # (R,) D(zeta)
    A: Any  # (R,) A_k(u) up to the last restart
    A_error: Any  # (R,) rounding error of A (Kahan)
    A_recent: Any  # (R,) terms of A_k(u) since the last restart
    multiplier: Any  # (R,) multiplies A_k(u) in V_k


@compiled
def workspace(m, nodes):
    """Allocate a workspace for rows of m labels and rules of up to `nodes` nodes."""
    return Workspace(
        np.empty(m + 1),
        np.empty(m + 1, dtype=np.int64),
        np.empty(m + 1),
        np.empty(m + 1, dtype=np.int64),
        np.empty(m + 1),
        np.empty(m + 1),
        np.empty(m + 1, dtype=np.int64),
        np.empty(max(m, BUCKETS) + 2, dtype=np.int64),
        np.empty(m // CHUNK + 1, dtype=np.int64),
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes),
    )
