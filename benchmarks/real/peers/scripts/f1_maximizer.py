"""example-wise-f1-maximizer: m^2 + 1 binary problems, and GFM on their probabilities.

Its base learner is a logistic regression with one penalty for all problems, chosen by
cross-validation.
"""

from __future__ import annotations

from typing import Any

from example_wise_f1_maximizer import ExampleWiseF1Maximizer
from logistic import tuned


def fit(X: Any, Y: Any, seed: int) -> Any:
    """Fit the m^2 + 1 models."""
    return ExampleWiseF1Maximizer(tuned(X, Y, seed)).fit(X, Y)


def predict(model: Any, X: Any) -> dict[str, Any]:
    """Decide by GFM."""
    return {"labels": {"gfm": model.predict(X)}}
