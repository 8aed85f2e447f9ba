"""From features and labels to P: the models that the decisions rest on.

Five estimates of P for one label factor, with one protocol (`FactorModel`): ``fit(X, Y)`` on the
labels of the factor, then ``estimate(X)``.

- `Reweighted`: one model per label, and one of the number of labels that is learned from what
  these say of rows held out;
- `TwoStep`: a model of the number of labels, and one per label given that number (the paper);
- `Tilted`: a model of the number of labels, and one per label, joined by a tilt;
- `Direct`: one multinomial model per label;
- `Powerset`: one multinomial model of the label set.

Their base learner is any scikit-learn classifier, by default `fgfm.ridge.RidgeLogistic`.
"""

from __future__ import annotations

from fgfm.estimation.base import FactorEstimate, FactorEstimator, FactorModel
from fgfm.estimation.calibration import needs_calibration
from fgfm.estimation.direct import Direct, Repair
from fgfm.estimation.powerset import Powerset
from fgfm.estimation.reweighted import Reweighted
from fgfm.estimation.tilted import Tilted
from fgfm.estimation.two_step import TwoStep

__all__ = [
    "Direct",
    "FactorEstimate",
    "FactorEstimator",
    "FactorModel",
    "Powerset",
    "Repair",
    "Reweighted",
    "Tilted",
    "TwoStep",
    "needs_calibration",
]
