"""A small run of the paper's experiment, shared by all tests."""

from __future__ import annotations

import pytest

from fgfm.paper import reproduce


@pytest.fixture(scope="session")
def small_settings():
    """Return arguments of a run that takes a second."""
    return {"reps": 2, "sizes": [50, 100], "structures": [2, (2, 1)], "interactions": "none"}


@pytest.fixture(scope="session")
def small(tmp_path_factory, small_settings):
    """Return the results of the small run."""
    return reproduce(tmp_path_factory.mktemp("small"), **small_settings)
