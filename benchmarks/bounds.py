"""Widths of lower bounds on a mean, at 95 % confidence.

``python -m benchmarks.bounds [--draws N]`` prints the mean of the values less the bound, averaged
over draws: of `fgfm.metrics.mean_lower_bound`, of the same bets in one order with a hash of the
values as its seed, of Hoeffding and Bentkus, and of the normal approximation. The second and the
last are not valid.
"""

from __future__ import annotations

import argparse
import hashlib
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.stats import binom, norm

from fgfm._kernels import bet
from fgfm.metrics import mean_lower_bound

__all__ = ["DISTRIBUTIONS", "hashed_order", "hoeffding_bentkus", "main"]

Floats = npt.NDArray[np.float64]
Sampler = Callable[[np.random.Generator, int], Floats]


def _mixture(zeros: float, ones: float, a: float, b: float) -> tuple[Sampler, float]:
    """Return a sampler of 0, 1 and Beta(a, b), as F-measures are, and its mean."""

    def sample(rng: np.random.Generator, n: int) -> Floats:
        u = rng.random(n)
        return np.where(u < zeros, 0.0, np.where(u > 1.0 - ones, 1.0, rng.beta(a, b, n)))

    return sample, ones + (1.0 - zeros - ones) * a / (a + b)


def _discrete(values: list[float], p: list[float]) -> tuple[Sampler, float]:
    """Return a sampler of few values, and its mean."""
    return lambda rng, n: rng.choice(values, size=n, p=p), float(np.dot(values, p))


DISTRIBUTIONS = {
    "94 % ones": _discrete([0.0, 1.0], [0.0557, 0.9443]),
    "82 % ones": _discrete([0.0, 1.0], [0.18172, 0.81828]),
    "10 % ones": _discrete([0.0, 1.0], [0.9, 0.1]),
    "three values": _discrete([0.0, 0.5, 1.0], [0.1, 0.3, 0.6]),
    "rarely 0": _discrete([0.0, 2 / 3, 1.0], [0.02, 0.1, 0.88]),
    "rarely 1": _discrete([0.0, 0.01, 1.0], [0.5, 0.45, 0.05]),
    "wide": _mixture(0.0, 0.0, 0.6, 0.3),
    "narrow": _mixture(0.0, 0.0, 24, 8),
    "F-measures": _mixture(0.2, 0.3, 5, 2),
    "good F-measures": _mixture(0.02, 0.8, 3, 1),
}


def hoeffding_bentkus(values: Floats, alpha: float = 0.05) -> float:
    """Return the bound of Bates et al. (2021), proposition 8, by a fine grid of means."""
    n, mean = len(values), np.mean(values)
    m = np.linspace(0.0, mean, 2001)[1:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = mean * np.log(mean / m) + (
            0.0 if mean == 1.0 else (1.0 - mean) * np.log((1.0 - mean) / (1.0 - m))
        )
    hoeffding = np.exp(-n * entropy)
    bentkus = math.e * binom.sf(math.floor(n * mean + 1e-9) - 1, n, m)
    rejected = np.minimum(hoeffding, bentkus) <= alpha
    return float(m[rejected].max(initial=0.0))


def hashed_order(values: Floats, alpha: float = 0.05) -> float:
    """Return the bound of the same bets in one order, seeded by a hash: it is not valid."""
    seed = int.from_bytes(hashlib.blake2b(values.tobytes(), digest_size=16).digest(), "little")
    column = np.random.default_rng(seed).permutation(values)[:, None]
    part = 1.0 / (1.0 + 2.0 / math.sqrt(len(values)))
    low, high = 0.0, float(values.mean())
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        wealth = np.array([alpha * part])
        bet(column, column, middle, wealth)
        low, high = (middle, high) if wealth[0] >= part else (low, middle)
    return low


def _normal(values: Floats) -> float:
    """Return the bound of the normal approximation."""
    return float(values.mean() - norm.ppf(0.95) * values.std() / math.sqrt(len(values)))


BOUNDS = {
    "many orders": mean_lower_bound,
    "hashed order": hashed_order,
    "Hoeffding-Bentkus": hoeffding_bentkus,
    "normal": _normal,
}


def main(arguments: list[str] | None = None) -> None:
    """Print the widths."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds")
    parser.add_argument("--draws", type=int, default=200)
    draws = parser.parse_args(arguments).draws
    print(f"{'values':16}{'n':>6}" + "".join(f"{name:>19}" for name in BOUNDS))
    for name, (sample, _) in DISTRIBUTIONS.items():
        for n in (10, 100, 1000):
            rng = np.random.default_rng(n)
            rows = [sample(rng, n) for _ in range(draws)]
            widths = [
                np.mean([row.mean() - bound(row) for row in rows]) for bound in BOUNDS.values()
            ]
            print(f"{name:16}{n:6}" + "".join(f"{width:19.4f}" for width in widths), flush=True)


if __name__ == "__main__":
    main()
