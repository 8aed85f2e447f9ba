"""xCOLUMNs: rules for macro and micro F1, without a limit to the labels of a row (k = 0).

"fw": classifiers found by Frank-Wolfe on the validation rows; "bc": the decisions for the test
rows found by block coordinate ascent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xcolumns.block_coordinate import predict_optimizing_macro_f1_score_using_bc
from xcolumns.frank_wolfe import find_classifier_using_fw
from xcolumns.metrics import macro_f1_score_on_conf_matrix, micro_f1_score_on_conf_matrix

METRICS = {"macro": macro_f1_score_on_conf_matrix, "micro": micro_f1_score_on_conf_matrix}


def fit(X: Any, Y: Any, seed: int) -> Any:
    """Find the classifiers; X are the probabilities of the validation rows."""
    options = {"init_classifier": "top", "skip_tn": True, "seed": seed}
    return seed, {
        f"fw/{average}": find_classifier_using_fw(
            Y.astype(np.float32), X.astype(np.float32), metric, 0, **options
        )
        for average, metric in METRICS.items()
    }


def predict(model: Any, X: Any) -> dict[str, Any]:
    """Decide; X are the probabilities of the test rows."""
    seed, classifiers = model
    proba = X.astype(np.float32)
    labels = {rule: one.predict(proba, seed=seed) > 0 for rule, one in classifiers.items()}
    ascent = predict_optimizing_macro_f1_score_using_bc(proba, 0, init_y_pred="top", seed=seed)
    return {"labels": labels | {"bc/macro": ascent > 0}}
