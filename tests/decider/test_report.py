"""The report of a decider against thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_fscore_support

from decider_data import exclusive, independent
from fgfm import FClassifier, FDecider
from fgfm.metrics import best_threshold
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
    labels = {"decider": decider.predict(X), "p > 0.5": p > 0.5}
    tuned = report.xs("tuned", level="decision")["threshold"]
    labels["tuned"] = p > tuned[[0, 1, 2, 3]].to_numpy()
    given = {"zero_division": 1.0}
    for rule, chosen in labels.items():
        table = report.xs(rule, level="decision")
        columns = table[["precision", "recall", "f"]].to_numpy().T
        close(columns[:, :4], precision_recall_fscore_support(y, chosen, **given)[:3], 1e-12)
        close(table["predicted"][[0, 1, 2, 3]], chosen.mean(axis=0), 1e-12)
        overall = precision_recall_fscore_support(y, chosen, average=average, **given)
        close(columns[2, 4], overall[2], 1e-12)
        if average != "samples":  # where empty sets of a row count as 0
            close(columns[:2, 4], overall[:2], 1e-12)
    close(report.loc[("overall", "decider"), "f"], decider.score(X, y), 1e-12)
    assert report.loc[("overall", "tuned"), "f"] >= report.loc[("overall", "p > 0.5"), "f"]
    if average != "samples":
        assert (
            report.xs("decider", level="decision")["threshold"][:4] == decider.thresholds_
        ).all()
    if average in ("macro", "weighted"):
        assert tuned[2] == best_threshold(p[:, [2]], y[:, [2]] == 1, average="macro")
    else:
        assert (tuned == best_threshold(p, y == 1, average=average)).all()


def test_report_of_sparse_probabilities_is_that_of_dense_ones():
    dense = FDecider(average="macro").fit(P[:300], Y[:300])
    stored = FDecider(average="macro").fit(sparse.csr_array(P[:300]), Y[:300])
    one = dense.report(P[300:], Y[300:])
    close(one, stored.report(sparse.csr_array(P[300:]), Y[300:]), 1e-9)


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
