"""Which labels belong together given the features: tests, Markov boundaries and label factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fgfm.factors.dag import factors_from_dag
from fgfm.factors.ilf import ILFCompo
from fgfm.factors.independence import GTest, PairwiseResult, PairwiseTest, g_test
from fgfm.factors.markov_boundary import markov_boundary
from fgfm.factors.mutual_information import MutualInformation

if TYPE_CHECKING:
    from fgfm.factors.gcm import GCM

__all__ = [
    "GCM",
    "GTest",
    "ILFCompo",
    "MutualInformation",
    "PairwiseResult",
    "PairwiseTest",
    "factors_from_dag",
    "g_test",
    "markov_boundary",
]


def __getattr__(name: str) -> Any:
    if name == "GCM":
        from fgfm.factors.gcm import GCM

        return GCM
    raise AttributeError(
        f"fgfm.factors has no attribute {name!r}: its public names are {', '.join(__all__)}"
    )
