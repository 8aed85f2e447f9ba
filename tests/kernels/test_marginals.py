"""The two kernels for independent labels agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fgfm import cardinality
from fgfm._kernels import native
from fgfm.decision._quadrature import rules

probabilities = st.one_of(
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 1e-300, 1e-17, 1e-9, 0.25, 0.5, 1.0 - 2.0**-53, 1.0]),
    st.floats(0.0, 0.02),
)


@settings(deadline=None, max_examples=300, derandomize=True)
@given(
    row=st.lists(probabilities, min_size=1, max_size=native.SHORT),
    beta=st.sampled_from([0.3, 0.5, 1.0, 2.0, 5.0]),
    zero_division=st.sampled_from([0.0, 0.5, 1.0]),
    nonempty=st.booleans(),
)
def test_short_and_long_rows_are_decided_alike(row, beta, zero_division, nonempty):
    p = np.array([row])
    sets, values = [], []
    for kernel in (native.decide_dense_rows, native.decide_long_rows):
        labels, expected = np.zeros(p.shape, dtype=np.int8), np.empty(1)
        objective = (beta * beta, zero_division, nonempty, rules(beta))
        kernel(p, *objective, labels, expected)
        sets.append(labels[0])
        values.append(expected[0])
    # an expected F below 1e-290 may be rounded to 0
    np.testing.assert_allclose(values[0], values[1], rtol=1e-11, atol=1e-290)
    # the same set, unless two sets have the same value up to rounding
    if values[0] > 1e-290 and not np.array_equal(*sets):
        direct = [independent_value(row, labels, beta, zero_division) for labels in sets]
        assert direct[0] == pytest.approx(direct[1], rel=3e-12)


def independent_value(row, labels, beta, zero_division):
    """Return the expected F of a set of independent labels, from their P."""
    P = cardinality.of_marginals([row])[0]
    k = labels.sum()
    if k == 0:
        return zero_division * float(np.prod(1.0 - np.array(row)))
    s = np.arange(1, P.shape[1] + 1)
    return float(((1.0 + beta**2) * P[labels == 1] / (beta**2 * s + k)).sum())
