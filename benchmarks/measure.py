"""Timing on a noisy machine.

Tasks that are compared are timed in turns within one run, and the minimum of each counts: other
load on the machine can only add to a time. The clock is the processor time of this process, which
other processes share the cores with; threads are compared by the time that passes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["growth_exponent", "in_child", "least_times"]

Task = Callable[[], object]
Clock = Callable[[], float]

_ROOT = Path(__file__).resolve().parent.parent
_BATCH = 0.01  # minimum seconds of one timed batch of calls


def least_times(
    tasks: Mapping[str, Task],
    *,
    seconds: float,
    rounds: int = 3,
    clock: Clock = time.process_time,
) -> dict[str, float]:
    """Return the minimum seconds per call of each task.

    Every round times each task once, in turn, by a batch of calls that takes 10 ms. Rounds are
    repeated until `seconds` have passed, and at least `rounds` times.
    """
    calls = {name: _batch_size(task, clock) for name, task in tasks.items()}
    least = dict.fromkeys(tasks, float("inf"))
    end = time.perf_counter() + seconds
    done = 0
    while done < rounds or time.perf_counter() < end:
        for name, task in tasks.items():
            least[name] = min(least[name], _time_calls(task, calls[name], clock))
        done += 1
    return least


def _time_calls(task: Task, calls: int, clock: Clock) -> float:
    start = clock()
    for _ in range(calls):
        task()
    return (clock() - start) / calls


def _batch_size(task: Task, clock: Clock) -> int:
    """Return the number of calls that fill a batch, after one call to warm up."""
    task()
    calls = 1
    while (took := _time_calls(task, calls, clock) * calls) < _BATCH:
        calls = max(2 * calls, int(1.2 * calls * _BATCH / max(took, 1e-9)) if took > 1e-4 else 0)
    return calls


def growth_exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return the least-squares slope of log time over log size: 1 is linear growth."""
    return float(np.polyfit(np.log(sizes), np.log(times), deg=1)[0])


def in_child(job: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Any:
    """Run a function of `benchmarks.child` in a fresh process, and return its result."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", job, *arguments],
        cwd=_ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)
