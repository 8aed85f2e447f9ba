"""The file that each test saves to."""

from __future__ import annotations

import pytest


@pytest.fixture
def path(tmp_path):
    """Return the path of a file that does not exist."""
    return tmp_path / "model.fgfm"
