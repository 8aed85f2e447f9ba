"""The table of `benchmarks.classes`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.classes import COLUMNS, RULES, rules, summary


def test_rules_state_what_they_expect():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2.0, 1.0, 0.3], size=900)
    y = (rng.random((900, 1)) > p.cumsum(axis=1)).sum(axis=1)
    found = list(rules(p[:400], y[:400], p[400:]))
    assert [rule for rule, _, _ in found] == list(RULES)
    for rule, decided, expected in found:
        assert decided.shape == (500,)
        assert np.isfinite(expected) == (rule in ("f-optimal", "fdecider"))


def test_summary_states_expected_minus_obtained():
    found = [
        (data, "forest", 100, 3, rule, 0.6 + 0.05 * (rule == "fdecider" and data == "b"), 0.6)
        for data in ("a", "b")
        for rule in RULES
    ]
    text = summary(pd.DataFrame(found, columns=COLUMNS))
    assert text.endswith(
        "Expected minus obtained macro F1: `from_classes`, probabilities as they are +0.000 (mean "
        "absolute value 0.000, 100% within 0.03), `FDecider`, rows together +0.025 (mean absolute "
        "value 0.025, 50% within 0.03).\n"
    )
