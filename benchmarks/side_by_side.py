"""Two unrelated copies of a data set side by side must come apart into the two halves.

``python -m benchmarks.side_by_side [--quick]`` puts a data set beside itself with the rows of the
second copy shuffled, features and labels, so that no label of one copy depends on one of the
other. It tests all pairs given all features, and prints how often a pair across the copies is
rejected, and in what share of the shuffles no path leads from one copy to the other.

Every shuffle holds m^2 tests across, so at alpha = 0.01 without a correction edges across are
expected: the share that comes apart cannot be much larger than 0.99 ** (m^2).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import false_discovery_control

__all__ = ["CORRECTIONS", "Outcome", "comes_apart", "main", "side_by_side"]

Floats = npt.NDArray[np.float64]

ALPHA = 0.01
DATA = ("emotions", "scene", "yeast")


def _none(p: Floats) -> Floats:
    return p


def _bonferroni(p: Floats) -> Floats:
    return np.minimum(1.0, p * len(p))


def _benjamini_hochberg(p: Floats) -> Floats:
    return np.asarray(false_discovery_control(p, method="bh"))


def _benjamini_yekutieli(p: Floats) -> Floats:
    return np.asarray(false_discovery_control(p, method="by"))


# p-values of all pairs, each once, to corrected ones.
CORRECTIONS: dict[str, Callable[[Floats], Floats]] = {
    "none": _none,
    "bonferroni": _bonferroni,
    "bh": _benjamini_hochberg,
    "by": _benjamini_yekutieli,
}


class Outcome(NamedTuple):
    """What was found for one shuffle."""

    apart: dict[str, bool]  # by correction
    within: dict[str, float]  # share of the pairs within a copy that are joined
    across: float  # share of the pairs across that are rejected, no correction
    factors: dict[str, int]


def side_by_side(X: Any, Y: Any, seed: int) -> tuple[Any, Any]:
    """Give features and labels beside those of the same rows in another order."""
    other = np.random.default_rng(seed).permutation(len(Y))
    return np.hstack([X, X[other]]), np.hstack([Y, Y[other]])


def comes_apart(edges: npt.NDArray[np.bool_], m: int) -> tuple[bool, int]:
    """Tell whether no path joins the first m labels and the others; count the factors."""
    number, factor = connected_components(csr_array(edges), directed=False)
    return not set(factor[:m]) & set(factor[m:]), int(number)


def _outcome(X: Any, Y: Any, seed: int, test: Callable[[Any, Any, int], Floats]) -> Outcome:
    m = Y.shape[1]
    p_values = test(*side_by_side(X, Y, seed), seed)
    pairs = np.triu_indices(2 * m, 1)
    across = (pairs[0] < m) & (pairs[1] >= m)
    p = p_values[pairs]
    apart, within, factors = {}, {}, {}
    for name, correct in CORRECTIONS.items():
        joined = correct(p) <= ALPHA
        edges = np.zeros((2 * m, 2 * m), dtype=bool)
        edges[pairs] = joined
        apart[name], factors[name] = comes_apart(edges, m)
        within[name] = float(np.mean(joined[~across]))
    return Outcome(apart, within, float(np.mean(p[across] <= ALPHA)), factors)


def _gcm(X: Any, Y: Any, seed: int) -> Floats:
    from fgfm.factors import GCM

    return GCM(random_state=seed, n_jobs=2).pairs(X, Y).p_values


def _load(name: str, folder: Path) -> tuple[Any, Any] | None:
    path = folder / f"{name}.npz"
    if not path.exists():
        return None
    with np.load(path) as stored:
        return stored["X"], stored["Y"]


def _report(name: str, m: int, outcomes: Sequence[Outcome]) -> None:
    n_across = m * m * len(outcomes)
    across = float(np.mean([o.across for o in outcomes]))
    error = (ALPHA * (1.0 - ALPHA) / n_across) ** 0.5
    print(
        f"\n{name}: {m} + {m} labels, {len(outcomes)} shuffles; across the copies "
        f"{across:.4f} rejected\n(alpha {ALPHA}, binomial error {error:.4f}); "
        f"apart at most {(1 - ALPHA) ** (m * m):.2f} expected without correction"
    )
    print(f"  {'correction':<12}{'come apart':>12}{'pairs within joined':>22}{'factors':>10}")
    for correction in CORRECTIONS:
        apart = np.mean([o.apart[correction] for o in outcomes])
        within = np.mean([o.within[correction] for o in outcomes])
        factors = np.median([o.factors[correction] for o in outcomes])
        print(f"  {correction:<12}{apart:>12.2f}{within:>22.2f}{factors:>10g}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Print the outcome for each data set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side")
    parser.add_argument("--quick", action="store_true", help="few rows: does it all run?")
    parser.add_argument("--shuffles", type=int, metavar="N", help="by default 20")
    options = parser.parse_args(arguments)
    shuffles = options.shuffles or (2 if options.quick else 20)
    folder = Path(os.environ.get("FGFM_DATA", "../shared/data"))
    start = time.perf_counter()
    print("Two copies side by side, the second shuffled: do they come apart? (gcm, raw features)")
    for name in DATA:
        data = _load(name, folder)
        if data is None:
            print(f"\n{name}: not in {folder} (set FGFM_DATA to the folder that has it)")
            continue
        X, Y = data
        if options.quick:
            X, Y = X[:300], Y[:300]
        outcomes = [_outcome(X, Y, seed, _gcm) for seed in range(shuffles)]
        _report(name, Y.shape[1], outcomes)
    print(f"\ntook {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
