"""Tasks in processes of their own: one that crashes, hangs or eats the memory harms no other."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

__all__ = ["LIMIT", "Answer", "End", "one_line", "peak_mib", "run_apart"]

LIMIT = "limit"
_PRELOAD = ["benchmarks.real.preload"]  # imported once, not by each process
_END = 5.0  # seconds in which a process that is done must end
_LONGEST_WAIT = 3600.0  # seconds: systems refuse very long ones


class Answer(NamedTuple):
    """What a task gave on its way."""

    task: Any
    value: Any


class End(NamedTuple):
    """How a task ended: "ok", "limit" (also by a `TimeoutError`), or its error in one line."""

    task: Any
    status: str


class _Running(NamedTuple):
    process: Any
    task: Any
    deadline: float


def one_line(error: BaseException) -> str:
    """Give what an error says, and its kind, on one line.

    Examples
    --------
    >>> one_line(ValueError("two\\nlines"))
    'ValueError: two lines'
    """
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def peak_mib() -> float:
    """Give the most memory that this process has had, in MiB; NaN where nothing tells."""
    try:
        import resource
    except ImportError:  # on Windows
        return float("nan")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def run_apart(
    work: Callable[[Any], Iterator[Any]],
    tasks: Sequence[Any],
    n_jobs: int,
    limit: float,
    skip: Callable[[Any], str | None],
) -> Iterator[Answer | End]:
    """Run each task in a new process, some at a time, in the order given.

    Parameters
    ----------
    work : callable
        Gives what a task yields, one by one. Processes import it by its name.
    tasks : sequence
        The tasks.
    n_jobs : int
        How many run at a time.
    limit : float
        Seconds after which a task is ended; what it gave until then counts.
    skip : callable
        Asked before a task begins: a reason not to run it, which is how it ends then, or None.

    Yields
    ------
    Answer or End
        What tasks gave, as it comes, and then how each ended.
    """
    context = _context()
    waiting = list(reversed(tasks))
    running: dict[Connection, _Running] = {}
    try:
        while waiting or running:
            while waiting and len(running) < n_jobs:
                task = waiting.pop()
                reason = skip(task)
                if reason is not None:
                    yield End(task, reason)
                    continue
                here, there = context.Pipe()
                process = context.Process(target=_child, args=(there, work, task))
                process.start()
                there.close()
                running[here] = _Running(process, task, time.monotonic() + limit)
            if not running:
                break
            left = min(r.deadline for r in running.values()) - time.monotonic()
            ready = wait(list(running), timeout=min(max(0.0, left), _LONGEST_WAIT))
            for here in [connection for connection in running if connection in ready]:
                answer = _received(here, running[here])
                yield answer
                if isinstance(answer, End):
                    _stop(here, running.pop(here))
            now = time.monotonic()
            for here, one in list(running.items()):
                if one.deadline <= now and not here.poll():
                    _stop(here, running.pop(here), 0.0)
                    yield End(one.task, LIMIT)
    finally:
        for here, one in running.items():
            _stop(here, one, 0.0)


def _context() -> Any:
    """Give the kind of processes: forks of a fresh one that has our libraries, or new ones."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOAD)
    return context


def _received(here: Connection, one: _Running) -> Answer | End:
    """Give the next thing that a process sent, or how it ended without a word."""
    try:
        kind, value = here.recv()
    except (EOFError, ConnectionResetError):
        one.process.join()
        code = one.process.exitcode
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return End(one.task, f"the process ended by {how}, perhaps for want of memory")
    return Answer(one.task, value) if kind == "answer" else End(one.task, value)


def _stop(here: Connection, one: _Running, patience: float = _END) -> None:
    """End a process and those that it has started."""
    here.close()
    one.process.join(patience)
    with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
        os.killpg(one.process.pid, signal.SIGKILL)
    one.process.kill()
    one.process.join()
    one.process.close()


def _child(there: Connection, work: Callable[[Any], Iterator[Any]], task: Any) -> None:
    """Do a task on one core, and send what it gives."""
    if hasattr(os, "setsid"):
        os.setsid()
    threading.Thread(target=_follow, args=(there,), daemon=True).start()
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for value in work(task):
                there.send(("answer", value))
        there.send(("end", "ok"))
    except TimeoutError:  # it has a limit of its own
        there.send(("end", LIMIT))
    except Exception as error:
        there.send(("end", one_line(error)))


def _follow(there: Connection) -> None:
    """End this process, and those that it has started, when the one that wants it has ended."""
    with contextlib.suppress(EOFError, OSError):
        there.recv()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
