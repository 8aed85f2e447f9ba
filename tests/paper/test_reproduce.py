"""The whole experiment: results, resuming, both kinds of estimates, learners, and validation."""

from __future__ import annotations

import itertools
import re
from concurrent.futures import BrokenExecutor

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.parallel import Parallel

from fgfm.paper import format_tables, reproduce


class ClassifierWithALongNameThatFitsNoLine(GaussianNB):
    pass


def count_networks(folder, **settings):
    """Return the results, and the number of networks that were computed."""
    calls = []
    results = reproduce(folder, progress=lambda *step: calls.append(step), **settings)
    assert calls == [(k, calls[0][1]) for k in range(len(calls))]
    done, total = calls[-1]
    assert done == total
    return results, total


def records(results, estimates="published"):
    return results.runs[estimates].records


def test_every_method_has_its_records(small):
    keys = {r[:5] for r in records(small)}
    assert len(keys) == len(records(small)) == 2 * 2 * 2 * 6
    assert {r.structure for r in records(small)} == {"4+4", "2+1"}


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
        assert reproduce(tmp_path, n_jobs=n_jobs, **small_settings).runs == small.runs


def test_stored_results_are_not_computed_again(small, small_settings, tmp_path):
    assert count_networks(tmp_path, **small_settings | {"reps": 1})[1] == 2
    more, count = count_networks(tmp_path, **small_settings)
    assert count == 2
    again, count = count_networks(tmp_path, **small_settings)
    assert count == 0
    assert again.runs == more.runs == small.runs


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"beta": 2.0}, {"n_test": 100}, {"sizes": [50]}, {"estimator": GaussianNB()}],
)
def test_other_settings_are_other_results(small, small_settings, change):
    changed = {**small_settings, "methods": ["gfm", "independent"], "structures": [(2, 1)]}
    same, count = count_networks(small.folder, **changed)
    other, count = count_networks(small.folder, **changed | change)
    assert count == 2
    n = {r.n for r in records(other)}
    kept = [r.f for r in records(same) if r.n in n]
    assert ([r.f for r in records(other)] != kept) == (change != {"sizes": [50]})


def test_a_damaged_file_raises(small_settings, tmp_path):
    reproduce(tmp_path, **small_settings)
    path = next((tmp_path / "published" / "networks").iterdir())
    for text in ("{", "[[1, 2]]", "[1]", "\0"):
        path.write_text(text)
        with pytest.raises(
            ValueError, match=re.escape(path.name) + " is not a file of results: .*; remove it"
        ):
            reproduce(tmp_path, **small_settings)


def test_both_runs_published_and_ours(small, small_settings, tmp_path):
    both, count = count_networks(tmp_path, estimates="both", **small_settings)
    assert count == 8
    assert list(both.runs) == ["published", "ours"]
    assert records(both) == records(small)
    ours, count = count_networks(tmp_path, estimates="ours", **small_settings)
    assert count == 0  # stored by the run of both
    assert ours.runs == {"ours": both.runs["ours"]}
    f = {kind: np.array([r.f for r in records(both, kind)]) for kind in both.runs}
    bayes = np.array([r.method == "bayes" for r in records(both)])
    assert (f["published"][bayes] == f["ours"][bayes]).all()
    assert (f["published"] != f["ours"]).any()
    assert np.abs(f["published"] - f["ours"]).max() < 0.05


def test_another_learner_is_summarised_under_its_name(small_settings, tmp_path):
    chosen = small_settings | {"structures": [(2, 1)]}
    results = reproduce(tmp_path, estimator=GaussianNB(), **chosen)
    (run,) = results.runs.values()
    assert run.summary.settings["learners"] == ["GaussianNB"]
    assert len(run.summary.findings) == 3
    assert "Mean F1 on test rows, GaussianNB base learner" in format_tables(results)
    chosen |= {"interactions": "all", "methods": ["ilf", "true"], "estimates": "ours"}
    long = ClassifierWithALongNameThatFitsNoLine()
    lines = format_tables(reproduce(tmp_path, estimator=long, **chosen)).splitlines()
    assert max(map(len, lines)) <= 80
    products = reproduce(tmp_path, estimator=LogisticRegression(max_iter=1000), **chosen)
    both = products.runs["ours"].summary.settings["learners"]
    assert both == ["LogisticRegression", "LogisticRegression, products"]


def test_a_killed_worker_keeps_finished_results(small, small_settings, tmp_path, monkeypatch):
    def run_jobs(jobs, n_jobs, ordered):
        yield from Parallel(n_jobs=1, return_as="generator")(itertools.islice(jobs, 2))
        raise BrokenExecutor

    with monkeypatch.context() as patch:
        patch.setattr("fgfm.paper._experiment.run_jobs", run_jobs)
        with pytest.raises(ChildProcessError, match="finished results are kept, and the same"):
            reproduce(tmp_path, **small_settings)
    results, count = count_networks(tmp_path, **small_settings)
    assert count == 2
    assert results.runs == small.runs


def test_repeated_methods_are_run_once(tmp_path, small_settings):
    results = reproduce(tmp_path, **small_settings | {"methods": ["gfm", "gfm"]})
    assert {r.method for r in records(results)} == {"gfm"}
    assert len(records(results)) == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimates": "theirs"}, "estimates is 'theirs': it must be one of 'published'"),
        ({"estimator": GaussianNB}, r"estimator is <class .*it must be a scikit-learn classifier"),
        ({"estimator": "forest"}, "estimator is 'forest': it must be a scikit-learn classifier"),
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
    with pytest.raises((TypeError, ValueError), match=message):
        reproduce(tmp_path / "new", **small_settings | change)
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_products_of_features_come_near_the_optimum(tmp_path):
    results = reproduce(tmp_path, reps=2, sizes=[5000], methods=["gfm", "ilf", "bayes"])
    means = [m for m in results.runs["published"].summary.means if m.method != "bayes"]
    assert len(means) == 4 * 2 * 2
    assert max(m.bayes_gap for m in means if m.learner == "interactions") < 0.005
    assert np.mean([m.bayes_gap for m in means if m.learner == "linear"]) > 0.01
