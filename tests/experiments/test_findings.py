"""The verdicts on the paper's statements, for made-up records."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm.experiments._summary import summarise
from paper_records import SETTINGS, make_records


@pytest.fixture
def base():
    return np.random.default_rng(0).uniform(0.5, 0.6, 40)


@pytest.fixture
def noise():
    return np.random.default_rng(1).normal(0, 0.001, (4, 40))


def findings(records, **settings):
    return summarise(records, SETTINGS | settings).findings


def test_a_rise_holds_and_a_loss_is_counted(base, noise):
    rising = make_records({"gfm": base, "ilf": base - 0.02 + noise[0]}, 50) + make_records(
        {"gfm": base + 0.1 + noise[1], "ilf": base + 0.1 + noise[1]}, 100
    )
    rise, against = findings(rising)
    assert rise.verdict == "holds"
    assert against.verdict == "holds but for 1 of 2 cells"
    assert "better in 0 of 2 cells, worse in 1, no significant difference in 1" in against.detail


def test_a_fall_contradicts(base, noise):
    falling = make_records({"gfm": base}, 50) + make_records({"gfm": base - 0.1 + noise[2]}, 100)
    (fall,) = findings(falling)
    assert fall.verdict == "does not hold everywhere"


def test_a_gain_in_one_cell_is_no_proof_where_others_are_open(base, noise):
    better = make_records({"gfm": base, "true": base, "ilf": base + 0.01 + noise[3]})
    assert [f.verdict for f in findings(better)] == ["holds, within 0.002"] * 2
    wide = np.random.default_rng(2).normal(-0.02, 0.2, 40)
    mixed = better + make_records({"gfm": base, "ilf": np.clip(base + wide, 0.0, 1.0)}, 100)
    verdicts = {f.claim: f.verdict for f in findings(mixed)}
    assert verdicts["F-GFM ILF is at least as good as GFM"] == "not contradicted"


def test_one_distribution_decides_nothing():
    once = make_records({"gfm": [0.5], "ilf": [0.6]})
    assert [f.verdict for f in findings(once)] == ["not decided"]


def test_our_estimates_do_not_judge_the_paper(base, noise):
    worse = make_records({"gfm": base, "ilf": base - 0.02 + noise[0]})
    (finding,) = findings(worse, estimates="ours")
    assert finding.verdict is None
    assert finding.topic == "F-GFM ILF against GFM"
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
