"""optimal-classification-cutoffs: thresholds for macro and micro F1 that are best on the
validation rows ("empirical"), or in expectation over the test rows ("expected").
"""

from __future__ import annotations

from typing import Any

import numpy as np
from optimal_cutoffs import dinkelbach_expected_fbeta_multilabel, get_optimal_threshold


def fit(X: Any, Y: Any, seed: int) -> Any:
    """Find thresholds per label and for all entries; X are probabilities of validation rows."""
    macro = [_threshold(y, p) for y, p in zip(Y.T, X.T, strict=True)]
    return {
        "empirical/macro": np.array(macro),
        "empirical/micro": _threshold(Y.ravel(), X.ravel()),
    }


def predict(model: Any, X: Any) -> dict[str, Any]:
    """Decide; X are the probabilities of the test rows."""
    thresholds = model | {
        f"expected/{average}": np.asarray(
            dinkelbach_expected_fbeta_multilabel(X, average=average).thresholds
        )
        for average in ("macro", "micro")
    }
    return {"labels": {rule: np.greater(X, cut) for rule, cut in thresholds.items()}}


def _threshold(y: Any, p: Any) -> float:
    return float(get_optimal_threshold(y.astype(int), p, metric="f1").thresholds[0])
