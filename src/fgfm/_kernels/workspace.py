"""Room for the decision of one row of marginals, allocated once for a block of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fgfm._kernels._compile import compiled

__all__ = ["BUCKETS", "CHUNK", "Workspace", "workspace"]

CHUNK = 128  # labels that are scanned together; chunks without large labels are not revisited
BUCKETS = 1024


class Workspace(NamedTuple):
    """Arrays that a row may use as it likes."""

    value: Any  # the listed labels
    place: Any  # where they stand
    window: Any  # the labels that can be the last one of an optimal set
    window_place: Any
    set_value: Any  # the values of the sets that end in the window
    spare: Any  # room to sort
    spare_place: Any
    bucket: Any  # labels in a bucket
    below: Any  # labels below a threshold, chunk by chunk
    log_z: Any  # the quadrature rule, node by node
    z: Any
    zeta: Any
    u: Any
    weight: Any
    product: Any  # D(zeta)
    total: Any  # A_k(u), up to the last restart
    carry: Any  # what rounding kept out of it
    part: Any  # what came to A_k(u) since
    factor: Any  # what multiplies A_k in V_k


@compiled
def workspace(m, nodes):
    """Make room for rows of m labels and rules of so many nodes."""
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
