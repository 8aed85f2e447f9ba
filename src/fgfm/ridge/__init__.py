r"""The learner of the paper: ridge logistic regression with a cross-validated penalty.

A target with classes y and weights W is modelled by minimising

.. math::

    - \sum_i w_i \log p(y_i \mid x_i) + \lambda \sum_{kj} W_{kj}^2

for every penalty :math:`\lambda` of a grid, and by taking the penalty with the least log-loss on
held-out rows. `RidgeLogistic` is a scikit-learn classifier. `FGFMClassifier` fits many targets
on the same features together, by ``fit_ridge_logistic``.

The modules, from the outside in: ``_estimator``, ``_fit`` (validation), ``_solver`` (chunks of
targets, in parallel) and ``_design`` (the rows, grouped and centred). The algorithms are compiled:
``fgfm/_kernels/ridge.hpp``.
"""

from __future__ import annotations

from fgfm.ridge._estimator import RidgeLogistic
from fgfm.ridge._fit import fit_ridge_logistic as fit_ridge_logistic
from fgfm.ridge._solver import RidgeFit as RidgeFit

__all__ = ["RidgeLogistic"]  # the others are for the packages of fgfm


def __dir__() -> list[str]:
    return __all__
