r"""Are two discrete variables independent given others? G tests, all columns at once.

Rows with the same values of Z form a stratum z. The statistic of X against Y given Z is

.. math::

    G = 2 n \, \hat I(X; Y \mid Z) = 2 \sum_z \sum_{xy} n_{xyz}
        \log \frac{n_{xyz} \, n_z}{n_{xz} \, n_{yz}},

and its p-value the chance that a chi-square variable exceeds it. Four kinds of degrees of freedom
are known here:

- "mi": E[G] over random tables with the margins of each stratum. The semiparametric test of the
  paper takes the mean G of 100 drawn tables; the expectation needs no draws, for G is a sum over
  cells and each cell is hypergeometric.
- "moments": the chi-square variable is scaled so that its variance is right as well, var(G) over
  the same tables. Where strata are small, "mi" rejects too rarely, and where values are rare, too
  often; this kind keeps its level.
- "permutation": the mean over drawn tables, as published.
- "g": the textbook's (levels of X - 1) (levels of Y - 1), summed over strata, where only levels
  that the stratum has are counted.

References
----------
Gasse, M., Aussem, A. and Elghazel, H. (2015). On the Optimality of Multi-Label Classification
under Subset Zero-One Loss for Distributions Satisfying the Composition Property. ICML 2015.

Tsamardinos, I. and Borboudakis, G. (2010). Permutation Testing Improves Bayesian Network Learning.
ECML PKDD 2010. doi:10.1007/978-3-642-15939-8_21
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fgfm._utils.validation import check_same_rows
from fgfm.factors._counts import combine, make_strata
from fgfm.factors._g import Degrees, GTest, g_test_each
from fgfm.factors._pairwise import PairwiseResult

__all__ = ["GTest", "PairwiseResult", "PairwiseTest", "g_test"]

Integers = npt.NDArray[np.int64]


class PairwiseTest(Protocol):
    """What `fgfm.factors.ILFCompo` asks of a test: a p-value for every pair of labels."""

    def pairs(
        self,
        X: Any,
        Y: Any,
        *,
        n_jobs: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> PairwiseResult:
        """Test all pairs of labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Features.
        Y : array-like or sparse matrix of shape (n, m)
            Labels, 0 or 1.
        n_jobs : int, optional
            Number of jobs, in joblib's meaning.
        progress : callable, optional
            Called with the number of steps done and the number of all steps.

        Returns
        -------
        PairwiseResult
            The p-values.
        """
        ...


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
        Values of the two variables, of any type that sorts.
    given : array-like of shape (n,) or (n, k), optional
        Values of the variables to condition on.
    df : {"mi", "moments", "g", "permutation"}, default="mi"
        Degrees of freedom: the exact mean of G over tables with the margins of the strata; those
        of a scaled variable with the exact mean and variance; the asymptotic number; or the mean
        over drawn tables.
    n_tables : int, default=100
        Number of tables that "permutation" draws.
    random_state : int, sequence of int or None, default=None
        Seed of "permutation".

    Returns
    -------
    GTest
        Statistic, degrees of freedom and p-value.

    Notes
    -----
    Where the exact mean is small, because one of the values is rare, a chi-square variable of that
    mean would call even G = 0 unlikely. A G that does not exceed its mean is no evidence: its
    p-value is at least P(chi-square_1 > 1) = 0.317. With one degree of freedom or more that
    changes nothing. The variance for "moments" is exact where x and y have two levels each, else
    it is taken as twice the mean, which is "mi".

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
    degrees = Degrees.checked(df, n_tables)
    x, y = _flat(x, "x"), _flat(y, "y")
    n = check_same_rows([len(x), len(y)], ["x", "y"])
    others: list[tuple[Integers, int]] = []
    if given is not None:
        Z = np.asarray(given)
        Z = Z[:, None] if Z.ndim == 1 else Z
        if Z.ndim != 2:
            raise ValueError(f"given has shape {Z.shape}: it must have 1 or 2 dimensions")
        check_same_rows([n, len(Z)], ["x", "given"])
        others = [_coded(Z[:, k]) for k in range(Z.shape[1])]
    target, levels = _coded(y)
    strata = make_strata(target, levels, *combine(others, n))
    rng = np.random.default_rng(random_state)
    result = g_test_each([strata], [_coded(x)], degrees, [rng])
    return GTest(*(float(value[0]) for value in result))


def _flat(values: Any, name: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: it must have 1 dimension (row)")
    return array


def _coded(values: npt.NDArray[Any]) -> tuple[Integers, int]:
    levels, codes = np.unique(values, return_inverse=True)
    return codes.reshape(-1).astype(np.int64), max(1, len(levels))
