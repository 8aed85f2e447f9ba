"""From features and labels to probabilities: the models that the decisions rest on."""

from __future__ import annotations

from fgfm.estimation.ridge import RidgeFit, RidgeLogistic, fit_ridge_logistic

__all__ = ["RidgeFit", "RidgeLogistic", "fit_ridge_logistic"]
