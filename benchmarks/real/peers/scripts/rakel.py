"""scikit-multilearn-ng: RAkEL with overlapping label sets.

2 m sets of 3 labels, as its authors recommend. The base learner is a multinomial logistic
regression with a penalty chosen by cross-validation.
"""

from __future__ import annotations

from math import comb
from typing import Any

from logistic import tuned
from skmultilearn.ensemble import RakelO


def fit(X: Any, Y: Any, seed: int) -> Any:
    """Fit a model for each set of labels."""
    m = Y.shape[1]
    size = min(3, m)
    model = RakelO(
        base_classifier=tuned(X, Y, seed),
        base_classifier_require_dense=[False, True],
        labelset_size=size,
        model_count=min(2 * m, comb(m, size)),
    )
    model.fit(X, Y)  # does not return the model
    return model


def predict(model: Any, X: Any) -> dict[str, Any]:
    """Decide by majority."""
    return {"labels": {"rakel": model.predict(X)}}
