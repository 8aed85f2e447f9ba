"""``fgfm reproduce``: run the synthetic experiment of the paper."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Any

import typer

from fgfm._utils.text import wrapped
from fgfm.cli import _options as opt
from fgfm.cli._console import echo, progress, say
from fgfm.cli._learners import BASE_LEARNERS, make_base_learner

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


@opt.command(
    "out learner estimates reps sizes dags methods interactions beta seed jobs",
    out=opt.Option(
        Path,
        "fgfm-paper",
        "FOLDER",
        "Output folder; a stopped run continues from it.",
        ("--out", "-o"),
    ),
    learner=opt.Option(
        str,
        "ridge",
        "NAME",
        f"Base learner: {', '.join(BASE_LEARNERS)}; ridge is that of the paper.",
        ("--learner", "-e"),
    ),
    estimates=opt.Option(
        str,
        "published",
        None,
        "published: as in the authors' scripts; ours: the estimates of this package; both: one "
        "after the other.",
    ),
    reps=opt.Option(int, 100, None, "Random distributions of each structure."),
    sizes=opt.Option(str, "50,100,200,500,1000,2000,5000", None, "Numbers of training rows."),
    dags=opt.Option(
        str, "1,2,3,4", None, "Structures 1 to 4 of the paper, or factor sizes as in 3+3+2."
    ),
    methods=opt.Option(
        str, "gfm,true,ilf,independent,threshold,bayes", None, "Methods to compare."
    ),
    interactions=opt.Option(
        str | None,
        None,
        None,
        "Sizes for which the learner is also fitted to products of features: largest, all or "
        "none; by default largest for ridge, and none for other learners.",
    ),
)
def reproduce(context: typer.Context, params: dict[str, Any]) -> None:
    """Run the experiment of Gasse and Aussem (2016).

    Simulates their synthetic data, fits all methods, and writes the table and the figure.
    """
    from fgfm import paper

    out, learner, start = Path(params["out"]), params["learner"], time.perf_counter()
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
                estimates=params["estimates"],
                reps=params["reps"],
                sizes=_parse_integers(params["sizes"], "--sizes"),
                structures=_parse_structures(params["dags"]),
                methods=params["methods"].split(","),
                interactions=params["interactions"],
                beta=params["beta"],
                seed=params["seed"],
                n_jobs=params["jobs"],
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
