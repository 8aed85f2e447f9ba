"""Floors on the expected precision and recall of rows, and the best entries of a row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fgfm._kernels import reweight_marginals
from fgfm.cardinality import of_marginals
from fgfm.decider._exponents import tempered

__all__ = ["best_entries", "row_sizes"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]

_ROUNDING = 1e-12  # by which an expectation may be below a floor


def best_entries(gain: Floats, least: int, most: int) -> Labels:
    """Return which entries (n, K) of each row are chosen: those of positive gain, best first.

    Each row gets at least `least` and at most `most` entries.
    """
    if least == 0 and most >= gain.shape[1]:
        return gain > 0.0
    if least == most == 1:
        return np.asarray(gain.argmax(axis=1)[:, None] == np.arange(gain.shape[1]))
    order = np.argsort(-gain, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(gain.shape[1])[None], axis=1)
    return (rank < least) | ((gain > 0.0) & (rank < most))


def row_sizes(
    p: Floats,
    d: Floats,
    exponents: Floats,
    floors: dict[str, float],
    zero_division: float,
    nonempty: bool,
) -> tuple[Integers, Integers]:
    """Return the least and the largest size of the label set of each row that has the floors.

    The parameters are those of `JointModel`. The k most probable labels have the largest expected
    precision, which falls with k, and recall, which rises. The least size is greater than the
    largest one if no set has the floors.
    """
    n, K = p.shape
    least, most = np.zeros(n, dtype=np.int64), np.full(n, K)
    # Labels that are not stored are impossible, though d may have that many.
    p = np.pad(p, ((0, 0), (0, max(d.shape[1] - 1 - K, 0))))
    share = np.where(nonempty & (d[:, :1] < 1.0), 1.0 - d[:, :1], 1.0)  # (n, 1)
    if "min_precision" in floors:
        hits = np.empty(p.shape)
        reweight_marginals(p, d, *exponents, hits)
        precision = (
            np.cumsum(-np.sort(-hits, axis=1), axis=1) / np.arange(1, p.shape[1] + 1) / share
        )
        most = np.minimum((precision >= floors["min_precision"] - _ROUNDING).sum(axis=1), K)
    if "min_recall" in floors:
        P = of_marginals(tempered(p, *exponents), d, method="condition")  # (n, K, S)
        parts = -np.sort(-(P / np.arange(1, P.shape[2] + 1)).sum(axis=2), axis=1)
        recall = np.pad(np.cumsum(parts, axis=1), ((0, 0), (1, 0))) / share  # of 0 .. K labels
        recall += 0.0 if nonempty else zero_division * d[:, :1]
        least = (recall < floors["min_recall"] - _ROUNDING).sum(axis=1)
    return least, most
