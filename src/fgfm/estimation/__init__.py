"""Estimate P from features and labels, for one label factor.

Five estimators with one protocol (`FactorModel`): ``fit(X, Y)`` on the labels of the factor, then
``estimate(X)``.

- `Reweighted`: one model per label and one of the number of labels; the distribution of the number
  of labels is learned from out-of-fold predictions of both;
- `TwoStep`: a model of the number of labels, and one per label given that number (the paper);
- `Tilted`: a model of the number of labels and one per label, combined by tilting the marginals;
- `Direct`: one multinomial model per label;
- `Powerset`: one multinomial model of the label set.

The base learner is any scikit-learn classifier, by default `fgfm.ridge.RidgeLogistic`.
"""

from __future__ import annotations

from fgfm.estimation._calibration import needs_calibration
from fgfm.estimation._direct import Direct
from fgfm.estimation._powerset import Powerset
from fgfm.estimation._reweighted import Reweighted
from fgfm.estimation._tilted import Tilted
from fgfm.estimation._two_step import TwoStep
from fgfm.estimation._types import FactorEstimate, FactorModel, Repair

__all__ = [
    "Direct",
    "FactorEstimate",
    "FactorModel",
    "Powerset",
    "Repair",
    "Reweighted",
    "Tilted",
    "TwoStep",
    "needs_calibration",
]


def __dir__() -> list[str]:
    return __all__
