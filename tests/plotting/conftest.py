"""Fixtures of all displays: figures are closed, and small estimators are fitted once."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
import pytest
from sklearn.datasets import make_multilabel_classification

mpl.use("Agg")

import matplotlib.pyplot as plt

from fgfm import FGFMClassifier


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
