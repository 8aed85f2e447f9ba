"""Decide with xCOLUMNs in its own environment: ``xcolumns_child.py PROBA K RESULT SECONDS``.

PROBA is a CSR matrix in an .npz file, K the number of labels of a row. The script writes the label
sets for macro F1 to RESULT, and prints the minimum processor time of three calls after one to warm
up, or of fewer calls if they take more than SECONDS.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy import sparse
from xcolumns.block_coordinate import predict_optimizing_macro_f1_score_using_bc


def decide(proba, k):
    """Choose k labels per row by block coordinate ascent."""
    return predict_optimizing_macro_f1_score_using_bc(proba, k, init_y_pred="top", seed=0)


def main(path, k, result, seconds):
    """Decide and print the time."""
    proba = sparse.csr_matrix(sparse.load_npz(path), dtype=np.float32)
    proba.sort_indices()
    decide(sparse.csr_matrix(proba[:50]), int(k))  # to warm up
    took = []
    while len(took) < 3 and sum(took) < float(seconds):
        start = time.process_time()
        labels = decide(proba, int(k))
        took.append(time.process_time() - start)
    sparse.save_npz(result, sparse.csr_matrix(labels) > 0)
    print(min(took))


if __name__ == "__main__":
    main(*sys.argv[1:])
