"""Quadrature rules for 1/a: their relative error, and their number of nodes."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm.decision._quadrature import ERROR, nodes, rule_tables

BETAS = [0.1, 0.3, 0.5, 1.0, np.sqrt(2.0), 2.0, 3.0, 5.0, 10.0]


def worst_error(rule, a):
    worst = 0.0
    for part in np.array_split(a, max(1, len(a) // 20_000)):
        approximation = np.exp(np.outer(part, rule.log_z)) @ rule.weight
        worst = max(worst, float(np.abs(part * approximation - 1.0).max()))
    return worst


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize(("S", "K"), [(1, 1), (1, 5), (6, 6), (14, 14), (3, 100), (100, 100)])
def test_error_for_every_value_of_small_problems(beta, S, K):
    s, k = np.meshgrid(np.arange(1, S + 1), np.arange(1, K + 1))
    rule = nodes(beta, S, K)
    assert worst_error(rule, (beta**2 * s + k).ravel()) <= ERROR
    assert (rule.weight > 0.0).all()
    assert (rule.log_z < 0.0).all()


@pytest.mark.parametrize("beta", BETAS)
def test_error_for_large_ranges(beta):
    a_max = 2e6
    S = int(a_max / 2 / beta**2)
    rule = nodes(beta, S, int(a_max / 2))
    a_min = beta**2 + 1.0
    a = np.exp(np.linspace(np.log(a_min), np.log(beta**2 * S + a_max / 2), 100_000))
    assert worst_error(rule, a) <= ERROR


@pytest.mark.slow
def test_error_for_every_integer_up_to_two_million():
    assert worst_error(nodes(1.0, 10**6, 10**6), np.arange(2.0, 2e6 + 1.0)) <= ERROR


def test_number_of_nodes_is_as_documented():
    counts = [len(nodes(1.0, m, m).weight) for m in (6, 14, 100, 1000, 10**4, 10**6)]
    assert counts == [6, 14, 21, 29, 37, 52]


def test_error_beyond_the_table():
    rule = nodes(1.0, 10**8, 10**8)
    a = np.exp(np.linspace(np.log(2.0), np.log(2e8), 50_000))
    assert worst_error(rule, a) <= ERROR


def test_range_beyond_all_rules_raises():
    with pytest.raises(ValueError, match=r"give a = 2e\+13: the largest a of a rule is 2e\+12"):
        nodes(1.0, 10**13, 10**13)


@pytest.mark.parametrize("beta", BETAS)
def test_error_of_every_rule_for_the_kernels(beta):
    table = rule_tables(beta)
    beta2 = beta**2
    for t, reach in enumerate(table.fixed_reach):
        part = slice(table.fixed_start[t], table.fixed_start[t + 1])
        log_z, weight = table.fixed_log_z[part], table.fixed_weight[part]
        top = min(reach, 3e6)
        if beta2 == round(beta2):
            a = np.arange(beta2 + 1.0, min(top, 5000.0) + 1e-9)
        else:
            a = np.exp(np.linspace(np.log(beta2 + 1.0), np.log(top), 2000))
        assert np.abs(a * (np.exp(np.outer(a, log_z)) @ weight) - 1.0).max() <= ERROR
        np.testing.assert_allclose(table.fixed_zeta[part] + table.fixed_u[part], 1.0, rtol=1e-15)
        np.testing.assert_allclose(
            table.fixed_z[part] ** beta2, table.fixed_zeta[part], rtol=1e-12
        )
    assert (np.diff(table.fixed_reach) > 0.0).all()
    assert (np.diff(np.diff(table.fixed_start)) > 0).all()  # a longer reach takes more nodes
    for t, ratio in enumerate(table.ratio):
        part = slice(table.start[t], table.start[t + 1])
        x = np.exp(np.linspace(0.0, np.log(ratio), 2000))
        error = x * (np.exp(-np.outer(x, table.exponent[part])) @ table.weight[part]) - 1.0
        assert np.abs(error).max() <= ERROR
