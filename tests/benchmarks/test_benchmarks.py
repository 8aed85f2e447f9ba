"""The benchmarks: compared algorithms solve the same problem, generated data are as described."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fgfm import cardinality, decision

rivals = pytest.importorskip("benchmarks.rivals", reason="benchmarks/ is not beside the tests")
independence = pytest.importorskip("benchmarks.independence")
recovery = pytest.importorskip("benchmarks.recovery")
extreme = pytest.importorskip("benchmarks.extreme")
datasets = pytest.importorskip("benchmarks.datasets")


@pytest.mark.parametrize("power", [1, 3, 9])
def test_recursion_decides_as_from_marginals(power):
    p = np.random.default_rng(power).random((5, 30)) ** power
    labels, expected_f = decision.from_marginals(p)
    for row in range(5):
        choice = rivals.ye_recursion(p[row])
        assert choice.expected_f == pytest.approx(expected_f[row], rel=1e-11)
        np.testing.assert_array_equal(choice.labels, np.flatnonzero(labels[row]))


@pytest.mark.parametrize("tuned", [False, True])
def test_algorithm_1_decides_as_from_factors(tuned):
    rng = np.random.default_rng(8)
    sizes = [4, 1, 3, 4, 2]
    factors = [part.tolist() for part in np.split(rng.permutation(14), np.cumsum(sizes)[:-1])]
    Ps = [cardinality.from_marginals(rng.random((4, size)) ** 2) for size in sizes]
    labels, expected_f = decision.from_factors(Ps, factors)
    for row in range(4):
        choice = rivals.algorithm_1_and_gfm([P[row] for P in Ps], factors, tuned=tuned)
        assert choice.expected_f == pytest.approx(expected_f[row], rel=1e-11)
        np.testing.assert_array_equal(choice.labels, np.flatnonzero(labels[row]))


def test_recovery_improves_with_rows():
    few, many = (recovery.recovery("4+4", "auto", n, 2)[1] for n in (50, 5000))
    assert few.correction == many.correction == "bonferroni"
    assert few.recall < many.recall == 1.0
    assert 0.0 <= few.exact <= few.precision <= 1.0


@pytest.mark.parametrize(
    ("count", "n"),
    [
        *((count, n) for count in (1, 4, 16) for n in (200, 1000)),
        (64, 200),
        pytest.param(64, 1000, marks=pytest.mark.slow),
    ],
)
def test_g_tests_in_strata_keep_their_level(count, n):
    """With the exact variance; the mean alone is conservative, the textbook's rule liberal."""
    rows = {row.test: row for row in independence.calibration_in_strata(count, n, 20)}
    error = np.sqrt(np.array([0.01, 0.05]) * [0.99, 0.95] / rows["moments"].pairs)
    assert np.all(np.abs(np.array(rows["moments"].rates) - [0.01, 0.05]) < 4.0 * error)
    if (count, n) == (64, 200):
        assert rows["mi"].rates[1] < 0.05 - 4.0 * error[1]
        assert rows["g"].rates[1] > 0.05 + 4.0 * error[1]


def stored_results():
    reference = pytest.importorskip("benchmarks.reference_models")
    if not reference.FOLDER.is_dir():
        pytest.skip("FGFM_REFERENCE must name the folder of the authors' results")
    return reference


@pytest.mark.slow
def test_f_agrees_with_the_authors_given_their_penalties_and_factors():
    reference = stored_results()
    for data in reference.data_sets(sizes=(50, 1000, 5000), reps=1):
        for method, estimate in reference.by_their_penalties(data).items():
            losses = data.losses(estimate.labels())
            tolerance = 1e-2 if data.n == 50 else 1e-3  # rounding may change one decision
            assert losses == pytest.approx(data.stored[method].losses, rel=0.0, abs=tolerance)


def test_other_settings_change_the_authors_f():
    """Otherwise agreement with their F would show nothing."""
    reference = stored_results()
    (data,) = reference.data_sets(sizes=(100,), structures=("lp6",), reps=1)
    theirs = data.stored["gfm"].losses[0]
    for rule in (reference.Rule(scale=0.5), reference.Rule(penalize_intercept=False)):
        estimate = reference.by_their_penalties(data, rule)["gfm"]
        assert abs(data.losses(estimate.labels())[0] - theirs) > 1e-3


@pytest.mark.slow
def test_comparison_with_the_authors_runs(capsys):
    stored_results()
    tables = pytest.importorskip("benchmarks.reference_f").run(quick=True)
    printed = capsys.readouterr().out
    assert all(table.title in printed for table in tables)
    assert max(map(len, printed.splitlines())) <= 80
    n, cells, *_, to_the_fourth, _, _ = tables[0].rows[-1]
    assert (n, to_the_fourth) == ("all", cells)


def test_threshold_and_top_k_on_csr():
    p = np.random.default_rng(3).random((20, 9)) * (np.arange(9) < np.arange(20)[:, None])
    csr = sparse.csr_array(p)
    np.testing.assert_array_equal(extreme.threshold(csr).toarray(), p > 0.5)
    np.testing.assert_array_equal(csr.toarray(), p)  # the input is not changed
    top = extreme.top_k(csr, 3).toarray()
    rank = np.argsort(np.argsort(-p, axis=1), axis=1)
    np.testing.assert_array_equal(top == 1, (rank < 3) & (p > 0.0))


@pytest.mark.slow
def test_speed_on_csr_is_measured(monkeypatch):
    results = []

    def once(*arguments, in_child=extreme.in_child):
        if not results:
            results.append(in_child(*arguments))
        return results[0]

    monkeypatch.setattr(extreme, "in_child", once)  # a process takes seconds
    table = extreme.generated(200, 5000, 10, [np.float32])
    assert [row[:3] for row in table.rows] == [
        ("float32", "yes", 1),
        ("float32", "yes", 2),
        ("float32", "no", 1),
        ("float32", "no", 2),
    ]
    assert all(row[3] > 0.0 for row in table.rows)
    assert max(map(len, table.lines())) <= 80
