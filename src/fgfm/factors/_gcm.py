r"""The generalised covariance measure: tests of all pairs of labels given any features.

With residuals :math:`R_i = Y_i - \hat p_i(X)` of regressions fitted without the row, labels that
are independent given X have :math:`E[R_i R_j] = 0`, and

.. math:: T_{ij} = \sum_r R_{ri} R_{rj} \Big/ \sqrt{\sum_r R_{ri}^2 R_{rj}^2}

is asymptotically standard normal if the product of the errors of the two regressions vanishes
faster than :math:`n^{-1/2}` (Shah and Peters, 2020). Two matrix products compute it for all pairs.

There are three extensions. *Few rows with both labels*: the normal approximation fails (two labels
of 3 percent without a common row among 1000 rows would be called dependent), and the sums are
compared with a Poisson distribution instead (`_residual_products`). *Dependence that changes with
x*: the products are also summed within groups of rows, as weights that depend on x do
(Scheidegger, Hoerrmann and Buehlmann, 2022). *Predictions that share rows*: the regression
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
from sklearn.utils import check_array, check_random_state

from fgfm.factors._pairwise import PairwiseResult
from fgfm.factors._regression import combine_columns, regress_labels, scale, standardise
from fgfm.factors._residual_products import Residuals, pairwise_p_values, residual_moments

Integers = npt.NDArray[np.int64]

# Sparse features with at most this many cells are densified, since trees are faster on dense
# arrays; up to the larger number if at least one cell in ten is not zero.
_DENSE_CELLS = 5_000_000
_MAX_DENSE_CELLS = 50_000_000
_N_TARGETS = 32  # random combinations of columns that trees are grown for
_MIN_ROWS = 20  # of a leaf


def pairs_by_gcm(
    X: Any, Y: npt.NDArray[np.bool_], random_state: Any, n_jobs: int | None
) -> PairwiseResult:
    r"""Test all pairs of labels for independence given features of any kind.

    The p-value of a pair is the smallest of up to three, Sidak-corrected for their number:

    - mean: :math:`T_{ij}`, is the average of :math:`R_i R_j` zero?
    - groups of rows that differ in the fitted probabilities: is the average the same in each?
      With standardised sums z of the groups and their variances :math:`\kappa`, Cochran's
      :math:`Q = \sum_g z_g^2 - (\sum_g \sqrt{\kappa_g} z_g)^2 / \sum_g \kappa_g` is chi-square
      with one degree of freedom less than there are groups;
    - the same for groups that differ in the products themselves, found on the other half of the
      rows.

    P-values are symmetric; the effects are estimated root mean square correlations of the
    residuals given x, in [0, 1]. Rows must be independent of each other: duplicates of a row
    predict each other. A label with very few positive (or negative) rows is tested, but is found
    to depend on another only if they have more common rows than a Poisson variable allows. A
    constant label is independent of all others: p = 1.

    The regression is linear or logistic ridge, whichever predicts the label better, followed by a
    random forest on the residuals, for all labels at once. It finds linear effects at any sample
    size, curves and steps from about 200 rows, but pure interactions of continuous features (no
    feature is informative by itself) only from some thousand rows; below, such confounding makes
    false edges. If all labels share one steep direction the level is nearly kept: at alpha = 0.01
    it rejected 0.005 to 0.02 of independent pairs for a logistic curve of slope 3 or 4 along the
    sum of 5 or 10 features (n = 200 to 3000), but 0.06 for a jump from 0.1 to 0.9 along it
    (n = 1000).
    """
    X = _check_features(X)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    m = Y.shape[1]
    varied = np.flatnonzero(Y.any(axis=0) & ~Y.all(axis=0))
    p_values, effects = np.ones((m, m)), np.zeros((m, m))
    if len(varied) > 1:
        # Trees read single precision, which loses small variation around a large mean.
        Z = scale(X) if sparse.issparse(X) else standardise(X)
        target = Y[:, varied].astype(np.float64)
        residuals = residual_moments(target, *regress_labels(Z, target, rng, n_jobs))
        groupings = [_groups_by_fit(Z, residuals, rng), _groups_by_products(Z, residuals, rng)]
        result = pairwise_p_values(residuals, groupings)
        p_values[np.ix_(varied, varied)] = result.p_values
        effects[np.ix_(varied, varied)] = result.effects
    np.fill_diagonal(p_values, np.nan)
    np.fill_diagonal(effects, np.nan)
    return PairwiseResult(p_values, effects, None)


def _check_features(X: Any) -> Any:
    """Return features as floats, and densify sparse ones that are small enough."""
    X = check_array(
        X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", input_name="X"
    )
    if sparse.issparse(X):
        cells = X.shape[0] * X.shape[1]
        if cells <= max(_DENSE_CELLS, min(_MAX_DENSE_CELLS, 10 * X.nnz)):
            X = X.toarray()
    return X


# A dependence whose sign changes with x cancels in an average over all rows, but not within groups
# of similar rows. The groups are the leaves of a small regression tree; the target of the tree
# defines which rows are similar.


def _groups_by_fit(X: Any, residuals: Residuals, rng: np.random.Generator) -> Integers:
    """Return up to 8 groups of rows that differ in the fitted probabilities of the labels."""
    target = combine_columns(residuals.fitted, _N_TARGETS, rng)
    tree = _make_tree(X.shape[0], 8, 20, rng).fit(X, target)
    return _renumber(tree.apply(X))


def _groups_by_products(X: Any, residuals: Residuals, rng: np.random.Generator) -> Integers:
    """Return groups of rows that differ in the products of residuals, up to 4 of each half.

    The tree of one half of the rows is grown on the other half: otherwise the products would
    select the groups in which they are tested.
    """
    n = X.shape[0]
    half = rng.permutation(n) % 2
    R = residuals.values
    # (sum_i e_i R_i)^2 - sum_i R_i^2 = sum_{i != j} e_i e_j R_i R_j: random signs e give random
    # signed sums of the products of all pairs.
    signs = rng.choice([-1.0, 1.0], (R.shape[1], _N_TARGETS))
    target = (R @ signs) ** 2 - np.sum(R * R, axis=1, keepdims=True)  # (n, targets)
    groups = np.empty(n, dtype=np.int64)
    for side in (0, 1):
        grown, cut = np.flatnonzero(half == side), np.flatnonzero(half != side)
        tree = _make_tree(n, 4, 30, rng).fit(X[grown], target[grown])
        groups[cut] = 2 * tree.apply(X[cut]) + side
    return _renumber(groups)


def _make_tree(n: int, leaves: int, share: int, rng: np.random.Generator) -> Any:
    """Return a regression tree whose leaves have n / share rows or more."""
    from sklearn.tree import DecisionTreeRegressor  # slow to import, and used by GCM only

    return DecisionTreeRegressor(
        max_leaf_nodes=leaves,
        min_samples_leaf=max(_MIN_ROWS, n // share),
        random_state=int(rng.integers(2**31)),
    )


def _renumber(leaves: Any) -> Integers:
    return np.unique(leaves, return_inverse=True)[1].reshape(-1).astype(np.int64)
