"""The costs of large decisions: arithmetic, stored tables, the job."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from fgfm.decision import from_marginals

costs = pytest.importorskip("benchmarks.costs", reason="benchmarks/ is not beside the tests")

JOB = costs.Job(rows=1e6, rate=1e3, read=900.0, written=100.0, file_rows=1e4)
NODES = costs.Nodes(number=5, units=2, bandwidth=1e6, price=3.6, task=0.5)


@pytest.mark.parametrize(
    ("job", "nodes", "bound", "seconds"),
    [
        (JOB, NODES, "transfer", 200.0),  # 10^9 bytes, 5 x 10^6 per second
        (replace(JOB, rate=100.0), NODES, "computing", 1000.0),  # 10^4 s of one core, ten cores
        (replace(JOB, file_rows=1e3), NODES, "scheduling", 500.0),  # 1000 files
        (JOB, replace(NODES, number=10), "transfer", 100.0),
        (JOB, replace(NODES, start=7.0), "transfer", 207.0),
    ],
)
def test_the_longest_part_bounds_the_job(job, nodes, bound, seconds):
    found = costs.cost(job, nodes)
    assert found.bound == bound
    assert found.seconds == pytest.approx(seconds)
    assert found.money == pytest.approx(nodes.number * 2 * 3.6 * seconds / 3600.0)


def test_bytes_work_and_busy_cores():
    found = costs.cost(JOB, NODES)
    assert (found.read, found.written, found.work) == (9e8, 1e8, 1e3)
    assert found.busy == pytest.approx(1.0)  # a core takes 10^6 bytes per second


def test_the_page_shows_what_the_command_prints(capsys):
    costs.main([])
    stored = costs.MEASURED.with_name("tables.txt").read_text(encoding="utf-8")
    assert capsys.readouterr().out == stored


def test_the_job_decides_a_file_once(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    dense = np.random.default_rng(0).random((20, 6), dtype=np.float32)
    for proba in (dense, sparse.csr_array(dense)):
        source, target = costs._save(proba, tmp_path, "part"), tmp_path / "part.parquet"
        assert costs.decide_part(source, target) == 20
        assert costs.decide_part(source, target) == 0
        sets = parquet.read_table(target)["labels"].to_pylist()
        labels = from_marginals(dense).labels
        assert sets == [[str(j) for j in np.flatnonzero(row)] for row in labels]
        target.unlink()


@pytest.mark.slow
def test_rates_of_small_files():
    pytest.importorskip("pyarrow")
    rates = costs.measure(calls=1, share=1e-3)
    assert list(rates) == list(costs.CASES)
    for name, rate in rates.items():
        assert rate["decision"] > 0.0
        assert rate["read"] > rate["written"] > 0.0, name


@pytest.mark.slow
def test_the_check_runs_the_job():
    pytest.importorskip("distributed")
    found = costs.check(2000, file_rows=1000)
    assert found["rows"] == 2000
    assert found["work"] > 0.0
