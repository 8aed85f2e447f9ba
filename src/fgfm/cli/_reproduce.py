"""``fgfm reproduce``: run the synthetic experiment of the paper."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from fgfm._utils.text import wrapped
from fgfm.cli import _options as opt
from fgfm.cli._console import echo, plain_errors, progress, say
from fgfm.cli._learners import BASE_LEARNERS, make_base_learner

__all__ = ["EPILOG", "reproduce"]

EPILOG = """\b
Examples:
  fgfm reproduce                                  the whole experiment
  fgfm reproduce --estimates both                 with our estimates beside it
  fgfm reproduce --reps 10 --dags 1,4             a part of it
  fgfm reproduce --reps 10 --learner boosting     another base learner
  fgfm reproduce --dags 3+3+2 --sizes 100,1000    other label factors
"""


def _parse_integers(text: str, name: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"{name} is {text!r}: it must be integers separated by commas, as in 50,100"
        ) from None


def _parse_structures(text: str) -> list[Any]:
    """Parse structures: 1 to 4 of the paper, or factor sizes joined by +."""
    try:
        return [
            [int(size) for size in part.removesuffix("+").split("+")] if "+" in part else int(part)
            for part in text.split(",")
        ]
    except ValueError:
        raise ValueError(
            f"--dags is {text!r}: it must be numbers of structures, as in 1,4, or sizes of label "
            "factors, as in 3+3+2 (one factor of five labels is 5+)"
        ) from None


Out = Annotated[
    Path, typer.Option("--out", "-o", help="Output folder; a stopped run continues from it.")
]
Learner = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"Base learner: {', '.join(BASE_LEARNERS)}; ridge is that of the paper.",
    ),
]
Estimates = Annotated[
    str,
    typer.Option(
        help="published: as in the authors' scripts; ours: the estimates of this package; both: "
        "one after the other."
    ),
]
Reps = Annotated[int, typer.Option(help="Random distributions of each structure.")]
Sizes = Annotated[str, typer.Option(help="Numbers of training rows.")]
Dags = Annotated[
    str, typer.Option(help="Structures 1 to 4 of the paper, or factor sizes as in 3+3+2.")
]
Methods = Annotated[str, typer.Option(help="Methods to compare.")]
Interactions = Annotated[
    str | None,
    typer.Option(
        help="Sizes for which the learner is also fitted to products of features: largest, all "
        "or none; by default largest for ridge, and none for other learners."
    ),
]


@plain_errors
def reproduce(
    out: Out = Path("fgfm-paper"),
    learner: Learner = "ridge",
    estimates: Estimates = "published",
    reps: Reps = 100,
    sizes: Sizes = "50,100,200,500,1000,2000,5000",
    dags: Dags = "1,2,3,4",
    methods: Methods = "gfm,true,ilf,independent,threshold,bayes",
    interactions: Interactions = None,
    beta: opt.Beta = 1.0,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
) -> None:
    """Run the experiment of Gasse and Aussem (2016).

    Simulates their synthetic data, fits all methods, and writes the table and the figure.
    """
    from fgfm import paper

    start = time.perf_counter()
    done = 0
    with progress("networks: simulating and fitting", steps=True) as show:

        def report(count: int, total: int) -> None:
            nonlocal done
            done = count
            show(count, total)

        try:
            results = paper.reproduce(
                out,
                estimator=None if learner == "ridge" else make_base_learner(learner),
                estimates=estimates,
                reps=reps,
                sizes=_parse_integers(sizes, "--sizes"),
                structures=_parse_structures(dags),
                methods=methods.split(","),
                interactions=interactions,
                beta=beta,
                seed=seed,
                n_jobs=jobs,
                progress=report,
            )
        except KeyboardInterrupt:
            say(f"{done} networks are stored in {out}; the same command continues from there")
            raise
    seconds = time.perf_counter() - start
    paths = paper.write_report(results, shlex.join(["fgfm", *sys.argv[1:]]))
    echo(paper.format_tables(results))
    if done:
        say(f"{done} networks computed in {seconds:.0f} s, including start-up")
    else:
        say(f"nothing to compute: {out} contains all results (remove it to start again)")
    names = [path.relative_to(out).as_posix() for path in paths]
    say(wrapped(f"{out}: {', '.join(names)}", "  "))
