"""Logistic regression for packages without a base learner, with a penalty chosen from data.

With scikit-learn's default C = 1 they lose up to 0.03 of instance F1 on small dense data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

GRID = 10.0 ** np.arange(-3, 3)
MAX_LABELS = 20  # the penalty is chosen on the most frequent labels


def tuned(X: Any, Y: Any, seed: int) -> LogisticRegression:
    """Return the unfitted model whose C has the smallest log loss in 3-fold cross-validation."""
    frequent = np.argsort(-Y.sum(axis=0), kind="stable")[:MAX_LABELS]
    folds = list(KFold(3, shuffle=True, random_state=seed).split(X))
    losses = [_loss(X, Y[:, frequent], folds, C) for C in GRID]
    return LogisticRegression(C=GRID[int(np.argmin(losses))], max_iter=1000)


def _loss(X: Any, Y: Any, folds: list[Any], C: float) -> float:
    """Return the log loss summed over rows and labels, without labels constant in a fold."""
    loss = 0.0
    for train, test in folds:
        for y in Y.T:
            if y[train].min() == y[train].max():
                continue
            model = LogisticRegression(C=C, max_iter=1000).fit(X[train], y[train])
            log_proba = model.predict_log_proba(X[test])
            loss -= log_proba[np.arange(len(test)), y[test]].clip(-30.0).sum()
    return loss
