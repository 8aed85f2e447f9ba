"""Measurements in a fresh process: peak memory.

``python -m benchmarks.child JOB [ARGUMENT ...]`` prints one line of JSON. Libraries are imported
inside the jobs, since their import is part of the measurement.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from benchmarks.environment import peak_bytes, reset_peak


def sparse_memory(folder: str, calls: str = "1") -> dict[str, float]:
    """Decide from the CSR matrix in a folder; return bytes and the least processor seconds."""
    from pathlib import Path

    import numpy as np
    from scipy import sparse

    from fgfm import decision

    parts = (np.load(Path(folder) / f"{name}.npy") for name in ("data", "indices", "indptr"))
    data, indices, indptr = parts
    n = len(indptr) - 1
    m = int(np.load(Path(folder) / "m.npy"))
    proba = sparse.csr_array((data, indices, indptr), shape=(n, m))
    decision.from_marginals(proba[:10])  # loads the kernels
    before = reset_peak()
    seconds = float("inf")
    for _ in range(int(calls)):
        start = time.process_time()
        labels, _ = decision.from_marginals(proba)
        seconds = min(seconds, time.process_time() - start)
    extra = peak_bytes() - before
    decided = labels.data.nbytes + labels.indices.nbytes + labels.indptr.nbytes + 8 * n
    return {
        "rows": n,
        "seconds": seconds,
        "input": data.nbytes + indices.nbytes + indptr.nbytes,
        "extra": extra,
        "decided": decided,
    }


def main(arguments: list[str]) -> None:
    """Run the job given by name and arguments."""
    jobs: dict[str, Any] = {"sparse_memory": sparse_memory}
    print(json.dumps(jobs[arguments[0]](*arguments[1:])))


if __name__ == "__main__":
    main(sys.argv[1:])
