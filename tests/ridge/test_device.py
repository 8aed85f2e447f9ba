"""Large models on a device of PyTorch, here its CPU, compared with those of NumPy."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fgfm import FGFMClassifier
from fgfm.ridge import RidgeLogistic, _arrays, _chunks, fit_ridge_logistic
from ridge_cases import large_rows


def assert_same_fits(X, targets, **params):
    """Assert that the fits on a device are those of NumPy; return them."""
    params = {"penalties": [0.01, 0.1, 1.0, 10.0], "random_state": 0, "held_out": True, **params}
    expected = fit_ridge_logistic(X, targets, **params)
    found = fit_ridge_logistic(X, targets, device="cpu", **params)
    for one, two in zip(found, expected, strict=True):
        assert one.penalty == two.penalty
        assert_array_equal(np.isinf(one.cv_losses), np.isinf(two.cv_losses))
        assert_allclose(one.cv_losses, two.cv_losses, rtol=1e-4, atol=1e-6)  # of the fits in folds
        assert_allclose(one.held_out, two.held_out, rtol=0, atol=1e-4)
        assert_allclose(one.coef, two.coef, rtol=1e-6, atol=1e-8)
        assert_allclose(one.intercept, two.intercept, rtol=1e-6, atol=1e-8)
    return found


@pytest.fixture
def rows():
    pytest.importorskip("torch", reason="PyTorch is not installed: fgfm[torch]")
    X, Y, s = large_rows()
    return X, [*Y.T, s]


@pytest.mark.parametrize("is_sparse", [True, False])
def test_fits_are_those_of_numpy(rows, is_sparse):
    X, targets = rows
    fits = assert_same_fits(X if is_sparse else X.toarray(), targets)
    assert len(fits[-1].classes) > 2
    weight = np.random.default_rng(0).integers(0, 3, len(targets[0]))
    assert_same_fits(X if is_sparse else X.toarray(), targets, sample_weight=weight)


def test_equal_rows_are_grouped(rows):
    X, targets = rows
    assert_same_fits(np.tile(X.toarray(), (3, 1)), [np.tile(y, 3) for y in targets])


@pytest.mark.parametrize("reference_class", [True, False])
def test_other_penalties(rows, reference_class):
    X, targets = rows
    assert_same_fits(X, targets, penalize_intercept=True, reference_class=reference_class)


def test_extra_columns(rows):
    X, targets = rows
    s = targets[-1].astype(float)
    assert_same_fits(X, targets[:-1], extra=[s, -s, s, s, -s, s])


def test_sparse_tensors_and_chunks(rows, monkeypatch):
    X, targets = rows
    monkeypatch.setattr(_arrays, "_DENSE_ENTRIES", 0)
    monkeypatch.setattr(_chunks, "_DEVICE_ENTRIES", 6 * X.shape[0])
    done = []
    assert_same_fits(X, targets, extra=targets[-1], progress=done.append)
    assert done[-4:] == [2, 4, 6, 7]


def test_estimators(rows):
    X, targets = rows
    Y, new = np.column_stack(targets[:-1]), X[:20]
    one, two = (RidgeLogistic(device=d, random_state=0).fit(X, Y[:, 0]) for d in ("cpu", None))
    assert isinstance(one.coef_, np.ndarray)
    assert_allclose(one.predict_proba(new), two.predict_proba(new), atol=1e-6)
    one, two = (
        FGFMClassifier(RidgeLogistic(device=d), random_state=0).fit(X, Y) for d in ("cpu", None)
    )
    assert_array_equal(one.predict(new), two.predict(new))


def test_unknown_devices_raise(rows):
    X, targets = rows
    for device in ("abacus", 1.5):
        with pytest.raises(ValueError, match=rf"device is {device!r}: it must be None or a dev"):
            fit_ridge_logistic(X, targets, device=device)


def test_a_device_needs_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    X, Y, _ = large_rows()
    with pytest.raises(ImportError, match=r"device='cuda' needs torch: pip install 'fgfm\[torch"):
        RidgeLogistic(device="cuda").fit(X, Y[:, 0])
