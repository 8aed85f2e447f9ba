"""Averages against enumeration of all label matrices; logits; long columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

import oracle
from cases import every_option
from decision_calls import PROBA
from fgfm import decision, f_measure


def batch_joint(joint):
    """Return the distribution of all entries of the label matrix, for independent rows."""
    sets, proba = joint
    n, m = len(proba), sets.shape[1]
    rows = [(sets, proba[r : r + 1]) for r in range(n)]
    return oracle.product_joint(rows, [list(range(r * m, (r + 1) * m)) for r in range(n)])


AVERAGES = ["macro", "weighted", "micro"]
every_average = pytest.mark.parametrize("average", AVERAGES)


# Against enumeration (see also tests/hostile) ----------------------------------------------------


@pytest.mark.parametrize("beta", [0.5, 1.0])
@every_option
def test_binary_classifier(beta, zero_division, nonempty):
    p = np.array([0.3, 0.9, 0.05, 0.55, 0.5])
    kwargs = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    for average in ("samples", *AVERAGES):
        labels, expected_f = decision.from_marginals(p, average=average, **kwargs)
        assert labels.shape == (5,)
        assert np.ndim(expected_f) == 0
        decided = labels[None], np.atleast_1d(expected_f)
        oracle.check_decision(decided, oracle.independent_joint(p[None]), **kwargs)


@every_average
def test_expected_f_is_the_mean_of_the_measure(average):
    """The mean of `f_measure` over all label matrices, weighted by their probabilities."""
    joint = oracle.random_joint(np.random.default_rng(9), 2, 3)
    labels, expected_f = decision.from_joint(*joint, average=average, beta=2.0)
    matrices, weights = batch_joint(joint)
    scores = [
        f_measure(Y.reshape(2, 3), labels, 2.0, average=average if average == "micro" else None)
        for Y in matrices
    ]
    np.testing.assert_allclose(expected_f, weights[0] @ scores, rtol=1e-12)


# Logits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["samples", *AVERAGES])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_logits(average, dtype):
    logits = logit(PROBA).astype(dtype)
    before = logits.copy()
    decided = decision.from_marginals(logits, logits=True, average=average)
    expected = decision.from_marginals(expit(logits, dtype=np.float64), average=average)
    np.testing.assert_array_equal(decided.labels, expected.labels)
    np.testing.assert_array_equal(decided.expected_f, expected.expected_f)
    np.testing.assert_array_equal(logits, before)
    p = PROBA[:, 0]  # those of a binary classifier
    flat = decision.from_marginals(logit(p), logits=True, average=average)
    np.testing.assert_array_equal(flat.labels, decision.from_marginals(p).labels)
    certain = decision.from_marginals([[np.inf, -np.inf, 800.0]], logits=True, average=average)
    np.testing.assert_array_equal(certain.labels, [[1, 0, 1]])


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
def test_small_logits_of_single_precision_keep_their_probability(average):
    values = np.array([[-120.0, -110.0], [-300.0, -120.0], [-110.0, -310.0]])
    options = {"logits": True, "nonempty": True, "average": average}
    expected = decision.from_marginals(values, **options)
    assert expected.labels.any()
    single = values.astype(np.float32)
    decided = decision.from_marginals(single, **options)
    np.testing.assert_array_equal(decided.labels, expected.labels)
    np.testing.assert_allclose(decided.expected_f, expected.expected_f, rtol=1e-12)


# Impossible problems -----------------------------------------------------------------------------


def test_impossible_problems_warn():
    p = np.array([[0.0, 0.4], [0.0, 0.2]])
    with pytest.warns(UserWarning, match="labels without probability in any row.*: 1, the first"):
        labels, expected_f = decision.from_marginals(p, average="macro", nonempty=True)
    assert not labels[:, 0].any()
    np.testing.assert_array_equal(np.isnan(expected_f), [True, False])
    for call in (
        lambda: decision.from_marginals(0.0 * p, average="micro", nonempty=True),
        lambda: decision.from_samples(np.zeros((2, 2, 2)), average="micro", nonempty=True),
        lambda: decision.from_cardinalities(0.0 * p[:, :, None], average="micro", nonempty=True),
    ):
        with pytest.warns(UserWarning, match="no label has a probability in any row"):
            labels, expected_f = call()
        assert not labels.any()
        assert np.isnan(expected_f)


# Long columns ------------------------------------------------------------------------------------


def long_columns(kind: str, n: int = 9001) -> np.ndarray:
    """Return (n, 7) probabilities, of which some columns have few expected rows."""
    rng = np.random.default_rng(5)
    p = rng.random((n, 7))
    if kind == "rounded":
        p = np.round(p, 2)
    elif kind == "certain":
        p = np.where(p > 0.7, 1.0, 0.3 * p)
    elif kind == "mixed":
        p[:, 2] = 0.001 * p[:, 2]
        p[:, 4] = 0.0
        p[:, 5] **= 6
    elif kind == "sorted":
        p = np.sort(p, axis=0)
    return p


@pytest.mark.parametrize("kind", ["uniform", "rounded", "certain", "mixed", "sorted"])
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_long_columns_are_decided_as_rows(kind: str, beta: float, dtype: type) -> None:
    p = long_columns(kind).astype(dtype)
    labels, expected_f = decision.from_marginals(p, average="macro", beta=beta)
    of_rows = decision.from_marginals(np.ascontiguousarray(p.T), beta=beta)
    np.testing.assert_array_equal(labels, of_rows.labels.T)
    np.testing.assert_allclose(expected_f, of_rows.expected_f, rtol=1e-12)
    for other in (np.asfortranarray(p), np.hstack([p, p])[:, :7]):
        again = decision.from_marginals(other, average="macro", beta=beta)
        np.testing.assert_array_equal(again.labels, labels)


def test_long_columns_have_the_same_bits_for_any_number_of_threads() -> None:
    p = np.hstack([long_columns(kind) for kind in ("uniform", "mixed", "rounded", "certain")])
    one = decision.from_marginals(p, average="macro")
    for n_jobs in (2, 3):
        other = decision.from_marginals(p, average="macro", n_jobs=n_jobs)
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.expected_f, other.expected_f)


@pytest.mark.parametrize("value", [1.5, -0.5, np.nan])
def test_long_columns_name_an_invalid_value(value: float) -> None:
    p = long_columns("uniform")
    p[8000, 3] = value
    with pytest.raises(ValueError, match=r"^proba\[8000, 3\] is"):
        decision.from_marginals(p, average="macro")
    p[8000, 3] = 1.0 + 1e-12  # a rounding error
    assert decision.from_marginals(p, average="macro").labels[8000, 3] == 1
