"""F of long lists and of many tags, obtained and expected: python -m benchmarks.lists

Simulated rows with probabilities that are right, one by one, and numbers of labels that vary more
than those of independent labels, or as much:

end      300 candidates in order; relevant ones end at a place that is known up to a normal error
tags     303 tags; in each row all are more, or all less, frequent than is known
blocks   300 candidates, of which those of a topic, 3 of 10, are all more or less relevant
single   303 independent tags
short    lists of 5 to 60 independent candidates

"decider" is FDecider after some validation rows, "marginals" `from_marginals` on the same
probabilities; both decide 500 other rows. Means over draws.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from scipy.stats import norm

from fgfm import FDecider, f_measure
from fgfm.decision import from_marginals

Floats = npt.NDArray[np.float64]
Rows = tuple[Any, Any]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
_TEST = 500


def _mixed(logits: Floats, spread: Any) -> Floats:
    """Return the mean of the sigmoid over a normal effect of a standard deviation."""
    p = sum(w * expit(logits + spread * x) for x, w in zip(_NODES, _WEIGHTS, strict=True))
    return np.asarray(p / _WEIGHTS.sum())


def _end(n: int, rng: Any, sd: float = 25.0) -> Rows:
    place = np.arange(300) + 0.5
    middle = rng.uniform(40.0, 180.0, (n, 1))
    end = middle + sd * rng.normal(size=(n, 1))
    p = norm.cdf((middle - place) / np.hypot(sd, 5.0))
    return p, (place + 5.0 * rng.normal(size=p.shape) < end).astype(np.int8)


def _tags(n: int, rng: Any) -> Rows:
    logits = np.random.default_rng(0).normal(-4.0, 1.5, 303) + 1.5 * rng.normal(size=(n, 303))
    p = _mixed(logits, 1.0)
    return p, (rng.random(p.shape) < expit(logits + rng.normal(size=(n, 1)))).astype(np.int8)


def _blocks(n: int, rng: Any) -> Rows:
    logits = 1.5 * rng.normal(size=(n, 300)) - 3.0
    effect = np.zeros((n, 300))
    spread = np.where(np.arange(300) < 90, 2.0, 0.0)
    p = _mixed(logits, spread)
    effect = spread * rng.normal(size=(n, 1))
    return p, (rng.random(p.shape) < expit(logits + effect)).astype(np.int8)


def _single(n: int, rng: Any) -> Rows:
    p = expit(np.random.default_rng(0).normal(-4.0, 1.5, 303) + 1.5 * rng.normal(size=(n, 303)))
    return p, (rng.random(p.shape) < p).astype(np.int8)


def _short(n: int, rng: Any) -> Rows:
    p = [rng.beta(0.5, 2.0, size) for size in rng.integers(5, 61, n)]
    return p, [(rng.random(len(row)) < row).astype(np.int8) for row in p]


DRAWS: dict[str, Callable[[int, Any], Rows]] = {
    "end": _end,
    "tags": _tags,
    "blocks": _blocks,
    "single": _single,
    "short": _short,
}
_LISTS = ("end", "blocks", "short")


def _scores(name: str, n: int, seed: int) -> Floats:
    """Return the obtained and expected F of FDecider, and those of from_marginals."""
    rng = np.random.default_rng([seed, n])
    (p, y), (p_new, y_new) = DRAWS[name](n, rng), DRAWS[name](_TEST, rng)
    if name in _LISTS:
        p, y, p_new, y_new = map(list, (p, y, p_new, y_new))
    decider = FDecider().fit(p, y)
    plain = [from_marginals(np.asarray(row)[None]) for row in p_new]
    obtained = [
        f_measure([truth], decision.labels) for truth, decision in zip(y_new, plain, strict=True)
    ]
    expected = float(np.mean([decision.expected_f[0] for decision in plain]))
    own = decider.score(p_new, y_new), float(np.mean(decider.expected_f(p_new)))
    return np.array([*own, float(np.mean(obtained)), expected])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 194, 500, 2000])
    parser.add_argument("--only", nargs="+", choices=DRAWS, default=list(DRAWS))
    args = parser.parse_args()
    print("rows     validation | decider F  expected | marginals F  expected")
    for name in args.only:
        for n in args.rows:
            f = np.mean([_scores(name, n, seed) for seed in range(args.draws)], axis=0)
            print(f"{name:8} {n:10} | {f[0]:9.4f} {f[1]:9.4f} | {f[2]:11.4f} {f[3]:9.4f}")


if __name__ == "__main__":
    main()
