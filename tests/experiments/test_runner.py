"""Parallel tasks whose results are stored one by one."""

from __future__ import annotations

import os

import joblib
import pytest
from joblib.parallel import ThreadingBackend

from fgfm.experiments._reproduce import run_tasks
from fgfm.experiments._result_file import ResultFile


def test_a_killed_worker_raises_and_finished_results_are_kept(tmp_path):
    results = ResultFile(tmp_path / "results.csv", {"task": int}, 1, {})
    with (
        results.opened(),
        pytest.raises(ChildProcessError, match="results are kept, and the same call continues"),
    ):
        run_tasks(lambda task: os._exit(1) if task else [(task,)], range(5), results, 2, None)
    assert (tmp_path / "results.csv").read_text() == "task\n0\n"


def test_backends_that_return_everything_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(ThreadingBackend, "supports_return_generator", False)
    results = ResultFile(tmp_path / "results.csv", {"task": int}, 1, {})
    with results.opened(), joblib.parallel_config("threading"):
        run_tasks(lambda task: [(task,)], range(4), results, 2, None)
    assert (tmp_path / "results.csv").read_text() == "task\n0\n1\n2\n3\n"
