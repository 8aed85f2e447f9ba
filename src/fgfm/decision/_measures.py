"""The measures of label sets whose expectation can be maximised.

A measure is a line of `MEASURES`: its kernels, by the kind of problem. A problem without a kernel
does not determine the expectation. The bounds of a measure are in its kernels, and for arrays of
PyTorch, CuPy and JAX in a module of `fgfm.decision._array_api`, which
`fgfm.decision._marginals_array_api` lists in a table of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fgfm import _kernels

__all__ = ["MEASURES", "Measure"]


@dataclass(frozen=True, eq=False)
class Measure:
    """A measure of label sets."""

    name: str  # the value of the parameter `measure`
    kernels: Mapping[str, Any]  # by the kind of problem, those that determine the expectation
    has_beta: bool = False  # recall and precision can be weighted
    has_limits: bool = False  # the label sets can be constrained

    def __reduce__(self) -> Any:
        return _measure_named, (self.name,)  # compiled functions cannot be pickled


def _measure_named(name: str) -> Measure:
    return MEASURES[name]


_ALL = (
    Measure(
        "f",
        {
            "dense rows": _kernels.decide_dense_rows,
            "csr rows": _kernels.decide_csr_rows,
            "dense columns": _kernels.decide_dense_columns,
            "cardinalities": _kernels.decide_cardinality_rows,
            "factors": _kernels.decide_factor_rows,
            "sparse factors": _kernels.decide_sparse_factor_rows,
            "samples": _kernels.decide_sample_rows,
            "joint": _kernels.decide_joint_rows,
        },
        has_beta=True,
        has_limits=True,
    ),
    # Independent labels only: P does not determine the expectation for dependent ones.
    Measure(
        "jaccard",
        {
            "dense rows": _kernels.decide_jaccard_dense_rows,
            "csr rows": _kernels.decide_jaccard_csr_rows,
        },
    ),
)
MEASURES = {measure.name: measure for measure in _ALL}
