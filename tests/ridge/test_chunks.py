"""Chunks of targets that are fitted together."""

from __future__ import annotations

import pickle

import numpy as np
from scipy import sparse

from fgfm._utils.folds import Fold
from fgfm.ridge._chunks import SharedInputs, fit_chunks, split_targets
from fgfm.ridge._design import Design
from fgfm.ridge._problem import RidgeSettings, RidgeTarget


def folds(n, number):
    return [Fold(np.arange(n), np.arange(n))] * number


def test_small_models_are_chunks_of_their_own():
    design = Design(np.random.default_rng(0).normal(size=(30, 4)), np.ones(30), centred=True)
    target = RidgeTarget(np.arange(30) % 2, 2, None, folds(30, 2))
    assert split_targets(design, [target] * 3) == [[0], [1], [2]]


def test_large_models_share_chunks_with_their_like():
    design = Design(sparse.csr_matrix((400, 500)), np.ones(400), centred=True)
    shared = folds(400, 2)
    two = RidgeTarget(np.arange(400) % 2, 2, None, shared)
    three = RidgeTarget(np.arange(400) % 3, 3, None, shared)
    with_extra = two._replace(extra=np.ones(400))
    other_extra = two._replace(extra=np.zeros(400))
    other_folds = two._replace(folds=folds(400, 2))
    targets = [two, three, with_extra, other_folds, other_extra, two]
    assert split_targets(design, targets) == [[0, 5], [1], [2, 4], [3]]


def test_chunks_are_smaller_with_more_folds():
    n, p = 400, 1 << 17
    design = Design(sparse.csr_matrix((n, p)), np.ones(n), centred=True)
    code = np.arange(n) % 2
    sizes = []
    for number in (2, 3, 6, 30):
        shared = folds(n, number)
        sizes.append(len(split_targets(design, [RidgeTarget(code, 2, None, shared)] * 64)[0]))
    assert sizes == [32, 32, 16, 3]


def test_packed_targets_of_another_process_give_the_same_fits():
    rng = np.random.default_rng(0)
    design = Design(rng.normal(size=(30, 4)), np.ones(30), centred=True)
    shared = [Fold(np.arange(20), np.arange(20, 30))]
    targets = [RidgeTarget(rng.integers(0, 2, 30), 2, None, shared) for _ in range(2)]
    settings = RidgeSettings(np.array([1.0, 0.1]), False, False, 100, 1e-5)
    inputs = SharedInputs(design, settings, targets)
    packed = [[inputs.pack(target)] for target in targets]
    assert all(target.folds == [] for (target,) in packed)
    here = fit_chunks(inputs, packed)
    there = fit_chunks(*pickle.loads(pickle.dumps((inputs, packed))))
    for one, two in zip(here, there, strict=True):
        assert (one.coef == two.coef).all()
        assert (one.losses == two.losses).all()
