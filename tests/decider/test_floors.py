"""FDecider with floors on precision and recall, in expectation and certified."""

from __future__ import annotations

import tracemalloc
import warnings
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import fgfm
from decider_data import exclusive, independent
from fgfm import FClassifier, FDecider
from fgfm.metrics import mean_lower_bound
from multilabel import close
from oracle import all_labelsets

P, Y = independent(6000, 3)
AVERAGES = ["macro", "weighted", "micro"]


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize(
    ("floor", "score"), [("min_precision", precision_score), ("min_recall", recall_score)]
)
def test_floors_are_reached(average, floor, score, stored):
    kind = sparse.csr_array if stored else np.asarray
    validation, new = kind(P[:3000]), kind(P[3000:])
    decider = FDecider(average=average, **{floor: 0.85}).fit(validation, Y[:3000])
    plain = FDecider(average=average).fit(validation, Y[:3000])
    q, labels = decider.predict_proba(validation), decider.predict(validation)
    q = q.toarray() if stored else q
    axis = None if average == "micro" else 0
    chosen = (q * labels).sum(axis=axis)
    expected = chosen / (labels if floor == "min_precision" else q).sum(axis=axis)
    close(expected, 0.85, 0.005)  # a larger value would cost F
    of = "micro" if average == "micro" else None
    found, before = (score(Y[3000:], d.predict(new), average=of) for d in (decider, plain))
    assert np.all(np.abs(found - 0.85) < 0.06)
    assert np.all(before < 0.8)
    decided = decider.decide(new).labels
    decided = decided.toarray() if stored else decided
    assert (decided == decider.predict(new)).mean() > 0.97
    assert decider.score(new, Y[3000:]) < plain.score(new, Y[3000:])


def test_floors_of_one_label_and_of_a_model():
    y = np.array(["no", "yes"])[Y[:, 0]]
    decider = FDecider(min_precision=0.8, pos_label="yes").fit(P[:3000, 0], y[:3000])
    true = P[3000:, 0]  # whose mean is the precision but for the labels that are drawn
    assert abs(true[decider.predict(true) == "yes"].mean() - 0.8) < 0.03
    model = FClassifier(LogisticRegression(), min_precision=0.8, pos_label="yes").fit(
        P[:3000], y[:3000]
    )
    assert abs(true[model.predict(P[3000:]) == "yes"].mean() - 0.8) < 0.03


@pytest.mark.parametrize("average", AVERAGES)
def test_a_floor_that_is_reached_anyway_changes_nothing(average):
    one = FDecider(average=average).fit(P, Y)
    other = FDecider(average=average, min_precision=0.1, min_recall=0.1).fit(P, Y)
    close(one.thresholds_, other.thresholds_, 1e-3)


def test_a_floor_that_cannot_be_reached():
    p = 0.4 * P
    y = (np.random.default_rng(0).random(p.shape) < p).astype(int)
    decider = FDecider(average="micro", calibration=None, min_precision=0.99)
    with pytest.warns(UserWarning, match=r"no set satisfies min_precision=0.99: the largest"):
        decider.fit(p, y)
    assert decider.thresholds_ == 1.0
    assert not decider.predict(p).any()


def test_floors_that_are_refused():
    p, one_hot = exclusive(300, 3)
    with pytest.raises(ValueError, match="min_precision cannot be combined with classes"):
        FDecider(average="macro", min_precision=0.5).fit(p, one_hot.argmax(axis=1))
    with pytest.raises(ValueError, match="min_recall cannot be combined with min_labels"):
        FDecider(min_recall=0.5, max_labels=2).fit(P, Y)
    with pytest.raises(ValueError, match=r"min_precision is 1\.5: it must be a number in"):
        FDecider(average="macro", min_precision=1.5).fit(P, Y)


def joint_of_rows(decider, p):
    """Return all label sets, and their probabilities (n, 2^m) by the definition of the model."""
    q, d = decider._rule.model.predict(decider._read(p).entries)
    t, u = decider._rule.model.exponents
    labelsets = all_labelsets(p.shape[1])
    sizes = labelsets.sum(axis=1)
    weight = np.where(labelsets == 1, (q**t / (1 - q) ** u)[:, None], 1.0).prod(axis=2)
    proba = np.zeros_like(weight)
    for s in range(d.shape[1]):
        of_size = weight[:, sizes == s]
        proba[:, sizes == s] = d[:, [s]] * of_size / of_size.sum(axis=1, keepdims=True)
    return labelsets, proba


@pytest.mark.parametrize("nonempty", [False, True])
@pytest.mark.parametrize(
    "floors",
    [{"min_precision": 0.6}, {"min_recall": 0.7}, {"min_precision": 0.5, "min_recall": 0.6}],
)
def test_floors_of_rows_are_those_of_enumeration(floors, nonempty):
    p, y = independent(300, 4)
    decider = FDecider(nonempty=nonempty, **floors).fit(p, y)
    labels, expected_f = decider.decide(p)
    sets, proba = joint_of_rows(decider, p)
    if nonempty:
        proba = proba / proba[:, sets.sum(axis=1) > 0].sum(axis=1, keepdims=True)
        proba[:, sets.sum(axis=1) == 0] = 0.0
    hits = sets @ sets.T  # (H, L)
    size = sets.sum(axis=1)
    with np.errstate(invalid="ignore"):
        ratios = [hits / size[:, None], hits / size, 2 * hits / (size[:, None] + size)]
    precision, recall, f = (proba @ np.where(np.isnan(r), 1.0, r).T for r in ratios)  # (n, H)
    allowed = precision >= floors.get("min_precision", 0.0) - 1e-9
    allowed &= recall >= floors.get("min_recall", 0.0) - 1e-9
    if nonempty:
        allowed[:, size == 0] = ~allowed[:, size > 0].any(axis=1, keepdims=True)
    allowed[~allowed.any(axis=1), 0] = True
    best = np.where(allowed, f, -1.0)
    close(expected_f, best.max(axis=1), 1e-9)
    assert (labels == sets[best.argmax(axis=1)]).mean() > 0.995  # but for ties
    assert not (labels == FDecider(nonempty=nonempty).fit(p, y).predict(p)).all()
    assert (labels[:20] == np.vstack([decider.predict(row[None]) for row in p[:20]])).all()


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
@pytest.mark.parametrize(("floor", "level"), [("min_precision", 0.75), ("min_recall", 0.9)])
def test_floors_hold_on_average(average, floor, level):
    reached = []
    for seed in range(8):
        p, y = independent(2400, 3, seed=seed)
        decider = FDecider(average=average, **{floor: level}).fit(p[:400] ** 1.5, y[:400])
        labels, new, true = decider.predict(p[400:] ** 1.5), p[400:], y[400:]
        axis = {"samples": 1, "macro": 0, "micro": None}[average]
        of = labels if floor == "min_precision" else true if average == "samples" else new
        hits, of = (labels * (true if of is true else new)).sum(axis=axis), of.sum(axis=axis)
        reached.append(np.mean(np.where(of > 0, hits / np.maximum(of, 1e-9), 1.0)))
    error = np.std(reached) / np.sqrt(len(reached))
    assert np.mean(reached) > level - 2 * error
    # Floors of each row leave a margin for their mean.
    assert average == "samples" or np.mean(reached) < level + 0.03


# Tied probabilities

MODELS = {
    "neighbours": KNeighborsClassifier(7),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
}


@cache
def probabilities(name, flat, seed=0):
    """Return tied probabilities of validation and of new rows, with their labels."""
    model = MODELS[name]
    if flat:
        X, y = make_classification(3000, 10, weights=[0.7], flip_y=0.1, random_state=seed)
        p = model.fit(X[:1000], y[:1000]).predict_proba(X[1000:])[:, 1]
    else:
        X, y = make_multilabel_classification(3000, 10, n_classes=4, random_state=seed)
        parts = model.fit(X[:1000], y[:1000]).predict_proba(X[1000:])
        p = np.stack([part[:, 1] for part in parts], axis=1)
    return p[:1000], y[1000:2000], p[1000:], y[2000:]


@pytest.mark.parametrize("calibration", ["auto", "isotonic", None])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("average", ["binary", "macro", "weighted", "micro"])
@pytest.mark.parametrize("floor", [0.6, 0.9])
@pytest.mark.filterwarnings("ignore:.*no.*satisfies")
def test_the_model_has_the_floors(floor, average, model, calibration):
    p, y, _, _ = probabilities(model, average == "binary")
    axis = None if average in ("binary", "micro") else 0
    for name in ("min_recall", "min_precision"):
        decider = FDecider(average=average, calibration=calibration, **{name: floor}).fit(p, y)
        q, h = decider.predict_proba(p), decider.predict(p)
        q = q[:, 1] if average == "binary" else q
        hits, of = (q * h).sum(axis=axis), (q if name == "min_recall" else h).sum(axis=axis)
        possible = np.ravel(np.asarray(decider.thresholds_) < 1.0)
        reached = np.ravel(hits / np.maximum(of, 1e-300))
        assert (reached[possible] >= floor - 1e-9).all()
        if name == "min_recall":  # everything has a recall of 1
            assert possible.all()
        levels = np.unique(q)
        assert not np.isin(np.ravel(decider.thresholds_), levels).any()


@pytest.mark.parametrize("model", MODELS)
def test_the_threshold_is_the_best_one_that_has_the_floor(model):
    p, y, _, _ = probabilities(model, True)
    decider = FDecider(min_recall=0.8, calibration=None).fit(p, y)
    best = -1.0
    for cut in np.unique(np.clip(p, 1e-12, 1 - 1e-12)):
        h = p >= cut
        if p[h].sum() >= 0.8 * p.sum():
            best = max(best, 2 * p[h].sum() / (p.sum() + h.sum()))
    h = decider.predict(p)
    assert 2 * (p * h).sum() / (p.sum() + h.sum()) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_new_rows_have_the_recall(model):
    p, y, new, truth = probabilities(model, True)
    decider = FDecider(min_recall=0.9).fit(p, y)
    assert decider.predict(new)[truth == 1].mean() > 0.87


# Certificates


@pytest.mark.parametrize("floor", ["min_precision", "min_recall"])
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_certified_thresholds_are_between_tied_probabilities(average, floor):
    rng = np.random.default_rng(0)
    truth = rng.beta(1, 2, size=(2000, 2))
    neighbours = rng.binomial(10, truth) / 10  # that have the label, of ten
    y = (rng.random(truth.shape) < truth).astype(int)
    decider = FDecider(average=average, confidence=0.9, **{floor: 0.5}).fit(neighbours, y)
    assert np.all(decider.certified_)
    q = decider.predict_proba(neighbours)
    assert (abs(q - decider.thresholds_) > 1e-6).all()


def population(m):
    """Return the probabilities of 60 kinds of rows, and a function that draws rows and labels.

    The labels of a row depend on each other as much as they can.
    """
    rng = np.random.default_rng(0)
    p = expit(1.3 * rng.normal(size=(60, 1)) + rng.normal(size=(60, m)) - 0.5)

    def draw(n, rng):
        rows = rng.integers(60, size=n)
        return p[rows] ** 1.5, (rng.random((n, 1)) < p[rows]).astype(int)

    return p, draw


def true_value(decider, p, average, floor):
    """Return the precision or the recall in the population."""
    labels = decider.predict((p if p.shape[1] > 1 else p[:, 0]) ** 1.5).reshape(p.shape)
    axis = None if average == "micro" else 0
    of = (labels if floor == "min_precision" else p).sum(axis=axis)
    return (labels * p).sum(axis=axis) / np.maximum(of, 1e-9)


@pytest.mark.parametrize(
    ("average", "m", "floor", "level"),
    [
        ("macro", 1, "min_precision", 0.75),
        pytest.param("macro", 1, "min_recall", 0.85, marks=pytest.mark.slow),
        pytest.param("macro", 3, "min_precision", 0.75, marks=pytest.mark.slow),
        pytest.param("macro", 3, "min_recall", 0.85, marks=pytest.mark.slow),
        pytest.param("micro", 3, "min_precision", 0.75, marks=pytest.mark.slow),
        pytest.param("micro", 3, "min_recall", 0.85, marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_certified_floors_hold(average, m, floor, level):
    p, draw = population(m)
    rng = np.random.default_rng(1)
    given = {"average": average, floor: level}
    violated, plain, certified = [], [], []
    for _ in range(120):
        x, y = draw(500, rng)
        x, y = (x, y) if m > 1 else (x[:, 0], y[:, 0])
        decider = FDecider(confidence=0.9, **given).fit(x, y)
        below = true_value(decider, p, average, floor) < level
        violated.append(np.any(below & decider.certified_))
        certified.append(np.mean(decider.certified_))
        decider.set_params(confidence=None).fit(x, y)
        plain.append(np.any(true_value(decider, p, average, floor) < level))
    assert np.mean(violated) <= 0.1
    assert np.mean(certified) > 0.15
    assert np.mean(plain) > 0.15


@pytest.mark.parametrize("floor", ["min_precision", "min_recall"])
def test_a_certificate_of_one_label_is_that_of_clopper_and_pearson(floor):
    p, y = P[:2000, 0], Y[:2000, 0]
    decider = FDecider(confidence=0.95, **{floor: 0.8}).fit(p, y)
    assert decider.certified_ is True
    apart = np.sort(np.random.default_rng(0).permutation(2000)[:1000])
    labels, truth = decider.predict(p[apart]), y[apart]
    counted = truth[labels == 1] if floor == "min_precision" else labels[truth == 1]
    test = binomtest(int(counted.sum()), len(counted), alternative="greater")
    low = test.proportion_ci(0.95).low
    assert 0.8 <= low < 0.85
    plain = FDecider(**{floor: 0.8}).fit(np.delete(p, apart), np.delete(y, apart))
    moved = decider.thresholds_ - plain.thresholds_
    assert moved >= 0.0 if floor == "min_precision" else moved < 0.0
    decided = decider.decide(p)
    assert (decided.labels == decider.predict(p)).all()
    assert abs(decided.expected_f - decider.score(p, y)) < 0.05


@pytest.mark.parametrize("floor", ["min_precision", "min_recall"])
def test_a_certificate_of_rows_is_a_bound_on_their_mean(floor):
    p, y = P[:2000], Y[:2000]
    decider = FDecider(confidence=0.95, **{floor: 0.75}).fit(p, y)
    assert decider.certified_
    apart = np.sort(np.random.default_rng(0).permutation(2000)[:1000])
    labels, truth = decider.predict(p[apart]), y[apart]
    size = (labels if floor == "min_precision" else truth).sum(axis=1)
    shares = (labels * truth).sum(axis=1)[size > 0] / size[size > 0]
    score = precision_score if floor == "min_precision" else recall_score
    close(shares.mean(), score(truth, labels, average="samples", zero_division=np.nan), 1e-12)
    assert mean_lower_bound(shares, 0.95) > 0.75


@pytest.mark.parametrize("average", ["samples", *AVERAGES])
def test_certificates_of_sparse_rows(average):
    given = {"average": average, "min_precision": 0.7, "confidence": 0.9}
    dense = FDecider(**given).fit(P, Y)
    stored = FDecider(**given).fit(sparse.csr_array(P), Y)
    assert np.all(dense.certified_)
    assert np.all(dense.certified_ == stored.certified_)
    assert (dense.predict(P) == stored.predict(sparse.csr_array(P))).mean() > 0.99
    assert hasattr(dense, "max_labels_") == (average == "micro")
    labels, expected_f = dense.decide(P)
    assert (labels == dense.predict(P)).all()
    assert abs(np.mean(expected_f) - dense.score(P, Y)) < 0.03
    with pytest.raises(ValueError, match="rows that were used in fit"):
        FDecider(min_precision=0.7, confidence=0.9).fit(P, Y).lower_bound(P, Y)
    dense.set_params(confidence=None).fit(P, Y)
    assert not hasattr(dense, "certified_")


def test_sparse_rows_that_miss_labels_count_for_recall():
    few = np.where(P > 0.3, P, 0.0)  # 10 % of the true labels are not stored
    missed = 1.0 - Y[few > 0].sum() / Y.sum()
    decider = FDecider(average="micro", min_recall=0.99 - missed, confidence=0.9)
    assert 0.05 < missed < 0.3
    with pytest.warns(UserWarning, match="is not certified|the largest expected recall"):
        decider.set_params(min_recall=0.99).fit(sparse.csr_array(few), Y)
    assert not decider.certified_


def test_floors_that_are_not_certified():
    message = (
        r"min_precision=0\.8 is not certified with confidence=0\.95: on the 50 rows kept apart it "
        r"is [01][.\d]*; (about [\d,]+ validation rows|more rows) like these would"
    )
    with pytest.warns(UserWarning, match=message):
        one = FDecider(min_precision=0.8, confidence=0.95).fit(P[:100, 0], Y[:100, 0])
    assert one.certified_ is False
    several = FDecider(average="macro", min_precision=0.8, confidence=0.95)
    with pytest.warns(UserWarning, match="for [123] of [123] labels, the first is [012]: on the"):
        several.fit(P[:200], Y[:200])
    assert not several.certified_.all()
    y = np.arange(300) % 2
    with pytest.warns(UserWarning, match="no set satisfies min_precision=0.9"):
        none = FDecider(min_precision=0.9, confidence=0.95).fit(np.full(300, 0.5), y)
    assert none.certified_ is False
    assert not none.predict(np.full(3, 0.5)).any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_recall": None}, "it is that of min_precision and min_recall"),
        ({"confidence": 1.5}, "confidence is 1.5: it must be"),
    ],
)
def test_certificates_that_are_refused(parameters, message):
    given = {"min_recall": 0.5, "confidence": 0.9, "average": "micro"} | parameters
    with pytest.raises(ValueError, match=message):
        FDecider(**given).fit(P[:300], Y[:300])


def test_certificates_need_all_labels_and_the_model_that_predicts():
    given = {"min_recall": 0.5, "confidence": 0.9, "average": "micro"}
    missing = Y[:300].astype(float)
    missing[0, 0] = np.nan
    with pytest.raises(ValueError, match="y has labels that are missing: floors are certified by"):
        FDecider(**given).fit(P[:300], missing)
    model = MultiOutputClassifier(LogisticRegression())
    with pytest.raises(ValueError, match="certificates need cv='prefit' and a fitted model"):
        FClassifier(model, **given).fit(P, Y)
    fitted = FClassifier(model.fit(P[:600], Y[:600]), cv="prefit", **given).fit(P[600:], Y[600:])
    assert fitted.decider_.certified_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"average": "macro", "max_labels": 2}, "limits on the number of labels of a row with"),
        ({"average": "micro", "min_labels": 1}, "limits on the number of labels of a row with"),
        ({"average": "micro", "min_precision": 0.6, "confidence": 0.9}, "limits on the number of"),
        ({"min_recall": 0.6}, "floors of each row with average='samples', which cannot be exp"),
    ],
)
def test_rules_that_onnx_does_not_have_are_not_exported(parameters, message):
    pytest.importorskip("onnx")
    decider = FDecider(**parameters).fit(P, Y)
    with pytest.raises(ValueError, match=message):
        fgfm.onnx.export_decision(decider)


def test_certificates_take_the_memory_of_stored_entries():
    n, m = 300, 20_000
    rng = np.random.default_rng(0)
    where = (np.repeat(np.arange(n), 10), rng.integers(m, size=10 * n))
    X = sparse.csr_array((rng.random(10 * n) / 10, where), shape=(n, m))
    X.sum_duplicates()
    y = X.copy()
    y.data = (rng.random(X.nnz) < X.data).astype(np.int64)
    given = {"average": "macro", "min_precision": 0.5}
    peaks = []
    for confidence in (None, 0.9):
        decider = FDecider(confidence=confidence, **given)
        tracemalloc.start()
        with warnings.catch_warnings(action="ignore"):
            decider.fit(X, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 4 * peaks[0]


@pytest.mark.parametrize(
    "floors", [{"min_recall": 0.5}, {"min_recall": 0.6, "min_precision": 0.3}]
)
def test_a_sparse_row_alone_is_decided_as_in_a_batch(floors):
    rng = np.random.default_rng(0)
    P = rng.random((200, 8))
    Y = (rng.random((200, 8)) < P).astype(int)
    X = sparse.csr_array(np.where(rng.random(P.shape) < 0.3, P, 0.0))
    decider = FDecider(**floors).fit(X, Y)
    together, expected_f = decider.decide(X)
    for row in range(0, 200, 5):
        alone = decider.decide(X[row : row + 1])
        np.testing.assert_array_equal(alone.labels.toarray(), together[row : row + 1].toarray())
        assert alone.expected_f == pytest.approx(expected_f[row])
    assert decider.predict(sparse.csr_array((1, 8))).shape == (1, 8)
