"""The Typer application with all commands."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from fgfm.cli import _decide, _demo, _evaluate, _fit, _predict, _reproduce, _tune

_OVERVIEW = """\
fgfm: label sets that maximise the expected F-measure

A first look: generated films, a model, a page with charts
  fgfm demo

From a table of features and labels
  fgfm evaluate films.csv --labels genres --report report.html
  fgfm fit films.csv --labels genres -o films.fgfm
  fgfm predict films.fgfm new_films.csv -o sets.csv

From the probabilities of a model that you have
  fgfm decide probabilities.csv -o sets.csv
  fgfm tune validation.csv truth.csv -o decider.fgfm

fgfm --help lists all commands, fgfm evaluate --help the options of one."""

app = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    help="Label sets that maximise the expected F-measure, from any multi-label model.",
    epilog="Exit codes: 0 success, 2 invalid input, 130 stopped by Ctrl-C.",
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"fgfm {version('fgfm')}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Define the options before a command."""
    if context.invoked_subcommand is None:
        typer.echo(_OVERVIEW)


app.command(epilog=_demo.EPILOG)(_demo.demo)
app.command(epilog=_fit.EPILOG)(_fit.fit)
app.command(epilog=_predict.EPILOG)(_predict.predict)
app.command(epilog=_decide.EPILOG)(_decide.decide)
app.command(epilog=_tune.EPILOG)(_tune.tune)
app.command(epilog=_evaluate.EPILOG)(_evaluate.evaluate)
app.command(epilog=_reproduce.EPILOG)(_reproduce.reproduce)
