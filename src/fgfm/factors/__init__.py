"""Which labels must be modelled together given the features."""

from __future__ import annotations

from fgfm.factors._pairwise import PairwiseResult
from fgfm.factors.gcm import GCM

__all__ = ["GCM", "PairwiseResult"]
