"""scikit-multilearn-ng: MLkNN with its defaults, k = 10 neighbours and s = 1."""

from __future__ import annotations

from typing import Any

from skmultilearn.adapt import MLkNN


def fit(X: Any, Y: Any, seed: int) -> Any:
    """Fit the neighbours and their label counts."""
    return MLkNN(k=10, s=1.0).fit(X, Y)


def predict(model: Any, X: Any) -> dict[str, Any]:
    """Decide label by label."""
    return {"labels": {"mlknn": model.predict(X)}}
