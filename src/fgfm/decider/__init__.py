"""F-optimal decisions behind any model: learned from its probabilities for validation rows."""

from __future__ import annotations

from fgfm.decider._cross_validated import FDeciderCV
from fgfm.decider._decider import FDecider

__all__ = ["FDecider", "FDeciderCV"]


def __dir__() -> list[str]:
    return __all__
