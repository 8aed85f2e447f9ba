"""exp and log(1 + x) of the kernels, as losses of single rows of a ridge logistic regression."""

from __future__ import annotations

import numpy as np

from fgfm.ridge._fit import fit_ridge_logistic


def test_losses_of_rows_are_log_one_plus_exp():
    """Each fold is fitted to all rows and tested on one, so that its loss is that of the row."""
    u = np.concatenate([np.linspace(-34.0, 34.0, 137), [-1e-9, 0.0, 1e-9, 0.4142, 0.8814]])
    rng = np.random.default_rng(0)
    y = (rng.random(len(u)) < 1.0 / (1.0 + np.exp(-u))).astype(int)
    folds = [(np.arange(len(u)), [row]) for row in range(len(u))]
    (fit,) = fit_ridge_logistic(u[:, None], [y], penalties=[1e-3], cv=folds, tol=1e-12)
    eta = u * fit.coef[0, 0] + fit.intercept[0]
    assert np.abs(eta).max() > 20.0
    margin = np.where(y == 1, eta, -eta)
    np.testing.assert_allclose(fit.cv_losses[:, 0], np.logaddexp(0.0, -margin), rtol=1e-9)
