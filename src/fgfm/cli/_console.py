"""What the commands share: progress on a terminal, and errors as one sentence."""

from __future__ import annotations

import functools
import os
import sys
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

__all__ = ["INTERRUPTED", "WRONG", "plain_errors", "progress_bar", "rows_counter", "say"]

P = ParamSpec("P")
R = TypeVar("R")

WRONG = 2  # exit code: an argument or a file is wrong
INTERRUPTED = 130  # exit code: Ctrl-C


def say(text: str = "") -> None:
    """Write a line to standard error, where it does not mix with results."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the remaining time while work goes on, if standard error is a terminal.

    Parameters
    ----------
    description : str
        What is being done.

    Yields
    ------
    callable
        To be called with what is done, and the total.
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
        yield lambda done, total: bar.update(task, completed=done, total=total)


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
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Any:
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:  # whoever read our output has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (ValueError, TypeError, OSError, ImportError) as error:
            say(f"fgfm: {error}")
            raise typer.Exit(WRONG) from error
        except KeyboardInterrupt:
            say("fgfm: stopped")
            raise typer.Exit(INTERRUPTED) from None

    return wrapped
