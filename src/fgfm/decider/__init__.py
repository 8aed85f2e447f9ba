"""Decisions learned from validation rows, behind any model."""

from fgfm.decider._decider import FDecider
from fgfm.decider._report import compare as compare  # for the report of fgfm evaluate

__all__ = ["FDecider"]


def __dir__() -> list[str]:
    return __all__
