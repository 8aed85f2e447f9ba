"""FDecider with rows of names and scores, and with lists of candidates without names."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import fgfm
from decider_data import independent
from fgfm import FClassifier, FDecider, FGFMClassifier

NAMES = ["fog", "hail", "rain", "sun", "wind"]  # sorted
P, Y = independent(300, 5)
STORED = P > 0.1
LISTS = [[NAMES[j] for j in np.flatnonzero(row)] for row in Y]
DICTS = [
    {NAMES[j]: float(p[j]) for j in np.flatnonzero(s)} for p, s in zip(P, STORED, strict=True)
]
FORMS = {
    "dicts": DICTS,
    "pairs": [[*row.items()][::-1] for row in DICTS],
    "records": [[{"label": k, "score": v} for k, v in row.items()] for row in DICTS],
    "array": np.array(DICTS, dtype=object),
}
CSR = sparse.csr_array(np.where(STORED, P, 0.0))


# Names of predictions


@pytest.mark.parametrize("kind", [FClassifier, FGFMClassifier])
def test_predict_names_of_a_classifier(kind):
    pd = pytest.importorskip("pandas")
    model = kind(LogisticRegression(), random_state=0)
    model.fit(P, pd.DataFrame(Y, columns=NAMES))
    names = model.predict_names(P[:20])
    assert names == [[NAMES[j] for j in np.flatnonzero(row)] for row in model.predict(P[:20])]


@pytest.mark.parametrize("average", ["samples", "macro"])
@pytest.mark.parametrize("X", [P, CSR], ids=["dense", "sparse"])
def test_predict_names_of_a_decider(X, average):
    decider = FDecider(average=average).fit(X, sparse.csr_array(Y))
    numbers = decider.predict_names(X)
    rows = decider.predict(X).toarray()
    assert numbers == [np.flatnonzero(row).tolist() for row in rows]
    assert FDecider(average=average).fit(X, LISTS).predict_names(X) == [
        [NAMES[j] for j in row] for row in numbers
    ]


def test_predict_names_of_a_flat_y_raises():
    with pytest.raises(ValueError, match="y was flat in fit: predict returns the names"):
        FDecider().fit(P[:, 0], Y[:, 0]).predict_names(P[:, 0])


# Rows of names and scores


@pytest.mark.parametrize("form", FORMS)
def test_names_that_a_row_has_not_are_absent_as_in_sparse_rows(form):
    X = FORMS[form]
    expected = FDecider().fit(CSR, LISTS)
    decider = FDecider().fit(X, LISTS)
    assert decider.classes_.tolist() == NAMES
    assert (decider.predict(X) == expected.predict(CSR)).all()
    assert (decider.decide(X).labels != expected.decide(CSR).labels).nnz == 0
    assert decider.predict_names(X) == expected.predict_names(CSR)
    assert decider.score(X, LISTS) == expected.score(CSR, Y)
    assert (decider.predict_proba(X) != expected.predict_proba(CSR)).nnz == 0
    assert decider.predict_names([{}, []]) == [[], []]


def test_rows_of_names_after_a_fit_to_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(P, columns=NAMES[::-1])
    y = pd.DataFrame(Y, columns=NAMES[::-1])
    decider = FDecider(average="macro").fit(frame, y)
    rows = frame.to_dict("records")
    assert decider.predict_names(rows) == decider.predict_names(frame)
    again = FDecider(average="macro").fit(rows, y)
    assert (again.predict(rows) == decider.predict(frame)).all()


def test_scores_by_name():
    scores = [{k: 7.0 - 0.1 * np.log(1.0 / p - 1.0) for k, p in row.items()} for row in DICTS]
    decider = FDecider(scores=True).fit(scores, LISTS)
    best = FDecider().fit(DICTS, LISTS).score(DICTS, LISTS)
    assert decider.score(scores, LISTS) == pytest.approx(best, abs=0.02)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([{}, {"rian": 0.2}], r"X\[1\] has the label 'rian', which was not in fit \(did you mean"),
        ([{"rain": 0.2}, 5], r"X\[1\] is 5: it must be a dict"),
        ([{"rain": 0.2}, None], r"X\[1\] is None: it must be a dict"),
        ([[("rain", 0.2, 1)]], r"X\[0\] is .* it must be a dict"),
        ([[{"name": "rain", "score": 1}]], r"X\[0\] is .* it must be a dict"),
        ([[("rain", 0.2), ("rain", 0.3)]], r"X\[0\] has the label 'rain' twice"),
        ([{"rain": 1.2}], r"X\[0, 0\] is 1.2: probabilities must lie in \[0, 1\]"),
        ([{"rain": "much"}], "it must hold real numbers"),
        ([{"rain": 0.1, 3: 0.2}], r"X\[0\] has the label 3: names of labels must be texts"),
    ],
)
def test_invalid_rows_of_names(X, message):
    with pytest.raises((TypeError, ValueError), match=message):
        FDecider().fit(DICTS, LISTS).predict(X)


def test_rows_of_names_need_names():
    with pytest.raises(ValueError, match="X has names of labels and y has none"):
        FDecider().fit(DICTS, Y)
    with pytest.raises(ValueError, match="in fit there were none: pass arrays"):
        FDecider().fit(P, Y).predict(DICTS)


# Lists of candidates without names


def ragged(n, seed, dtype=np.float64):
    """Draw lists of probabilities, and labels that are independent given them."""
    rng = np.random.default_rng(seed)
    X = [rng.beta(0.6, 2.0, size).astype(dtype) for size in rng.integers(0, 13, n)]
    return X, [(rng.random(len(x)) < x**1.5).astype(np.int8) for x in X]


X_FIT, Y_FIT = ragged(300, 0)
X_NEW, Y_NEW = ragged(300, 1)


@pytest.mark.parametrize("average", ["samples", "micro"])
def test_lists_are_decided_whatever_their_order_and_the_other_lists(average):
    decider = FDecider(average=average).fit(X_FIT, Y_FIT)
    labels = decider.predict(X_NEW)
    assert [row.dtype for row in labels] == [np.dtype(np.int8)] * len(X_NEW)
    for x, row in zip(X_NEW[:50], labels, strict=False):
        assert (decider.predict([x])[0] == row).all()
        assert (decider.predict([x[::-1]])[0] == row[::-1]).all()
        assert (decider.predict([x.tolist(), [0.5] * 40])[0] == row).all()
    p = decider.predict_proba(X_NEW)
    assert [len(row) for row in p] == [len(x) for x in X_NEW]
    for x, row in zip(X_NEW, p, strict=True):  # one calibration for all
        assert (np.diff(row[np.argsort(x)]) >= 0.0).all()
    assert decider.score(X_NEW, Y_NEW) == pytest.approx(
        np.mean(decider.expected_f(X_NEW)) if average == "samples" else decider.expected_f(X_NEW),
        abs=0.05,
    )


def test_list_decisions_are_optimal():
    decider = FDecider().fit(X_FIT, Y_FIT)
    model = decider._rule.model
    labels, expected_f = decider.decide(X_NEW[:30])
    for r, x in enumerate(X_NEW[:30]):
        if not 1 < len(x) <= 9:
            continue
        sets = np.array([*product([0, 1], repeat=len(x))])
        q, d = model.predict(decider._read([x]).entries)
        t, u = model.exponents
        w = np.where(sets == 1, q[0] ** t / (1.0 - q[0]) ** u, 1.0).prod(axis=1)
        size = sets.sum(axis=1)
        d = np.append(d[0, : len(x)], d[0, len(x) :].sum())
        probability = w / np.bincount(size, w)[size] * np.pad(d, (0, len(x) + 1))[size]
        hits, total = sets @ sets.T, size[:, None] + size
        f = np.where(total == 0, 1.0, 2.0 * hits / np.maximum(total, 1)) @ probability
        assert expected_f[r] == pytest.approx(f.max(), abs=1e-9)
        assert f[(sets == labels[r]).all(axis=1)][0] == pytest.approx(f.max(), abs=1e-9)


@pytest.mark.parametrize("average", ["samples", "micro"])
def test_scores_of_lists_are_those_of_their_candidates(average):
    decider = FDecider(average=average).fit(X_FIT, Y_FIT)
    labels = decider.predict(X_NEW)
    if average == "samples":
        pairs = zip(Y_NEW, labels, strict=True)
        f = [fgfm.f_measure([y], [h]) if len(y) else 1.0 for y, h in pairs]
        expected = np.mean(f)
        assert 0.0 < decider.lower_bound(X_NEW, Y_NEW) < expected
        with pytest.raises(ValueError, match="rows that were used in fit"):
            decider.lower_bound(X_FIT[::-1], Y_FIT[::-1])
    else:
        expected = fgfm.f_measure(
            np.concatenate(Y_NEW)[:, None], np.concatenate(labels)[:, None], average="micro"
        )
    assert decider.score(X_NEW, Y_NEW) == pytest.approx(expected)
    report = decider.report(X_NEW, Y_NEW)
    assert report.index.get_level_values("label").unique().tolist() == ["overall"]
    first = report.loc[("overall", "decider")]
    assert first["f"] == pytest.approx(expected)
    assert first["predicted"] == pytest.approx(np.concatenate(labels).mean())


def test_lists_of_equal_lengths():
    """Arrays in lists are candidates; lists of numbers of equal lengths are a matrix."""
    X, y = [x for x in P], [y for y in Y]  # noqa: C416
    lists = FDecider().fit(X, y)
    assert isinstance(lists.predict(X), list)
    assert isinstance(lists.predict(P), list)
    assert FDecider().fit(P.tolist(), Y.tolist()).predict(P.tolist()).shape == Y.shape
    assert FDecider().fit(X, Y).predict(X).shape == Y.shape


def test_lists_are_saved(tmp_path):
    decider = FDecider().fit(X_FIT, Y_FIT, missed=[len(x) % 3 for x in X_FIT])
    fgfm.save(decider, tmp_path / "lists.fgfm")
    again = fgfm.load(tmp_path / "lists.fgfm").predict(X_NEW)
    assert all((a == b).all() for a, b in zip(again, decider.predict(X_NEW), strict=True))


@pytest.mark.parametrize("average", ["samples", "micro"])
def test_limits_of_lists(average):
    decider = FDecider(average=average, max_labels=2).fit(X_FIT, Y_FIT)
    assert max(row.sum() for row in decider.predict(X_NEW)) == 2
    with pytest.raises(ValueError, match=r"row \d+ of X has 0 stored labels"):
        FDecider(average=average, min_labels=1).fit(X_FIT, Y_FIT)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda d: FDecider(average="macro").fit(X_FIT, Y_FIT), "average is 'macro' and X and y"),
        (lambda d: d.decide(X_NEW, average="weighted"), "average is 'weighted' and X and y"),
        (lambda d: d.predict_names(X_NEW), "whose places have no names"),
        (lambda d: d.predict_frame(X_NEW), "whose places have no names"),
        (
            lambda d: fgfm.onnx.export_decision(d),
            "decider was fitted to lists, which cannot be exported",
        ),
        (lambda d: d.predict([[0.1, 2.0]]), r"X\[0, 1\] is 2.0"),
        (lambda d: d.predict([[0.1], [[0.2]]]), r"X\[1\] has shape \(1, 1\)"),
        (lambda d: d.predict(CSR), "X is of type csr_array"),
        (lambda d: d.score(X_NEW, Y_NEW[1:]), "y has 299 rows and X has 300"),
        (lambda d: d.score(X_NEW[:2], [[0] * 20, [1]]), r"y\[0\] has 20 labels and X\[0\] has"),
        (lambda d: d.score([[0.5, 0.5]], [[0, 2]]), r"y\[0, 1\] is 2: labels must be 0 or 1"),
    ],
)
def test_invalid_lists(use, message):
    pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=message):
        use(FDecider().fit(X_FIT, Y_FIT))


# True items without a candidate


def cut(n, seed, most=10):
    """Draw lists of the `most` best candidates, and the numbers of true items below their end."""
    rng = np.random.default_rng(seed)
    X = [np.sort(rng.beta(0.7, 2.0, size))[::-1] for size in rng.integers(most + 1, 60, n)]
    y = [(rng.random(len(x)) < x).astype(int) for x in X]
    return [x[:most] for x in X], [t[:most] for t in y], [t[most:].sum() for t in y]


@pytest.mark.parametrize("average", ["samples", "micro"])
def test_missed_items_are_learned_and_counted(average):
    X, y, missed = cut(400, 0)
    X_new, y_new, missed_new = cut(800, 1)
    plain = FDecider(average=average).fit(X, y)
    decider = FDecider(average=average).fit(X, y, missed=missed)
    labels = decider.predict(X_new)
    hits = np.array([h @ t for h, t in zip(labels, y_new, strict=True)])
    total = np.array([h.sum() + t.sum() for h, t in zip(labels, y_new, strict=True)]) + missed_new
    f = 2.0 * hits.sum() / total.sum()
    if average == "samples":
        f = np.where(total == 0, 1.0, 2.0 * hits / np.maximum(total, 1)).mean()
    assert decider.score(X_new, y_new, missed=missed_new) == pytest.approx(f)
    assert np.mean(decider.expected_f(X_new)) == pytest.approx(f, abs=0.03)
    with pytest.warns(UserWarning, match="they differ from the rows of fit by more than chance"):
        assert plain.score(X_new, y_new, missed=missed_new) < f


def test_missed_items_of_a_binary_problem():
    p, y = P[:, 0], Y[:, 0]
    decider = FDecider().fit(p, y, missed=np.ones(len(p)))
    assert decider.thresholds_ < FDecider().fit(p, y).thresholds_
    truth, labels = np.append(y, np.ones(len(p))), np.append(decider.predict(p), 0 * y)
    f = fgfm.f_measure(truth[:, None], labels[:, None], average="macro")
    assert decider.score(p, y, missed=np.ones(len(p))) == pytest.approx(f)
    assert decider.expected_f(p) == pytest.approx(f, abs=0.03)


@pytest.mark.parametrize("average", ["samples", "micro"])
def test_true_labels_that_sparse_rows_do_not_store_are_counted(average):
    rng = np.random.default_rng(3)
    p = rng.beta(0.15, 4.0, (1200, 120))
    truth = (rng.random(p.shape) < p).astype(int)
    stored = sparse.csr_array(np.where(p > 0.12, p, 0.0))
    decider = FDecider(average=average).fit(stored[:500], truth[:500])
    expected = np.mean(decider.expected_f(stored[500:]))
    assert expected == pytest.approx(decider.score(stored[500:], truth[500:]), abs=0.03)


@pytest.mark.parametrize(
    ("parameters", "missed", "message"),
    [
        ({}, [0.5] * 300, r"missed\[0\] is 0.5: it must be a number of true items"),
        ({}, [0] * 299, "missed has 299 rows and X has 300"),
        ({"average": "macro"}, [1] * 300, "missed cannot be combined with average='macro'"),
        ({"min_recall": 0.5}, [1] * 300, "missed cannot be combined with min_recall"),
        ({"average": "micro", "max_labels": 2}, [1] * 300, "cannot be combined with min_labels"),
    ],
)
def test_invalid_missed_items(parameters, missed, message):
    with pytest.raises(ValueError, match=message):
        FDecider(**parameters).fit(P, Y, missed=missed)


def test_missed_items_have_the_index_of_X():
    pd = pytest.importorskip("pandas")
    missed = pd.Series(np.ones(300), index=np.arange(300)[::-1])
    with pytest.raises(ValueError, match="row 0 of X has index 0 and that of missed has 299"):
        FDecider().fit(pd.DataFrame(P), Y, missed=missed)


def test_no_lists_and_no_rows_of_names():
    lists = FDecider().fit([[0.9, 0.2], [0.3]] * 20, [[1, 0], [1]] * 20)
    assert (lists.predict([]), lists.decide([]).labels) == ([], [])
    named = FDecider().fit([{"a": 0.9, "b": 0.2}, {"b": 0.3}] * 20, [["a"], ["b"]] * 20)
    assert named.predict([]).shape == (0, 2)
    assert named.predict_names([]) == []
