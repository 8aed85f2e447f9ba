"""The cases of ``python -m benchmarks.numba_rival``, timed in the process of one version.

Run as a script: each line of standard input names a case, and each line of standard output is JSON
with the seconds of one call and the sum of its results. Only names that both versions have are
used.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse


def _rows(n: int, m: int, expected: float, dtype: Any = np.float64) -> Any:
    rng = np.random.default_rng([n, m])
    p = rng.random((n, m)) ** max(1.0, m / expected - 1.0)
    return p.astype(dtype)


def _marginals(n: int, m: int, expected: float, dtype: Any = np.float64) -> Callable[[], Any]:
    from fgfm import decision

    p = _rows(n, m, expected, dtype)
    return lambda: decision.from_marginals(p).expected_f


def _csr(n: int, m: int, stored: int) -> Callable[[], Any]:
    from fgfm import decision

    rng = np.random.default_rng(0)
    # one column in each of `stored` equal ranges: sorted, and none twice
    columns = rng.integers(0, m // stored, (n, stored)) + np.arange(stored) * (m // stored)
    p = sparse.csr_array(
        (rng.random(n * stored) ** 3, columns.ravel(), np.arange(n + 1) * stored), shape=(n, m)
    )
    return lambda: decision.from_marginals(p).expected_f


def _cardinalities(n: int, m: int) -> Callable[[], Any]:
    from fgfm import cardinality, decision

    P = cardinality.from_marginals(_rows(n, m, m / 4))
    return lambda: decision.from_cardinalities(P).expected_f


def _factors(n: int, count: int, size: int) -> Callable[[], Any]:
    from fgfm import cardinality, decision

    p = _rows(n, count * size, count * size / 20)
    factors = [list(range(f * size, (f + 1) * size)) for f in range(count)]
    Ps = [cardinality.from_marginals(p[:, factor]) for factor in factors]
    return lambda: decision.from_factors(Ps, factors).expected_f


def _samples(n: int, T: int, m: int) -> Callable[[], Any]:
    from fgfm import decision

    draws = (np.random.default_rng(0).random((n, T, m)) < 0.1).astype(np.uint8)
    return lambda: decision.from_samples(draws).expected_f


def _joint(n: int, L: int, m: int) -> Callable[[], Any]:
    from fgfm import decision

    rng = np.random.default_rng(0)
    sets = np.unique(rng.random((L, m)) < 0.15, axis=0).astype(int)
    proba = rng.dirichlet(np.full(len(sets), 0.1), size=n)
    return lambda: decision.from_joint(sets, proba).expected_f


def _given_number(n: int, m: int, method: str) -> Callable[[], Any]:
    from fgfm import cardinality

    p = _rows(n, m, 3.0) * 0.98 + 0.01
    d = np.random.default_rng(0).dirichlet(np.ones(9), size=n)
    return lambda: cardinality.from_marginals(p, d, method=method).sum(axis=(1, 2))


def _ridge(n: int, p: int, m: int) -> Callable[[], Any]:
    from fgfm import FGFMClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    Y = (X @ rng.normal(size=(p, m)) + rng.normal(size=(n, m)) > 0.5).astype(int)
    return lambda: FGFMClassifier("ridge", random_state=0).fit(X, Y).expected_f(X[:200]).round(6)


def _one_row() -> Callable[[], Any]:
    return _marginals(1, 20, 3.0)


CASES: dict[str, Callable[[], Callable[[], Any]]] = {
    "marginals, one row of 20": _one_row,
    "marginals, 20 labels": lambda: _marginals(5000, 20, 3.0),
    "marginals, 100 labels": lambda: _marginals(5000, 100, 5.0),
    "marginals, 1000 labels, 5 expected": lambda: _marginals(2000, 1000, 5.0),
    "marginals, 1000 labels, 500 expected": lambda: _marginals(2000, 1000, 500.0),
    "marginals, 1000 labels, float32": lambda: _marginals(2000, 1000, 500.0, np.float32),
    "marginals, 10^5 labels, 5 expected": lambda: _marginals(20, 10**5, 5.0),
    "marginals, 10^5 labels, half expected": lambda: _marginals(20, 10**5, 5e4),
    "marginals, CSR, 50 of 10^5 labels": lambda: _csr(10**4, 10**5, 50),
    "cardinalities, m = S = 20": lambda: _cardinalities(2000, 20),
    "cardinalities, m = S = 100": lambda: _cardinalities(200, 100),
    "factors, 100 of 4 labels": lambda: _factors(500, 100, 4),
    "factors, 10 of 10 labels": lambda: _factors(500, 10, 10),
    "samples, 200 of 30 labels": lambda: _samples(500, 200, 30),
    "joint, 200 sets of 30 labels": lambda: _joint(500, 200, 30),
    "P tilted to a number of labels": lambda: _given_number(2000, 30, "tilt"),
    "P conditioned on a number of labels": lambda: _given_number(2000, 30, "condition"),
    "FGFMClassifier, 1000 x 20, 6 labels": lambda: _ridge(1000, 20, 6),
}


@cache
def _prepared(case: str) -> tuple[Callable[[], Any], int]:
    """Return the call of a case, and how many calls make a batch of about 50 ms."""
    call = CASES[case]()
    call()
    start = time.perf_counter()
    call()
    return call, max(1, int(0.05 / max(1e-7, time.perf_counter() - start)))


def main() -> None:
    """Answer cases with seconds and results."""
    for line in sys.stdin:
        call, repeats = _prepared(line.strip())
        start = time.perf_counter()
        for _ in range(repeats):
            result = call()
        seconds = (time.perf_counter() - start) / repeats
        print(json.dumps({"seconds": seconds, "result": float(np.sum(result))}), flush=True)


if __name__ == "__main__":
    main()
