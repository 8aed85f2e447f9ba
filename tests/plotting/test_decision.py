"""DecisionDisplay: which labels are shown, and which of them are marked as chosen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fgfm import FGFMClassifier, decision
from fgfm.plotting import DecisionDisplay

LONG = [f"regulation of the transport of protein {k} across the membrane" for k in range(5)]


def of_marginals(proba, row=0, **options):
    return DecisionDisplay.from_decision(proba, decision.from_marginals(proba), row=row, **options)


def tick_texts(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def test_chosen_labels_are_filled():
    proba = [[0.8, 0.1, 0.45, 0.4, 0.05]]
    display = of_marginals(proba)
    assert display.labels.tolist() == [1, 0, 1, 1, 0]
    assert display.chosen_.get_xdata().tolist() == [0.8, 0.45, 0.4]
    assert display.others_.get_xdata().tolist() == [0.1, 0.05]
    assert display.chosen_.get_markerfacecolor() == "C0"
    assert display.others_.get_markerfacecolor() == "white"
    assert display.text_ is None
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["chosen", "not chosen"]
    title = DecisionDisplay([0.3], [1]).plot().ax_.get_title()
    assert title == "1 of 1 label chosen"


def test_empty_decision():
    display = of_marginals(np.full((1, 6), 0.12))
    assert display.ax_.get_title() == "expected $F_{1}$ = 0.464 with 0 of 6 labels"
    display.figure_.draw_without_rendering()
    assert display.ax_.get_window_extent().x0 < 0.1 * display.figure_.bbox.width


def test_from_estimator(music, classifier):
    X, Y = music
    display = DecisionDisplay.from_estimator(classifier, X, row=209)
    decided = classifier.decide(X[209:210])
    np.testing.assert_array_equal(display.labels, decided.labels[0])
    np.testing.assert_allclose(display.proba, classifier.predict_proba(X[209:210])[0])
    assert display.expected_f == pytest.approx(decided.expected_f[0], rel=1e-12)
    assert display.beta == 1.0
    assert tick_texts(display) == [Y.columns[k] for k in display.order_]
    display = DecisionDisplay.from_estimator(classifier, X, label_names=list("vwxyz"))
    assert set(tick_texts(display)) == set("vwxyz")


def test_flat_labels_show_the_positive_class(music):
    X, Y = music
    y = np.where(Y["sad"] == 1, "yes", "no")
    model = FGFMClassifier(random_state=0).fit(X[:200], y[:200])
    display = DecisionDisplay.from_estimator(model, X, row=3)
    assert tick_texts(display) == ["yes"]
    np.testing.assert_allclose(display.proba, model.predict_proba(X[3:4])[0, 1:])


def test_types_of_tables():
    proba = np.array([[0.7, 0.2, 0.0, 0.4], [0.1, 0.1, 0.9, 0.6]])
    names = ["a", "b", "c", "d"]
    pl = pytest.importorskip("polars")
    for table in (
        proba,
        proba.tolist(),
        sparse.csr_array(proba),
        sparse.coo_matrix(proba),
        pd.DataFrame(proba, columns=names, index=[5, 6]),
        pl.DataFrame(proba, schema=names),
    ):
        display = of_marginals(table, row=1)
        assert display.order_.tolist() == [2, 3, 0, 1]
        expected = names if hasattr(table, "columns") else ["0", "1", "2", "3"]
        assert tick_texts(display) == [expected[k] for k in display.order_]
        if not isinstance(table, list):
            display = DecisionDisplay.from_decision(table, decision.from_marginals(proba), row=1)
            np.testing.assert_array_equal(display.labels, [0, 0, 1, 1])


def test_many_labels():
    rng = np.random.default_rng(6)
    p = rng.random(150) ** 5
    labels = np.zeros(150)
    low = np.argsort(p)[:3]
    labels[low] = 1
    display = DecisionDisplay(p, labels).plot(max_labels=12)
    assert len(display.order_) == 12
    assert set(low) <= set(display.order_)
    assert (np.diff(p[display.order_]) <= 0.0).all()
    rest = np.setdiff1d(np.arange(150), display.order_)
    assert set(display.order_) - set(low) == set(np.argsort(-p)[:9])
    match = display.text_.get_text().removeprefix("and 138 more, at most ").removesuffix(" each")
    assert 0.0 <= float(match) - p[rest].max() <= 0.001
    # All chosen labels are shown.
    assert len(DecisionDisplay(p, np.ones(150)).plot(max_labels=5).order_) == 150
    assert len(DecisionDisplay(p, labels).plot().order_) == 30


def test_long_names_are_shortened():
    names = ["costs $5 or $6", "a\nb", *[f"{'x' * 40}{k}{'y' * 40}" for k in range(2)]]
    display = DecisionDisplay([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 0], label_names=names).plot()
    shown = tick_texts(display)
    assert shown[:2] == ["costs $5 or $6", "a b"]
    assert shown[2].startswith("xxx")
    assert shown[2].endswith("y (2)")
    assert shown[3].endswith("y (3)")
    display.figure_.canvas.draw()  # dollar signs are not parsed as mathematics


D = DecisionDisplay


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: of_marginals([[0.5]], row=0.0), "row is 0.0: it must be an integer, the index"),
        (lambda: of_marginals([[0.5]], row=1), "row is 1: proba has 1 rows, so it must be from 0"),
        (
            lambda: D.from_decision([[0.0]], decision.Decision([[0]], [np.nan])),
            "row 0 has no probability for a non-empty label set, which nonempty=True assumes",
        ),
        (lambda: D([0.1, 1.4], [0, 1]).plot(), r"proba\[1\] is 1.4: probabilities must lie in"),
        (lambda: D([0.1, 0.4], [0, 2]).plot(), r"labels\[1\] is 2.0: labels must be 0 or 1$"),
        (lambda: D([0.1], [0, 1]).plot(), r"labels has shape \(2,\): it must have 1 numbers, one"),
        (lambda: D([0.1, 0.4], [0, 1], label_names=["a"]).plot(), "label_names has 1 names: it"),
        (lambda: D([0.1], [0]).plot(max_labels=0), "max_labels is 0: it must be an integer"),
        (
            lambda: D.from_estimator(make_pipeline(LogisticRegression()), [[1.0]]),
            "estimator is a Pipeline that ends with a LogisticRegression: it must be",
        ),
        (lambda: D.from_estimator(FGFMClassifier(), [[1.0]]), "This FGFMClassifier .* not fitted"),
    ],
)
def test_invalid_arguments_raise(make, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        make()
