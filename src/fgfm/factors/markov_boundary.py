r"""The Markov boundary of a label in the features: IAMB on discrete data.

The Markov boundary of y is the least set M of features such that y is independent of all others
given M. IAMB (Tsamardinos, Aliferis and Statnikov, 2003) looks for it greedily:

- grow: test y against every feature outside M given M, take in the one with the smallest p-value,
  and go on while that p-value is at most alpha;
- shrink: test y against each member given the other members, put out the one with the largest
  p-value, and go on while that p-value exceeds alpha.

References
----------
Tsamardinos, I., Aliferis, C. F. and Statnikov, A. (2003). Algorithms for Large Scale Markov
Blanket Discovery. FLAIRS 2003.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from fgfm._utils.validation import check_same_rows, label_sets
from fgfm.factors._counts import encode
from fgfm.factors._g import Degrees
from fgfm.factors._iamb import check_alpha, iamb

__all__ = ["markov_boundary"]


def markov_boundary(
    X: Any,
    y: Any,
    alpha: float = 0.01,
    *,
    df: str = "mi",
    n_tables: int = 100,
    random_state: Any = None,
) -> npt.NDArray[np.int64]:
    r"""Find the features that make all others irrelevant to a label.

    That is the least set M with :math:`y \perp X \setminus M \mid M`, looked for by IAMB with the
    G tests of `fgfm.factors.g_test`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Discrete features. Each distinct value of a column is a level.
    y : array-like of shape (n,)
        The label, 0 or 1.
    alpha : float, default=0.01
        A feature is taken in if its p-value is at most alpha.
    df : {"mi", "moments", "g", "permutation"}, default="mi"
        Degrees of freedom of the tests.
    n_tables : int, default=100
        Number of tables that "permutation" draws.
    random_state : int, sequence of int or None, default=None
        Seed of "permutation".

    Returns
    -------
    ndarray of int
        The columns of the boundary, ascending.

    Notes
    -----
    Of features with the same p-value the one with the larger G is taken, then the first. All
    features are tested at once, from counts that one matrix product gives; strata in which y does
    not vary are left out of it.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.factors import markov_boundary
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (500, 6))
    >>> X[:, 5] = X[:, 1] ^ (rng.random(500) < 0.1)  # depends on y, but not given column 1
    >>> y = (X[:, 1] | X[:, 3]) ^ (rng.random(500) < 0.1)
    >>> markov_boundary(X, y)
    array([1, 3])
    """
    degrees = Degrees.checked(df, n_tables)
    alpha = check_alpha(alpha)
    X = check_array(X, accept_sparse="csc", dtype=None)
    target = label_sets(y, "y", allow_flat=True)  # (n, 1)
    if target.shape[1] != 1:
        raise ValueError(f"y has shape {target.shape}: it must have 1 dimension (row)")
    check_same_rows([X.shape[0], target.shape[0]], ["X", "y"])
    if not isinstance(target, np.ndarray):
        target = target.toarray()
    rng = np.random.default_rng(random_state)
    return iamb(encode(X), [target[:, 0].astype(np.int64)], alpha, degrees, [rng])[0]
