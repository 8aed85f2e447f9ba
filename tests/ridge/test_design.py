"""The design matrix: groups of equal rows, rotation, and subsets that threads share."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest

from fgfm.ridge._design import Design, group_rows
from ridge_cases import sparse_rows


def test_equal_rows_are_grouped():
    X = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [-0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    assert (group_rows(X.T, 6) == [0, 1, 0, 0, 1, 1]).all()


def test_mostly_different_rows_are_not_grouped():
    assert group_rows(np.arange(6.0)[None], 6) is None


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("shape", [(40, 7), (12, 30)])
@pytest.mark.parametrize("extra", [False, True])
def test_coefficients_give_the_same_logits(centred, shape, extra):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) + 3.0
    X[1] = X[0]
    column = rng.integers(0, 2, shape[0]).astype(float) if extra else None
    groups = Design(X, np.ones(shape[0]), centred=centred).grouped(column)
    theta = rng.normal(size=(groups.Z.shape[1], 2))
    coef, intercept = groups.coefficients(theta)
    wide = X if column is None else np.column_stack([X, column])
    np.testing.assert_allclose(
        (groups.Z @ theta)[groups.of_row], wide @ coef.T + intercept, atol=1e-9
    )
    if shape[1] > shape[0]:  # rotated: weights of the same length, in fewer columns
        assert groups.Z.shape[1] <= shape[0] + 1
        np.testing.assert_allclose((coef**2).sum(axis=1), (theta[1:] ** 2).sum(axis=0))


def test_subsets_are_shared_while_in_use():
    X, _, _ = sparse_rows()
    design = Design(X, np.ones(X.shape[0]), centred=True)
    train = np.arange(60)
    groups = design.sparse_rows()
    subset = design.subset(groups, train)
    assert subset.Z.shape[0] == 60
    assert design.subset(groups, train) is subset
    assert design.subset(groups, train.copy()) is not subset
    del subset
    gc.collect()
    assert len(design._subsets) == 0


def test_subset_that_keeps_all_groups_makes_no_copy():
    X, _, _ = sparse_rows()
    design = Design(X, np.ones(X.shape[0]), centred=True)
    groups = design.sparse_rows()
    subset = design.subset(groups, np.arange(60), keep_all=True)
    assert subset.Z is groups.Z
    assert (subset.weight == (np.arange(X.shape[0]) < 60)).all()


def test_pickled_design_gives_the_same_rows():
    X, _, s = sparse_rows()
    design = Design(X, np.ones(X.shape[0]), centred=True)
    groups = design.grouped(s.astype(float))
    again = pickle.loads(pickle.dumps(design)).grouped(s.astype(float))
    assert (groups.Z == again.Z).all()
