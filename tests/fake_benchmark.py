"""Rules that fail and a fake module of packages, imported by the benchmark's processes."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

import numpy as np

from benchmarks.real.peers import PeerRun
from benchmarks.real.problem import Family, Outcome

PEERS = {"fake": "fake", "absent": "absent", "weak": "weak"}


class PeerError(Exception):
    pass


def empty_sets(rule, problem):
    labels = np.zeros((problem.X_test.shape[0], problem.Y_train.shape[1]), dtype=np.int8)
    return Outcome(rule, {1.0: labels}, None, 0.0, 0.0)


def slow(problem):
    yield empty_sets("quick", problem)
    time.sleep(600)
    yield empty_sets("slow", problem)


def waiting(mark, problem):
    """Write the process id to a file, and wait to be killed."""
    with open(f"{mark}.part", "w") as file:
        file.write(str(os.getpid()))
    os.replace(f"{mark}.part", mark)
    time.sleep(600)
    yield empty_sets("waiting", problem)


def broken(problem):
    raise ValueError("the message has\ntwo lines")
    yield


def killed(problem):
    yield empty_sets("early", problem)
    os.kill(os.getpid(), signal.SIGKILL)


def marked(mark, problem):
    """Fail unless a file exists."""
    if not os.path.exists(mark):
        raise RuntimeError("not yet")
    yield empty_sets("marked", problem)


def failing_families(mark):
    """Return families that fail, or that depend on the file `mark`."""
    return [
        Family(("quick", "slow"), slow),
        Family(("broken",), broken),
        Family(("early", "killed"), killed),
        Family(("marked",), partial(marked, mark)),
        Family(("waiting",), partial(waiting, mark)),
    ]


def install(peer, folder):
    if peer == "absent":
        raise PeerError("there is no network")
    return f"/python/of/{peer}"


def run_peer(peer, python, X_train, Y_train, X_test, *, seed, limit):
    assert python == f"/python/of/{peer}"
    assert (seed, limit) == (0, 60.0)
    if peer == "weak":
        raise PeerError("it failed")
    labels = np.ones((X_test.shape[0], Y_train.shape[1]), dtype=np.int8)
    expected = np.full(len(labels), 0.5)
    sets = {"all-on": labels, "off": 1 - labels}
    return PeerRun(sets, {"all-on": expected}, np.full(labels.shape, 0.9), 2.0, 1.0, 77.0)
