"""Decide with xCOLUMNs in its own environment: ``xcolumns_child.py PROBA K RESULT SECONDS``.

PROBA is a CSR matrix in an .npz file, K the number of labels of a row. The script writes the label
sets of each rule to RESULT, and prints the minimum time of three calls after one to warm up, or of
fewer calls if they take more than SECONDS.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from scipy import sparse
from xcolumns.block_coordinate import predict_optimizing_macro_f1_score_using_bc
from xcolumns.weighted_prediction import predict_top_k


def rules(proba, k):
    """Return the rules as functions without arguments."""
    return {
        "top-k": lambda: predict_top_k(proba, k),
        "macro F1": lambda: predict_optimizing_macro_f1_score_using_bc(
            proba, k, init_y_pred="top", seed=0
        ),
    }


def main(path, k, result, seconds):
    """Run and time all rules."""
    proba = sparse.csr_matrix(sparse.load_npz(path), dtype=np.float32)
    proba.sort_indices()
    took, found = {}, {}
    for name, rule in rules(proba, int(k)).items():
        first_rows = sparse.csr_matrix(proba[:50])
        rules(first_rows, int(k))[name]()  # to warm up
        took[name] = float("inf")
        end = time.perf_counter() + float(seconds)
        for _ in range(3):
            start = time.perf_counter()
            labels = sparse.csr_matrix(rule())
            took[name] = min(took[name], time.perf_counter() - start)
            if time.perf_counter() > end:
                break
        found |= {f"{name}/{part}": getattr(labels, part) for part in ("indices", "indptr")}
        found[f"{name}/data"] = labels.data > 0
    np.savez(result, **found)
    print(json.dumps(took))


if __name__ == "__main__":
    main(*sys.argv[1:])
