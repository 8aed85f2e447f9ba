"""The learner behind ``FGFMClassifier("auto")``: parts for all labels at once, stacked.

A random forest and two ridge regressions predict all labels and the number of
labels. Each has held-out predictions of the training rows at no further cost (out of bag, and
leave-one-out in closed form), from which the stack learns how to combine them. Many rows have
further parts, fitted in folds: logistic regression of each label on counts, gradient boosting of
each label on other features.
"""

from __future__ import annotations

from fgfm.stack._learner import StackedLearner, StackedPredictions

__all__ = ["StackedLearner", "StackedPredictions"]


def __dir__() -> list[str]:
    return __all__
