"""FDecider: invariances, weights, thresholds, constraints, the guarantee, saved files."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import fgfm
from decider_data import exclusive, independent
from fgfm import FDecider
from fgfm.cardinality import of_marginals
from fgfm.decider._label_set_model import tempered
from fgfm.decision import Constraints, from_cardinalities, from_marginals
from multilabel import close

AVERAGES = ["samples", "macro", "micro"]


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("calibration", ["auto", "sigmoid", "isotonic", None])
def test_fit_learns_more_than_a_threshold_of_one_half(average, calibration):
    p, Y = independent(600, 5)
    p = p**2  # a model that predicts labels too rarely
    decider = FDecider(average=average, calibration=calibration).fit(p[:300], Y[:300])
    plain = fgfm.f_measure(Y[300:], (p[300:] > 0.5).astype(int), average=average)
    assert decider.score(p[300:], Y[300:]) > plain + 0.03


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_thresholds_of_weights_that_are_not_integers(average, flat):
    p, Y = independent(4000, 3)
    weight = np.random.default_rng(0).choice([1.0, 2.0, 3.0], size=4000)
    if flat:
        p, Y = p[:, 0], Y[:, 0]
    decider = FDecider(average=average)
    counted = clone(decider).fit(p, Y, weight)
    near = clone(decider).fit(p, Y, weight * (1.0 + 1e-9))  # not numbers of rows any more
    np.testing.assert_allclose(near.thresholds_, counted.thresholds_, atol=1e-3)
    many = clone(decider).fit(p, Y, 50.0 * weight)
    np.testing.assert_allclose(many.thresholds_, counted.thresholds_, atol=2e-3)
    if not flat:
        stored = clone(decider).fit(sparse.csr_array(p), Y, weight * (1.0 + 1e-9))
        np.testing.assert_allclose(stored.thresholds_, near.thresholds_, atol=1e-9)


@pytest.mark.parametrize("average", AVERAGES)
def test_permuted_labels(average):
    p, Y = independent(300, 5)
    order = np.array([3, 1, 4, 0, 2])
    one = FDecider(average=average).fit(p, Y)
    other = FDecider(average=average).fit(p[:, order], Y[:, order])
    close(other.predict_proba(p[:, order]), one.predict_proba(p)[:, order], 1e-6)
    assert (other.predict(p[:, order]) == one.predict(p)[:, order]).all()
    if average == "macro":
        close(other.thresholds_, one.thresholds_[order], 1e-6)


def test_thresholds():
    p, Y = independent(500, 4)
    macro, micro = (FDecider(average=a, beta=2.0).fit(p, Y) for a in ("macro", "micro"))
    marginals = macro.predict_proba(p)
    calibrated = from_marginals(marginals, average="macro", beta=2.0).expected_f
    close(macro.thresholds_, calibrated / 5.0)
    assert macro.thresholds_.shape == (4,)
    assert isinstance(micro.thresholds_, float)
    for decider in (macro, micro):
        expected = decider.predict_proba(p) > decider.thresholds_
        assert (decider.predict(p) == expected).all()
    assert not hasattr(macro.set_params(average="samples").fit(p, Y), "thresholds_")


def test_beta_trades_precision_for_recall():
    p, Y = independent(500, 5)
    sizes = [FDecider(beta=beta).fit(p, Y).predict(p).sum() for beta in (0.5, 1.0, 2.0)]
    assert sizes[0] < sizes[1] < sizes[2]


def test_nonempty():
    p, Y = exclusive(300, 5)
    assert FDecider().fit(p, Y).nonempty_
    assert FDecider().fit(p, Y).predict(p).any(axis=1).all()
    p, Y = independent(300, 5)
    decider = FDecider().fit(p, Y)
    assert not decider.nonempty_
    assert not decider.predict(p).any(axis=1).all()
    assert decider.set_params(nonempty=True).predict(p).any(axis=1).all()
    weighted = FDecider().fit(p, Y, Y.any(axis=1))
    assert weighted.nonempty_


def test_documented_attributes():
    p, Y = independent(100, 3)
    decider = FDecider().fit(p, Y)
    found = {name for name in vars(decider) if name.endswith("_")}
    assert found == {"classes_", "multilabel_", "n_features_in_", "nonempty_"}
    assert decider.classes_.tolist() == [0, 1, 2]
    assert decider.multilabel_


# Constraints


def test_sizes_are_constrained():
    p, Y = independent(200, 5)
    decider = FDecider(min_labels=1, max_labels=2).fit(p, Y)
    sizes = decider.predict(p).sum(axis=1)
    assert sizes.min() == 1
    assert sizes.max() == 2
    stored = FDecider(min_labels=1, max_labels=2).fit(sparse.csr_array(p), Y)
    assert (stored.predict(sparse.csr_array(p)) == decider.predict(p)).all()
    assert (FDecider().fit(p, Y).expected_f(p) >= decider.expected_f(p) - 1e-12).all()


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@pytest.mark.parametrize("limits", [(0, 1), (1, 2), (2, 2)])
def test_limits_of_batches_are_learned(average, limits):
    p, Y = independent(3000, 5)
    p[:, 0] **= 2  # labels differ
    least, most = limits
    new, p = p[2000:], p[:2000]
    given = {"average": average, "min_labels": least, "max_labels": most}
    decider = FDecider(**given).fit(p, Y[:2000])
    labels = decider.predict(new)
    assert labels.sum(axis=1).min() >= least
    assert labels.sum(axis=1).max() == most
    # Row by row as the batch, whose decisions are compared with enumeration elsewhere
    assert (decider.decide(p).labels == decider.predict(p)).mean() > 0.99
    assert (labels[:50] == np.vstack([decider.predict(row[None]) for row in new[:50]])).all()
    weights = getattr(decider, "class_weights_", np.ones(5))
    gain = weights * (decider.predict_proba(new) - decider.thresholds_)
    for chosen, value in zip(labels, gain, strict=True):
        order = np.argsort(-value)
        size = np.clip((value > 0).sum(), least, most)
        assert set(np.flatnonzero(chosen)) == set(order[:size])
    stored = FDecider(**given).fit(sparse.csr_array(p), Y[:2000])
    assert (stored.predict(sparse.csr_array(new)) == labels).mean() > 0.99
    with pytest.raises(ValueError, match=f"max_labels is 5 and was {most} in fit"):
        decider.set_params(max_labels=5).predict(new)


def test_constraints_by_name_and_number():
    pd = pytest.importorskip("pandas")
    p, Y = independent(200, 4)
    names = list("abcd")
    by_name = Constraints(required=["b"], groups=[["a", "c"]])
    frame, labels = pd.DataFrame(p, columns=names), pd.DataFrame(Y, columns=names)
    decider = FDecider(constraints=by_name).fit(frame, labels)
    predicted = decider.predict(frame)
    assert (predicted[:, 1] == 1).all()
    assert (predicted[:, [0, 2]].sum(axis=1) <= 1).all()
    numbers = FDecider(constraints=Constraints(required=[1], groups=[[0, 2]])).fit(p, Y)
    assert (numbers.predict(p) == predicted).all()
    q, d = numbers._rule.model.predict(numbers._read(p).entries)
    P = of_marginals(tempered(q, *numbers._rule.model.exponents), d, method="condition")
    limits = Constraints(required=[1], groups=[[0, 2]])
    direct = from_cardinalities(P, distribution=d, constraints=limits)
    assert (direct.labels == predicted).all()
    assert (FDecider(constraints=by_name).fit(frame, Y).predict(frame) == predicted).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"constraints": Constraints(required=["x"])}, "constraints: required has label 'x'"),
        ({"constraints": ["x"]}, "it must be a fgfm.decision.Constraints"),
        ({"min_labels": 6}, "min_labels is 6, but there are 4 labels"),
        ({"max_labels": 0}, "max_labels is 0: it must be an integer, 1 or more"),
        (
            {"constraints": Constraints(required=[0]), "average": "macro"},
            "average is 'macro': constraints are about",
        ),
    ],
)
def test_bad_constraints(parameters, message):
    p, Y = independent(50, 4)
    with pytest.raises((ValueError, TypeError), match=message):
        FDecider(**parameters).fit(p, Y)


def test_constraints_that_a_sparse_or_flat_input_cannot_have():
    p, Y = independent(50, 4)
    with pytest.raises(ValueError, match="constraints is given and X is sparse: constraints need"):
        FDecider(constraints=Constraints(required=[0])).fit(sparse.csr_array(p), Y)
    rows = p.copy()
    rows[3, 1:] = 0.0
    with pytest.raises(ValueError, match="min_labels is 2 and row 3 of X has 1 stored labels"):
        FDecider(min_labels=2).fit(sparse.csr_array(rows), Y)
    with pytest.raises(ValueError, match="y is flat: constraints are about the label set"):
        FDecider(min_labels=1).fit(p[:, 0], Y[:, 0])


# The guarantee


def test_lower_bound_is_that_of_the_row_values():
    p, Y = independent(600, 4)
    decider = FDecider(beta=2.0).fit(p[:300], Y[:300])
    f = fgfm.f_measure(Y[300:], decider.predict(p[300:]), 2.0, per_row=True)
    bound = decider.lower_bound(p[300:], Y[300:], confidence=0.9)
    assert bound == fgfm.metrics.mean_lower_bound(f, 0.9)
    assert bound < decider.score(p[300:], Y[300:])
    assert decider.lower_bound(sparse.csr_array(p[300:]), Y[300:], 0.9) == pytest.approx(bound)


def test_selected_rows_reach_the_target():
    p, Y = independent(4000, 4)
    decider = FDecider().fit(p[:500], Y[:500])
    threshold, answered, mean_f = decider.select(p[500:2000], Y[500:2000], target=0.7)
    assert 0.0 < answered < 1.0
    assert mean_f > 0.7
    new, Y_new = p[2000:], Y[2000:]
    rows = decider.expected_f(new) >= threshold
    assert abs(rows.mean() - answered) < 0.05
    assert decider.score(new[rows], Y_new[rows]) > 0.7
    assert decider.score(new, Y_new) < 0.7
    none = decider.select(p[500:2000], Y[500:2000], 0.999)
    assert none.threshold == np.inf


def test_guarantees_need_means_over_rows():
    p, Y = independent(100, 3)
    decider = FDecider(average="macro").fit(p, Y)
    with pytest.raises(ValueError, match="average is 'macro': the guarantee needs average='samp"):
        decider.lower_bound(p, Y)
    with pytest.raises(ValueError, match=r"average is 'macro'.*not means over rows"):
        decider.select(p, Y, 0.5)
    with pytest.raises(ValueError, match=r"or a flat y of two classes.*metrics.f_interval"):
        decider.lower_bound(p, Y)


@pytest.mark.parametrize("form", [np.asarray, lambda p: np.stack([1.0 - p, p], axis=1)])
def test_guarantees_of_a_flat_y(form):
    p, Y = independent(6000, 1)
    X, y = form(p[:, 0]), np.where(Y[:, 0] > 0, "yes", "no")
    decider = FDecider(beta=2.0, pos_label="yes").fit(X[:500], y[:500])
    new, test = slice(500, 2500), slice(2500, None)
    found = y == "yes", decider.predict(X) == "yes"
    bound = decider.lower_bound(X[new], y[new], confidence=0.9)
    assert bound == fgfm.metrics.f_lower_bound(found[0][new], found[1][new], 0.9, beta=2.0)
    target = decider.score(X[new], y[new]) + 0.03
    low, high, answered, f = decider.select(X[new], y[new], target)
    assert 0.1 < answered < 0.98
    assert low <= decider.thresholds_ <= high
    q = decider.predict_proba(X)[:, 1]
    rows = (q <= low) | (q >= high)
    assert rows[new].mean() == pytest.approx(answered)
    assert decider.score(X[new][rows[new]], y[new][rows[new]]) == pytest.approx(f)
    assert decider.score(X[test][rows[test]], y[test][rows[test]]) > target
    assert decider.select(X[new], y[new], 0.9999)[:3] == (-np.inf, np.inf, 0.0)
    with pytest.raises(ValueError, match="rows that were used in fit"):
        decider.lower_bound(X[:500], y[:500])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_of_fit_are_refused(form, tmp_path):
    p, Y = independent(400, 4)
    p[p < 0.1] = 0.0
    decider = FDecider().fit(form(p[:200]), Y[:200])
    message = r"X and y have rows that were used in fit \({} of {}\): a guarantee needs rows kept"
    order = np.random.default_rng(0).permutation(200)
    several = (np.arange(200), order, order[:20], np.arange(60, 300), np.arange(150, 400))
    for rows, known in zip(several, (200, 200, 20, 140, 50), strict=True):
        for dtype in (np.float64, np.float32):
            with pytest.raises(ValueError, match=message.format(known, len(rows))):
                decider.lower_bound(form(p[rows].astype(dtype)), Y[rows])
    fgfm.save(decider, tmp_path / "decider.fgfm")
    with pytest.raises(ValueError, match=message.format(200, 200)):
        fgfm.load(tmp_path / "decider.fgfm").select(form(p[:200]), Y[:200], 0.5)
    assert decider.lower_bound(form(p[196:]), Y[196:]) > 0.0  # a handful may be equal by chance
    assert decider.lower_bound(form(p[:200]), 1 - Y[:200]) > 0.0


def test_rows_that_are_equal_by_chance_are_not_refused():
    p, Y = independent(4000, 3)
    p = np.round(p * 2.0) / 2.0
    decider = FDecider().fit(p[:2000], Y[:2000])
    assert decider.lower_bound(p[2000:], Y[2000:]) > 0.0
    with pytest.raises(ValueError, match="X and y have rows that were used in fit"):
        decider.lower_bound(p[:2000], Y[:2000])


# Copies and files
