"""ReportDisplay: the measures of a report, the labels shown and their order."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from decider_data import exclusive, independent
from fgfm import FClassifier, FDecider
from fgfm.plotting import ReportDisplay

P, Y = independent(600, 6)
P = P**1.5


@pytest.fixture(scope="module")
def report():
    return FDecider(average="macro").fit(P[:300], Y[:300]).report(P[300:], Y[300:])


@pytest.mark.parametrize("measure", ["f", "precision", "recall", "predicted"])
def test_dots_are_those_of_the_report(report, measure):
    display = ReportDisplay(report, measure=measure).plot()
    assert sorted(display.labels_[:-1]) == list(range(6))
    assert display.labels_[-1] == "overall"
    for rule, dots in display.dots_.items():
        expected = [report.loc[(label, rule), measure] for label in display.labels_]
        np.testing.assert_array_equal(dots.get_xdata(), expected)
    gain = display.dots_["decider"].get_xdata() - display.dots_["p > 0.5"].get_xdata()
    assert (np.diff(gain[:-1]) <= 0).all()
    ticks = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert ticks == [str(label) for label in display.labels_]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ours = "decider, 95 % interval" if measure == "f" else "decider"
    assert legend == [ours, "p > 0.5", "tuned on other rows"]
    ends = np.sort([line[:, 0] for line in display.bars_.get_segments()], axis=1)
    if measure == "f":
        rows = report.xs("decider", level="decision").loc[display.labels_]
        np.testing.assert_array_equal(ends, rows[["low", "high"]])
        assert [word.get_text() for word in display.words_] == rows["verdict"].tolist()
        assert display.ax_.get_title().endswith(rows["verdict"].iloc[-1])
    else:
        dots = np.array([dots.get_xdata() for dots in display.dots_.values()])
        np.testing.assert_array_equal(ends.T, [dots.min(axis=0), dots.max(axis=0)])
        assert display.words_ == []


def test_labels_that_change_most_are_shown(report):
    everything = ReportDisplay(report).plot().labels_[:-1]
    f = report["f"].unstack()
    change = (f["decider"] - f["p > 0.5"]).abs()[everything].sort_values(ascending=False)
    assert set(ReportDisplay(report).plot(max_labels=2).labels_[:-1]) == set(change.index[:2])


def test_one_label_classes_and_pipelines():
    model = make_pipeline(StandardScaler(), FClassifier(LogisticRegression(), pos_label="yes"))
    y = np.array(["no", "yes"])[Y[:, 0]]
    display = ReportDisplay.from_estimator(model.fit(P[:300], y[:300]), P[300:], y[300:])
    assert display.labels_ == ["yes"]
    p, one_hot = exclusive(600, 3)
    y = one_hot.argmax(axis=1)
    decider = FDecider(average="macro").fit(p[:300], y[:300])
    display = ReportDisplay.from_estimator(decider, p[300:], y[300:])
    assert list(display.dots_) == ["decider", "largest p"]
    with pytest.raises(ValueError, match="measure is 'accuracy'"):
        ReportDisplay.from_estimator(decider, p, y, measure="accuracy")
    with pytest.raises(
        TypeError, match="estimator is a LogisticRegression: it must be an estimator of fgfm"
    ):
        ReportDisplay.from_estimator(LogisticRegression(), p, y)
