r"""P, the joint probabilities of each label and the number of labels: build, check and merge it.

For m labels y with s = :math:`|y|`, given the features x of a row,

.. math::

    p_{is} = p(y_i = 1, |y| = s), \quad s = 1..S, \qquad
    d_s = p(|y| = s) = \frac{1}{s} \sum_i p_{is}, \quad d_0 = 1 - \sum_{s > 0} d_s.

``P[r, i, s - 1]`` is :math:`p_{is}` of row r, an array of shape (n, m, S); ``d[r, s]`` is
:math:`d_s`, of shape (n, S + 1). S is the largest possible number of labels, at most m. The
expected F-measure of every label set is a function of P alone (Dembczynski et al., 2011).

References
----------
Dembczynski, K., Waegeman, W., Cheng, W. and Huellermeier, E. (2011). An Exact Algorithm for
F-Measure Maximization. NIPS 2011.

Gasse, M. and Aussem, A. (2016). F-measure Maximization in Multi-Label Classification with
Conditionally Independent Label Subsets. ECML PKDD 2016. doi:10.1007/978-3-319-46128-1_39
"""

from __future__ import annotations

from fgfm.cardinality._build import of_conditionals, of_joint, of_marginals, of_samples
from fgfm.cardinality._coherence import distribution, is_coherent, make_coherent
from fgfm.cardinality._merge import merge_distributions, merge_factors

__all__ = [
    "distribution",
    "is_coherent",
    "make_coherent",
    "merge_distributions",
    "merge_factors",
    "of_conditionals",
    "of_joint",
    "of_marginals",
    "of_samples",
]


def __dir__() -> list[str]:
    return __all__
