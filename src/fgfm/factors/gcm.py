r"""Are two labels independent given features of any kind? The generalised covariance measure.

With residuals :math:`R_i = Y_i - \hat p_i(X)` of regressions that did not see the row, labels that
are independent given X have :math:`E[R_i R_j] = 0`, and

.. math:: T_{ij} = \sum_r R_{ri} R_{rj} \Big/ \sqrt{\sum_r R_{ri}^2 R_{rj}^2}

is standard normal in the limit, if the product of the two regressions' errors vanishes faster than
:math:`n^{-1/2}` (Shah and Peters, 2020). Two matrix products give it for all pairs.

Three things are added. *Few rows with both labels*: the normal law fails (two labels of 3 percent
that never meet among 1000 rows would be called dependent), and sums are compared with a Poisson
law instead. *Dependence that changes with x*: the products are also summed with weights that
depend on x, here within groups of rows (Scheidegger, Hoerrmann and Buehlmann, 2022). *Predictions
that share rows*: the default regression measures by how much they inflate the variance of T.

References
----------
Shah, R. D. and Peters, J. (2020). The Hardness of Conditional Independence Testing and the
Generalised Covariance Measure. Annals of Statistics 48(3). doi:10.1214/19-AOS1857

Scheidegger, C., Hoerrmann, J. and Buehlmann, P. (2022). The Weighted Generalised Covariance
Measure. Journal of Machine Learning Research 23(273).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import gammaincc
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import check_array, check_random_state

from fgfm._utils.validation import check_same_rows, first_index, label_sets, place
from fgfm.factors._groups import groups_by_features, groups_by_fit, groups_by_products
from fgfm.factors._null_law import equivalent_count, signed_normal, two_sided
from fgfm.factors._pairwise import PairwiseResult
from fgfm.factors._residuals import Residuals, fitted_values, residual_moments
from fgfm.factors._smoother import scale, smooth, standardise

__all__ = ["GCM"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]

_STEPS = 4  # that progress is counted in
_ENOUGH = 30.0  # equivalent number of joint rows from which the seen products tell their variance
# Sparse features are made dense (trees are faster) up to a size, and up to a larger one if less
# than nine cells in ten are empty.
_DENSE_CELLS = 5_000_000
_MOST_DENSE_CELLS = 50_000_000


class GCM(BaseEstimator):  # type: ignore[misc]
    r"""Tests of all pairs of labels given features of any kind, by residual products.

    For each pair of labels the hypothesis is that they are independent given X. The p-value is the
    smallest of up to three, corrected for their number (Sidak):

    - the mean: :math:`T_{ij}`, is the average of :math:`R_i R_j` zero?
    - groups of rows that differ in the fitted probabilities: is the average the same in each?
      With standardised sums z of the groups and their variances :math:`\kappa`, Cochran's
      :math:`Q = \sum_g z_g^2 - (\sum_g \sqrt{\kappa_g} z_g)^2 / \sum_g \kappa_g` is chi-square
      with one degree of freedom less than there are groups.
    - the same for groups that differ in the products themselves, found on the other half of the
      rows.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        What predicts labels from features: a classifier with ``predict_proba``, or a regressor.
        One that takes several outputs is fitted once for all labels, another one label by label.
        It must be flexible: what it cannot express makes false edges. The default is linear or
        logistic ridge regression, whichever predicts the label better, followed by a random
        forest on the residuals, for all labels at once.
    weights : {"auto", "fixed"}, callable, array-like or None, default="auto"
        How dependence that changes with x is looked for, beside its mean. "auto": both kinds of
        groups above. "fixed": groups of rows that differ in the features, whatever the labels.
        None: not at all. An array (or a callable that gives one for X) of integers, of shape
        (n,), holds groups; of floats, of shape (n,) or (n, K), the values of K weight functions,
        each of which counts as one test. It must not depend on Y.
    cv : int, splitter or iterable, default=5
        Folds for `estimator`; an integer asks for shuffled ones. The default regression needs
        none: it leaves out each row by itself.
    random_state : int, RandomState instance or None, default=None
        Seeds the forest, the folds and the groups.
    n_jobs : int, optional
        Number of jobs for the regressions. The answer does not depend on it.

    See Also
    --------
    PairwiseResult : What `pairs` gives.

    Notes
    -----
    Rows must be independent of each other: copies of a row in the data predict each other.
    A label with very few positive (or negative) rows is tested, but can only be found to depend
    on another if they meet more often than a Poisson variable would. A constant label is
    independent of all: p = 1.

    The default regression finds linear effects at any size of the data, curves and steps from
    about 200 rows, but pure interactions of continuous features (no feature tells anything by
    itself) only from some thousand rows; below, such confounding makes false edges. Where all
    labels share one steep direction the level is nearly kept: at alpha = 0.01 it rejected 0.005
    to 0.02 of independent pairs for a logistic curve of slope 3 or 4 along the sum of 5 or 10
    features (n = 200 to 3000), but 0.06 for a jump from 0.1 to 0.9 along it (n = 1000).

    Examples
    --------
    Labels 0 and 1 depend on the same feature and on nothing else; label 2 depends on label 1, in a
    way that changes its sign with another feature.

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
            Called with the number of steps done and the number of all steps.

        Returns
        -------
        PairwiseResult
            Symmetric p-values; the effects are root mean square correlations of the residuals
            given x, in [0, 1], estimated.
        """
        self._check_parameters()
        X, labels = _checked(X, Y, self.estimator is not None)
        n_jobs = self.n_jobs if n_jobs is None else n_jobs
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        m = labels.shape[1]
        varied = np.flatnonzero(labels.any(axis=0) & ~labels.all(axis=0))
        tick = _Steps(progress)
        weights = _Weights.given(self.weights, X)
        p_values, effects = np.ones((m, m)), np.zeros((m, m))
        if len(varied) > 1:
            # Trees read single precision, which loses what varies little about a large mean.
            Z = scale(X) if sparse.issparse(X) else standardise(X)
            seen = Z if self.estimator is None else X
            residuals = self._residuals(seen, labels[:, varied].astype(float), rng, n_jobs, tick)
            weights = weights.found(self.weights, Z, residuals, rng)
            tick()
            test = _test_pairs(residuals, weights)
            p_values[np.ix_(varied, varied)] = test.p_values
            effects[np.ix_(varied, varied)] = test.effects
        np.fill_diagonal(p_values, np.nan)
        np.fill_diagonal(effects, np.nan)
        tick.end()
        return PairwiseResult(p_values, effects, None)

    def _residuals(
        self, X: Any, Y: Floats, rng: np.random.Generator, n_jobs: int | None, tick: _Steps
    ) -> Residuals:
        if self.estimator is None:
            R, inflation = smooth(X, Y, rng, n_jobs, tick)
            return residual_moments(Y, R, inflation)
        seed = int(rng.integers(2**31))
        return residual_moments(
            Y, Y - fitted_values(self.estimator, X, Y, self.cv, seed, n_jobs, tick)
        )

    def _check_parameters(self) -> None:
        if isinstance(self.weights, str) and self.weights not in ("auto", "fixed"):
            raise ValueError(
                f"weights is {self.weights!r}: it must be 'auto', 'fixed', None, an array or a "
                "function of X"
            )
        estimator = self.estimator
        if estimator is None:
            return
        offers = any(hasattr(estimator, method) for method in ("predict_proba", "predict"))
        if isinstance(estimator, type) or not hasattr(estimator, "fit") or not offers:
            raise TypeError(
                f"estimator is {estimator!r}: it must be None, a classifier with predict_proba, "
                "or a regressor"
            )
        if is_classifier(estimator) and not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"estimator is {estimator!r}, a classifier without predict_proba: "
                "it must give probabilities"
            )


class _Steps:
    """Counts steps for whoever wants to know."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.done = 0

    def __call__(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, _STEPS)

    def end(self) -> None:
        """Report whatever steps there was nothing to do for."""
        while self.done < _STEPS:
            self()


def _checked(X: Any, Y: Any, allow_missing: bool) -> tuple[Any, npt.NDArray[np.bool_]]:
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite="allow-nan" if allow_missing else True,
        input_name="X",
    )
    labels = label_sets(Y, "Y", allow_flat=True)  # (n, m)
    check_same_rows([X.shape[0], labels.shape[0]], ["X", "Y"])
    if sparse.issparse(labels):
        labels = labels.toarray()
    if sparse.issparse(X):
        cells = X.shape[0] * X.shape[1]
        if cells <= max(_DENSE_CELLS, min(_MOST_DENSE_CELLS, 10 * X.nnz)):
            X = X.toarray()
    return X, labels.astype(bool)


class _Weights(NamedTuple):
    """Groups of rows, and weight functions, along which dependence may differ."""

    groups: list[Integers]  # (n,) each
    functions: Floats  # (n, K)

    @classmethod
    def given(cls, weights: Any, X: Any) -> _Weights:
        """Read what a user gives; nothing where the weights are still to be found."""
        n = X.shape[0]
        none = np.empty((n, 0))
        if weights is None or isinstance(weights, str):
            return cls([], none)
        array = np.asarray(weights(X) if callable(weights) else weights)
        if array.ndim not in (1, 2) or array.shape[0] != n or array.dtype.kind not in "fiub":
            raise ValueError(
                f"weights has shape {array.shape} and dtype {array.dtype}: with {n} rows it must "
                f"hold groups (integers of shape ({n},)) or weight functions (floats of shape "
                f"({n},) or ({n}, K))"
            )
        if array.ndim == 1 and array.dtype.kind in "iub":
            return cls([np.unique(array, return_inverse=True)[1].reshape(-1)], none)
        functions = array.reshape(n, -1).astype(np.float64)
        wrong = ~np.isfinite(functions)
        if wrong.any():
            index = first_index(wrong)
            raise ValueError(
                f"{place('weights', index[: array.ndim])} is {functions[index]!s}: "
                "weights must be finite"
            )
        return cls([], functions)

    def found(
        self, weights: Any, X: Any, residuals: Residuals, rng: np.random.Generator
    ) -> _Weights:
        """Add the groups that the features and the residuals suggest."""
        if not isinstance(weights, str):
            return self
        ways = (groups_by_fit, groups_by_products) if weights == "auto" else (groups_by_features,)
        return self._replace(groups=[way(X, residuals, rng) for way in ways])


class _Moments(NamedTuple):
    """Sums of products over rows, for all pairs, and their cumulants under independence."""

    S: Floats  # (m, m)
    k2: Floats  # (m, m)
    k3: Floats  # (m, m)
    k4: Floats  # (m, m)


def _moments(residuals: Residuals, rows: Any, w: Floats | None = None) -> _Moments:
    """Sum R_i R_j over some rows, weighted or not: matrix products for all pairs."""
    R, V = residuals.values[rows], residuals.variance[rows]
    K, M = residuals.third[rows], residuals.fourth[rows]
    a = residuals.inflation

    def sums(Z: Floats, power: int) -> Floats:
        if w is None:
            return np.asarray(Z.T @ Z)
        product = Z.T @ (w[:, None] ** power * Z)
        return np.asarray((product + product.T) / 2.0)

    k4 = sums(M, 4) - 3.0 * sums(V * V, 4)
    return _Moments(sums(R, 1), a * sums(V, 2), a**1.5 * sums(K, 3), a**2 * k4)


def _test_pairs(residuals: Residuals, weights: _Weights) -> PairwiseResult:
    """Give the p-value of each pair, from all ways to look at it, and the effect."""
    R = residuals.values
    n = len(R)
    everything = slice(None)
    least, z = _test_sum(residuals, everything)
    n_tests = 1
    effect = np.maximum(z**2 - 1.0, 0.0)
    for groups in weights.groups:
        Q, df = _heterogeneity(residuals, groups)
        if df == 0:
            continue
        n_tests += 1
        least = np.minimum(least, gammaincc(df / 2.0, Q / 2.0))  # chi-square
        effect = np.maximum(effect, np.maximum(z**2 - 1.0, 0.0) + np.maximum(Q - df, 0.0))
    for w in weights.functions.T:
        p, z = _test_sum(residuals, everything, w)
        n_tests += 1
        least = np.minimum(least, p)
        effect = np.maximum(effect, z**2 - 1.0)
    with np.errstate(divide="ignore"):  # log1p(-1), where p is 1
        p_values = -np.expm1(n_tests * np.log1p(-least))
    return PairwiseResult(p_values, np.sqrt(np.minimum(effect / n, 1.0)), None)


def _test_sum(residuals: Residuals, rows: Any, w: Floats | None = None) -> tuple[Floats, Floats]:
    """Test whether the (weighted) mean of R_i R_j is zero: p-values and standardised sums.

    The variance of the sum is that of the products that were seen, as in Shah and Peters, where
    enough rows have both labels; else that of the products that could have been seen.
    """
    S, k2, k3, k4 = _moments(residuals, rows, w)
    R2 = residuals.values[rows] ** 2
    seen = R2.T @ (R2 if w is None else w[:, None] ** 2 * R2)
    seen = residuals.inflation * (seen + seen.T) / 2.0
    z = S / np.sqrt(np.maximum(k2, np.finfo(float).tiny))
    k2 = np.where(equivalent_count(k2, k3, k4) >= _ENOUGH, seen, k2)
    return two_sided(S, k2, k3, k4), z


def _heterogeneity(residuals: Residuals, groups: Integers) -> tuple[Floats, int]:
    """Give Cochran's Q of the sums of R_i R_j over groups of rows, and its degrees of freedom.

    Differences between groups are not inflated as the sum over all rows is: under independence
    the mean of Q over its degrees of freedom was 1.00 without the factor, 0.82 with a factor 1.21.
    """
    residuals = residuals._replace(inflation=1.0)
    m = residuals.values.shape[1]
    squares, total, weight = np.zeros((m, m)), np.zeros((m, m)), np.zeros((m, m))
    n_groups = int(groups.max(initial=0)) + 1
    for g in range(n_groups):
        S, k2, k3, k4 = _moments(residuals, groups == g)
        z = signed_normal(S, k2, k3, k4)
        squares += z**2
        total += np.sqrt(k2) * z
        weight += k2
    Q = squares - total**2 / np.maximum(weight, np.finfo(float).tiny)
    return np.maximum(Q, 0.0), n_groups - 1
