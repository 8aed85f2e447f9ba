"""Seeds of random campaigns.

Each test that takes `seeds` runs twice: a quick slice with fixed seeds, in every run of the tests,
and a campaign, marked `hostile` (make test-hostile), that lasts ``FGFM_HOSTILE_SECONDS`` and
starts at ``FGFM_HOSTILE_SEED``, else at random.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

_QUICK = 15
_SECONDS = float(os.environ.get("FGFM_HOSTILE_SECONDS", "10"))
# Set, so that the processes of pytest-xdist have the same.
_FIRST = int(os.environ.setdefault("FGFM_HOSTILE_SEED", str(time.time_ns() % 10**9)))


def pytest_report_header() -> str:
    """Print the seed."""
    return f"hostile: FGFM_HOSTILE_SEED={_FIRST} FGFM_HOSTILE_SECONDS={_SECONDS:g}"


def _campaign() -> Iterator[int]:
    end = time.monotonic() + _SECONDS
    seed = _FIRST
    while time.monotonic() < end:
        yield seed
        seed += 1


_LONG = pytest.param("campaign", marks=[pytest.mark.slow, pytest.mark.hostile])


@pytest.fixture(params=["quick", _LONG])
def seeds(request: pytest.FixtureRequest) -> Iterator[int]:
    """Return the seeds of a test, one after the other."""
    return iter(range(_QUICK)) if request.param == "quick" else _campaign()
