"""Summaries of given records: means, paired tests, factor scores, verdicts on the paper."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from fgfm.paper._summary import (
    holm,
    paired_t_test,
    summarise,
    welch_p_value,
)
from paper_records import SETTINGS, make_records

BASE = np.random.default_rng(0).uniform(0.5, 0.6, 40)
NOISE = np.random.default_rng(1).normal(0, 0.001, (4, 40))


def test_summary_of_given_numbers():
    values = {"gfm": [0.5, 0.6, 0.7], "ilf": [0.6, 0.7, 0.9], "bayes": [0.8, 0.8, 0.9]}
    summary = summarise(make_records(values), SETTINGS, 3)
    gfm, ilf, bayes = summary.means
    assert_allclose([gfm.mean, gfm.standard_error], [0.6, 0.1 / np.sqrt(3)])
    assert [m.best for m in (gfm, ilf, bayes)] == [False, True, False]
    assert_allclose(ilf.bayes_gap, np.mean([0.2, 0.1, 0.0]))
    (difference,) = summary.differences
    assert_allclose(difference.mean, 0.4 / 3)
    assert (difference.wins, difference.losses) == (3, 0)
    json.dumps(summary.as_dict(), allow_nan=False)


def test_f_optimal_methods_are_compared_with_gfm():
    values = {method: [0.5, 0.7] for method in ("gfm", "true", "ilf", "independent")}
    differences = summarise(make_records(values), SETTINGS, 3).differences
    assert {d.first for d in differences if d.second == "gfm"} == {"true", "ilf", "independent"}


@pytest.mark.parametrize(
    ("factors", "precision", "recall", "exact"),
    [("0 1 2", 1 / 3, 1.0, 0.0), ("0|1|2", 1.0, 0.0, 0.0), ("2|0 1", 1.0, 1.0, 1.0)],
)
def test_learned_factors_are_scored(factors, precision, recall, exact):
    (score,) = summarise(make_records({"ilf": [0.5]}, factors=factors), SETTINGS, 1).factors
    assert_allclose([score.precision, score.recall, score.exact], [precision, recall, exact])


def test_paired_t_test_agrees_with_scipy():
    a, b = np.random.default_rng(0).normal(size=(2, 30))
    test = paired_t_test(a - b)
    expected = stats.ttest_rel(a, b)
    assert_allclose(test.p_value, expected.pvalue)
    assert_allclose([test.low, test.high], expected.confidence_interval(0.95))
    assert paired_t_test(np.zeros(5)).p_value == 1.0
    welch = stats.ttest_ind(a, b[:20], equal_var=False)
    assert_allclose(welch_p_value(a, b[:20]), welch.pvalue)
    assert np.isnan(paired_t_test(np.ones(1)).p_value)
    assert np.isnan(paired_t_test(np.ones(2)).p_value)


def test_holm_multiplies_by_the_number_of_remaining_tests():
    assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    assert_allclose(holm([0.5, float("nan"), 0.4]), [0.8, float("nan"), 0.8])
    assert holm([]) == []


# Verdicts on the paper's statements


def findings(records, **settings):
    return summarise(records, SETTINGS | settings, 40).findings


def test_a_rise_holds_and_a_loss_is_counted():
    rising = make_records({"gfm": BASE, "ilf": BASE - 0.02 + NOISE[0]}, 50) + make_records(
        {"gfm": BASE + 0.1 + NOISE[1], "ilf": BASE + 0.1 + NOISE[1]}, 100
    )
    rise, against = findings(rising)
    assert rise.verdict == "holds"
    assert against.verdict == "holds but for 1 of 2 cells"
    assert "better in 0 of 2 cells, worse in 1, no significant difference in 1" in against.detail


def test_a_fall_contradicts():
    falling = make_records({"gfm": BASE}, 50) + make_records({"gfm": BASE - 0.1 + NOISE[2]}, 100)
    (fall,) = findings(falling)
    assert fall.verdict == "does not hold everywhere"


def test_a_gain_in_one_cell_is_no_proof_where_others_are_open():
    better = make_records({"gfm": BASE, "true": BASE, "ilf": BASE + 0.01 + NOISE[3]})
    assert [f.verdict for f in findings(better)] == ["holds, within 0.002"] * 2
    wide = np.random.default_rng(2).normal(-0.02, 0.2, 40)
    mixed = better + make_records({"gfm": BASE, "ilf": np.clip(BASE + wide, 0.0, 1.0)}, 100)
    verdicts = {f.claim: f.verdict for f in findings(mixed)}
    assert verdicts["F-GFM ILF is at least as good as GFM"] == "not contradicted"


def test_one_distribution_decides_nothing():
    once = make_records({"gfm": [0.5], "ilf": [0.6]})
    assert [f.verdict for f in findings(once)] == ["not decided"]


def test_our_estimates_do_not_judge_the_paper():
    worse = make_records({"gfm": BASE, "ilf": BASE - 0.02 + NOISE[0]})
    (finding,) = findings(worse, estimates="ours")
    assert (finding.topic, finding.verdict) == ("F-GFM ILF against GFM", None)
    assert "worse in 1" in finding.detail


@pytest.mark.parametrize(
    ("here", "elsewhere", "larger", "verdict"),
    [
        (0.02, 0.0, 0.0, "holds"),
        (0.0, -0.02, 0.0, "not decided"),  # more than elsewhere, but no gain
        (0.02, 0.0, 0.1, "does not hold"),  # a larger gain with more rows
        (0.02, 0.05, 0.0, "does not hold"),
    ],
)
def test_where_the_gain_is_clearest(here, elsewhere, larger, verdict):
    rng = np.random.default_rng(1)
    given = []
    for structure in ("2+2+2+2", "4+4", "6+2", "8"):
        for n in (50, 1000):
            late = structure in ("6+2", "8")
            gain = (here if n == 50 else larger) if late else elsewhere
            gfm = rng.uniform(0.4, 0.5, 30)
            ilf = gfm + gain + rng.normal(0, 0.002, 30)
            given += make_records({"gfm": gfm, "ilf": ilf}, n, structure)
    finding = findings(given)[-1]
    assert "clearest" in finding.claim
    assert finding.verdict == verdict
