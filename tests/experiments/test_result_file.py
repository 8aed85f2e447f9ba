"""Result files: damaged ones are not touched, incomplete lines are removed, tasks fill them."""

from __future__ import annotations

import os

import joblib
import pytest
from joblib.parallel import ThreadingBackend

from fgfm.experiments._reproduce import run_tasks
from fgfm.experiments._result_file import ResultFile

COLUMNS = {"name": str, "k": int, "f": float}


def result_file(folder, **settings):
    return ResultFile(folder / "results.csv", COLUMNS, 2, settings)


def test_rows_are_read_back_in_the_order_of_their_keys(tmp_path):
    with result_file(tmp_path, seed=1).opened() as file:
        file.append([("b", 1, 0.1 + 0.2), ("a", 2, float("nan"))])
        file.append([("a", 1, 1.0)])
        assert ("a", 2) in file
        file.discard([("a", 2)])
    with result_file(tmp_path, seed=1).opened() as file:
        assert list(file.rows.values()) == [("a", 1, 1.0), ("b", 1, 0.1 + 0.2)]
        with pytest.raises(ValueError, match=r"has two rows for \('a', 1\)"):
            file.append([("a", 1, 0.5)])


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_an_incomplete_last_line_is_removed(tmp_path, cut):
    with result_file(tmp_path).opened() as file:
        file.append([("a", 1, 0.5), ("b", 1, 0.25)])
    path = tmp_path / "results.csv"
    path.write_bytes(path.read_bytes()[:-cut])
    with result_file(tmp_path).opened() as file:
        assert list(file.rows) == [("a", 1)]
    assert path.read_text() == "name,k,f\na,1,0.5\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense\n", "is not a results file: its first line must be 'name,k,f'"),
        ("", "is not a results file"),
        ("name,k,f\na,x,1\n", "line 2 is not a row of results: 'a,x,1'"),
        ("name,k,f\na,1\n", "line 2 is not a row of results: 'a,1'"),
        ("name,k,f\na,1,0\na,1,0\n", "has two rows for"),
        (
            "name,k,f\na,1,0\n",
            "settings.json is missing: the settings of the results beside it are unknown",
        ),
    ],
)
def test_a_damaged_file_raises_and_stays_as_it_is(tmp_path, text, message):
    (tmp_path / "results.csv").write_text(text)
    with pytest.raises(ValueError, match=message), result_file(tmp_path).opened():
        pass
    assert (tmp_path / "results.csv").read_text() == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "settings.json is damaged"),
        ("[1]", "settings.json is damaged: it must contain the settings of a run"),
        ('{"seed": 2}', r"contains results of another run: seed = 2, not 1\. Choose another"),
        ('{"seed": 1, "x": 0}', "another run: x = 0, not None"),
    ],
)
def test_other_settings_raise(tmp_path, text, message):
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(ValueError, match=message), result_file(tmp_path, seed=1).opened():
        pass


# Parallel tasks whose results are stored one by one


def test_a_killed_worker_raises_and_finished_results_are_kept(tmp_path):
    results = ResultFile(tmp_path / "results.csv", {"task": int}, 1, {})
    with (
        results.opened(),
        pytest.raises(ChildProcessError, match="results are kept, and the same call continues"),
    ):
        list(run_tasks(lambda task: os._exit(1) if task else [(task,)], range(5), results, 2))
    assert (tmp_path / "results.csv").read_text() == "task\n0\n"


def test_backends_that_return_everything_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(ThreadingBackend, "supports_return_generator", False)
    results = ResultFile(tmp_path / "results.csv", {"task": int}, 1, {})
    with results.opened(), joblib.parallel_config("threading"):
        list(run_tasks(lambda task: [(task,)], range(4), results, 2))
    assert (tmp_path / "results.csv").read_text() == "task\n0\n1\n2\n3\n"
