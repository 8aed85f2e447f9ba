"""The measures of label sets whose expectation can be maximised.

A measure is a class with its kernels, and a line of `MEASURES`. To add one, write its bounds and
its evaluation in a header of `fgfm._kernels` (``jaccard.hpp``), bind the kernels, and copy
`Jaccard`. A measure without a Triton kernel is decided by the compiled kernels, also for arrays on
a device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fgfm import _kernels


class Measure:
    """A measure of label sets: how the expectation of the best set is found."""

    name: ClassVar[str]  # the value of the parameter `measure`
    kernels: ClassVar[Mapping[str, Any]]  # by the kind of problem: those that determine it
    has_beta: ClassVar[bool] = False  # recall and precision can be weighted
    has_limits: ClassVar[bool] = False  # the label sets can be constrained
    on_device: ClassVar[bool] = False  # `fgfm.decision.gpu` has kernels


class FMeasure(Measure):
    """F_beta = (1 + beta^2) |y and h| / (beta^2 |y| + |h|)."""

    name = "f"
    kernels: ClassVar[Mapping[str, Any]] = {
        "dense rows": _kernels.decide_dense_rows,
        "csr rows": _kernels.decide_csr_rows,
        "dense columns": _kernels.decide_dense_columns,
        "cardinalities": _kernels.decide_cardinality_rows,
        "factors": _kernels.decide_factor_rows,
        "sparse factors": _kernels.decide_sparse_factor_rows,
    }
    has_beta = has_limits = on_device = True


class Jaccard(Measure):
    """|y and h| / |y or h|, for independent labels: for others P does not determine it."""

    name = "jaccard"
    kernels: ClassVar[Mapping[str, Any]] = {
        "dense rows": _kernels.decide_jaccard_dense_rows,
        "csr rows": _kernels.decide_jaccard_csr_rows,
    }


MEASURES: dict[str, Measure] = {kind.name: kind() for kind in (FMeasure, Jaccard)}
