"""What commands print: results, tables, progress, and errors and warnings as one line each."""

from __future__ import annotations

import functools
import json
import os
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import typer

from fgfm._utils.text import WIDTH, escaped, one_line

# what is done in the stages that a fit reports
STAGES = {"models": "fitting models"}

_INVALID_INPUT = 2  # exit codes
_INTERRUPTED = 130
_FIRST, _LATER = 0.1, 5.0  # seconds between lines on progress in a file


def echo(text: str) -> None:
    """Print lines to standard output, with control characters escaped."""
    typer.echo(escaped(text, keep="\n"))


def say(text: str) -> None:
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


def note(text: str | None) -> None:
    """Print a note to standard error, if there is one."""
    if text:
        say(f"fgfm: note: {text}")


def json_text(values: Mapping[str, Any], indent: int | None = None) -> str:
    """Return values as JSON, with null in the place of NaN, which JSON does not have."""
    return json.dumps({k: None if v != v else v for k, v in values.items()}, indent=indent)


def format_table(
    rows: Sequence[Sequence[str]], align: str = "", gap: str = "  ", width: int = 0
) -> list[str]:
    """Return the lines of a table whose columns are as wide as their cells, or as `width`.

    `align` has < or > for each column; the others are aligned to the left.

    Examples
    --------
    >>> format_table([("rows", "7"), ("labels", "12")], "<>")
    ['rows     7', 'labels  12']
    """
    widths = [max(width, *map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    sides = align.ljust(len(widths), "<")
    return [
        gap.join(f"{cell:{s}{w}}" for cell, s, w in zip(row, sides, widths, strict=False)).rstrip()
        for row in rows
    ]


@contextmanager
def progress(description: str, steps: bool = False) -> Iterator[Callable[..., None]]:
    """Show that work goes on: a bar on a terminal; otherwise, with `steps`, lines now and then.

    Yields a function of the number of rows done; or, with `steps`, of the steps done, the steps
    in all and, optionally, another description.
    """
    if sys.stderr.isatty():
        with _bar(description, steps) as show:
            yield show
        return
    state, stopped, start = [description], threading.Event(), time.perf_counter()

    def tell() -> None:
        wait = _FIRST
        while not stopped.wait(wait):
            say(f"fgfm: [{time.perf_counter() - start:.0f} s] {state[0]}")
            wait = _LATER

    def show_line(done: int, total: int = 0, text: str = description) -> None:
        state[0] = f"{text}: {done} of {total}" if total else text

    thread = threading.Thread(target=tell, daemon=True)
    if steps:
        thread.start()
    try:
        yield show_line
    finally:
        stopped.set()
        if steps:
            thread.join()


@contextmanager
def _bar(description: str, steps: bool) -> Iterator[Callable[..., None]]:
    """Show a bar that moves until the first step is done, then the share and remaining time."""
    from rich import progress as rich
    from rich.console import Console

    columns: list[Any] = [
        rich.SpinnerColumn(),
        rich.TextColumn("{task.description}", markup=False),
        rich.TimeElapsedColumn(),
    ]
    if steps:
        columns[2:2] = [rich.BarColumn(bar_width=None), rich.MofNCompleteColumn()]
        columns += [rich.TextColumn("left"), rich.TimeRemainingColumn()]
    with rich.Progress(
        *columns, console=Console(stderr=True), transient=True, expand=steps
    ) as bar:
        task = bar.add_task(description, total=None)

        def show(done: int, total: int = 0, text: str = description) -> None:
            if steps:
                bar.update(task, completed=done, total=total if done else None, description=text)
            else:
                bar.update(task, description=f"{done:,} {text}")

        yield show


def plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: invalid input ends it with one line instead of a traceback."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warning_printer()
                command(*args, **kwargs)
        except BrokenPipeError:  # the reader of our output has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            say("fgfm: stopped")
            raise typer.Exit(_INTERRUPTED) from None
        except Exception as error:
            ours = isinstance(error, (ValueError, TypeError, OSError, ImportError))
            if not ours and not type(error).__module__.startswith("pyarrow"):
                raise  # typer's own, or a defect
            say(f"fgfm: {_message(error, kwargs.get('context'))}")
            raise typer.Exit(_INVALID_INPUT) from error

    return run


def _message(error: BaseException, context: Any) -> str:
    """Return the message of an error on one line, with the options that help, if there are any."""
    from fgfm.io import DataError

    if isinstance(error, DataError):
        flags = {} if context is None else _flags(context.command.params)
        names = [flags[name] for name in error.arguments if name in flags]
        hint = f" (option{'s' * (len(names) > 1)}: {', '.join(names)})" if names else ""
        place = f"{error.place}: " if error.place else ""
        return one_line(f"{place}{error.reason}{hint}")
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return one_line(error) or type(error).__name__


def _flags(params: Sequence[Any]) -> dict[str, str]:
    """Return the options of a command by their names, and by those of their parameters."""
    found: dict[str, str] = {}
    for param in params:
        long = [text for text in (*param.opts, *param.secondary_opts) if text.startswith("--")]
        if long:
            keys = (param.name, long[0].removeprefix("--").replace("-", "_"))
            found |= dict.fromkeys(keys, " or ".join(long))
    return found


def _warning_printer() -> Callable[..., None]:
    """Return a function that prints each warning once, on one line."""
    printed: set[str] = set()

    def show(message: Warning | str, *_: Any) -> None:
        text = one_line(message)
        if text not in printed:
            printed.add(text)
            say(f"fgfm: warning: {text}")

    return show
