"""Run each task in a subprocess with a time limit.

A task that crashes, hangs or runs out of memory does not affect the others.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

__all__ = ["LIMIT", "OK", "Ended", "Output", "format_error", "run_in_subprocesses"]

OK = "ok"
LIMIT = "limit"
_PRELOAD = ["benchmarks.real.preload"]  # imported once, by the process that the others fork from
_EXIT_SECONDS = 5.0  # in which a finished process must exit
_MAX_WAIT = 3600.0  # seconds; operating systems refuse very long timeouts


class Output(NamedTuple):
    """A value that a task yielded."""

    task: Any
    value: Any


class Ended(NamedTuple):
    """The end of a task: "ok", "limit" (also after a `TimeoutError`), or its error in one line."""

    task: Any
    status: str


class _Running(NamedTuple):
    process: Any
    task: Any
    deadline: float


def format_error(error: BaseException) -> str:
    """Format the type and the message of an error on one line."""
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def run_in_subprocesses(
    work: Callable[[Any], Iterator[Any]],
    tasks: Sequence[Any],
    n_jobs: int,
    limit: float,
    skip: Callable[[Any], str | None],
) -> Iterator[Output | Ended]:
    """Run each task in a new process, several at a time, in the given order."""
    context = _context()
    waiting = list(reversed(tasks))
    running: dict[Connection, _Running] = {}
    try:
        while waiting or running:
            while waiting and len(running) < n_jobs:
                task = waiting.pop()
                reason = skip(task)
                if reason is not None:
                    yield Ended(task, reason)
                    continue
                parent, child = context.Pipe()
                process = context.Process(target=_run_child, args=(child, work, task))
                process.start()
                child.close()
                running[parent] = _Running(process, task, time.monotonic() + limit)
            if not running:
                break
            remaining = min(r.deadline for r in running.values()) - time.monotonic()
            ready = wait(list(running), timeout=min(max(0.0, remaining), _MAX_WAIT))
            for pipe in [pipe for pipe in running if pipe in ready]:
                message = _receive(pipe, running[pipe])
                yield message
                if isinstance(message, Ended):
                    _stop(pipe, running.pop(pipe), _EXIT_SECONDS)
            now = time.monotonic()
            for pipe, one in list(running.items()):
                if one.deadline <= now and not pipe.poll():
                    _stop(pipe, running.pop(pipe), 0.0)
                    yield Ended(one.task, LIMIT)
    finally:
        for pipe, one in running.items():
            _stop(pipe, one, 0.0)


def _context() -> Any:
    """Return a context that forks a fresh process with our libraries, or else spawns."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOAD)
    return context


def _receive(pipe: Connection, one: _Running) -> Output | Ended:
    """Return the next message of a process, or the way it ended without one."""
    try:
        kind, value = pipe.recv()
    except (EOFError, ConnectionResetError):
        one.process.join()
        code = one.process.exitcode
        cause = f"signal {-code}" if code < 0 else f"exit code {code}"
        return Ended(one.task, f"the process ended by {cause}, perhaps because memory ran out")
    return Output(one.task, value) if kind == "output" else Ended(one.task, value)


def _stop(pipe: Connection, one: _Running, seconds: float) -> None:
    """Wait for a process to exit, then kill it and the processes that it started."""
    pipe.close()
    one.process.join(seconds)
    with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
        os.killpg(one.process.pid, signal.SIGKILL)
    one.process.kill()
    one.process.join()
    one.process.close()


def _run_child(pipe: Connection, work: Callable[[Any], Iterator[Any]], task: Any) -> None:
    """Run a task on one core, and send what it yields."""
    if hasattr(os, "setsid"):
        os.setsid()  # a process group of its own, to be killed together
    threading.Thread(target=_exit_with_parent, args=(pipe,), daemon=True).start()
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for value in work(task):
                pipe.send(("output", value))
        pipe.send(("end", OK))
    except TimeoutError:  # raised by tasks that have a limit of their own
        pipe.send(("end", LIMIT))
    except Exception as error:
        pipe.send(("end", format_error(error)))


def _exit_with_parent(pipe: Connection) -> None:
    """Kill this process, and those that it started, when the parent has ended."""
    with contextlib.suppress(EOFError, OSError):
        pipe.recv()  # nothing is ever sent: it returns when the other end is closed
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
