"""napkinXC: a probabilistic label tree with its defaults.

It returns marginal probabilities, and decides by a threshold of 0.5 or for the k most probable
labels, where k is the rounded mean number of labels of the training rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from napkinxc.models import PLT
from scipy import sparse

MIN_PROBA = 1e-5  # less probable labels are left out


def fit(X: Any, Y: Any, seed: int) -> Any:
    """Fit the tree; it writes its files to the working folder."""
    model = PLT("plt", seed=seed + 1, threads=1)
    model.fit(_features(X), sparse.csr_matrix(Y, dtype=np.float32))
    return model, Y.shape[1], max(1, round(Y.sum() / Y.shape[0]))


def predict(model: Any, X: Any) -> dict[str, Any]:
    """Return the marginals and both decisions."""
    tree, m, k = model
    rows = tree.predict_proba(_features(X), threshold=MIN_PROBA)  # of each, most probable first
    shape = (len(rows), m)
    proba = _csr([[p for _, p in row] for row in rows], rows, shape)
    top = _csr([[1.0] * len(row[:k]) for row in rows], [row[:k] for row in rows], shape)
    return {"labels": {"threshold": proba.toarray() > 0.5, "top-k": top}, "proba": proba}


def _features(X: Any) -> Any:
    return sparse.csr_matrix(X, dtype=np.float32)


def _csr(values: list[list[float]], rows: list[Any], shape: tuple[int, int]) -> Any:
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    indices = [label for row in rows for label, _ in row]
    return sparse.csr_matrix((np.concatenate(values), indices, indptr), shape=shape)
