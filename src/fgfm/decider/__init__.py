"""Decisions learned from validation rows, behind any model."""

from fgfm.decider._decider import FDecider

__all__ = ["FDecider"]


def __dir__() -> list[str]:
    return __all__
