"""Measurements in a fresh process: cold starts and peak memory.

``python -m benchmarks.child JOB [ARGUMENT ...]`` prints one line of JSON. Libraries are imported
inside the jobs, since their import is part of the measurement.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any

from benchmarks.memory import peak_bytes, reset_peak


def imports(*names: str) -> float:
    """Return the seconds that importing modules takes."""
    start = time.perf_counter()
    for name in names:
        import_module(name)
    return time.perf_counter() - start


def first_call(name: str) -> float:
    """Return the seconds from the import of fgfm to the end of its first decision.

    NumPy and SciPy are imported before, as in a program that has probabilities to decide from.
    """
    import numpy as np
    import scipy.sparse  # noqa: F401

    p = np.linspace(0.01, 0.9, 8).reshape(1, 8)
    start = time.perf_counter()
    from fgfm import decision

    if name == "from_marginals":
        decision.from_marginals(p)
    else:
        pair = np.array([[[0.3, 0.2], [0.1, 0.2]]])
        single = np.array([[[0.4]]])
        decision.from_factors([pair, single], [[0, 1], [2]])
    return time.perf_counter() - start


def sparse_memory(folder: str, n_jobs: str = "1", calls: str = "1") -> dict[str, float]:
    """Decide from the CSR matrix in a folder; return memory in bytes, and the least seconds."""
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
        start = time.perf_counter()
        labels, _ = decision.from_marginals(proba, n_jobs=int(n_jobs))
        seconds = min(seconds, time.perf_counter() - start)
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
    jobs: dict[str, Any] = {
        "imports": imports,
        "first_call": first_call,
        "sparse_memory": sparse_memory,
    }
    print(json.dumps(jobs[arguments[0]](*arguments[1:])))


if __name__ == "__main__":
    main(sys.argv[1:])
