"""The default learner: models of all labels at once, stacked.

A random forest and two ridge regressions predict all labels. Each has held-out predictions of the
training rows at no further cost (out of bag, and leave-one-out in closed form), from which the
stack learns how to combine them. Many rows have further parts, fitted in folds: logistic
regression of each label on counts, gradient boosting of each label on other features.
"""

from __future__ import annotations

from fgfm.learner._classifier import StackClassifier
from fgfm.learner._inputs import validate_numbers as validate_numbers

__all__ = ["StackClassifier"]  # the other is for gfm


def __dir__() -> list[str]:
    return __all__
