"""ExpectedFDisplay: the curve is that of the decision."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import oracle
from fgfm import FGFMClassifier, decision
from fgfm.plotting import DecisionDisplay, ExpectedFDisplay

OBJECTIVES = [
    {"beta": 1.0, "zero_division": 1.0, "nonempty": False},
    {"beta": 2.0, "zero_division": 0.4, "nonempty": True},
]


def check_display(display, decided, row=0):
    """Compare the curve with the decision for a row."""
    size = int(np.asarray(decided.labels)[row].sum())
    expected = np.asarray(decided.expected_f)[row]
    assert display.size == size
    np.testing.assert_allclose(display.values[size], expected, rtol=1e-11)
    assert display.chosen_.get_xdata()[0] == size
    np.testing.assert_allclose(display.chosen_.get_ydata()[0], expected, rtol=1e-11)
    np.testing.assert_array_equal(display.line_.get_ydata(), display.values[1:])
    np.testing.assert_array_equal(display.bound_.get_ydata(), display.bounds[1:])
    assert (display.values[1:] <= display.bounds[1:] * (1.0 + 1e-12)).all()
    assert np.nanmax(display.values) <= expected * (1.0 + 1e-11)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_from_marginals_cardinalities_and_factors(objective):
    rng = np.random.default_rng(2)
    p = rng.random((2, 5))
    display = ExpectedFDisplay.from_marginals(p, row=1, **objective)
    check_display(display, decision.from_marginals(p, **objective), 1)
    P = oracle.cardinality_matrix(*oracle.random_joint(rng, 2, 5))
    display = ExpectedFDisplay.from_factors([P], [range(5)], row=1, **objective)
    check_display(display, decision.from_cardinalities(P, **objective), 1)
    factors = [[3, 0], [1, 4, 2], [5]]
    joints = [oracle.random_joint(rng, 2, len(factor)) for factor in factors]
    Ps = [oracle.cardinality_matrix(*joint) for joint in joints]
    ds = [oracle.cardinality_distribution(*joint) for joint in joints]
    decided = decision.from_factors(Ps, factors, **objective)
    for given in (None, ds):
        display = ExpectedFDisplay.from_factors(
            Ps, factors, distributions=given, row=1, **objective
        )
        check_display(display, decided, 1)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_distribution_that_disagrees_with_P(objective):
    """The given d determines the value of the empty set, and the divisor of nonempty."""
    rng = np.random.default_rng(3)
    P = 0.2 * rng.random((2, 4, 3))
    d = rng.dirichlet(np.ones(4), 2)
    decided = decision.from_cardinalities(P, distribution=d, **objective)
    display = ExpectedFDisplay.from_factors([P], [range(4)], distributions=[d], row=1, **objective)
    check_display(display, decided, 1)
    parts, factors = [P, P[:, :2, :2]], [[0, 1, 2, 3], [4, 5]]
    ds = [d, rng.dirichlet(np.ones(3), 2)]
    decided = decision.from_factors(parts, factors, distributions=ds, **objective)
    check_display(
        ExpectedFDisplay.from_factors(parts, factors, distributions=ds, row=1, **objective),
        decided,
        1,
    )


def test_single_precision_is_accepted():
    rng = np.random.default_rng(4)
    P = oracle.cardinality_matrix(*oracle.random_joint(rng, 1, 5)).astype(np.float32)
    display = ExpectedFDisplay.from_factors([P], [range(5)])
    expected = decision.from_cardinalities(P).expected_f[0]
    assert display.values[display.size] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("factors", [[[0, 1], [2, 3], [4]], "single", "independent"])
def test_from_estimator(factors, objective, music):
    X, Y = music
    model = FGFMClassifier(factors=factors, method="tilted", random_state=0, **objective)
    model.fit(X[:200], Y[:200])
    decided = model.decide(X[200:202])
    for row in range(2):
        display = ExpectedFDisplay.from_estimator(model, X, row=200 + row)
        check_display(display, decided, row)


class NoProbability(BaseEstimator):
    """Estimates probability 0 for every label."""

    def fit(self, X, Y):
        self.shape_ = Y.shape[1], Y.shape[1]
        return self

    def estimate(self, X):
        return np.zeros((len(X), *self.shape_))


def test_rows_decided_by_label_frequencies(music):
    X, Y = music
    nonempty = Y.any(axis=1)
    X, Y = X[nonempty], Y[nonempty]
    model = FGFMClassifier(factors=[[0, 1, 2], [3, 4]], method=NoProbability()).fit(X, Y)
    check_display(ExpectedFDisplay.from_estimator(model, X), model.decide(X[:1]))
    display = DecisionDisplay.from_estimator(model, X)
    np.testing.assert_allclose(display.proba, Y.mean())


def test_pipeline(music):
    X, Y = music
    model = FGFMClassifier(factors="independent", random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(X[:200], Y[:200])
    scaled = pipeline[:-1].transform(X)
    display = ExpectedFDisplay.from_estimator(pipeline, X, row=7)
    check_display(display, pipeline[-1].decide(scaled), 7)
    alone = make_pipeline(FGFMClassifier(factors="independent", random_state=0)).fit(X, Y)
    assert len(ExpectedFDisplay.from_estimator(alone, X).values) == 6


def test_flat_labels(music):
    X, Y = music
    y = np.where(Y["sad"] == 1, "yes", "no")
    model = FGFMClassifier(random_state=0).fit(X[:200], y[:200])
    check_display(ExpectedFDisplay.from_estimator(model, X, row=3), model.decide(X), 3)


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        np.ndarray.tolist,
        sparse.csr_array,
        sparse.coo_matrix,
        lambda p: pd.DataFrame(p, index=[5, 6]),
    ],
)
def test_types_of_tables(form):
    proba = np.array([[0.7, 0.2, 0.0, 0.4], [0.1, 0.1, 0.9, 0.6]])
    display = ExpectedFDisplay.from_marginals(form(proba), row=1)
    check_display(display, decision.from_marginals(proba), 1)


def test_polars_and_pandas_features(music, classifier):
    pl = pytest.importorskip("polars")
    X, _ = music
    check_display(
        ExpectedFDisplay.from_marginals(pl.DataFrame([[0.7, 0.1], [0.2, 0.1]]), row=1),
        decision.from_marginals([[0.1, 0.1]]),
    )
    display = ExpectedFDisplay.from_estimator(classifier, pd.DataFrame(X[:3]), row=2)
    check_display(display, classifier.decide(X[:3]), 2)


def legend_texts(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_empty_set():
    p = np.full((1, 6), 0.12)
    display = ExpectedFDisplay.from_marginals(p)
    assert display.size == 0
    assert display.empty_.get_ydata() == pytest.approx(0.88**6)
    assert "chosen: empty set" in legend_texts(display)
    display = ExpectedFDisplay.from_marginals(p, nonempty=True)
    assert display.size == 6
    assert display.empty_ is None
    assert np.isnan(display.values[0])


def test_options():
    p = np.random.default_rng(5).random((1, 150)) ** 8
    display = ExpectedFDisplay.from_marginals(p, max_size=7)
    assert display.ax_.get_xlim()[1] < 8.0
    whole = ExpectedFDisplay(display.values, display.bounds, beta=2.0).plot()
    assert whole.ax_.get_ylabel() == "expected $F_{2}$"
    assert whole.chosen_.get_xdata()[0] == display.size  # by default the maximum
    # Sizes that are not shown are excluded by the bound.
    best = np.nanmax(display.values)
    assert display.bounds[int(whole.ax_.get_xlim()[1])] < best
    assert ExpectedFDisplay(display.values).plot().bound_ is None
    figure, ax = plt.subplots()
    assert ExpectedFDisplay.from_marginals(p, ax=ax).figure_ is figure


def test_plot_again_makes_a_new_figure(classifier, music):
    display = ExpectedFDisplay.from_estimator(classifier, music[0])
    before = display.ax_
    assert display.plot() is display
    assert display.ax_ is not before
    assert display.ax_.get_title() == before.get_title()


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (
            lambda: ExpectedFDisplay.from_marginals([[0.5], [0.1]], row=2),
            ValueError,
            r"^row is 2: proba has 2 rows, so it must be from 0 to 1$",
        ),
        (
            lambda: ExpectedFDisplay.from_marginals([[0.5, 0.1], [0.2, 1.2]], row=1),
            ValueError,
            r"^proba\[1, 1\] is 1.2: probabilities must lie in \[0, 1\]$",
        ),
        (
            lambda: ExpectedFDisplay.from_factors([[[[0.5]], [[-0.5]]]], [[0]], row=1),
            ValueError,
            r"^Ps\[0\]\[1, 0, 0\] is -0.5: probabilities must lie",
        ),
        (
            lambda: ExpectedFDisplay.from_factors([[[[0.5]]], [[[2.0]]]], [[0], [1]]),
            ValueError,
            r"^Ps\[1\]\[0, 0, 0\] is 2.0: probabilities must lie",
        ),
        (
            lambda: ExpectedFDisplay.from_marginals([0.5, 0.1]),
            ValueError,
            r"^proba has shape \(2,\): it must have 2 dimensions \(row, label\)$",
        ),
        (
            lambda: ExpectedFDisplay.from_marginals([[0.5], [0.0]], row=1, nonempty=True),
            ValueError,
            r"^row 1 has no probability for a non-empty label set, which nonempty=True assumes",
        ),
        (
            lambda: ExpectedFDisplay.from_marginals([[0.5]], beta=0.0),
            ValueError,
            r"^beta is 0.0: it must be a number greater than 0",
        ),
        (
            lambda: ExpectedFDisplay([0.1, 0.4], size=3).plot(),
            ValueError,
            r"^size is 3: it must be a size that values has a number for$",
        ),
        (
            lambda: ExpectedFDisplay([0.1]).plot(),
            ValueError,
            r"^values has shape \(1,\): it must have a number for each size from 0 to m$",
        ),
        (
            lambda: ExpectedFDisplay([0.1, np.nan]).plot(),
            ValueError,
            r"^values\[1\] is nan: there must be a number for each size from 1$",
        ),
        (
            lambda: ExpectedFDisplay([0.1, 0.4], [np.nan]).plot(),
            ValueError,
            r"^bounds has shape \(1,\): it must have 2 numbers, one for each size$",
        ),
        (
            lambda: ExpectedFDisplay.from_marginals([[0.5]], max_size=0),
            ValueError,
            r"^max_size is 0: it must be an integer",
        ),
        (
            lambda: ExpectedFDisplay.from_estimator(LogisticRegression(), [[1.0]]),
            TypeError,
            r"^estimator is a LogisticRegression: it must be an FGFMClassifier, or a pipeline",
        ),
        (
            lambda: ExpectedFDisplay.from_estimator(FGFMClassifier(), [[1.0]]),
            NotFittedError,
            r"^This FGFMClassifier instance is not fitted yet",
        ),
    ],
)
def test_invalid_arguments_raise(make, kind, message):
    with pytest.raises(kind, match=message):
        make()
