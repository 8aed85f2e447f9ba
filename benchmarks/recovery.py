"""Recovery of the true factors of the paper's toy networks, by number of rows.

``python -m benchmarks.recovery [--quick]`` draws networks of the four structures of the paper,
fits `fgfm.ILFCompo` to n rows of each, and compares pairs of labels: precision is the share of
pairs put into one factor that belong together, recall the share of pairs that belong together and
were put into one factor. A figure of the table goes to ``outputs/``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fgfm.experiments._statistics import score_factors
from fgfm.factors import ILFCompo
from fgfm.synthetic import STRUCTURES as SIZES_OF
from fgfm.synthetic import paper_data

__all__ = ["Row", "main", "recovery"]

ALPHA = 0.01
SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
STRUCTURES = {"+".join(map(str, sizes)): sizes for sizes in SIZES_OF.values()}
CORRECTIONS = (None, "bonferroni")


class Row(NamedTuple):
    """Means over networks."""

    structure: str
    test: str
    correction: str | None
    n: int
    precision: float
    recall: float
    exact: float  # share of networks with all factors recovered


def recovery(structure: str, test: str, n: int, repeats: int) -> list[Row]:
    """Fit to n rows of `repeats` networks; one row for each correction."""
    scores: dict[str | None, list[tuple[float, float, bool]]] = {c: [] for c in CORRECTIONS}
    for repetition in range(1, repeats + 1):
        network, train, _ = paper_data(STRUCTURES[structure], repetition, n, n_test=0)
        for correction in CORRECTIONS:
            ilf = ILFCompo(test, ALPHA, correction=correction).fit(train.X, train.Y)
            scores[correction].append(score_factors(ilf.factors_, network.factors))
    means = {c: [float(v) for v in np.mean(values, axis=0)] for c, values in scores.items()}
    return [Row(structure, test, c, n, *values) for c, values in means.items()]


def _print(rows: Sequence[Row], sizes: Sequence[int]) -> None:
    heads = f"{'factors':<9}{'correction':<12}{'':<10}"
    print(heads + "".join(f"{f'n={n}':>7}" for n in sizes))
    for structure in STRUCTURES:
        for correction in CORRECTIONS:
            mine = [r for r in rows if (r.structure, r.correction) == (structure, correction)]
            head = f"{structure:<9}{correction or 'none':<12}"
            for name in ("precision", "recall", "exact"):
                cells = "".join(f"{getattr(r, name):>7.2f}" for r in mine)
                print(f"{head}{name:<10}{cells}", flush=True)
                head = " " * len(head)


def _draw(rows: Sequence[Row], path: Path) -> bool:
    """Draw both measures against n, if matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(3.0 * len(STRUCTURES), 3.5), layout="constrained")
    axes = figure.subplots(1, len(STRUCTURES), sharey=True)
    colors = {"precision": "#1f77b4", "recall": "#d62728"}
    for ax, structure in zip(axes, STRUCTURES, strict=True):
        for correction, style in zip(CORRECTIONS, ("--", "-"), strict=True):
            mine = [r for r in rows if (r.structure, r.correction) == (structure, correction)]
            for name, color in colors.items():
                ax.plot(
                    [r.n for r in mine],
                    [getattr(r, name) for r in mine],
                    style,
                    color=color,
                    marker="o",
                    markersize=3,
                    label=f"{name}, {correction or 'no correction'}",
                )
        ax.set(title=f"factors of {structure}", xlabel="rows", xscale="log", ylim=(-0.03, 1.03))
        ax.grid(color="0.92")
    axes[0].set_ylabel("pairs of labels")
    lines, names = axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=4, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return True


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery")
    parser.add_argument("--quick", action="store_true", help="few networks and sizes")
    parser.add_argument("--test", default="auto", help="auto (default), mi, moments, g or gcm")
    parser.add_argument("--repeats", type=int, metavar="N", help="networks of each; 40 by default")
    options = parser.parse_args(arguments)
    sizes = (100, 1000) if options.quick else SIZES
    repeats = options.repeats or (4 if options.quick else 40)
    start = time.perf_counter()
    print(
        f"Pairs of labels in one factor, test {options.test!r}, alpha {ALPHA}; means over "
        f"{repeats} networks\n(exact: share of the networks with all factors recovered)\n"
    )
    rows = [
        row for s in STRUCTURES for n in sizes for row in recovery(s, options.test, n, repeats)
    ]
    _print(rows, sizes)
    path = Path("outputs") / f"recovery_{options.test}.png"
    if _draw(rows, path):
        print(f"\nwritten: {path}")
    print(f"took {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
