r"""The G test of conditional independence of two discrete variables.

Rows with the same values of Z form a stratum z. The statistic of X against Y given Z is

.. math::

    G = 2 n \, \hat I(X; Y \mid Z) = 2 \sum_z \sum_{xy} n_{xyz}
        \log \frac{n_{xyz} \, n_z}{n_{xz} \, n_{yz}},

and its p-value the probability that a chi-square variable exceeds it. There are four kinds of
degrees of freedom:

- "mi": E[G] over random tables with the margins of each stratum. The semiparametric test of the
  paper (Tsamardinos and Borboudakis, 2010) takes the mean G of 100 random tables; the expectation
  is exact, since G is a sum over cells and each cell is hypergeometric.
- "moments": the chi-square variable is also scaled to have the exact variance of G over the same
  tables. With small strata "mi" rejects too rarely, with rare values too often; this kind keeps
  its level.
- "permutation": the mean over random tables, as published.
- "g": the asymptotic (levels of X - 1) (levels of Y - 1), summed over strata, counting the levels
  that occur in the stratum.

References
----------
Gasse, M., Aussem, A. and Elghazel, H. (2015). On the Optimality of Multi-Label Classification
under Subset Zero-One Loss for Distributions Satisfying the Composition Property. ICML 2015.

Tsamardinos, I. and Borboudakis, G. (2010). Permutation Testing Improves Bayesian Network Learning.
ECML PKDD 2010. doi:10.1007/978-3-642-15939-8_21
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.validation import check_same_rows
from fgfm.factors._contingency import combine, make_strata
from fgfm.factors._g_batch import DegreesOfFreedom, GTest, g_test_each

__all__ = ["g_test"]

Integers = npt.NDArray[np.int64]


def g_test(
    x: Any,
    y: Any,
    given: Any = None,
    *,
    df: str = "mi",
    n_tables: int = 100,
    random_state: Any = None,
) -> GTest:
    r"""Test whether x and y are independent given other variables, all of them discrete.

    .. math::

        G = 2 \sum_z \sum_{xy} n_{xyz} \log \frac{n_{xyz} \, n_z}{n_{xz} \, n_{yz}},
        \qquad p = P(\chi^2_{df} > G).

    Parameters
    ----------
    x, y : array-like of shape (n,)
        Values of the two variables, of any sortable type.
    given : array-like of shape (n,) or (n, k), optional
        Values of the conditioning variables.
    df : {"mi", "moments", "g", "permutation"}, default="mi"
        Degrees of freedom: "mi", the exact mean of G over tables with the margins of the strata;
        "moments", those of a scaled chi-square variable with the exact mean and variance; "g", the
        asymptotic number; "permutation", the mean over random tables.
    n_tables : int, default=100
        Number of random tables for "permutation".
    random_state : int, sequence of int or None, default=None
        Seed for "permutation".

    Returns
    -------
    GTest
        Statistic, degrees of freedom and p-value.

    Notes
    -----
    If one of the values is rare, the exact mean is far below 1, and a chi-square variable with
    this mean would call even G = 0 unlikely. Since a G that does not exceed its mean is not
    evidence of dependence, its p-value is at least P(chi-square_1 > 1) = 0.317; with one degree of
    freedom or more this changes nothing. The variance for "moments" is exact if x and y have two
    levels each; otherwise it is twice the mean, as for "mi".

    Examples
    --------
    >>> from fgfm.factors import g_test
    >>> x = [0, 0, 0, 0, 1, 1, 1, 1] * 10
    >>> y = [0, 0, 0, 1, 0, 1, 1, 1] * 10
    >>> statistic, df, p_value = g_test(x, y)
    >>> round(statistic, 2), round(df, 3), round(p_value, 6)
    (20.93, 1.019, 5e-06)
    >>> g_test(x, y, given=y).p_value
    1.0
    """
    degrees = DegreesOfFreedom.validate(df, n_tables)
    x, y = _flat(x, "x"), _flat(y, "y")
    n = check_same_rows([len(x), len(y)], ["x", "y"])
    conditions: list[tuple[Integers, int]] = []
    if given is not None:
        Z = np.asarray(given)
        Z = Z[:, None] if Z.ndim == 1 else Z
        if Z.ndim != 2:
            raise ValueError(f"given has shape {Z.shape}: it must have 1 or 2 dimensions")
        check_same_rows([n, len(Z)], ["x", "given"])
        conditions = [_encode(Z[:, k]) for k in range(Z.shape[1])]
    target, levels = _encode(y)
    strata = make_strata(target, levels, *combine(conditions, n))
    rng = np.random.default_rng(random_state)
    result = g_test_each([strata], [_encode(x)], degrees, [rng])
    return GTest(*(float(value[0]) for value in result))


def _flat(values: Any, name: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: it must have 1 dimension (row)")
    return array


def _encode(values: npt.NDArray[Any]) -> tuple[Integers, int]:
    """Return the levels of a variable, numbered from 0, and their number."""
    levels, codes = np.unique(values, return_inverse=True)
    return codes.reshape(-1).astype(np.int64), max(1, len(levels))
