r"""The generalised covariance measure: tests of all pairs of labels given any features.

With residuals :math:`R_i = Y_i - \hat p_i(X)` of regressions fitted without the row, labels that
are independent given X have :math:`E[R_i R_j] = 0`, and

.. math:: T_{ij} = \sum_r R_{ri} R_{rj} \Big/ \sqrt{\sum_r R_{ri}^2 R_{rj}^2}

is asymptotically standard normal if the product of the errors of the two regressions vanishes
faster than :math:`n^{-1/2}` (Shah and Peters, 2020). Two matrix products compute it for all pairs.

There are three extensions. *Few rows with both labels*: the normal approximation fails (two labels
of 3 percent without a common row among 1000 rows would be called dependent), and the sums are
compared with a Poisson distribution instead (`_null_distribution`). *Dependence that changes with
x*: the products are also summed with weights that depend on x, here within groups of rows
(Scheidegger, Hoerrmann and Buehlmann, 2022). *Predictions that share rows*: the default regression
measures by how much they inflate the variance of T (`_regression`).

References
----------
Shah, R. D. and Peters, J. (2020). The Hardness of Conditional Independence Testing and the
Generalised Covariance Measure. Annals of Statistics 48(3). doi:10.1214/19-AOS1857

Scheidegger, C., Hoerrmann, J. and Buehlmann, P. (2022). The Weighted Generalised Covariance
Measure. Journal of Machine Learning Research 23(273).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import check_array, check_random_state

from fgfm.factors._pairwise import PairwiseResult, Progress
from fgfm.factors._regression import regress_labels
from fgfm.factors._residual_products import Weights, pairwise_p_values
from fgfm.factors._residuals import Residuals, cross_fitted_probabilities, residual_moments
from fgfm.factors._scaling import scale, standardise
from fgfm.factors._validation import check_labels

__all__ = ["GCM"]

Floats = npt.NDArray[np.float64]

_N_STEPS = 4  # of the progress: two of the regression, the groups, the tests
# Sparse features with at most this many cells are densified, since trees are faster on dense
# arrays; up to the larger number if at least one cell in ten is not zero.
_DENSE_CELLS = 5_000_000
_MAX_DENSE_CELLS = 50_000_000


class GCM(BaseEstimator):  # type: ignore[misc]
    r"""Test all pairs of labels for independence given features of any kind.

    For each pair of labels the null hypothesis is that they are independent given X. The p-value
    is the smallest of up to three, Sidak-corrected for their number:

    - mean: :math:`T_{ij}`, is the average of :math:`R_i R_j` zero?
    - groups of rows that differ in the fitted probabilities: is the average the same in each?
      With standardised sums z of the groups and their variances :math:`\kappa`, Cochran's
      :math:`Q = \sum_g z_g^2 - (\sum_g \sqrt{\kappa_g} z_g)^2 / \sum_g \kappa_g` is chi-square
      with one degree of freedom less than there are groups;
    - the same for groups that differ in the products themselves, found on the other half of the
      rows.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        Model of a label given the features: a classifier with ``predict_proba``, or a regressor.
        An estimator that supports several outputs is fitted once for all labels, others label by
        label. It must be flexible: effects that it cannot express make false edges. The default
        is linear or logistic ridge regression, whichever predicts the label better, followed by a
        random forest on the residuals, for all labels at once.
    weights : {"auto", "fixed"}, callable, array-like or None, default="auto"
        How dependence that changes with x is detected, in addition to its mean. "auto": both kinds
        of groups above. "fixed": groups of rows that differ in the features, independently of the
        labels. None: not at all. An array of integers of shape (n,) (or a callable that returns
        one for X) defines groups; an array of floats of shape (n,) or (n, K) the values of K
        weight functions, each of which counts as one test. It must not depend on Y.
    cv : int, splitter or iterable, default=5
        Folds for `estimator`; an integer stands for shuffled folds. The default regression needs
        none: it leaves out each row by itself.
    random_state : int, RandomState instance or None, default=None
        Seed of the forest, the folds and the groups.
    n_jobs : int, optional
        Number of jobs for the regressions. The result does not depend on it.

    See Also
    --------
    PairwiseResult : The result of `pairs`.

    Notes
    -----
    Rows must be independent of each other: duplicates of a row predict each other. A label with
    very few positive (or negative) rows is tested, but is found to depend on another only if they
    have more common rows than a Poisson variable allows. A constant label is independent of all
    others: p = 1.

    The default regression finds linear effects at any sample size, curves and steps from about 200
    rows, but pure interactions of continuous features (no feature is informative by itself) only
    from some thousand rows; below, such confounding makes false edges. If all labels share one
    steep direction the level is nearly kept: at alpha = 0.01 it rejected 0.005 to 0.02 of
    independent pairs for a logistic curve of slope 3 or 4 along the sum of 5 or 10 features
    (n = 200 to 3000), but 0.06 for a jump from 0.1 to 0.9 along it (n = 1000).

    Examples
    --------
    Labels 0 and 1 depend on the same feature and on nothing else; label 2 depends on label 1, with
    a sign that changes with another feature.

    >>> import numpy as np
    >>> from fgfm.factors import GCM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> Y = (X[:, [0, 0, 0]] + rng.normal(size=(500, 3)) > 0).astype(int)
    >>> Y[:, 2] = np.where(X[:, 1] > 0, Y[:, 1], 1 - Y[:, 1]) ^ (rng.random(500) < 0.1)
    >>> GCM(random_state=0).pairs(X, Y).p_values <= 0.01
    array([[False, False, False],
           [False, False,  True],
           [False,  True, False]])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        weights: Any = "auto",
        cv: Any = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.weights = weights
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs

    def pairs(
        self, X: Any, Y: Any, *, n_jobs: int | None = None, progress: Progress | None = None
    ) -> PairwiseResult:
        """Test all pairs of labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Features.
        Y : array-like or sparse matrix of shape (n, m)
            Labels, 0 or 1.
        n_jobs : int, optional
            Number of jobs; by default that of the constructor.
        progress : callable, optional
            Called with the number of steps done and the number of steps in all.

        Returns
        -------
        PairwiseResult
            Symmetric p-values; the effects are estimated root mean square correlations of the
            residuals given x, in [0, 1].
        """
        self._check_parameters()
        X = _check_features(X, allow_nan=self.estimator is not None)
        labels = check_labels(Y, X.shape[0])  # (n, m)
        n_jobs = self.n_jobs if n_jobs is None else n_jobs
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        m = labels.shape[1]
        varied = np.flatnonzero(labels.any(axis=0) & ~labels.all(axis=0))
        steps = _StepCounter(progress)
        weights = Weights.from_user(self.weights, X)
        p_values, effects = np.ones((m, m)), np.zeros((m, m))
        if len(varied) > 1:
            # Trees read single precision, which loses small variation around a large mean.
            Z = scale(X) if sparse.issparse(X) else standardise(X)
            features = Z if self.estimator is None else X
            residuals = self._residuals(
                features, labels[:, varied].astype(float), rng, n_jobs, steps
            )
            weights = weights.with_groups(self.weights, Z, residuals, rng)
            steps()
            result = pairwise_p_values(residuals, weights)
            p_values[np.ix_(varied, varied)] = result.p_values
            effects[np.ix_(varied, varied)] = result.effects
        np.fill_diagonal(p_values, np.nan)
        np.fill_diagonal(effects, np.nan)
        steps.finish()
        return PairwiseResult(p_values, effects, None)

    def _residuals(
        self, X: Any, Y: Floats, rng: np.random.Generator, n_jobs: int | None, steps: _StepCounter
    ) -> Residuals:
        if self.estimator is None:
            R, inflation = regress_labels(X, Y, rng, n_jobs, steps)
            return residual_moments(Y, R, inflation)
        seed = int(rng.integers(2**31))
        P = cross_fitted_probabilities(self.estimator, X, Y, self.cv, seed, n_jobs, steps)
        return residual_moments(Y, Y - P)

    def _check_parameters(self) -> None:
        if isinstance(self.weights, str) and self.weights not in ("auto", "fixed"):
            raise ValueError(
                f"weights is {self.weights!r}: it must be 'auto', 'fixed', None, an array or a "
                "function of X"
            )
        estimator = self.estimator
        if estimator is None:
            return
        predicts = any(hasattr(estimator, method) for method in ("predict_proba", "predict"))
        if isinstance(estimator, type) or not hasattr(estimator, "fit") or not predicts:
            raise TypeError(
                f"estimator is {estimator!r}: it must be None, a classifier with predict_proba, "
                "or a regressor"
            )
        if is_classifier(estimator) and not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"estimator is {estimator!r}, a classifier without predict_proba: "
                "it must predict probabilities"
            )


class _StepCounter:
    """Count the steps of a test, and report them to a callback."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.done = 0

    def __call__(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, _N_STEPS)

    def finish(self) -> None:
        """Report the steps that were skipped."""
        while self.done < _N_STEPS:
            self()


def _check_features(X: Any, *, allow_nan: bool) -> Any:
    """Validate features, and densify sparse ones that are small enough."""
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite="allow-nan" if allow_nan else True,
        input_name="X",
    )
    if sparse.issparse(X):
        cells = X.shape[0] * X.shape[1]
        if cells <= max(_DENSE_CELLS, min(_MAX_DENSE_CELLS, 10 * X.nnz)):
            X = X.toarray()
    return X
