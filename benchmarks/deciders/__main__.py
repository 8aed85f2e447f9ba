"""The command ``python -m benchmarks.deciders``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.deciders.learners import LEARNERS
from benchmarks.deciders.probabilities import cache_probabilities
from benchmarks.real.splits import find_sources


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deciders", description=__doc__)
    parser.add_argument("data", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--datasets", type=lambda s: s.split(","))
    parser.add_argument("--learners", type=lambda s: s.split(","), default=list(LEARNERS))
    parser.add_argument("--limit", type=float, default=360.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--retry", action="store_true")
    return parser


def main() -> None:
    """Run it."""
    options = make_parser().parse_args()
    sources = find_sources(options.data or None, options.datasets)
    cache_probabilities(
        options.out,
        sources,
        options.learners,
        limit=options.limit,
        seed=options.seed,
        n_jobs=options.jobs,
        retry=options.retry,
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )


if __name__ == "__main__":
    main()
