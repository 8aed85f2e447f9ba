"""What the commands share: progress on a terminal, and errors as one sentence."""

from __future__ import annotations

import functools
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
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

__all__ = [
    "INTERRUPTED",
    "WIDTH",
    "WRONG",
    "clipped",
    "counted",
    "plain_errors",
    "progress_bar",
    "rows_counter",
    "say",
    "wrapped",
]

P = ParamSpec("P")
R = TypeVar("R")

WRONG = 2  # exit code: an argument or a file is wrong
INTERRUPTED = 130  # exit code: Ctrl-C
WIDTH = 80  # of tables


def say(text: str = "") -> None:
    """Write a line to standard error, where it does not mix with results."""
    print(text, file=sys.stderr, flush=True)


def counted(number: int, noun: str) -> str:
    """Give a number of things."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def clipped(text: str, width: int) -> str:
    """Cut a text in the middle so that it fits."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def wrapped(text: str, indent: str = "") -> str:
    """Break a text into lines that fit; the second and later ones are indented."""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[..., None]]:
    """Show a bar with the remaining time while work goes on, if standard error is a terminal.

    Parameters
    ----------
    description : str
        What is being done.

    Yields
    ------
    callable
        To be called with what is done, the total, and what it is, where that changes.
    """
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
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

        def show(done: int, total: int, what: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield show


@contextmanager
def rows_counter(description: str) -> Iterator[Callable[[int], None]]:
    """Count rows while work goes on whose end is not known, if standard error is a terminal.

    Parameters
    ----------
    description : str
        What is counted.

    Yields
    ------
    callable
        To be called with the number of rows that are done.
    """
    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.completed:,.0f} {task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(description, total=None)
        yield lambda done: bar.update(task, completed=done)


def plain_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Make a command end with one sentence, not with a traceback, where its input is wrong."""

    @functools.wraps(command)
    def careful(*args: P.args, **kwargs: P.kwargs) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _plain_warning()
                return command(*args, **kwargs)
        except BrokenPipeError:  # whoever read our output has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (ValueError, TypeError, OSError, ImportError) as error:
            say(f"fgfm: {_sentence(error)}")
            raise typer.Exit(WRONG) from error
        except KeyboardInterrupt:
            say("fgfm: stopped")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if not type(error).__module__.startswith("pyarrow"):
                raise
            say(f"fgfm: {_sentence(error)}")  # of a file that it cannot write or read
            raise typer.Exit(WRONG) from error

    return careful


def _sentence(error: BaseException) -> str:
    """Give what an error says on one line; for files as a sentence."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        name = error.filename
        name = os.fsdecode(name) if isinstance(name, (str, bytes)) else str(name)
        return f"{name}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return " ".join(str(error).split()) or type(error).__name__


def _plain_warning() -> Callable[..., None]:
    """Give what shows warnings: each once, on one line."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            say(f"fgfm: warning: {text}")

    return show
