"""CalibrationDisplay: bins of expected and obtained F-measures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fgfm import FGFMClassifier, decision, f_measure
from fgfm.plotting import CalibrationDisplay


def legend_texts(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_from_estimator(music, classifier):
    X, Y = music
    display = CalibrationDisplay.from_estimator(classifier, X[200:], Y[200:], n_bins=4)
    labels, expected = classifier.decide(X[200:])
    obtained = f_measure(Y[200:], labels, per_row=True)
    np.testing.assert_array_equal(display.expected_f, expected)
    np.testing.assert_array_equal(display.obtained_f, obtained)
    bins = display.bins_
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


def test_objective_of_the_estimator_applies(music):
    X, Y = music
    model = FGFMClassifier(factors="independent", beta=2.0, zero_division=0.0, nonempty=False)
    model.fit(X[:200], Y[:200])
    display = CalibrationDisplay.from_estimator(model, X[200:], Y[200:])
    obtained = f_measure(Y[200:], model.predict(X[200:]), 2.0, zero_division=0.0, per_row=True)
    np.testing.assert_array_equal(display.obtained_f, obtained)
    assert display.ax_.get_xlabel() == "expected $F_{2}$"


def test_pipeline(music):
    X, Y = music
    model = FGFMClassifier(factors="independent", random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(X[:200], Y[:200])
    display = CalibrationDisplay.from_estimator(pipeline, X[200:], Y[200:])
    scaled = pipeline[:-1].transform(X[200:])
    np.testing.assert_array_equal(display.expected_f, pipeline[-1].expected_f(scaled))


def test_flat_labels(music):
    X, Y = music
    y = np.where(Y["sad"] == 1, "yes", "no")
    model = FGFMClassifier(random_state=0).fit(X[:200], y[:200])
    display = CalibrationDisplay.from_estimator(model, X[200:], y[200:])
    np.testing.assert_array_equal(display.obtained_f, model.predict(X[200:]) == y[200:])
    with pytest.raises(ValueError, match=r"^y\[0\] is .*'maybe'.*: the classes in fit were 'no'"):
        CalibrationDisplay.from_estimator(model, X[:1], ["maybe"])


def test_columns_in_another_order_raise(music, classifier):
    X, Y = music
    with pytest.raises(ValueError, match=r"^column 0 of y is 'warm' and that of fit is 'sad'"):
        CalibrationDisplay.from_estimator(classifier, X, Y[Y.columns[::-1]])


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


def test_few_or_equal_rows():
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


def test_expectation_above_one():
    """P that is not coherent can have an expected F-measure above 1."""
    display = CalibrationDisplay([0.5, 1.2], [0.5, 1.0]).plot()
    assert display.ax_.get_xlim()[1] == pytest.approx(1.2)


def test_rows_without_an_expectation():
    Y = [[1, 0], [0, 1], [1, 1]]
    with pytest.warns(UserWarning, match="expected_f NaN"):
        decided = decision.from_marginals([[0.9, 0.2], [0.0, 0.0], [0.5, 0.6]], nonempty=True)
    display = CalibrationDisplay.from_predictions(Y, *decided)
    assert legend_texts(display)[-1] == "2 rows; 1 with NaN left out"
    assert display.bins_.n_rows.tolist() == [2]
    known = decided.expected_f[[0, 2]]
    assert display.mean_difference_ == pytest.approx((np.array([1.0, 1.0]) - known).mean())


C = CalibrationDisplay


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: C([0.1, 0.4], [0.1, 0.2]).plot(n_bins=2.5), "n_bins is 2.5: it must be an int"),
        (lambda: C([0.1], [np.nan]).plot(), r"obtained_f\[0\] is nan: it must be in \[0, 1\]$"),
        (lambda: C([0.1], [1.5]).plot(), r"obtained_f\[0\] is 1.5: it must be in \[0, 1\]$"),
        (lambda: C([0.1, np.inf], [0, 0]).plot(), r"expected_f\[1\] is inf: .* non-negative num"),
        (lambda: C([np.nan], [0.1]).plot(), "expected_f is NaN in every row: at least one must"),
        (lambda: C.from_predictions([[1]], [[1]], [0.5, 0.5]), "expected_f has 2 rows and Y_true"),
        (lambda: C.from_estimator(FGFMClassifier(), [[1.0]], [[1]]), "This FGFMClassifier .* not"),
    ],
)
def test_invalid_arguments_raise(make, message):
    with pytest.raises(ValueError, match=f"^{message}"):  # NotFittedError is one
        make()
