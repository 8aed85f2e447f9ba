"""The whole experiment: cells, resuming, both kinds of estimates, and validation."""

from __future__ import annotations

import fcntl
import json

import joblib
import numpy as np
import pytest

from fgfm.experiments import reproduce


def count_computed(folder, **settings):
    """Return the results, and the number of cells that were computed."""
    calls = []
    results = reproduce(folder, progress=lambda *step: calls.append(step), **settings)
    done, total = calls[-1]
    assert done == total
    return results, total


def records(results, estimates="published"):
    return results.runs[estimates].records


def stored(folder, estimates="published"):
    return (folder / estimates / "results.csv").read_bytes()


def test_every_cell_has_its_records(small):
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
    _, n_cells = count_computed(tmp_path, **small_settings | {"reps": 1, "methods": ["gfm"]})
    assert n_cells == 4
    _, n_cells = count_computed(tmp_path, **small_settings | {"methods": ["gfm", "ilf"]})
    assert n_cells == 8  # "ilf" for the first distribution, both methods for the second
    count_computed(tmp_path, **small_settings)
    assert stored(tmp_path) == stored(small.folder)
    again, n_cells = count_computed(tmp_path, **small_settings)
    assert n_cells == 0
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
    _, n_cells = count_computed(tmp_path, **small_settings)
    assert stored(tmp_path) == whole
    lost = whole.count(b"\n") - whole[:-cut].count(b"\n")
    assert 1 <= n_cells <= lost


def test_both_runs_published_and_ours(small, small_settings, tmp_path):
    both, n_cells = count_computed(tmp_path, estimates="both", **small_settings)
    assert n_cells == 16
    assert list(both.runs) == ["published", "ours"]
    assert records(both) == records(small)
    assert stored(tmp_path) == stored(small.folder)
    ours, n_cells = count_computed(tmp_path, estimates="ours", **small_settings)
    assert n_cells == 0  # stored by the run of both
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


def test_two_runs_cannot_share_a_folder(small, small_settings):
    with (small.folder / "published" / "results.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="is being written by another program"):
            reproduce(small.folder, **small_settings)


def test_repeated_methods_are_run_once(small, small_settings):
    results, n_cells = count_computed(small.folder, methods=["gfm", "gfm"], **small_settings)
    assert n_cells == 0
    assert {r.method for r in records(results)} == {"gfm"}
    assert len(records(results)) == 8


def test_progress_counts_all_cells(tmp_path, small_settings):
    calls = []
    reproduce(tmp_path, progress=lambda *step: calls.append(step), **small_settings)
    assert calls == [(k, 8) for k in range(9)]


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
