"""The whole experiment: records, resuming, both kinds of estimates, and validation."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import BrokenExecutor

import joblib
import numpy as np
import pytest
from sklearn.utils.parallel import Parallel

from fgfm.paper import reproduce


def count_networks(folder, **settings):
    """Return the results, and the number of networks that were needed."""
    calls = []
    results = reproduce(folder, progress=lambda *step: calls.append(step), **settings)
    done, total = calls[-1]
    assert done == total
    return results, total


def records(results, estimates="published"):
    return results.runs[estimates].records


def stored(folder, estimates="published"):
    return (folder / estimates / "results.csv").read_bytes()


def test_every_method_has_its_records(small):
    found = records(small)
    keys = {(r.structure, r.n, r.repetition, r.method) for r in found}
    assert len(keys) == len(found) == 2 * 2 * 2 * 6
    assert {r.structure for r in found} == {"4+4", "2+1"}
    lines = stored(small.folder).decode().splitlines()
    assert lines[0] == "structure,n,repetition,learner,method,f,f_exact,factors"
    assert len(lines) == 1 + len(found)


@pytest.mark.parametrize(
    ("backend", "n_jobs"),
    [
        ("threading", 3),
        pytest.param("loky", 2, marks=pytest.mark.slow),
        pytest.param("loky", -1, marks=pytest.mark.slow),
    ],
)
def test_results_do_not_depend_on_n_jobs(small, small_settings, tmp_path, backend, n_jobs):
    with joblib.parallel_config(backend):
        reproduce(tmp_path, n_jobs=n_jobs, **small_settings)
    assert stored(tmp_path) == stored(small.folder)


def test_stored_results_are_not_computed_again(small, small_settings, tmp_path):
    _, count = count_networks(tmp_path, **small_settings | {"reps": 1, "methods": ["gfm"]})
    assert count == 2
    _, count = count_networks(tmp_path, **small_settings | {"methods": ["gfm", "ilf"]})
    assert count == 4  # "ilf" for the first network of each structure, all for the second
    count_networks(tmp_path, **small_settings)
    assert stored(tmp_path) == stored(small.folder)
    again, count = count_networks(tmp_path, **small_settings)
    assert count == 0
    assert again.runs == small.runs


def test_a_stored_result_is_kept_when_methods_are_added(tmp_path, small_settings):
    reproduce(tmp_path, **small_settings | {"methods": ["gfm"]})
    path = tmp_path / "published" / "results.csv"
    lines = path.read_text().splitlines()
    fields = lines[1].split(",")
    fields[5] = "0.125"  # no method scores this
    path.write_text("\n".join([lines[0], ",".join(fields), *lines[2:]]) + "\n")
    results = reproduce(tmp_path, **small_settings | {"methods": ["gfm", "bayes"]})
    assert [r.f for r in records(results)].count(0.125) == 1


@pytest.mark.parametrize("cut", [1, 40, 700])
def test_a_truncated_file_is_completed(small, small_settings, tmp_path, cut):
    whole = stored(small.folder)
    folder = tmp_path / "published"
    folder.mkdir()
    settings = (small.folder / "published" / "settings.json").read_bytes()
    (folder / "settings.json").write_bytes(settings)
    (folder / "results.csv").write_bytes(whole[:-cut])
    _, count = count_networks(tmp_path, **small_settings)
    assert stored(tmp_path) == whole
    lost = whole.count(b"\n") - whole[:-cut].count(b"\n")
    assert 1 <= count <= min(lost, 4)


def test_both_runs_published_and_ours(small, small_settings, tmp_path):
    both, count = count_networks(tmp_path, estimates="both", **small_settings)
    assert count == 8
    assert list(both.runs) == ["published", "ours"]
    assert records(both) == records(small)
    assert stored(tmp_path) == stored(small.folder)
    ours, count = count_networks(tmp_path, estimates="ours", **small_settings)
    assert count == 0  # stored by the run of both
    assert ours.runs == {"ours": both.runs["ours"]}
    f = {kind: np.array([r.f for r in records(both, kind)]) for kind in both.runs}
    bayes = np.array([r.method == "bayes" for r in records(both)])
    assert (f["published"][bayes] == f["ours"][bayes]).all()
    assert (f["published"] != f["ours"]).any()
    assert np.abs(f["published"] - f["ours"]).max() < 0.05


def test_settings_record_the_estimates(small, small_settings, tmp_path):
    settings = json.loads((small.folder / "published" / "settings.json").read_text())
    assert settings["estimates"] == "published"
    # results of one kind in the folder of the other are not continued
    (tmp_path / "ours").mkdir()
    for name in ("results.csv", "settings.json"):
        content = (small.folder / "published" / name).read_bytes()
        (tmp_path / "ours" / name).write_bytes(content)
    with pytest.raises(ValueError, match="another run: estimates = 'published', not 'ours'"):
        reproduce(tmp_path, estimates="ours", **small_settings)


def test_other_settings_raise(small, small_settings):
    with pytest.raises(ValueError, match=r"another run: seed = 0, not 1\. Choose another folder"):
        reproduce(small.folder, seed=1, **small_settings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense\n", "is not a results file: its first line must be 'structure,n,repetition,"),
        ("", "is not a results file"),
        ("{head}\n4+4,x,1,linear,gfm,0.5,0.5,0\n", "line 2 is not a row of results: '4.4,x,1"),
        ("{head}\n4+4,50,1,linear,gfm,1.5,0.5,0\n", "line 2 is not a row of results"),
        ("{head}\n4+4,50,1\n", "line 2 is not a row of results: '4.4,50,1'"),
        ("{head}\n4+4,50,1,linear,gfm,0.5,0.5,0\n", "settings.json is missing: the settings of"),
    ],
)
def test_a_damaged_file_raises_and_stays_as_it_is(small, small_settings, tmp_path, text, message):
    head = stored(small.folder).decode().splitlines()[0]
    (tmp_path / "published").mkdir()
    content = text.replace("{head}", head)
    (tmp_path / "published" / "results.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        reproduce(tmp_path, **small_settings)
    assert stored(tmp_path).decode() == content


@pytest.mark.parametrize("text", ["{", "[1]", "\0"])
def test_damaged_settings_raise(small_settings, tmp_path, text):
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "settings.json").write_text(text)
    with pytest.raises(ValueError, match="is damaged: it must have the settings of a run"):
        reproduce(tmp_path, **small_settings)


def test_a_killed_worker_keeps_finished_results(small_settings, tmp_path, monkeypatch):
    def run_jobs(jobs, n_jobs, ordered):
        yield from Parallel(n_jobs=1, return_as="generator")(itertools.islice(jobs, 2))
        raise BrokenExecutor

    monkeypatch.setattr("fgfm.paper._experiment.run_jobs", run_jobs)
    with pytest.raises(ChildProcessError, match="finished results are kept, and the same call"):
        reproduce(tmp_path, **small_settings)
    assert stored(tmp_path).count(b"\n") == 1 + 2 * 12


def test_repeated_methods_are_run_once(small, small_settings):
    results, count = count_networks(small.folder, methods=["gfm", "gfm"], **small_settings)
    assert count == 0
    assert {r.method for r in records(results)} == {"gfm"}
    assert len(records(results)) == 8


def test_progress_counts_all_networks(tmp_path, small_settings):
    calls = []
    reproduce(tmp_path, progress=lambda *step: calls.append(step), **small_settings)
    assert calls == [(k, 4) for k in range(5)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimates": "theirs"}, "estimates is 'theirs': it must be one of 'published'"),
        ({"reps": 0}, "reps is 0: it must be an integer, 1 or more"),
        ({"sizes": [50, 1]}, r"sizes\[1\] is 1"),
        ({"sizes": []}, "sizes is empty"),
        ({"structures": [7]}, r"structures\[0\] is 7"),
        ({"structures": [(2, 0)]}, r"structures\[0\]\[1\] is 0"),
        ({"methods": ["gmf"]}, r"methods\[0\] is 'gmf'"),
        ({"methods": []}, "methods is empty"),
        ({"interactions": "some"}, "interactions is 'some'"),
        ({"beta": -1.0}, "beta is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"n_test": 0}, "n_test is 0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"structures": [(19, 1)]}, r"2\^23 probabilities"),
    ],
)
def test_invalid_arguments_raise_before_anything_is_written(
    tmp_path, small_settings, change, message
):
    with pytest.raises(ValueError, match=message):
        reproduce(tmp_path / "new", **small_settings | change)
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_products_of_features_come_near_the_optimum(tmp_path):
    results = reproduce(tmp_path, reps=2, sizes=[5000], methods=["gfm", "ilf", "bayes"])
    means = [m for m in results.runs["published"].summary.means if m.method != "bayes"]
    assert len(means) == 4 * 2 * 2
    assert max(m.bayes_gap for m in means if m.learner == "interactions") < 0.005
    assert np.mean([m.bayes_gap for m in means if m.learner == "linear"]) > 0.01
