"""``fgfm demo``: evaluate, fit and predict on a generated table of films."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from fgfm._utils.atomic import atomic_file
from fgfm._utils.text import clipped, wrapped
from fgfm.cli import _options as opt
from fgfm.cli._console import echo
from fgfm.cli._models import require_skops

EPILOG = """\b
Examples:
  fgfm demo                   into the folder fgfm-demo
  fgfm demo --out films       into another folder
"""
_FILMS, _NEW = 500, 100  # rows to fit to, and rows to predict
COMMANDS = (
    "fgfm evaluate films.csv -l genres --folds 3 --report report.html",
    "fgfm fit films.csv --labels genres -o films.fgfm",
    "fgfm predict films.fgfm new_films.csv --ids id,title -o sets.csv",
)
_OUTPUTS = ("report.html", "films.fgfm", "sets.csv")


@opt.command(
    "",
    out=opt.Option(Path, "fgfm-demo", "FOLDER", "Folder for the files.", ("--out", "-o")),
)
def demo(context: typer.Context, params: dict[str, Any]) -> None:
    """Try evaluate, fit and predict on generated films.

    Writes films.csv, with a plot, a date, a director, numbers and the genres of each film, and
    new_films.csv without genres. Then runs the commands that it prints: evaluate compares decision
    rules and writes a page with charts; fit saves a model; predict writes the genres of the new
    films. It takes about 15 seconds.
    """
    require_skops()
    out = Path(params["out"])
    start = time.perf_counter()
    write_files(out, make_tables())
    echo(f"$ cd {shlex.quote(str(out))}")
    for command in COMMANDS:
        echo(f"\n$ {command}")
        sys.stdout.flush()
        program = [sys.executable, "-m", "fgfm.cli", *shlex.split(command)[1:]]
        done = subprocess.run(program, cwd=out, check=False)
        if done.returncode:
            raise typer.Exit(done.returncode)
    with (out / "sets.csv").open(encoding="utf-8") as lines:
        shown = [clipped(next(lines).rstrip("\n"), 80) for _ in range(6)]
    echo("\n".join(["\n$ head -n 6 sets.csv", *shown, ""]))
    echo(
        wrapped(
            f"Done in {time.perf_counter() - start:.0f} s. Open {out / 'report.html'} in a "
            "browser. The same commands work on your own table: replace films.csv, and genres by "
            "the name of its label column."
        )
    )


def make_tables() -> dict[str, bytes]:
    """Return the content of the two files."""
    from fgfm.cli._films import make_films

    films = make_films(_FILMS + _NEW)
    tables = {"films.csv": films[:_FILMS], "new_films.csv": films[_FILMS:].drop(columns="genres")}
    return {
        name: table.to_csv(index=False, lineterminator="\n").encode()
        for name, table in tables.items()
    }


def write_files(out: Path, tables: Mapping[str, bytes]) -> None:
    """Write the files into a folder in which only those of an earlier demo are replaced."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out is {out}, a file: it must be a folder")
    ours = all(
        (out / name).is_file() and (out / name).read_bytes() == content
        for name, content in tables.items()
    )
    for name in (*tables, *_OUTPUTS):
        if (out / name).exists() and not ours:
            raise ValueError(
                f"--out is {out}, where {name} is not a file of this demo: choose another folder"
            )
    out.mkdir(parents=True, exist_ok=True)
    for name, content in tables.items():
        with atomic_file(out / name) as file:
            file.write(content)
