"""Fixtures of all displays: figures are closed, and small estimators are fitted once."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_multilabel_classification

mpl.use("Agg")

import matplotlib.pyplot as plt

from fgfm import FGFMClassifier, ILFCompo


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def music():
    """Return features and a data frame of five labels; 200 of the 300 rows are for training."""
    X, Y = make_multilabel_classification(
        300, n_features=6, n_classes=5, n_labels=2, random_state=0
    )
    return X, pd.DataFrame(Y, columns=["sad", "calm", "loud", "quick", "warm"])


@pytest.fixture(scope="session")
def classifier(music):
    X, Y = music
    return FGFMClassifier(factors=[[0, 1], [2, 3], [4]], random_state=0).fit(X[:200], Y[:200])


@pytest.fixture(scope="session")
def network():
    """Return discrete features, and labels with the factors {a}, {b, d}, {c}."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (800, 3))
    Y = X[:, [0, 0, 1, 2]] ^ (rng.random((800, 4)) < 0.2)
    Y[:, 3] |= Y[:, 1]
    return X, pd.DataFrame(Y.astype(int), columns=["a", "b", "c", "d"])


@pytest.fixture(scope="session")
def fitted(network):
    return ILFCompo().fit(*network)


@pytest.fixture
def chains():
    """Return a function that makes p-values of labels in chains, in a random order."""

    def make(sizes):
        rng = np.random.default_rng(0)
        m = sum(sizes)
        p = rng.uniform(0.05, 1.0, (m, m))
        start = 0
        for size in sizes:
            for k in range(start + 1, start + size):
                p[k, k - 1] = 10.0 ** -rng.uniform(6.0, 14.0)
            start += size
        order = rng.permutation(m)
        p = p[np.ix_(order, order)]
        np.fill_diagonal(p, np.nan)
        return p

    return make
