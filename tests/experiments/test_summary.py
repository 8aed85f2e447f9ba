"""Means, paired differences and factor scores of given records."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fgfm.experiments._summary import summarise
from paper_records import SETTINGS, make_records


def test_summary_of_given_numbers():
    values = {"gfm": [0.5, 0.6, 0.7], "ilf": [0.6, 0.7, 0.9], "bayes": [0.8, 0.8, 0.9]}
    summary = summarise(make_records(values), SETTINGS)
    gfm, ilf, bayes = summary.means
    assert_allclose([gfm.mean, gfm.standard_error], [0.6, 0.1 / np.sqrt(3)])
    assert ilf.best
    assert not gfm.best
    assert not bayes.best
    assert_allclose(ilf.bayes_gap, np.mean([0.2, 0.1, 0.0]))
    (difference,) = summary.differences
    assert_allclose(difference.mean, 0.4 / 3)
    assert (difference.wins, difference.losses) == (3, 0)
    (score,) = summary.factors
    assert (score.precision, score.recall, score.exact) == (1.0, 1.0, 1.0)
    json.dumps(summary.as_dict(), allow_nan=False)


def test_f_optimal_methods_are_compared_with_gfm():
    values = {method: [0.5, 0.7] for method in ("gfm", "true", "ilf", "independent")}
    differences = summarise(make_records(values), SETTINGS).differences
    assert {d.first for d in differences if d.second == "gfm"} == {"true", "ilf", "independent"}


@pytest.mark.parametrize(
    ("factors", "precision", "recall", "exact"),
    [("0 1 2", 1 / 3, 1.0, 0.0), ("0|1|2", 1.0, 0.0, 0.0), ("2|0 1", 1.0, 1.0, 1.0)],
)
def test_learned_factors_are_scored(factors, precision, recall, exact):
    (score,) = summarise(make_records({"ilf": [0.5]}, factors=factors), SETTINGS).factors
    assert_allclose([score.precision, score.recall, score.exact], [precision, recall, exact])
