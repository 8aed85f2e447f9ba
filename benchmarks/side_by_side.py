"""False edges between two unrelated copies of a data set.

``python -m benchmarks.side_by_side [--quick]`` puts a data set beside a copy of itself with
shuffled rows, so that no label of one copy depends on a label of the other. `fgfm.ILFCompo` is
fitted to both: by "gcm" on the original features, by "mi" and "moments" on features in three bins
of equal size. The table shows how often tests across the copies reject at alpha = 0.01, and for
which share of the shuffles no path of edges joins the copies, for each correction of the p-values.

There are m^2 pairs across the copies, so that edges are expected without a correction: the share
of separated copies cannot be much larger than 0.99 ** (m^2).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from fgfm import ILFCompo
from fgfm.factors import group_labels

__all__ = ["Outcome", "in_bins", "load", "main", "outcome", "separate_halves", "side_by_side"]

DATA = ("emotions", "scene", "yeast")
TESTS = ("gcm", "mi", "moments")
CORRECTIONS = (None, "bonferroni", "bh", "by")
DEFAULT = ILFCompo().correction
WIDTHS = (6, 11, 5, 5)  # of columns


class Outcome(NamedTuple):
    """Results for one shuffle."""

    separate: dict[str | None, bool]  # by correction
    across: float  # share of the tests across the copies that reject, without a correction
    within: float  # share of the pairs within a copy that are joined, by the default correction
    factors: int  # by the default correction


def side_by_side(X: Any, Y: Any, seed: int) -> tuple[Any, Any]:
    """Return features and labels beside those of the same rows in another order."""
    other = np.random.default_rng(seed).permutation(len(Y))
    return np.hstack([X, X[other]]), np.hstack([Y, Y[other]])


def in_bins(X: Any) -> npt.NDArray[np.int64]:
    """Discretise each feature into three bins of equal size, fewer if values are equal."""
    low, high = np.quantile(X, [1 / 3, 2 / 3], axis=0)
    return (low < X).astype(np.int64) + (high < X)


def separate_halves(edges: Any, m: int) -> tuple[bool, int]:
    """Return True if no path joins the first m labels to the others, and the number of factors."""
    number, factor = connected_components(csr_array(edges), directed=False)
    return not set(factor[:m]) & set(factor[m:]), int(number)


def outcome(X: Any, Y: Any, seed: int, test: str) -> Outcome:
    """Fit to two copies, and count the edges between them."""
    m = Y.shape[1]
    ilf = ILFCompo(test, n_jobs=-1).fit(*side_by_side(X, Y, seed))
    separate = {}
    for correction in CORRECTIONS:
        grouping = group_labels(ilf.p_values_, ilf.alpha, ilf.rule, correction=correction)
        separate[correction], _ = separate_halves(grouping.graph, m)
    by_default, factors = separate_halves(ilf.graph_, m)
    assert separate[ilf.correction] == by_default
    across = np.concatenate([ilf.p_values_[:m, m:], ilf.p_values_[m:, :m]])
    halves = [ilf.graph_[:m, :m], ilf.graph_[m:, m:]]
    within = sum(half.nnz for half in halves) / (2.0 * m * (m - 1))
    return Outcome(separate, float(np.mean(across <= ilf.alpha)), within, factors)


def load(name: str) -> tuple[Any, Any] | None:
    """Read features and labels, or return None if the data set does not exist."""
    folder = Path(os.environ.get("FGFM_DATA", Path(__file__).parents[2] / "shared" / "data"))
    path = folder / f"{name}.npz"
    if not path.exists():
        print(f"{name:<10}not found in {folder}: set FGFM_DATA to the folder of the data sets")
        return None
    with np.load(path, allow_pickle=False) as stored:
        return stored["X"], stored["Y"]


def _report(name: str, test: str, m: int, outcomes: Sequence[Outcome], seconds: float) -> None:
    shares = [float(np.mean([o.separate[c] for o in outcomes])) for c in CORRECTIONS]
    across = float(np.mean([o.across for o in outcomes]))
    within = float(np.mean([o.within for o in outcomes]))
    factors = float(np.median([o.factors for o in outcomes]))
    cells = (f"{share:>{w}.2f}" for share, w in zip(shares, WIDTHS, strict=True))
    print(
        f"{name:<9}{m:>3}  {test:<8}{across:>7.4f}{''.join(cells)}{within:>8.2f}{factors:>8g}"
        f"{seconds / len(outcomes):>6.1f}",
        flush=True,
    )


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side")
    parser.add_argument(
        "--quick", action="store_true", help="few rows, to check that everything runs"
    )
    parser.add_argument("--shuffles", type=int, metavar="N", help="by default 10")
    parser.add_argument("--data", nargs="+", default=DATA, metavar="NAME")
    options = parser.parse_args(arguments)
    shuffles = options.shuffles or (2 if options.quick else 10)
    start = time.perf_counter()
    print(f"Two copies of a data set, one shuffled, {shuffles} times; default: {DEFAULT}\n")
    names = (f"{c or 'none':>{w}}" for c, w in zip(CORRECTIONS, WIDTHS, strict=True))
    print(f"{'':<22}{'across':>7}{'separate, by correction':>27}{'by default':>16}")
    print(
        f"{'data':<9}{'m':>3}  {'test':<8}{'reject':>7}{''.join(names)}{'within':>8}{'factors':>8}"
        f"{'s':>6}"
    )
    for name in options.data:
        data = load(name)
        if data is None:
            continue
        X, Y = data
        if options.quick:
            X, Y = X[:300], Y[:300]
        for test in TESTS:
            features = X if test == "gcm" else in_bins(X)
            begin = time.perf_counter()
            outcomes = [outcome(features, Y, seed, test) for seed in range(shuffles)]
            _report(name, test, Y.shape[1], outcomes, time.perf_counter() - begin)
    print(
        "\nacross: tests between the copies that reject at alpha = 0.01; within: pairs of labels\n"
        "of one copy with an edge; factors: median number; s: seconds of a fit"
    )
    print(f"took {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
