"""Rules and another package that the benchmark's processes import, some of which go wrong."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

import numpy as np

from benchmarks.real.peer_packages import PeerRun
from benchmarks.real.rules import Family, Outcome

PEERS = {"fake": "fake", "absent": "absent", "weak": "weak"}


class PeerError(Exception):
    pass


def nothing(rule, problem):
    labels = np.zeros((problem.X_test.shape[0], problem.Y_train.shape[1]), dtype=np.int8)
    return Outcome(rule, {1.0: labels}, None, 0.0, 0.0)


def slow(problem):
    yield nothing("quick", problem)
    time.sleep(600)
    yield nothing("slow", problem)


def waiting(mark, problem):
    """Say which process this is, and wait for its end."""
    with open(f"{mark}.part", "w") as file:
        file.write(str(os.getpid()))
    os.replace(f"{mark}.part", mark)
    time.sleep(600)
    yield nothing("waiting", problem)


def broken(problem):
    raise ValueError("there is\nno such thing")
    yield


def killed(problem):
    yield nothing("early", problem)
    os.kill(os.getpid(), signal.SIGKILL)


def marked(mark, problem):
    """Fail, unless somebody has put things right."""
    if not os.path.exists(mark):
        raise RuntimeError("not yet")
    yield nothing("marked", problem)


def odd(mark):
    """Give families that go wrong, or do something about the file `mark`."""
    return [
        Family(("quick", "slow"), slow),
        Family(("broken",), broken),
        Family(("early", "killed"), killed),
        Family(("marked",), partial(marked, mark)),
        Family(("waiting",), partial(waiting, mark)),
    ]


def prepare(peer, folder):
    if peer == "absent":
        raise PeerError("there is no network")
    return f"/python/of/{peer}"


def run_peer(peer, python, X_train, Y_train, X_test, *, seed, limit):
    assert python == f"/python/of/{peer}"
    assert (seed, limit) == (0, 60.0)
    if peer == "weak":
        raise PeerError("it cannot do that")
    labels = np.ones((X_test.shape[0], Y_train.shape[1]), dtype=np.int8)
    expected = np.full(len(labels), 0.5)
    sets = {"all-on": labels, "off": 1 - labels}
    return PeerRun(sets, {"all-on": expected}, np.full(labels.shape, 0.9), 2.0, 1.0, 77.0)
