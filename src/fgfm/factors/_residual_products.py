r"""Tests of all pairs of labels from their residuals: the generalised covariance measure.

For labels i and j the products :math:`R_i R_j` of residuals have mean 0 given x if the labels are
independent given x. Tested are their sum over all rows, their weighted sums, and whether their
mean differs between groups of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc

from fgfm._utils.validation import first_index, place
from fgfm.factors._null_distribution import equivalent_count, signed_normal, two_sided
from fgfm.factors._pairwise import PairwiseResult
from fgfm.factors._residuals import Residuals
from fgfm.factors._row_groups import groups_by_features, groups_by_fit, groups_by_products

__all__ = ["Weights", "pairwise_p_values"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ENOUGH = 30.0  # equivalent number of common rows from which the variance is the observed one
_TINY = np.finfo(float).tiny


class Weights(NamedTuple):
    """Groups of rows and weight functions along which the dependence may differ."""

    groups: list[Integers]  # (n,) each
    functions: Floats  # (n, K)

    @classmethod
    def from_user(cls, weights: Any, X: Any) -> Weights:
        """Validate the parameter `weights`; the groups of "auto" and "fixed" are added later."""
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

    def with_groups(
        self, kind: Any, X: Any, residuals: Residuals, rng: np.random.Generator
    ) -> Weights:
        """Add the groups of rows of "auto" or "fixed"; other weights are returned as they are."""
        if not isinstance(kind, str):
            return self
        makers: tuple[Callable[..., Integers], ...] = (groups_by_features,)
        if kind == "auto":
            makers = (groups_by_fit, groups_by_products)
        return self._replace(groups=[make(X, residuals, rng) for make in makers])


def pairwise_p_values(residuals: Residuals, weights: Weights) -> PairwiseResult:
    """Test all pairs of labels by the mean, by each grouping and by each weight function.

    Parameters
    ----------
    residuals : Residuals
        Residuals of m labels.
    weights : Weights
        Groups of rows, and weight functions.

    Returns
    -------
    PairwiseResult
        The smallest p-value of each pair, Sidak-corrected for the number of tests, and the
        effect: an estimate of the root mean square correlation of the residuals given x.
    """
    n = len(residuals.values)
    smallest, z = _test_sum(residuals)
    n_tests = 1
    # z^2 exceeds 1, its mean under independence, by about n times the squared mean correlation of
    # the residuals; Q exceeds df by about n times the variance of the correlation over groups.
    effect = np.maximum(z**2 - 1.0, 0.0)
    for groups in weights.groups:
        Q, df = _heterogeneity(residuals, groups)
        if df == 0:
            continue
        n_tests += 1
        smallest = np.minimum(smallest, gammaincc(df / 2.0, Q / 2.0))  # P(chi-square_df > Q)
        effect = np.maximum(effect, np.maximum(z**2 - 1.0, 0.0) + np.maximum(Q - df, 0.0))
    for w in weights.functions.T:
        p, z = _test_sum(residuals, w)
        n_tests += 1
        smallest = np.minimum(smallest, p)
        effect = np.maximum(effect, z**2 - 1.0)
    with np.errstate(divide="ignore"):  # log1p(-1), where p is 1
        p_values = -np.expm1(n_tests * np.log1p(-smallest))  # Sidak: 1 - (1 - p)^tests
    return PairwiseResult(p_values, np.sqrt(np.minimum(effect / n, 1.0)), None)


class _Cumulants(NamedTuple):
    """Sums of products over rows for all pairs, and their cumulants under independence."""

    S: Floats  # (m, m)
    k2: Floats  # (m, m)
    k3: Floats  # (m, m)
    k4: Floats  # (m, m)


def _cumulants(residuals: Residuals, rows: Any, w: Floats | None = None) -> _Cumulants:
    """Sum w R_i R_j over some rows, and the cumulants of the terms, by matrix products.

    Under independence the r-th moment of R_i R_j given x is the product of the moments of R_i and
    R_j. The mean is 0, so that the second and third cumulants are the moments, and the fourth is
    E[R_i^4] E[R_j^4] - 3 (var R_i var R_j)^2. Inflated standard deviations scale the r-th cumulant
    by inflation^(r/2).
    """
    R, V = residuals.values[rows], residuals.variance[rows]
    K, M = residuals.third[rows], residuals.fourth[rows]
    a = residuals.inflation

    def sums(Z: Floats, power: int) -> Floats:
        if w is None:
            return np.asarray(Z.T @ Z)
        product = Z.T @ (w[:, None] ** power * Z)
        return np.asarray((product + product.T) / 2.0)  # symmetric to the last bit

    k4 = sums(M, 4) - 3.0 * sums(V * V, 4)
    return _Cumulants(sums(R, 1), a * sums(V, 2), a**1.5 * sums(K, 3), a**2 * k4)


def _test_sum(residuals: Residuals, w: Floats | None = None) -> tuple[Floats, Floats]:
    """Test whether the (weighted) mean of R_i R_j is zero: p-values and standardised sums.

    The variance of the sum is that of the observed products, as in Shah and Peters (2020), if
    enough rows have both labels; otherwise it is the expected one.
    """
    S, k2, k3, k4 = _cumulants(residuals, slice(None), w)
    R2 = residuals.values**2
    observed = R2.T @ (R2 if w is None else w[:, None] ** 2 * R2)
    observed = residuals.inflation * (observed + observed.T) / 2.0
    z = S / np.sqrt(np.maximum(k2, _TINY))
    k2 = np.where(equivalent_count(k2, k3, k4) >= _ENOUGH, observed, k2)
    return two_sided(S, k2, k3, k4), z


def _heterogeneity(residuals: Residuals, groups: Integers) -> tuple[Floats, int]:
    r"""Return Cochran's Q of the sums of R_i R_j over groups of rows, and its degrees of freedom.

    With standardised sums z_g and variances k_g of the groups,
    Q = sum_g z_g^2 - (sum_g sqrt(k_g) z_g)^2 / sum_g k_g (Cochran, 1954, Biometrics 10).

    Differences between groups are not inflated like the sum over all rows: under independence the
    mean of Q over its degrees of freedom was 1.00 without the factor, and 0.82 with a factor of
    1.21.
    """
    residuals = residuals._replace(inflation=1.0)
    m = residuals.values.shape[1]
    squares, total, weight = np.zeros((m, m)), np.zeros((m, m)), np.zeros((m, m))
    n_groups = int(groups.max(initial=0)) + 1
    for g in range(n_groups):
        S, k2, k3, k4 = _cumulants(residuals, groups == g)
        z = signed_normal(S, k2, k3, k4)
        squares += z**2
        total += np.sqrt(k2) * z
        weight += k2
    Q = squares - total**2 / np.maximum(weight, _TINY)
    return np.maximum(Q, 0.0), n_groups - 1
