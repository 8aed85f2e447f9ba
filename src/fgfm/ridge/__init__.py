"""Ridge logistic regression with the penalty chosen by cross-validation: the default learner."""

from __future__ import annotations

from fgfm.ridge._estimator import RidgeFit, RidgeLogistic, fit_ridge_logistic

__all__ = ["RidgeFit", "RidgeLogistic", "fit_ridge_logistic"]
