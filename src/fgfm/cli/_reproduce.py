"""``fgfm reproduce``: the synthetic experiment of the paper."""

from __future__ import annotations

import shlex
import sys
import textwrap
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from fgfm.cli._console import plain_errors, progress_bar, say

__all__ = ["EPILOG", "reproduce"]

EPILOG = """\b
Examples:
  fgfm reproduce                                  the whole
  fgfm reproduce --reps 10 --dags 1,4             a part of it
  fgfm reproduce --dags 3+3+2 --sizes 100,1000    other label factors
"""


def _integers(text: str, name: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"{name} is {text!r}: it must be integers with commas between them, as in 50,100"
        ) from None


def _structures(text: str) -> list[Any]:
    """Read structures: 1 to 4 of the paper, or sizes of factors with + between them."""
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


@plain_errors
def reproduce(
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Folder of the results; a run goes on where one ended."),
    ] = Path("fgfm-paper"),
    reps: Annotated[int, typer.Option(help="Random distributions of each structure.")] = 100,
    sizes: Annotated[
        str, typer.Option(help="Numbers of training rows.")
    ] = "50,100,200,500,1000,2000,5000",
    dags: Annotated[
        str, typer.Option(help="Structures 1 to 4 of the paper, or factor sizes as in 3+3+2.")
    ] = "1,2,3,4",
    methods: Annotated[
        str, typer.Option(help="What is compared.")
    ] = "gfm,true,ilf,independent,threshold,bayes",
    interactions: Annotated[
        str,
        typer.Option(
            help="Sizes at which a learner with interactions runs too: largest, all or none."
        ),
    ] = "largest",
    beta: Annotated[float, typer.Option(help="Recall counts beta times as much.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seeds everything.")] = 0,
    published: Annotated[
        bool, typer.Option("--published", help="Estimate as the paper's scripts do.")
    ] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Processes; -1 for one per core.")
    ] = -1,
) -> None:
    """Run the synthetic experiment of Gasse and Aussem (2016), to its table and figure."""
    from fgfm import experiments

    start = time.perf_counter()
    done = 0
    with progress_bar("data sets") as show:

        def progress(count: int, total: int) -> None:
            nonlocal done
            done = count
            show(count, total)

        try:
            results = experiments.reproduce(
                out,
                reps=reps,
                sizes=_integers(sizes, "--sizes"),
                structures=_structures(dags),
                methods=methods.split(","),
                interactions=interactions,
                beta=beta,
                seed=seed,
                published=published,
                n_jobs=jobs,
                progress=progress,
            )
        except KeyboardInterrupt:
            say(f"{done} data sets are kept in {out}; the same command goes on from there")
            raise
    seconds = time.perf_counter() - start
    command = shlex.join(["fgfm", *sys.argv[1:]])
    paths = experiments.write_report(results, command)
    typer.echo((out / "table.txt").read_text(encoding="utf-8").partition("\n\n")[2])
    if done:
        say(f"{done} data sets computed in {seconds:.0f} s, with start-up")
    else:
        say(f"nothing was left to compute: {out} has all results (remove it to begin anew)")
    names = [*(path.name for path in paths), "results.csv", "settings.json"]
    say(textwrap.fill(f"{out}: {', '.join(names)}", 80, subsequent_indent="  "))
