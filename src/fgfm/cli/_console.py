"""Progress bars on standard error, and errors and warnings as one line each."""

from __future__ import annotations

import functools
import json
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from fgfm._utils.text import WIDTH, escaped, one_line

__all__ = [
    "STAGES",
    "echo",
    "json_text",
    "plain_errors",
    "progress_bar",
    "rows_counter",
    "say",
    "spinner",
]

P = ParamSpec("P")
R = TypeVar("R")

# what is done in the stages that a fit reports
STAGES = {"models": "fitting models", "label factors": "finding label factors"}

_INVALID_INPUT = 2  # exit codes
_INTERRUPTED = 130
# Options that are not called like the arguments of `fgfm.data`.
_OPTIONS = {"categorical": "category", "decider": "with", "header": "header or --no-header"}


def echo(text: str) -> None:
    """Print lines to standard output, with control characters escaped."""
    typer.echo(escaped(text, keep="\n"))


def say(text: str = "") -> None:
    """Print lines to standard error, with control characters escaped.

    On a terminal, long ones are wrapped between words.
    """
    text = escaped(text, keep="\n")
    if sys.stderr.isatty():
        wrap = functools.partial(
            textwrap.fill,
            width=WIDTH,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        text = "\n".join(wrap(line) if len(line) > WIDTH else line for line in text.splitlines())
    print(text, file=sys.stderr, flush=True)


def json_text(values: Mapping[str, Any], indent: int | None = None) -> str:
    """Return values as JSON, with null in the place of NaN, which JSON does not have."""
    return json.dumps({k: None if v != v else v for k, v in values.items()}, indent=indent)


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[..., None]]:
    """Show a progress bar with the remaining time, if standard error is a terminal.

    Yields a function of the number of steps done, the number in all and, optionally, another
    description.
    """
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
        expand=True,
    )
    with bar:
        task = bar.add_task(description, total=None)

        def show(done: int, total: int, description: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=description)

        yield show


@contextmanager
def spinner(description: str) -> Iterator[None]:
    """Show that work of unknown length goes on, if standard error is a terminal."""
    with rows_counter(description, "{task.description}"):
        yield


@contextmanager
def rows_counter(
    description: str, text: str = "{task.completed:,.0f} {task.description}"
) -> Iterator[Callable[[int], None]]:
    """Show a count of unknown total, if standard error is a terminal.

    Yields a function of the number of rows done. The text has fields of the task of rich.
    """
    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn(text, markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(description, total=None)
        yield lambda done: bar.update(task, completed=done)


def plain_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Decorate a command: invalid input ends it with one line instead of a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warning_printer()
                return command(*args, **kwargs)
        except BrokenPipeError:  # the reader of our output has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (ValueError, TypeError, OSError, ImportError) as error:
            say(f"fgfm: {_message(error)}")
            raise typer.Exit(_INVALID_INPUT) from error
        except KeyboardInterrupt:
            say("fgfm: stopped")
            raise typer.Exit(_INTERRUPTED) from None
        except Exception as error:
            if not type(error).__module__.startswith("pyarrow"):
                raise
            say(f"fgfm: {_message(error)}")  # a file that pyarrow cannot read or write
            raise typer.Exit(_INVALID_INPUT) from error

    return run


def _message(error: BaseException) -> str:
    """Return the message of an error on one line."""
    from fgfm.data import DataError

    if isinstance(error, DataError) and error.arguments:
        names = [_OPTIONS.get(name, name) for name in error.arguments]
        options = [f"--{name.replace('_', '-')}" for name in names]
        noun = "option" if len(options) == 1 else "options"
        return one_line(f"{error.place}: {error.reason} ({noun}: {', '.join(options)})")
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        name = error.filename
        name = os.fsdecode(name) if isinstance(name, (str, bytes)) else str(name)
        return f"{name}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return one_line(error) or type(error).__name__


def _warning_printer() -> Callable[..., None]:
    """Return a function that prints each warning once, on one line."""
    printed: set[str] = set()

    def show(message: Warning | str, *_: Any) -> None:
        text = one_line(message)
        if text not in printed:
            printed.add(text)
            say(f"fgfm: warning: {text}")

    return show
