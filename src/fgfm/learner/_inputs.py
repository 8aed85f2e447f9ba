"""Validation of features that must be numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from fgfm._utils.rows import frame_library

__all__ = ["validate_numbers"]


def validate_numbers(owner: Any, X: Any, *, allow_nan: bool, reset: bool) -> Any:
    """Validate features that must be numbers, and convert them to an array or CSR of floats.

    The attributes ``n_features_in_`` and ``feature_names_in_`` of `owner` are set in ``fit``
    (`reset`), and compared with later. With `allow_nan` a dense X may have missing values.
    """
    try:
        X = validate_data(
            owner,
            X,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite="allow-nan" if allow_nan else True,
            reset=reset,
        )
    except (TypeError, ValueError) as error:
        _refuse_texts(X, error)
        raise
    if sparse.issparse(X) and np.isnan(X.data).any():
        raise ValueError(
            "Input X contains NaN and is sparse: missing values are supported in dense X only"
        )
    return X


def _refuse_texts(X: Any, error: Exception) -> None:
    """Raise an error with the name of the first column of a data frame that has no numbers."""
    for name in X.columns if frame_library(X) is not None else ():
        values = np.asarray(X[name])
        try:
            wrong = values.dtype.kind == "M"
            values.astype(np.float64)
        except (TypeError, ValueError):
            wrong = True
        if wrong:
            raise ValueError(
                f"X has a column without numbers, {name!r}: encode texts, categories and dates, "
                "for example make_pipeline(fgfm.io.FeatureEncoder(), fgfm.FClassifier())"
            ) from error
