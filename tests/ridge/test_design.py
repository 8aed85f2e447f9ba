"""The design matrix: groups of equal rows, and copies in other processes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from fgfm.ridge import fit_ridge_logistic
from fgfm.ridge._design import Design, _equal_rows
from ridge_cases import binary_rows


@pytest.mark.parametrize("n_values", [2, 300, 900])
def test_groups_are_those_of_numpy(n_values):
    X = np.random.default_rng(0).integers(0, n_values, (2000, 1)).astype(float)
    X = np.column_stack([X, -X])
    of_row, first = _equal_rows(X)
    _, at, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
    assert sorted(first) == sorted(at)
    assert len({*zip(of_row, inverse.ravel(), strict=True)}) == len(at)


def test_mostly_different_rows_are_not_grouped():
    assert _equal_rows(np.arange(6.0)[:, None])[0] is None
    assert _equal_rows(np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0])[:, None])[0] is not None


def test_equal_rows_count_as_their_number():
    X, y = binary_rows(60, 3, 3)
    folds = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    (grouped,) = fit_ridge_logistic(X, [y], cv=folds)
    apart = X + 1e-13 * np.random.default_rng(0).normal(size=X.shape)
    assert Design(apart, np.ones(60), centred=True).grouped(None).of_row.max() == 59
    (model,) = fit_ridge_logistic(apart, [y], cv=folds)
    assert model.penalty == grouped.penalty
    np.testing.assert_allclose(model.cv_losses, grouped.cv_losses, atol=1e-8)
    np.testing.assert_allclose(model.coef, grouped.coef, atol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_pickled_design_gives_the_same_rows(form):
    X, s = binary_rows(60, 4, 4)
    design = Design(form(X), np.ones(60), centred=True)
    extra = s.astype(float)
    groups, again = design.grouped(extra), pickle.loads(pickle.dumps(design)).grouped(extra)
    assert (groups.of_row == again.of_row).all()
    assert (groups.mean == again.mean).all()
