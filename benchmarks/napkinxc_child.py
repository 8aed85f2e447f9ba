"""Fit napkinXC in its own environment: ``napkinxc_child.py SPLIT RESULT``.

SPLIT holds CSR matrices of the features and labels of the training rows and of the features of the
test rows. The script writes the probabilities of the test rows to RESULT, and prints the seconds
of fit and predict.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time

import numpy as np
from napkinxc.models import PLT
from scipy import sparse

MIN_PROBA = 1e-5  # less probable labels are left out


def main(split, result):
    """Fit a probabilistic label tree with its defaults."""
    with np.load(split) as stored:
        X, Y, X_test = (
            sparse.csr_matrix(
                tuple(stored[f"{name}/{part}"] for part in ("data", "indices", "indptr")),
                shape=stored[f"{name}/shape"],
                dtype=np.float32,
            )
            for name in ("X_train", "Y_train", "X_test")
        )
    with tempfile.TemporaryDirectory() as folder:
        model = PLT(folder, seed=1, threads=1)
        start = time.perf_counter()
        model.fit(X, Y)
        fitted = time.perf_counter()
        rows = model.predict_proba(X_test, threshold=MIN_PROBA)
        end = time.perf_counter()
    indptr = np.cumsum([0, *map(len, rows)])
    pairs = np.array([pair for row in rows for pair in row])
    proba = sparse.csr_matrix(
        (pairs[:, 1], pairs[:, 0].astype(int), indptr), shape=(len(rows), Y.shape[1])
    )
    sparse.save_npz(result, proba)
    print(json.dumps([fitted - start, end - fitted]))


if __name__ == "__main__":
    main(*sys.argv[1:])
