"""Pictures of decisions: what is drawn is what was decided, and it can be read."""

from __future__ import annotations

import sys
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import oracle

mpl.use("Agg")

import matplotlib.pyplot as plt

import fgfm.plotting
from cases import BETAS, MARGINALS, ZERO_DIVISIONS
from fgfm import FGFMClassifier, cardinality, decision, f_measure
from fgfm.plotting import CalibrationDisplay, DecisionDisplay, ExpectedFDisplay

OBJECTIVES = [
    {"beta": 1.0, "zero_division": 1.0, "nonempty": False},
    {"beta": 0.5, "zero_division": 0.4, "nonempty": False},
    {"beta": 2.0, "zero_division": 0.0, "nonempty": False},
    {"beta": 1.7, "zero_division": 1.0, "nonempty": True},
]
LONG = [f"regulation of the transport of protein {k} across the membrane" for k in range(150)]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def some_data():
    X, Y = make_multilabel_classification(
        300, n_features=6, n_classes=5, n_labels=2, random_state=0
    )
    return X, pd.DataFrame(Y, columns=["sad", "calm", "loud", "quick", "warm"])


@pytest.fixture(scope="module")
def fitted(some_data):
    X, Y = some_data
    return FGFMClassifier(factors=[[0, 1], [2, 3], [4]], random_state=0).fit(X[:200], Y[:200])


def best_of_each_size(joint, beta, zero_division, nonempty):
    """Give V_0 .. V_m of each row by enumeration of all sets."""
    value = oracle.expected_f(joint, beta, zero_division, nonempty)  # (n, 2^m)
    m = joint[0].shape[1]
    size = oracle.all_labelsets(m).sum(axis=1)
    best = np.stack([value[:, size == k].max(axis=1) for k in range(m + 1)], axis=1)
    if nonempty:
        best[:, 0] = np.nan
    return best


def bound_of_each_size(joint, beta, nonempty):
    """Give T(1) .. T(m) of each row by its definition."""
    d = oracle.cardinality_distribution(*joint)  # (n, m + 1)
    s, k = np.arange(d.shape[1]), np.arange(1, d.shape[1])
    T = d @ ((1.0 + beta**2) * s[:, None] / (beta**2 * s[:, None] + k))
    return T / d[:, 1:].sum(axis=1, keepdims=True) if nonempty else T


def check_display(display, decided, row=0, best=None, bound=None):
    """Compare a curve with the decision, and with what enumeration gives."""
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
    if best is not None:
        np.testing.assert_allclose(display.values, best[row], rtol=1e-11, atol=1e-300)
    if bound is not None:
        np.testing.assert_allclose(display.bounds[1:], bound[row], rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("how", OBJECTIVES)
@pytest.mark.parametrize("case", MARGINALS)
def test_sizes_of_marginals(case, how):
    proba = MARGINALS[case][:3]
    proba = proba[proba.any(axis=1)]
    joint = oracle.independent_joint(proba)
    best = best_of_each_size(joint, **how)
    bound = bound_of_each_size(joint, how["beta"], how["nonempty"])
    decided = decision.from_marginals(proba, **how)
    for row in range(len(proba)):
        display = ExpectedFDisplay.from_marginals(proba, row=row, **how)
        check_display(display, decided, row, best, bound)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("zero_division", ZERO_DIVISIONS)
@pytest.mark.parametrize("nonempty", [False, True])
def test_sizes_of_any_distribution(beta, zero_division, nonempty):
    how = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    joint = oracle.random_joint(np.random.default_rng(1), 2, 5)
    best = best_of_each_size(joint, **how)
    bound = bound_of_each_size(joint, beta, nonempty)
    P = oracle.cardinality_matrix(*joint)
    decided = decision.from_cardinalities(P, **how)
    for row in range(2):
        display = ExpectedFDisplay.from_cardinalities(P, row=row, **how)
        check_display(display, decided, row, best, bound)


@pytest.mark.parametrize("how", OBJECTIVES)
@pytest.mark.parametrize("factors", [[[3, 0], [1, 4, 2], [5]], [[1], [0], [2]], [[2, 0, 1]]])
def test_sizes_of_factors(factors, how):
    rng = np.random.default_rng(2)
    joints = [oracle.random_joint(rng, 2, len(factor)) for factor in factors]
    joint = oracle.product_joint(joints, factors)
    best = best_of_each_size(joint, **how)
    bound = bound_of_each_size(joint, how["beta"], how["nonempty"])
    Ps = [oracle.cardinality_matrix(*one) for one in joints]
    ds = [oracle.cardinality_distribution(*one) for one in joints]
    decided = decision.from_factors(Ps, factors, **how)
    for row in range(2):
        for given in (None, ds):
            display = ExpectedFDisplay.from_factors(
                Ps, factors, distributions=given, row=row, **how
            )
            check_display(display, decided, row, best, bound)


@pytest.mark.parametrize("how", OBJECTIVES)
def test_sizes_where_a_distribution_disagrees(how):
    """A model's own d says what the empty set is worth, and what nonempty divides by."""
    rng = np.random.default_rng(3)
    P = 0.2 * rng.random((2, 4, 3))
    d = rng.dirichlet(np.ones(4), 2)
    decided = decision.from_cardinalities(P, distribution=d, **how)
    display = ExpectedFDisplay.from_cardinalities(P, distribution=d, row=1, **how)
    check_display(display, decided, 1)
    parts, factors = [P, P[:, :2, :2]], [[0, 1, 2, 3], [4, 5]]
    ds = [d, rng.dirichlet(np.ones(3), 2)]
    decided = decision.from_factors(parts, factors, distributions=ds, **how)
    check_display(
        ExpectedFDisplay.from_factors(parts, factors, distributions=ds, row=1, **how), decided, 1
    )


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_sizes_agree_between_routes(beta):
    """Many labels: quadrature for marginals and factors, sums over s for P."""
    p = np.random.default_rng(4).random((1, 150)) ** 6
    curve = ExpectedFDisplay.from_marginals(p, beta=beta)
    check_display(curve, decision.from_marginals(p, beta=beta))
    P = cardinality.from_marginals(p)
    other = ExpectedFDisplay.from_cardinalities(P, beta=beta)
    np.testing.assert_allclose(other.values, curve.values, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(other.bounds, curve.bounds, rtol=1e-11)
    halves = [np.arange(0, 150, 2), np.arange(1, 150, 2)]
    Ps = [cardinality.from_marginals(p[:, half]) for half in halves]
    other = ExpectedFDisplay.from_factors(Ps, halves, beta=beta)
    np.testing.assert_allclose(other.values, curve.values, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("how", OBJECTIVES)
@pytest.mark.parametrize("factors", [[[0, 1], [2, 3], [4]], "single", "independent"])
def test_sizes_from_estimator(factors, how, some_data):
    X, Y = some_data
    model = FGFMClassifier(factors=factors, method="tilted", random_state=0, **how)
    model.fit(X[:200], Y[:200])
    decided = model.decide(X[200:204])
    for row in range(4):
        display = ExpectedFDisplay.from_estimator(model, X, row=200 + row)
        check_display(display, decided, row)
        shown = DecisionDisplay.from_estimator(model, X, row=200 + row)
        np.testing.assert_array_equal(shown.labels, decided.labels[row])
        np.testing.assert_allclose(shown.proba, model.predict_proba(X[200 + row :][:1])[0])
        assert shown.expected_f == pytest.approx(decided.expected_f[row], rel=1e-12)
        assert shown.beta == how["beta"]


class Silent(BaseEstimator):
    """Gives no label any probability."""

    def fit(self, X, Y):
        self.shape_ = Y.shape[1], Y.shape[1]
        return self

    def estimate(self, X):
        return np.zeros((len(X), *self.shape_))


def test_rows_decided_by_frequencies(some_data):
    X, Y = some_data
    seen = Y.any(axis=1)
    X, Y = X[seen], Y[seen]
    model = FGFMClassifier(factors=[[0, 1, 2], [3, 4]], method=Silent()).fit(X, Y)
    check_display(ExpectedFDisplay.from_estimator(model, X), model.decide(X[:1]))
    display = DecisionDisplay.from_estimator(model, X)
    np.testing.assert_allclose(display.proba, Y.mean())


def test_pipeline(some_data):
    X, Y = some_data
    model = FGFMClassifier(factors="independent", random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(X[:200], Y[:200])
    scaled = pipeline[:-1].transform(X)
    display = ExpectedFDisplay.from_estimator(pipeline, X, row=7)
    check_display(display, pipeline[-1].decide(scaled), 7)
    other = CalibrationDisplay.from_estimator(pipeline, X[200:], Y[200:])
    np.testing.assert_array_equal(other.expected_f, pipeline[-1].expected_f(scaled[200:]))
    alone = make_pipeline(FGFMClassifier(factors="independent", random_state=0)).fit(X, Y)
    assert DecisionDisplay.from_estimator(alone, X).proba.shape == (5,)


def test_kinds_of_tables(some_data, fitted):
    proba = np.array([[0.7, 0.2, 0.0, 0.4], [0.1, 0.1, 0.9, 0.6]])
    names = ["a", "b", "c", "d"]
    tables = [proba, proba.tolist(), sparse.csr_array(proba), sparse.coo_matrix(proba)]
    tables.append(pd.DataFrame(proba, columns=names, index=[5, 6]))
    pl = pytest.importorskip("polars")
    tables.append(pl.DataFrame(proba, schema=names))
    for table in tables:
        curve = ExpectedFDisplay.from_marginals(table, row=1)
        check_display(curve, decision.from_marginals(proba), 1)
        display = DecisionDisplay.from_marginals(table, row=1)
        assert display.order_.tolist() == [2, 3, 0, 1]
        ticks = [text.get_text() for text in display.ax_.get_yticklabels()]
        named = names if hasattr(table, "columns") else ["0", "1", "2", "3"]
        assert ticks == [named[k] for k in display.order_]
        if not isinstance(table, list):
            display = DecisionDisplay.from_decision(table, decision.from_marginals(proba), row=1)
            np.testing.assert_array_equal(display.labels, [0, 0, 1, 1])
    X, _ = some_data
    frame = pd.DataFrame(X[:3])
    assert ExpectedFDisplay.from_estimator(fitted, frame, row=2).size >= 0


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
    display = DecisionDisplay.from_marginals(p)
    assert display.ax_.get_title() == "expected $F_{1}$ = 0.464 with 0 of 6 labels"
    display.figure_.draw_without_rendering()
    assert display.ax_.get_window_extent().x0 < 0.1 * display.figure_.bbox.width


def legend_texts(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_options_of_sizes():
    p = np.random.default_rng(5).random((1, 150)) ** 8
    display = ExpectedFDisplay.from_marginals(p, max_size=7, legend=False, bound=False, title="t")
    assert display.ax_.get_xlim()[1] < 8.0
    assert display.ax_.get_legend() is None
    assert display.bound_ is None
    assert display.ax_.get_title() == "t"
    whole = ExpectedFDisplay(display.values, display.bounds, beta=2.0).plot()
    assert whole.ax_.get_ylabel() == "expected $F_{2}$"
    assert whole.chosen_.get_xdata()[0] == display.size  # the highest, where it is not told
    # What is not shown is beyond the size where the bound rules every set out.
    best = np.nanmax(display.values)
    assert display.bounds[int(whole.ax_.get_xlim()[1])] < best
    assert ExpectedFDisplay(display.values).plot().bound_ is None
    figure, ax = plt.subplots()
    assert ExpectedFDisplay.from_marginals(p, ax=ax).figure_ is figure


def test_chosen_labels_stand_out():
    proba = [[0.8, 0.1, 0.45, 0.4, 0.05]]
    display = DecisionDisplay.from_marginals(proba)
    assert display.labels.tolist() == [1, 0, 1, 1, 0]
    assert display.chosen_.get_xdata().tolist() == [0.8, 0.45, 0.4]
    assert display.others_.get_xdata().tolist() == [0.1, 0.05]
    assert display.chosen_.get_markerfacecolor() == "C0"
    assert display.others_.get_markerfacecolor() == "white"
    assert display.text_ is None
    assert legend_texts(display) == ["chosen", "not chosen"]
    title = DecisionDisplay([0.3], [1]).plot().ax_.get_title()
    assert title == "1 of 1 label chosen"


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
    # Chosen labels are shown whatever their number.
    assert len(DecisionDisplay(p, np.ones(150)).plot(max_labels=5).order_) == 150
    assert len(DecisionDisplay(p, labels).plot().order_) == 30


def shown_ticks(axis):
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]


@pytest.mark.parametrize("m", [6, 20, 150])
@pytest.mark.parametrize("names", ["short", "long"])
@pytest.mark.parametrize(
    "figure",
    [None, {"figsize": (4, 3)}, {"figsize": (4, 3), "layout": "constrained"}, {}],
)
def test_everything_can_be_read(m, names, figure):
    """Nothing is cut off, and no two names overlap."""
    p = np.random.default_rng(m).random((1, m)) ** (m / 6)
    given = LONG[:m] if names == "long" else [f"label{k}" for k in range(m)]
    for make in (
        lambda ax: DecisionDisplay.from_marginals(p, label_names=given, ax=ax),
        lambda ax: ExpectedFDisplay.from_marginals(p, ax=ax),
        lambda ax: CalibrationDisplay(p[0], p[0]).plot(ax),
    ):
        ax = None if figure is None else plt.subplots(**figure)[1]
        display = make(ax)
        display.figure_.draw_without_rendering()
        ax, page = display.ax_, display.figure_.bbox
        texts = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_legend().get_texts()]
        texts += [*ax.texts, *shown_ticks(ax.xaxis), *shown_ticks(ax.yaxis)]
        for text in texts:
            if text.get_text():
                box = text.get_window_extent()
                assert page.x0 - 1 <= box.x0, text
                assert box.x1 <= page.x1 + 1, text
                assert page.y0 - 1 <= box.y0, text
                assert box.y1 <= page.y1 + 1, text
        boxes = [text.get_window_extent() for text in shown_ticks(ax.yaxis)]
        for first, second in pairwise(boxes):
            assert abs(first.y0 - second.y0) > 0.8 * min(first.height, second.height)
        assert not ax.title.get_window_extent().overlaps(ax.get_legend().get_window_extent())


def test_names_in_a_grid_keep_out_of_the_neighbour():
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    DecisionDisplay.from_marginals([[0.6, 0.3]], label_names=LONG[:2], ax=right)
    figure.draw_without_rendering()
    edge = left.get_window_extent().x1
    assert all(text.get_window_extent().x0 > edge for text in right.get_yticklabels())


def test_names_are_shortened():
    names = ["costs $5 or $6", "a\nb", *[f"{'x' * 40}{k}{'y' * 40}" for k in range(2)]]
    display = DecisionDisplay([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 0], label_names=names).plot()
    shown = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert shown[:2] == ["costs $5 or $6", "a b"]
    assert shown[2].startswith("xxx")
    assert shown[2].endswith("y (2)")
    assert shown[3].endswith("y (3)")
    display.figure_.canvas.draw()  # no name is read as mathematics


def test_flat_labels(some_data):
    X, Y = some_data
    y = np.where(Y["sad"] == 1, "yes", "no")
    model = FGFMClassifier(random_state=0).fit(X[:200], y[:200])
    display = DecisionDisplay.from_estimator(model, X, row=3)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["yes"]
    np.testing.assert_allclose(display.proba, model.predict_proba(X[3:4])[0, 1:])
    check_display(ExpectedFDisplay.from_estimator(model, X, row=3), model.decide(X), 3)
    display = CalibrationDisplay.from_estimator(model, X[200:], y[200:])
    np.testing.assert_array_equal(display.obtained_f, model.predict(X[200:]) == y[200:])
    with pytest.raises(ValueError, match=r"^y\[0\] is .*'maybe'.*: the classes in fit were 'no'"):
        CalibrationDisplay.from_estimator(model, X[:1], ["maybe"])


def test_label_names_from_estimator(some_data, fitted):
    X, Y = some_data
    display = DecisionDisplay.from_estimator(fitted, X, row=9)
    shown = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert shown == [Y.columns[k] for k in display.order_]
    display = DecisionDisplay.from_estimator(fitted, X, label_names=list("vwxyz"))
    assert {text.get_text() for text in display.ax_.get_yticklabels()} == set("vwxyz")


def test_calibration_from_estimator(some_data, fitted):
    X, Y = some_data
    display = CalibrationDisplay.from_estimator(fitted, X[200:], Y[200:], n_bins=4)
    labels, expected = fitted.decide(X[200:])
    obtained = f_measure(Y[200:], labels, per_row=True)
    np.testing.assert_array_equal(display.expected_f, expected)
    np.testing.assert_array_equal(display.obtained_f, obtained)
    bins = display.bins_
    assert len(bins.n_rows) == 4
    assert bins.n_rows.tolist() == [25, 25, 25, 25]
    first = np.argsort(expected)[:25]
    assert bins.expected[0] == pytest.approx(expected[first].mean())
    assert bins.obtained[0] == pytest.approx(obtained[first].mean())
    assert bins.standard_error[0] == pytest.approx(obtained[first].std(ddof=1) / 5.0)
    assert display.mean_difference_ == pytest.approx((obtained - expected).mean())
    error = (obtained - expected).std(ddof=1) / 10.0
    mean = f"{display.mean_difference_:+.3f}".replace("-", "\N{MINUS SIGN}")
    assert display.ax_.get_title() == f"obtained minus expected: {mean} ± {error:.3f}"
    points = np.asarray(display.line_.lines[0].get_xydata())
    np.testing.assert_allclose(points, np.column_stack([bins.expected, bins.obtained]))
    assert legend_texts(display) == ["mean and standard error", "as expected", "100 rows"]
    assert display.diagonal_.get_xydata().tolist() == [[0.0, 0.0], [1.0, 1.0]]
    model = FGFMClassifier(factors="independent", beta=2.0, zero_division=0.0, nonempty=False)
    model.fit(X[:200], Y[:200])
    display = CalibrationDisplay.from_estimator(model, X[200:], Y[200:])
    obtained = f_measure(Y[200:], model.predict(X[200:]), 2.0, zero_division=0.0, per_row=True)
    np.testing.assert_array_equal(display.obtained_f, obtained)
    assert display.ax_.get_xlabel() == "expected $F_{2}$"


def test_exact_probabilities_are_calibrated():
    rng = np.random.default_rng(7)
    p = rng.beta(0.4, 1.0, (4000, 6))
    Y = (rng.random(p.shape) < p).astype(int)
    labels, expected = decision.from_marginals(p)
    display = CalibrationDisplay.from_predictions(Y, sparse.csr_array(labels), expected)
    assert abs(display.mean_difference_) < 0.015
    bins = display.bins_
    assert (np.abs(bins.obtained - bins.expected) < 4.0 * bins.standard_error).all()
    heights = [bar.get_height() for bar in display.histogram_]
    assert max(heights) == pytest.approx(0.2)


def test_calibration_of_few_or_equal_rows():
    same = CalibrationDisplay(np.full(50, 0.6), np.linspace(0.0, 1.0, 50)).plot()
    assert same.bins_.n_rows.tolist() == [50]
    assert same.bins_.expected == pytest.approx([0.6])
    one = CalibrationDisplay([0.6], [0.5]).plot()
    assert np.isnan(one.bins_.standard_error).all()
    assert one.ax_.get_title() == "obtained minus expected: \N{MINUS SIGN}0.100"
    one.figure_.canvas.draw()
    assert CalibrationDisplay(np.linspace(0, 1, 7), np.ones(7)).plot().bins_.n_rows.tolist() == [7]
    two = CalibrationDisplay([0.4] * 30 + [0.8] * 10, np.ones(40)).plot()
    assert two.bins_.n_rows.tolist() == [30, 10]
    above = CalibrationDisplay(
        [0.5, 1.2], [0.5, 1.0]
    ).plot()  # of probabilities that do not add up
    assert above.ax_.get_xlim()[1] == pytest.approx(1.2)


def test_rows_without_an_expectation():
    Y = [[1, 0], [0, 1], [1, 1]]
    with pytest.warns(UserWarning, match="they get the empty set and expected_f NaN"):
        decided = decision.from_marginals([[0.9, 0.2], [0.0, 0.0], [0.5, 0.6]], nonempty=True)
    display = CalibrationDisplay.from_predictions(Y, *decided)
    assert legend_texts(display)[-1] == "2 rows; 1 of NaN left out"
    assert display.bins_.n_rows.tolist() == [2]
    known = decided.expected_f[[0, 2]]
    assert display.mean_difference_ == pytest.approx((np.array([1.0, 1.0]) - known).mean())


def test_displays_can_be_drawn_again(fitted, some_data):
    X, Y = some_data
    for display in (
        ExpectedFDisplay.from_estimator(fitted, X),
        DecisionDisplay.from_estimator(fitted, X),
        CalibrationDisplay.from_estimator(fitted, X, Y),
    ):
        before = display.ax_
        assert display.plot() is display
        assert display.ax_ is not before
        assert display.ax_.get_title() == before.get_title()


@pytest.mark.parametrize(
    ("make", "kind", "sentence"),
    [
        (
            lambda: ExpectedFDisplay.from_marginals([[0.5], [0.1]], row=2),
            ValueError,
            r"^row is 2: proba has 2 rows, so it must be from 0 to 1$",
        ),
        (
            lambda: DecisionDisplay.from_marginals([[0.5]], row=0.0),
            TypeError,
            r"^row is 0.0: it must be the number of a row, an integer$",
        ),
        (
            lambda: ExpectedFDisplay.from_marginals([[0.5, 0.1], [0.2, 1.2]], row=1),
            ValueError,
            r"^proba\[1, 1\] is 1.2: probabilities must lie in \[0, 1\]$",
        ),
        (
            lambda: ExpectedFDisplay.from_cardinalities([[[0.5]], [[-0.5]]], row=1),
            ValueError,
            r"^P\[1, 0, 0\] is -0.5: probabilities must lie",
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
            r"^row 1 has no probability for a non-empty label set, which nonempty=True supposes",
        ),
        (
            lambda: ExpectedFDisplay.from_marginals([[0.5]], beta=0.0),
            ValueError,
            r"^beta is 0.0: it must be a number greater than 0",
        ),
        (
            lambda: ExpectedFDisplay([0.1, 0.4], size=3).plot(),
            ValueError,
            r"^size is 3: it must be one that values has a number for$",
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
            r"^max_size is 0: it must be an integer of at least 1$",
        ),
        (
            lambda: DecisionDisplay([0.1, 1.4], [0, 1]).plot(),
            ValueError,
            r"^proba\[1\] is 1.4: probabilities must lie in \[0, 1\]$",
        ),
        (
            lambda: DecisionDisplay([0.1, 0.4], [0, 2]).plot(),
            ValueError,
            r"^labels\[1\] is 2.0: labels must be 0 or 1$",
        ),
        (
            lambda: DecisionDisplay([0.1, 0.4], [0, 1, 1]).plot(),
            ValueError,
            r"^labels has shape \(3,\): it must have 2 numbers, one for each label$",
        ),
        (
            lambda: DecisionDisplay([0.1, 0.4], [0, 1], label_names=["a"]).plot(),
            ValueError,
            r"^label_names has 1 names: it must have 2, one per label$",
        ),
        (
            lambda: DecisionDisplay([0.1, 0.4], [0, 1]).plot(max_labels=0),
            ValueError,
            r"^max_labels is 0: it must be an integer of at least 1$",
        ),
        (
            lambda: CalibrationDisplay([0.1, 0.4], [0.1, 0.2]).plot(n_bins=2.5),
            ValueError,
            r"^n_bins is 2.5: it must be an integer of at least 1$",
        ),
        (
            lambda: CalibrationDisplay([0.1, 0.4], [0.1, np.nan]).plot(),
            ValueError,
            r"^obtained_f\[1\] is nan: it must be a number in \[0, 1\]$",
        ),
        (
            lambda: CalibrationDisplay([0.1, np.inf], [0.1, 0.2]).plot(),
            ValueError,
            r"^expected_f\[1\] is inf: it must be a number from 0, or NaN$",
        ),
        (
            lambda: CalibrationDisplay([np.nan], [0.1]).plot(),
            ValueError,
            r"^expected_f is NaN in every row: one must have an expectation$",
        ),
        (
            lambda: CalibrationDisplay.from_predictions([[1]], [[1]], [0.5, 0.5]),
            ValueError,
            r"^expected_f has 2 rows and Y_true has 1: they must have the same number of rows$",
        ),
        (
            lambda: ExpectedFDisplay.from_estimator(LogisticRegression(), [[1.0]]),
            TypeError,
            r"^estimator is a LogisticRegression: it must be an FGFMClassifier, or a pipeline",
        ),
        (
            lambda: DecisionDisplay.from_estimator(make_pipeline(LogisticRegression()), [[1.0]]),
            TypeError,
            r"^estimator is a Pipeline that ends with a LogisticRegression: it must be",
        ),
    ],
)
def test_refusals(make, kind, sentence):
    with pytest.raises(kind, match=sentence):
        make()


def test_not_fitted():
    for display in (ExpectedFDisplay, DecisionDisplay):
        with pytest.raises(NotFittedError):
            display.from_estimator(FGFMClassifier(), [[1.0]])
    with pytest.raises(NotFittedError):
        CalibrationDisplay.from_estimator(FGFMClassifier(), [[1.0]], [[1]])


@pytest.mark.parametrize("display", ["CalibrationDisplay", "DecisionDisplay", "ExpectedFDisplay"])
def test_without_matplotlib(display, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ImportError, match=f"^{display} needs matplotlib: pip install 'fgfm\\[plot"
    ):
        getattr(fgfm.plotting, display)([0.1, 0.5], [0.0, 1.0]).plot()
