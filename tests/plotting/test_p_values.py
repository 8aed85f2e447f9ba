"""PValueDisplay: the matrix of p-values, ordered by factor."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from fgfm import FGFMClassifier, ILFCompo
from fgfm.plotting import PValueDisplay


def test_from_estimator(fitted):
    display = PValueDisplay.from_estimator(fitted)
    assert display.order_.tolist() == [1, 3, 0, 2]
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["b", "d", "a", "c"]
    shown = display.image_.get_array()
    np.testing.assert_allclose(shown[0, 2], fitted.p_values_[1, 0])
    assert np.ma.getmaskarray(shown).diagonal().all()
    (outline,) = display.outlines_
    assert outline.get_bbox().bounds == (-0.5, -0.5, 2.0, 2.0)
    smaller = np.fmin(fitted.p_values_, fitted.p_values_.T)
    assert display.level == pytest.approx(smaller[1, 3])
    assert display.colorbar_ is not None
    assert PValueDisplay.from_estimator(fitted, colorbar=False).colorbar_ is None


def test_from_classifier(network):
    model = FGFMClassifier(factors="ilf").fit(*network)
    matrix = PValueDisplay.from_estimator(model)
    assert [text.get_text() for text in matrix.ax_.get_xticklabels()] == ["b", "d", "a", "c"]
    np.testing.assert_array_equal(matrix.p_values, model.factor_finder_.p_values_)


def test_level_includes_edges_that_were_cut(network):
    X, Y = network
    whole, cut = ILFCompo().fit(X, Y), ILFCompo(max_factor_size=1).fit(X, Y)
    assert len(cut.factors_) == 4
    level = PValueDisplay.from_estimator(whole).level
    assert PValueDisplay.from_estimator(cut).level == level


def test_given_axes_and_options(fitted):
    figure, axes = plt.subplots(1, 2)
    matrix = PValueDisplay.from_estimator(fitted, ax=axes[1], names=False, title="two")
    assert matrix.ax_ is axes[1]
    assert matrix.figure_ is figure
    assert len(axes[1].get_xticks()) == 0
    assert axes[1].get_title() == "two"


def test_no_edges():
    display = PValueDisplay.from_p_values(np.ones((3, 3)))
    assert display.level is None
    assert display.outlines_ == []
    assert display.ax_.get_title() == "3 labels in 3 factors"


def test_names_are_written_if_they_fit(chains):
    p = chains([60, 30, 9] + [1] * 40)
    assert len(PValueDisplay.from_p_values(p).ax_.get_xticks()) == len(p)
    assert len(PValueDisplay(np.ones((210, 210)), [range(210)]).plot().ax_.get_xticks()) == 0


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"rule": "xor"}, ValueError, r"^rule is 'xor': it must be one of 'or', 'and'$"),
        ({"rule": None}, ValueError, r"^rule is None: it must be one of 'or', 'and'$"),
        ({"alpha": 5}, ValueError, r"^alpha is 5: it must be a number in \(0, 1\)$"),
        ({"alpha": "5"}, TypeError, r"^alpha is '5': it must be a number in \(0, 1\)$"),
        (
            {"correction": "holm"},
            ValueError,
            r"^correction is 'holm': it must be one of None, 'bonferroni', 'bh', 'by'$",
        ),
    ],
)
def test_invalid_options_raise(options, kind, message):
    with pytest.raises(kind, match=message):
        PValueDisplay.from_p_values(np.ones((3, 3)), **options)


def test_invalid_matrices_raise():
    with pytest.raises(ValueError, match=r"^p_values has shape \(1,\): it must be \(m, m\)$"):
        PValueDisplay.from_p_values([0.1])
    with pytest.raises(ValueError, match=r"^p_values has shape \(0, 0\): it must have at least"):
        PValueDisplay(np.empty((0, 0)), []).plot()
    with pytest.raises(NotFittedError):
        PValueDisplay.from_estimator(ILFCompo())
