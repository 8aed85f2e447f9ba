"""The distribution of label sets: against enumeration, exponents, what is expected of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from decider_data import distorted, exclusive, independent
from fgfm import FDecider, f_measure
from fgfm.decider._calibration import ShrunkCalibrator
from fgfm.decider._entries import dense_entries
from fgfm.decider._large_batches import shifted
from fgfm.decision import from_marginals
from oracle import check_decision, independent_joint


def model_joint(decider, p):
    """Enumerate p(y), proportional to g(|y|) prod (q_i^t / (1 - q_i)^u)^y_i."""
    model = decider._rule.model
    q = np.asarray(decider._rule.model.calibrator.predict(decider._read(p).entries).p)  # (n, m)
    sets, independent_proba = independent_joint(q)  # (2^m, m), (n, 2^m)
    size = sets.sum(axis=1)
    pi = np.stack([independent_proba[:, size == s].sum(axis=1) for s in range(sets.shape[1] + 1)])
    pooled = [pi[model.cardinalities].T]
    if model.cardinalities[0] == 0:  # none or some: of independent labels, and of the likeliest
        some = np.array([1.0 - pi[0], q.max(axis=1)])[:, :, None]
        pooled += list(np.where(model.cardinalities == 0, 1.0 - some, some))
    log_d = np.tensordot(model.pool.weights_, np.log(np.maximum(pooled, 1e-300)), axes=1)
    d = np.exp(log_d + model.pool.shifts_)
    d /= d.sum(axis=1, keepdims=True)  # (n, C)
    t, u = model.exponents
    weight = (q**t / (1.0 - q) ** u)[:, None, :] ** sets  # (n, 2^m, m)
    weight = weight.prod(axis=2)
    proba = np.zeros_like(weight)
    for column, s in enumerate(model.cardinalities):
        of_size = size == s
        share = weight[:, of_size] / weight[:, of_size].sum(axis=1, keepdims=True)
        proba[:, of_size] = d[:, [column]] * share
    return sets, proba


@pytest.mark.parametrize("make", [independent, exclusive])
@pytest.mark.parametrize("calibration", ["auto", None])
@pytest.mark.parametrize(
    ("beta", "zero_division", "nonempty"), [(1.0, 1.0, "auto"), (2.0, 0.3, False)]
)
def test_decisions_for_rows_are_optimal(make, calibration, beta, zero_division, nonempty):
    p, Y = make(150, 5, seed=1)
    decider = FDecider(
        beta=beta, zero_division=zero_division, nonempty=nonempty, calibration=calibration
    ).fit(p, Y)
    new, _ = make(30, 5, seed=2)
    joint = model_joint(decider, new)
    check_decision(
        decider.decide(new),
        joint,
        beta=beta,
        zero_division=zero_division,
        nonempty=decider.nonempty_ and nonempty == "auto",
        tolerance=1e-9,
    )
    np.testing.assert_allclose(decider.predict_proba(new), joint[1] @ joint[0], atol=1e-9)


@pytest.mark.parametrize("make", [independent, exclusive])
def test_macro_and_micro_decisions_are_optimal_for_the_marginals(make):
    p, Y = make(150, 3, seed=1)
    new, _ = make(4, 3, seed=2)
    macro = FDecider(average="macro").fit(p, Y)
    sets, proba = model_joint(macro, new)
    marginals = proba @ sets  # (4, 3)
    labels, expected_f = macro.decide(new)
    expected_f = shifted(expected_f, -macro._expectation_shift)  # that of the marginals
    columns = (np.ascontiguousarray(labels.T), expected_f)
    check_decision(columns, independent_joint(marginals.T), tolerance=1e-9)
    micro = FDecider(average="micro").fit(p, Y)
    labels, expected_f = micro.decide(new)
    all_entries = (labels.reshape(1, -1), np.array([expected_f]))
    check_decision(all_entries, independent_joint(marginals.reshape(1, -1)), tolerance=1e-9)


def test_decisions_for_a_flat_y_are_optimal():
    p, Y = independent(150, 1, seed=1)
    decider = FDecider().fit(p[:, 0], Y[:, 0])
    new = independent(6, 1, seed=2)[0]
    labels, expected_f = decider.decide(new[:, 0])
    q = decider.predict_proba(new[:, 0])[:, 1]
    check_decision((labels[None], np.array([expected_f])), independent_joint(q[None]))


def test_exponents_of_independent_and_of_exclusive_labels():
    p, Y = independent(3000, 6)
    assert FDecider().fit(p, Y)._rule.model.exponents == pytest.approx([1.0, 1.0], abs=0.25)
    p, Y = exclusive(3000, 6)
    assert FDecider().fit(p, Y)._rule.model.exponents == pytest.approx([1.0, 0.0], abs=0.25)
    with pytest.warns(UserWarning, match="n_samples=4: FDecider learns little from so few"):
        t, u = FDecider().fit(p[:4], Y[:4])._rule.model.exponents
    assert 0.2 < t < 2.0
    assert 0.0 <= u < 2.0


@pytest.mark.parametrize(("n", "draws"), [(50, 24), (200, 8)])
def test_expected_f_of_few_rows_with_one_of_many_labels_is_not_too_high(n, draws):
    gaps = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.full(40, 0.1), size=n + 2000)
        Y = rng.multinomial(1, p)
        decider = FDecider().fit(p[:n], Y[:n])
        gaps.append(decider.expected_f(p[n:]).mean() - decider.score(p[n:], Y[n:]))
    assert abs(np.mean(gaps)) < 0.02


def test_left_out_rows_are_predicted_as_by_a_fit_to_the_others():
    p, Y = independent(60, 12, seed=7)
    entries, weight = dense_entries(distorted(p, 0.7, 0.5)), np.ones(60)
    calibrator = ShrunkCalibrator().fit(entries, Y.astype(float), weight)
    left_out = calibrator.predict_left_out(entries, Y, weight).p
    errors, changes = [], []
    for row in range(0, 60, 3):
        others = np.arange(60) != row
        fitted = ShrunkCalibrator().fit(
            entries.take(others), Y[others].astype(float), weight[others]
        )
        expected = fitted.predict(entries.take([row])).p[0]
        errors.append(np.abs(left_out[row] - expected).mean())
        changes.append(np.abs(calibrator.predict(entries.take([row])).p[0] - expected).mean())
    assert np.mean(errors) < 0.5 * np.mean(changes)


@pytest.mark.parametrize("make", [independent, exclusive])
@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
def test_expected_f_is_what_is_obtained(make, average):
    p, Y = make(1500, 5, seed=3)
    new, Y_new = make(20_000, 5, seed=4)
    decider = FDecider(average=average).fit(p, Y)
    labels, expected_f = decider.decide(new)
    obtained = f_measure(Y_new, labels, average=average)
    assert abs(np.mean(expected_f) - obtained) < 0.02
    if average != "samples":  # thresholds decide large batches as `decide` does
        assert (decider.predict(new) == labels).mean() > 0.99


def test_macro_expected_f_is_shifted_towards_what_validation_rows_obtain():
    rng = np.random.default_rng(0)
    truth = np.where(rng.random((9000, 30)) < 0.02, 0.9, 0.02)
    Y = (rng.random(truth.shape) < truth).astype(int)
    p = np.clip(truth * rng.choice([0.05, 0.5, 1.0], truth.shape), 0.0, 1.0)  # no sigmoid fits
    decider = FDecider(average="macro").fit(p[:1000], Y[:1000])
    labels, expected_f = decider.decide(p[1000:])
    obtained = f_measure(Y[1000:], labels, average="macro")
    calibrated = from_marginals(decider.predict_proba(p[1000:]), average="macro").expected_f
    assert abs(expected_f.mean() - obtained) < 0.5 * abs(calibrated.mean() - obtained)
    weighted = FDecider(average="weighted").fit(p[:1000], Y[:1000])
    np.testing.assert_array_equal(weighted.expected_f(p[1000:]), expected_f)
    floored = FDecider(average="macro", min_recall=0.1).fit(p[:1000], Y[:1000])
    np.testing.assert_allclose(floored.expected_f(p[1000:]), calibrated)


def test_expected_f_of_overconfident_probabilities_is_what_is_obtained():
    p, Y = exclusive(1500, 5, seed=3)
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    new, Y_new = exclusive(20_000, 5, seed=4)
    sharp_new = new**2 / (new**2).sum(axis=1, keepdims=True)
    decider = FDecider().fit(sharp, Y)
    obtained = f_measure(Y_new, decider.predict(sharp_new))
    assert abs(decider.expected_f(sharp_new).mean() - obtained) < 0.02
    with pytest.warns(UserWarning, match="all rows of proba sum to 1"):
        raw = from_marginals(sharp_new)
    assert raw.expected_f.mean() > f_measure(Y_new, raw.labels) + 0.05


def test_numbers_of_labels_that_never_occur_are_impossible():
    p, Y = independent(400, 5, seed=5)
    size = Y.sum(axis=1)
    kept = (size == 1) | (size == 3)
    decider = FDecider().fit(p[kept], Y[kept])
    sets, proba = model_joint(decider, p[:20])
    assert decider.nonempty_
    possible = np.isin(sets.sum(axis=1), [1, 3])
    np.testing.assert_allclose(proba[:, possible].sum(axis=1), 1.0)
    np.testing.assert_allclose(
        decider.predict_proba(p[:20]).sum(axis=1), (proba @ sets).sum(axis=1), atol=1e-9
    )


@pytest.mark.parametrize("m", [3, 12])
def test_probability_of_no_label(m):
    rng = np.random.default_rng(8)

    def rows(n):
        # A row has labels with probability some; then one of them, and perhaps others.
        some = rng.beta(0.7, 0.7, size=(n, 1))
        share = rng.dirichlet(np.full(m, 0.5), size=n)
        first = rng.multinomial(1, share)
        Y = first | (rng.random((n, m)) < 0.1)
        return some, some * (share + (1.0 - share) * 0.1), Y * (rng.random((n, 1)) < some)

    _, p, Y = rows(2000)
    some, p_new, _ = rows(5000)
    none = FDecider().fit(p, Y)._rule.model.predict(dense_entries(p_new))[1][:, 0]
    assert np.abs(none - (1.0 - some[:, 0])).mean() < 0.05


def test_rows_with_fewer_stored_labels_than_expected():
    p, Y = exclusive(300, 4)
    Y[:, 3] = 1  # two labels, or one
    rows = np.array([[0.9, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.4, 0.0, 0.0, 0.5]])
    decider = FDecider().fit(sparse.csr_array(p), Y)
    assert decider.nonempty_
    labels, expected_f = decider.decide(sparse.csr_array(rows))
    np.testing.assert_array_equal(labels.toarray()[:2], [[1, 0, 0, 0], [0, 0, 0, 0]])
    assert expected_f[1] == 0.0  # no label is possible, and the true set is not empty
    assert np.isfinite(expected_f).all()
    empty = FDecider(nonempty=False).fit(sparse.csr_array(p), Y).decide(sparse.csr_array(rows))
    assert empty.expected_f[1] == pytest.approx(1.0, abs=1e-15)  # the empty set is certain


def long_lists(n, rng, m=200):
    """Return probabilities of candidates in order, and labels of lists that end anywhere."""
    end = rng.uniform(15.0, 80.0, size=(n, 1))
    drawn = end + 18.0 * rng.normal(size=(n, 1))
    position = np.arange(m)
    Y = (rng.random((n, m)) < 0.9 * expit((drawn - position) / 4.0)).astype(int)
    z = np.linspace(-3.0, 3.0, 31)
    share = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    p = [w * 0.9 * expit((end + 18.0 * d - position) / 4.0) for w, d in zip(share, z, strict=True)]
    return sum(p), Y


def test_expected_f_of_long_lists_whose_end_varies():
    rng = np.random.default_rng(0)
    p, Y = long_lists(300, rng)
    new, Y_new = long_lists(1000, rng)
    assert Y.sum(axis=1).max() > 60  # and most numbers occur in a row or two
    decider = FDecider().fit(p, Y)
    labels, expected = decider.decide(new)
    obtained = f_measure(Y_new, labels)
    assert abs(expected.mean() - obtained) < 0.02
    assert obtained > f_measure(Y_new, from_marginals(new).labels) - 0.003
