"""dacaf-mlc: a probabilistic classifier chain, all 2^m label sets enumerated, and GFM.

The chain consists of logistic regressions, as in its README, in the order of the labels, with a
penalty chosen by cross-validation. Rows are enumerated in batches that fit into 1 GiB; if a single
row does not, a MemoryError is raised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from dacaf_mlc import ProbabilisticClassifierChain
from dacaf_mlc.probability_classifier_chains import bop_fmeasure
from logistic import tuned
from scipy import sparse

MEMORY = 2**30


def fit(X: Any, Y: Any, seed: int) -> Any:
    """Fit the chain."""
    m = Y.shape[1]
    # the last model of the chain gets 2^(m-1) copies of a row, in three arrays at a time
    row = 3 * 8 * 2 ** (m - 1) * (X.shape[1] + m)
    if row > MEMORY:
        raise MemoryError(f"a row takes {row / 2**30:.3g} GiB to enumerate the sets of {m} labels")
    X = X.toarray() if sparse.issparse(X) else X
    return ProbabilisticClassifierChain(tuned(X, Y, seed)).fit(X, Y), MEMORY // row


def predict(model: Any, X: Any) -> dict[str, Any]:
    """Decide by GFM on the enumerated distribution."""
    chain, batch = model
    X = X.toarray() if sparse.issparse(X) else X
    stats = chain.compute_stats(X, needs={"pairwise"}, batch_size=batch)
    labels = bop_fmeasure(stats)
    size = labels.sum(axis=1)
    s = np.arange(1, labels.shape[1] + 1)
    found = np.einsum("ni,nis->ns", labels, stats.pairwise[:, :, 1:])  # E[|y & h|; |y| = s]
    expected_f = (2.0 * found / (s + size[:, None])).sum(axis=1)
    expected_f = np.where(size > 0, expected_f, stats.p_empty[:, 0])
    return {"labels": {"gfm": labels}, "expected_f": {"gfm": expected_f}}
