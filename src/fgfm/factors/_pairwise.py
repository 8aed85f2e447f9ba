"""The result of tests of all pairs of labels, and validation of the arguments that they share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.validation import check_same_rows, label_sets


class PairwiseResult(NamedTuple):
    """Tests of all pairs of m labels given the features."""

    # (m, m): the p-value of label i against label j; NaN on the diagonal
    p_values: npt.NDArray[np.float64]
    effects: npt.NDArray[np.float64]  # (m, m): strength of the dependence, in the unit of the test
    markov_boundaries: list[npt.NDArray[Any]] | None  # of each label, if the test selects features


def check_labels(Y: Any, n: int, name: str = "Y") -> npt.NDArray[np.bool_]:
    """Validate 0/1 labels of the n rows of X, and return them as a dense array of shape (n, m)."""
    labels = label_sets(Y, name, allow_flat=True)
    check_same_rows([n, labels.shape[0]], ["X", name])
    return np.asarray(labels.toarray() if sparse.issparse(labels) else labels, dtype=bool)
