"""Run the doctests of each page in a temporary folder, where it may write files."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True)
def _own_folder(request, tmp_path, monkeypatch):
    if request.node.path.name == "large.md" and find_spec("dask") is None:
        pytest.skip("needs dask: pip install 'fgfm[dask]'")
    monkeypatch.chdir(tmp_path)
