"""Model files: save fitted models, and load them without running code."""

from fgfm.store._files import foreign_classes, load, save

__all__ = ["foreign_classes", "load", "save"]


def __dir__() -> list[str]:
    return __all__
