"""Fit napkinXC in its own environment: ``napkinxc_child.py SPLIT RESULT``.

SPLIT holds CSR matrices of the features and labels of the training rows and of the features of new
rows. The script writes the probabilities of the new rows to RESULT.
"""

from __future__ import annotations

import sys
import tempfile

import numpy as np
from napkinxc.models import PLT
from scipy import sparse

MIN_PROBA = 1e-5  # less probable labels are left out


def main(split, result):
    """Fit a probabilistic label tree with its defaults."""
    with np.load(split) as stored:
        X, Y, X_new = (
            sparse.csr_matrix(
                tuple(stored[f"{name}/{part}"] for part in ("data", "indices", "indptr")),
                shape=stored[f"{name}/shape"],
                dtype=np.float32,
            )
            for name in ("X", "Y", "X_new")
        )
    with tempfile.TemporaryDirectory() as folder:
        model = PLT(folder, seed=1, threads=1)
        model.fit(X, Y)
        rows = model.predict_proba(X_new, threshold=MIN_PROBA)
    indptr = np.cumsum([0, *map(len, rows)])
    pairs = np.array([pair for row in rows for pair in row])
    proba = sparse.csr_matrix(
        (pairs[:, 1], pairs[:, 0].astype(int), indptr), shape=(len(rows), Y.shape[1])
    )
    sparse.save_npz(result, proba)


if __name__ == "__main__":
    main(*sys.argv[1:])
