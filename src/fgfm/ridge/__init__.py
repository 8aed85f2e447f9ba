r"""Ridge logistic regression with the penalty chosen by cross-validation: the default learner.

A target with classes y and weights W is modelled by minimising

.. math::

    - \sum_i w_i \log p(y_i \mid x_i) + \lambda \sum_{kj} W_{kj}^2

for every penalty :math:`\lambda` of a grid, and by taking the penalty with the least log-loss on
held-out rows. `fit_ridge_logistic` fits all penalties, folds and targets together; `RidgeLogistic`
is the same for one target, as a scikit-learn classifier.

The modules, from the outside in: ``_estimator``, ``_fit`` (the public function), ``_chunks``
(targets that are fitted together), ``_newton`` (small models, by Cholesky factors), ``_batch``
(large models, many at a time), ``_newton_cg``, ``_cg``, ``_sparse_cg``, ``_preconditioner`` and
``_objective`` (their solver), ``_arrays`` (NumPy arrays, or tensors on a device), ``_problem``
(types that both solvers share) and ``_design`` (the rows, grouped and centred).
"""

from __future__ import annotations

from fgfm.ridge._estimator import RidgeLogistic
from fgfm.ridge._fit import RidgeFit, fit_ridge_logistic

__all__ = ["RidgeFit", "RidgeLogistic", "fit_ridge_logistic"]


def __dir__() -> list[str]:
    return __all__
