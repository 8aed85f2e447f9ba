"""The report of a decider against thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_fscore_support

from decider_data import exclusive, independent
from fgfm import FClassifier, FDecider
from fgfm.metrics import best_threshold, f_difference, f_interval
from multilabel import close

pytest.importorskip("pandas")
P, Y = independent(600, 4)
P = P**1.5


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("average", ["samples", "macro", "weighted", "micro"])
def test_report_has_the_measures_of_each_rule(average, stored):
    decider = FDecider(average=average).fit(P[:300], Y[:300])
    X, y, p = P[300:], Y[300:], P[300:]
    report = decider.report(X, sparse.csr_array(y) if stored else y)
    labels = {
        "decider": decider.predict(X),
        "p > 0.5": p > 0.5,
        "tuned": tuned_elsewhere(p, y, average),
    }
    given = {"zero_division": 1.0}
    for rule, chosen in labels.items():
        table = report.xs(rule, level="decision")
        columns = table[["precision", "recall", "f"]].to_numpy().T
        close(columns[:, :4], precision_recall_fscore_support(y, chosen, **given)[:3], 1e-12)
        close(table["predicted"][[0, 1, 2, 3]], chosen.mean(axis=0), 1e-12)
        for a, rows in ((None, [0, 1, 2, 3]), (average, ["overall"])):
            found = f_interval(y, chosen, average=a)
            close(
                table.loc[rows, ["f", "low", "high"]].to_numpy().T,
                np.reshape(found, (3, -1)),
                1e-12,
            )
            found = f_difference(y, chosen, labels["tuned"], average=a)
            if rule != "tuned":
                close(table.loc[rows, "difference"], found.difference, 1e-12)
                assert (table.loc[rows, "verdict"] == found.verdict).all()
        overall = precision_recall_fscore_support(y, chosen, average=average, **given)
        close(columns[2, 4], overall[2], 1e-12)
        if average != "samples":  # where empty sets of a row count as 0
            close(columns[:2, 4], overall[:2], 1e-12)
    close(report.loc[("overall", "decider"), "f"], decider.score(X, y), 1e-12)
    ends = ["threshold_low", "threshold_high"]
    if average == "samples":
        assert not set(ends) & set(report.columns)
        return
    table = report.xs("decider", level="decision")
    assert (table["threshold"][:4] == decider.thresholds_).all()
    for name, end in zip(ends, decider.thresholds_interval(X, y), strict=True):
        close(table[name][:4], end, 1e-12)
        close(table[name].iloc[4], end if average == "micro" else np.nan, 1e-12)
    assert report[ends].drop("decider", level="decision").isna().all(axis=None)


def test_report_of_a_flat_y_has_the_interval_of_its_threshold():
    decider = FDecider(beta=2.0).fit(P[:300, 0], Y[:300, 0])
    row = decider.report(P[300:, 0], Y[300:, 0]).iloc[0]
    ends = decider.thresholds_interval(P[300:, 0], Y[300:, 0])
    close(row[["threshold_low", "threshold_high"]].astype(float), ends, 1e-12)


def tuned_elsewhere(p, y, average):
    """Return the labels above thresholds that are tuned on the other four fifths of the rows."""
    chosen = np.zeros(p.shape, dtype=bool)
    order = np.random.default_rng(0).permutation(len(p))
    for rows in np.array_split(order, 5):
        others = np.setdiff1d(order, rows)
        columns = [slice(None)] if average in ("samples", "micro") else [[j] for j in range(4)]
        for j in columns:
            own = average if average in ("samples", "micro") else "macro"
            t = best_threshold(p[others][:, j], y[others][:, j], average=own)
            chosen[rows] |= (p[rows] > t) & np.isin(range(4), np.arange(4)[j])
    return chosen


def test_few_rows_and_an_interval_that_may_be_too_short():
    decider = FDecider(average="macro").fit(P[:300], Y[:300])
    with pytest.warns(UserWarning, match="the interval may be too short") as caught:
        report = decider.report(P[300:303], Y[300:303])
    assert len(caught) == 1
    assert report["f"].notna().all()


@pytest.mark.parametrize("average", ["macro", "micro", "binary"])
def test_interval_of_thresholds(average):
    X, y = (P, Y) if average != "binary" else (P[:, 0], Y[:, 0])
    decider = FDecider(average=average, beta=2.0).fit(X[:300], y[:300])
    low, high = decider.thresholds_interval(X[:300], y[:300], confidence=0.9)
    given = {"average": None if average == "macro" else average, "confidence": 0.9, "beta": 2.0}
    found = f_interval(y[:300], decider.predict(X[:300]), **given)
    close(5.0 * np.array([low, high]), found[1:], 1e-12)
    assert np.shape(low) == np.shape(decider.thresholds_)
    assert np.all((low < decider.thresholds_) & (decider.thresholds_ < high))


def test_thresholds_without_an_interval():
    for parameters, message in [
        ({}, "average is 'samples': rows have no threshold"),
        ({"average": "macro", "min_recall": 0.5}, "min_recall move the thresholds"),
    ]:
        decider = FDecider(**parameters).fit(P[:300], Y[:300])
        with pytest.raises(ValueError, match=message):
            decider.thresholds_interval(P, Y)


def test_report_of_sparse_probabilities_is_that_of_dense_ones():
    dense = FDecider(average="macro").fit(P[:300], Y[:300])
    stored = FDecider(average="macro").fit(sparse.csr_array(P[:300]), Y[:300])
    one = dense.report(P[300:], Y[300:])
    other = stored.report(sparse.csr_array(P[300:]), Y[300:])
    assert (one.pop("verdict") == other.pop("verdict")).all()
    close(one, other, 1e-9)


def test_report_of_one_label_and_of_classes():
    y = np.array(["no", "yes"])[Y[:, 0]]
    report = FDecider(pos_label="yes").fit(P[:300, 0], y[:300]).report(P[300:, 0], y[300:])
    assert report.index.tolist() == [("yes", rule) for rule in ("decider", "p > 0.5", "tuned")]
    p, one_hot = exclusive(600, 3)
    y = np.array(["a", "b", "c"])[one_hot.argmax(axis=1)]
    decider = FDecider(average="macro").fit(p[:300], y[:300])
    report = decider.report(p[300:], y[300:])
    assert report.index.levels[1].tolist() == ["decider", "largest p"]
    close(report.loc[("overall", "decider"), "f"], decider.score(p[300:], y[300:]), 1e-12)
    close(report.loc[("b", "largest p"), "predicted"], (p[300:].argmax(axis=1) == 1).mean(), 1e-12)


def test_report_of_a_model_has_the_names_of_labels():
    pd = pytest.importorskip("pandas")
    labels = pd.DataFrame(Y, columns=list("abcd"))
    model = FClassifier(LogisticRegression(), average="micro", random_state=0).fit(P, labels)
    report = model.report(P, labels)
    assert report.index.get_level_values(0).unique().tolist() == [*"abcd", "overall"]
    with pytest.raises(ValueError, match="column 0 of y is 'b' and that of fit is 'a'"):
        model.report(P, labels[["b", "a", "c", "d"]])
