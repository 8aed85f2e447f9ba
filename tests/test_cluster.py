"""Fitting, factor search and decisions on clusters, with the joblib backends of Dask and Ray."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import fgfm
from cluster_learners import (
    Recording,
    count_features,
    count_loads,
    import_and_compile,
    reset,
)
from fgfm._utils.blocks import n_threads, n_workers
from fgfm.io import decide
from fgfm.paper import reproduce
from fgfm.ridge import fit_ridge_logistic

PAGE = Path(__file__).resolve().parent.parent / "docs" / "large.md"
REASON = "needs distributed: pip install 'fgfm[dask]'"


@pytest.fixture(scope="module")
def client():
    """Start two workers, each a process with one thread."""
    distributed = pytest.importorskip("distributed", reason=REASON)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(import_and_compile)
        yield client


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    Y = (X[:, :8] + rng.normal(size=(300, 8)) > 0.4).astype(int)
    Y[:, 1] |= Y[:, 0]
    return X, Y


def coefficients(models):
    return [np.concatenate([m.coef.ravel(), m.intercept, m.cv_losses.ravel()]) for m in models]


def code_on_page(with_text):
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    (block,) = (b for b in blocks if with_text in b)
    return block


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_ridge_has_the_same_bits_on_workers(client, data, workers):
    X, Y = data
    s = Y.sum(axis=1)
    chosen = list(client.scheduler_info()["workers"])[:workers]
    for features in (X, sparse.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))):
        how = {"extra": [s] * 8 + [None], "random_state": 0}
        here = fit_ridge_logistic(features, [*Y.T, s], **how)
        with joblib.parallel_config("dask", workers=chosen):
            there = fit_ridge_logistic(features, [*Y.T, s], **how)
        for a, b in zip(coefficients(here), coefficients(there), strict=True):
            assert_array_equal(a, b)


@pytest.mark.parametrize(
    "cv",
    [
        None,
        pytest.param(KFold(3), marks=pytest.mark.slow),
        pytest.param(list(KFold(3).split(np.zeros(300))), marks=pytest.mark.slow),
    ],
)
def test_classifier_is_the_same_on_workers(client, data, cv):
    X, Y = data
    weight = np.linspace(0.0, 2.0, len(X))
    factors = [[0, 1], [2, 3, 4], [5], [6], [7]]

    def predictions(estimator):
        model = fgfm.FGFMClassifier(estimator, factors=factors, cv=cv, random_state=0)
        model.fit(X, Y, sample_weight=weight)
        return model.predict_proba(X), model.predict(X)

    for estimator in (None, Recording()):
        here = predictions(estimator)
        with joblib.parallel_config("dask"):
            there = predictions(estimator)
        for a, b in zip(here, there, strict=True):
            assert_array_equal(a, b)


def test_learners_that_use_blas_agree_to_its_rounding(client, data):
    """BLAS may round differently if an array is aligned differently in memory."""
    X, Y = data
    model = fgfm.FGFMClassifier(LogisticRegression(), factors="independent", random_state=0)
    here = model.fit(X, Y).predict_proba(X)
    with joblib.parallel_config("dask"):
        there = model.fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(there, here, rtol=1e-9)


def test_factor_search_is_the_same_on_workers(client, data):
    X, Y = data
    for features, how in (((X > 0).astype(int), {}), (X[:, :4], {"test": "gcm"})):
        here = fgfm.ILFCompo(**how).fit(features, Y[:, :4])
        with joblib.parallel_config("dask"):
            there = fgfm.ILFCompo(**how).fit(features, Y[:, :4])
        assert_array_equal(here.p_values_, there.p_values_)
        assert [list(f) for f in here.factors_] == [list(f) for f in there.factors_]


def test_features_are_shipped_once_to_each_worker(client, data):
    X, Y = data
    client.run(reset)
    with joblib.parallel_config("dask"):
        fgfm.FGFMClassifier(Recording(), factors="independent", random_state=0).fit(X, Y)
    counts = client.run(count_features).values()
    assert sum(fits for _, fits in counts) == 8
    assert max(different for different, _ in counts) == 1


@pytest.mark.parametrize("step", ["ridge", "factors"])
def test_shared_objects_are_shipped_once_to_each_worker(client, data, step):
    X, Y = data
    client.run(reset)
    with joblib.parallel_config("dask"):
        if step == "ridge":
            fit_ridge_logistic(X, np.tile(Y, 4), random_state=0)
        else:
            fgfm.ILFCompo().fit((X > 0).astype(int), np.tile(Y, 4))
    counts = [count for found in client.run(count_loads).values() for count in found.values()]
    assert counts
    assert max(counts) == 1, counts


def test_many_small_targets_make_few_jobs(client, data):
    distributed = pytest.importorskip("distributed", reason=REASON)
    X, Y = data
    with distributed.get_task_stream(client) as stream, joblib.parallel_config("dask"):
        fit_ridge_logistic(X, np.tile(Y, 12), random_state=0)
    keys = {str(task["key"]) for task in stream.data}
    assert 2 <= len(keys) <= 16, keys  # at most 8 jobs per worker, for 96 targets


def test_workers_of_a_cluster_do_not_count_as_threads(client, data):
    with joblib.parallel_config("dask"):
        assert n_workers(None) == 2
        assert n_threads(None) == 1
        assert n_threads(3) == 3
        assert n_threads(-1) == joblib.cpu_count()
        model = fgfm.FGFMClassifier(n_jobs=2, factors="single", random_state=0).fit(*data)
        there = model.predict(data[0])
    assert_array_equal(there, model.predict(data[0]))


def test_parts_are_decided_on_workers(client, tmp_path):
    pd = pytest.importorskip("pandas")
    (tmp_path / "p").mkdir()
    proba = np.random.default_rng(0).random((50, 4))
    for k in range(5):
        frame = pd.DataFrame(proba[10 * k : 10 * k + 10], columns=list("abcd"))
        frame.to_parquet(tmp_path / "p" / f"{k}.parquet")
    here = decide(tmp_path / "p", tmp_path / "here")
    with joblib.parallel_config("dask"):
        there = decide(tmp_path / "p", tmp_path / "there")
    assert here[:2] == there[:2]
    for k in range(5):
        name = f"{k}.parquet"
        pd.testing.assert_frame_equal(
            pd.read_parquet(tmp_path / "here" / name), pd.read_parquet(tmp_path / "there" / name)
        )


def test_dask_arrays_are_decided_on_workers(client):
    array = pytest.importorskip("dask.array")
    proba = np.random.default_rng(0).random((100, 6))
    here = fgfm.decision.from_marginals(proba)
    lazy = fgfm.decision.from_marginals(array.from_array(proba, chunks=(30, 4)))
    there = client.gather(client.compute(list(lazy)))
    assert_array_equal(here.labels, there[0])
    assert_array_equal(here.expected_f, there[1])
    proba[70, 2] = 1.5
    wrong = fgfm.decision.from_marginals(array.from_array(proba, chunks=(30, 6)))
    with pytest.raises(ValueError, match=r"proba\[10, 2\] is 1.5") as caught:
        client.gather(client.compute(wrong.labels))
    assert "which is row 60" in caught.value.__notes__[0]


@pytest.mark.skipif(not PAGE.is_file(), reason="docs are in the repository only")
def test_code_of_the_page_on_dask_runs(client):
    block = code_on_page("Client(")
    assert '"scheduler:8786"' in block
    names = {}
    exec(block.replace('"scheduler:8786"', repr(client.scheduler.address)), names)
    names["client"].close()
    assert names["labels"].shape == (200, 3)


@pytest.mark.slow
@pytest.mark.skipif(not PAGE.is_file(), reason="docs are in the repository only")
def test_ray_gives_the_same_bits(data, tmp_path):
    ray = pytest.importorskip("ray", reason="needs ray: pip install ray")
    X, Y = data
    names = {"X": X, "Y": Y}
    block = code_on_page("ray.init()")
    block = block.replace(
        "ray.init()", "ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)"
    )
    here = fgfm.FGFMClassifier(random_state=0).fit(X, Y).predict_proba(X)
    discrete = (X > 0).astype(int)
    found = fgfm.ILFCompo().fit(discrete, Y).p_values_
    paper = {"reps": 2, "sizes": [50], "structures": [2], "interactions": "none"}
    runs = reproduce(tmp_path / "here", **paper).runs
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"ray\b")
        warnings.filterwarnings("ignore", category=ResourceWarning)  # of the processes of Ray
        try:
            exec(block, names)
            there = names["model"].predict_proba(X)
            with joblib.parallel_config("ray", n_jobs=2):
                found_there = fgfm.ILFCompo().fit(discrete, Y).p_values_
                runs_there = reproduce(tmp_path / "there", **paper).runs
        finally:
            ray.shutdown()
    assert_array_equal(here, there)
    assert_array_equal(found, found_there)
    assert runs == runs_there
