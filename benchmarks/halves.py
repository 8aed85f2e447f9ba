"""Do labels mean the same in all rows? ``python -m benchmarks.halves [NAME ...]``.

Each row gets the labels of its nearest other row (cosine), from the same half of the file and from
the other half. Files sorted by label lose some F1 across halves; labels that are numbered
differently in the two halves lose nearly all. Then labels of the second half are matched to those
of the first by the features of their rows, and the F1 across halves is computed again.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.preprocessing import normalize, scale

from benchmarks.datasets import FOLDER
from benchmarks.report import Column, Table
from fgfm import f_measure
from fgfm.io import load

_MOST = 3000  # rows of a half

Integers = npt.NDArray[np.int64]


def neighbours_f1(X: Any, Y: Any, sources: Integers, rows: Integers, Y_sources: Any) -> float:
    """Return the F1 of the labels of each row's nearest source."""
    similarity = X[rows] @ X[sources].T
    if sparse.issparse(similarity):
        similarity = similarity.toarray()
    return float(f_measure(Y[rows], Y_sources[sources[similarity.argmax(axis=1)]]))


def measure(name: str) -> tuple[Any, ...]:
    """Return F1 within halves, across halves, and across halves with matched labels."""
    data = load(FOLDER / f"{name}.npz")
    X = data.X.astype(float)
    X = normalize(X if sparse.issparse(X) else scale(X))
    Y = np.asarray(data.Y, dtype=np.int8)
    random = np.random.default_rng(0)
    half = len(Y) // 2
    first, second = (
        random.permutation(rows)[:_MOST] for rows in (np.arange(half), np.arange(half, 2 * half))
    )
    k = len(first) // 2
    within = [neighbours_f1(X, Y, part[:k], part[k:], Y) for part in (first, second)]
    across = neighbours_f1(X, Y, first[:k], second[k:], Y)
    a, b = (normalize(np.asarray(Y[rows].T @ X[rows])) for rows in (first, second))  # (m, p)
    matched = np.empty_like(Y)
    matched[:, linear_sum_assignment(-a @ b.T)[1]] = Y  # numbers of the second half
    renumbered = neighbours_f1(X, Y, first[:k], second[k:], matched)
    return name, *within, across, renumbered


def main(arguments: list[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.halves", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets; all by default")
    names = parser.parse_args(arguments).names
    table = Table(
        "F1 of the nearest row's labels, from the same and from the other half of the file",
        [
            Column("data", left=True),
            *(
                Column(title, "{:.3f}".format)
                for title in ("first half", "second half", "across", "matched")
            ),
        ],
    )
    for name in names or sorted(path.stem for path in FOLDER.glob("*.npz")):
        table.rows.append(measure(name))
    print("\n".join(table.lines()))


if __name__ == "__main__":
    main()
