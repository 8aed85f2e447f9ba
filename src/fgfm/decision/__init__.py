r"""Decisions: from probabilities to the label sets that maximise the expected F-measure.

Each function solves, exactly and by default for every row on its own,

.. math::

    \max_{h \in \{0, 1\}^m} \; E[F_\beta(y, h)], \qquad
    F_\beta(y, h) = \frac{(1 + \beta^2) \, y \cdot h}{\beta^2 |y| + |h|}, \quad 0/0 = 1.

They differ in what is given of the distribution of y:

==================== ==========================================================
function             given
==================== ==========================================================
`from_marginals`     p(y_i = 1), labels assumed independent given the row
`from_cardinalities` p(y_i = 1, \|y\| = s): GFM
`from_factors`       the same for groups of labels that are independent: F-GFM
`from_samples`       draws of y
`from_joint`         probabilities of label sets
`from_classes`       probabilities of classes, of which each row has one (macro F)
==================== ==========================================================

``average`` sets which labels form a problem: those of a row (``"samples"``), the column of a label
(``"macro"``, ``"weighted"``), or all entries of the batch (``"micro"``). Rows are independent of
each other, so that a column is decided from its marginals, and a batch by F-GFM with every row as
a factor: both exactly, for any dependence between the labels of a row.

Ties: the smaller set wins, then the lower label index; the empty set wins its ties. Values with a
relative difference below 1e-12 count as equal. (`from_marginals` compares labels by their
probabilities, exactly.)

``min_labels``, ``max_labels`` and `Constraints` restrict the label sets; the best of those that
satisfy them is found exactly, but for limits with ``average="macro"``, whose result is bounded by
``Decision.gap``. With costs, values that differ by less than 1e-12 count as equal.
Which of several equally good sets of one size is chosen is not defined for hierarchies.

Dask arrays result in a lazy decision of Dask arrays, computed one block of rows at a time. A row
that contradicts `nonempty` then gets its NaN without a warning. The ``labelsets`` of
`from_joint`, which all rows share, are computed at once. The other averages need arrays in memory.

For arrays of PyTorch, CuPy and JAX, ``labels`` and ``expected_f`` are arrays of the same library
on the same device. CUDA devices decide most problems themselves; all others are decided on the
host. See :doc:`/large`.

References
----------
Dembczynski, K., Waegeman, W., Cheng, W. and Huellermeier, E. (2011). An Exact Algorithm for
F-Measure Maximization. NIPS 2011.

Gasse, M. and Aussem, A. (2016). F-measure Maximization in Multi-Label Classification with
Conditionally Independent Label Subsets. ECML PKDD 2016. doi:10.1007/978-3-319-46128-1_39
"""

from __future__ import annotations

from fgfm.decision._classes import from_classes
from fgfm.decision._constraints import Constraints
from fgfm.decision._functions import (
    from_cardinalities,
    from_factors,
    from_joint,
    from_marginals,
    from_samples,
)
from fgfm.decision._objective import Decision

__all__ = [
    "Constraints",
    "Decision",
    "from_cardinalities",
    "from_classes",
    "from_factors",
    "from_joint",
    "from_marginals",
    "from_samples",
]


def __dir__() -> list[str]:
    return __all__
