"""``python -m benchmarks.real``: rules, base learners and other packages on real data."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.real import benchmark as run_benchmark
from benchmarks.real import write_benchmark_report
from benchmarks.real.run import RULES
from benchmarks.real.tables import terminal
from fgfm.cli._console import counted, plain_errors, progress_bar, say, wrapped
from fgfm.cli._options import Jobs, Seed, listed

EPILOG = """\b
Examples:
  python -m benchmarks.real data                             all rules on a folder of data
  python -m benchmarks.real data --datasets scene,yeast --rules default,threshold,chain
  python -m benchmarks.real openml:yeast --learners ridge,forest
"""


@plain_errors
def benchmark(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA]...",
            help="A folder, files, or names as openml:yeast. By default the folder FGFM_DATA.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Folder of the results; a run goes on where one ended."),
    ] = Path("fgfm-benchmark"),
    datasets: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="Data sets; all by default.")
    ] = None,
    learners: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="ridge (default), forest, boosting."),
    ] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="What makes label sets; all by default."),
    ] = None,
    peers: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Other packages to compare with."),
    ] = None,
    limit: Annotated[float, typer.Option(metavar="S", help="Seconds that a task may take.")] = 600,
    seed: Seed = 0,
    jobs: Jobs = -1,
    retry: Annotated[
        bool, typer.Option("--retry", help="Compute again what failed or took too long.")
    ] = False,
) -> None:
    """Compare decision rules, base learners and other packages on real data."""
    start = time.perf_counter()
    done = 0
    with progress_bar("tasks") as show:

        def progress(count: int, total: int) -> None:
            nonlocal done
            done = count
            show(count, total)

        try:
            results = run_benchmark(
                out,
                data=data[0] if data is not None and len(data) == 1 else data,
                datasets=listed(datasets) or None,
                learners=listed(learners) or ["ridge"],
                rules=listed(rules) or RULES,
                peers=listed(peers),
                limit=limit,
                seed=seed,
                n_jobs=jobs,
                retry=retry,
                progress=progress,
            )
        except KeyboardInterrupt:
            say(f"{counted(done, 'task')} kept in {out}; the same command goes on from there")
            raise
    seconds = time.perf_counter() - start
    command = shlex.join(["python", "-m", "benchmarks.real", *sys.argv[1:]])
    paths = write_benchmark_report(results, command)
    typer.echo(terminal(results.summary))
    if done:
        say(f"{counted(done, 'task')} computed in {seconds:.0f} s, with start-up")
    else:
        say(f"nothing was left to compute: {out} has all results (remove it to begin anew)")
    names = [*(path.name for path in paths), "results.csv", "settings.json", "rows"]
    say(wrapped(f"{out}: {', '.join(names)}", "  "))


if __name__ == "__main__":
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(epilog=EPILOG)(benchmark)
    app(prog_name="python -m benchmarks.real")
