"""Base learners: their settings, checks of the estimator and of its features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.utils import InputTags, get_tags
from sklearn.utils.validation import validate_data

from fgfm._utils.rows import frame_library, n_rows
from fgfm.estimation._scores import last_step
from fgfm.ridge import RidgeLogistic

__all__ = [
    "AUTO",
    "RIDGE",
    "LearnerSettings",
    "check_learner",
    "check_not_frozen",
    "fits_label_matrix",
    "flat_learner",
    "is_auto",
    "is_ridge",
    "learner_input_tags",
    "seed_learner",
    "validate_features",
    "validate_raw_features",
]

AUTO, RIDGE = "auto", "ridge"  # the base learners that have names


class LearnerSettings(NamedTuple):
    """The base learner and how to fit it."""

    estimator: Any = None  # "auto", "ridge", None for "ridge", or a scikit-learn classifier
    calibration: Any = "auto"  # as in FGFMClassifier
    cv: Any = None  # folds for the penalty of "ridge" and for calibration
    n_jobs: int | None = None
    random_state: Any = None  # seeds the folds, and base learners without a seed
    fit_params: dict[str, Any] | None = None  # for fit; None passes the sample weights, if any


def is_auto(learner: Any) -> bool:
    """Return True if a base learner is the stack of `fgfm.stack`."""
    return isinstance(learner, str) and learner == AUTO


def is_ridge(learner: Any) -> bool:
    """Return True if a base learner is ridge logistic regression."""
    return (
        learner is None
        or (isinstance(learner, str) and learner == RIDGE)
        or type(learner) is RidgeLogistic
    )


def check_learner(learner: Any) -> None:
    """Raise unless `learner` is None, a known name or a classifier of one target."""
    if learner is None:
        return
    if isinstance(learner, str):
        if learner not in (AUTO, RIDGE):
            raise ValueError(
                f"estimator is {learner!r}: it must be 'auto', 'ridge', or a scikit-learn "
                "classifier"
            )
        return
    if isinstance(learner, type) or not hasattr(learner, "fit"):
        raise TypeError(
            f"estimator is {learner!r}: it must be a scikit-learn classifier (an instance), "
            "or None"
        )
    if not (hasattr(learner, "predict_proba") or hasattr(learner, "decision_function")):
        raise TypeError(
            f"estimator is {learner!r}: it must have predict_proba or decision_function"
        )
    if isinstance(last_step(learner)[1], (MultiOutputClassifier, ClassifierChain)):
        raise TypeError(
            f"estimator is {learner!r}, a model of all labels: pass its base learner, which is "
            "fitted to one label at a time, or use fgfm.FDeciderCV"
        )


def check_not_frozen(learner: Any, m: int) -> None:
    """Raise TypeError if one fitted model would be used for each of m labels."""
    if m > 1 and isinstance(last_step(learner)[1], FrozenEstimator):
        raise TypeError(
            f"estimator is {learner!r}, which is not fitted again, and y has {m} labels: a model "
            "is fitted to each label; fgfm.FDeciderCV takes a fitted model of all labels"
        )


def learner_input_tags(learner: Any) -> InputTags:
    """Return the input tags of a base learner; without tags it is taken to accept anything."""
    anything = InputTags(sparse=True, allow_nan=True)
    if is_ridge(learner):
        learner = RidgeLogistic()
    if is_auto(learner):
        return anything
    if not hasattr(learner, "__sklearn_tags__"):
        return anything
    try:
        tags: InputTags = get_tags(learner).input_tags
    except AttributeError:  # scikit-learn's mixins without BaseEstimator
        return anything
    return tags


def validate_features(owner: Any, X: Any, learner: Any, *, reset: bool) -> Any:
    """Validate features as far as the base learner does not validate them itself.

    "auto" and "ridge" take numbers. Any other learner gets X in the form that the user passed,
    with names, categories and missing values. The attributes ``n_features_in_`` and
    ``feature_names_in_`` of `owner` are set in ``fit`` (`reset`), and compared with later.
    """
    try:
        if is_ridge(learner):
            return validate_data(owner, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        if is_auto(learner):
            return _validate_numbers(owner, X, reset=reset)
    except (TypeError, ValueError) as error:
        _refuse_texts(X, error)
        raise
    accept_sparse = learner_input_tags(learner).sparse
    return validate_raw_features(owner, X, accept_sparse=accept_sparse, reset=reset)


def _refuse_texts(X: Any, error: Exception) -> None:
    """Raise an error with the name of the first column of a data frame that has no numbers."""
    if frame_library(X) is None:
        return
    for name in X.columns:
        values = np.asarray(X[name])
        try:
            wrong = values.dtype.kind == "M"
            values.astype(np.float64)
        except (TypeError, ValueError):
            wrong = True
        if wrong:
            raise ValueError(
                f"X has a column without numbers, {name!r}: encode texts, categories and dates, "
                "for example make_pipeline(fgfm.io.FeatureEncoder(), fgfm.FGFMClassifier())"
            ) from error


def _validate_numbers(owner: Any, X: Any, *, reset: bool) -> Any:
    """Validate features that are numbers, of which some may be missing if X is dense."""
    X = validate_data(
        owner,
        X,
        accept_sparse="csr",
        dtype=np.float64,
        ensure_all_finite="allow-nan",
        reset=reset,
    )
    if sparse.issparse(X) and np.isnan(X.data).any():
        raise ValueError(
            "Input X contains NaN and is sparse: missing values are supported in dense X only"
        )
    return X


def validate_raw_features(owner: Any, X: Any, *, accept_sparse: bool, reset: bool) -> Any:
    """Validate the shape and the names of features, but not their values."""
    if frame_library(X) is not None:
        validate_data(owner, X, reset=reset, skip_check_array=True)
        if n_rows(X) == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required "
                f"by {type(owner).__name__}."
            )  # the sentence of scikit-learn's check_array
        return X
    return validate_data(
        owner,
        X,
        accept_sparse="csr" if accept_sparse else False,
        dtype=None,
        ensure_all_finite=False,  # missing values are left to the learner
        reset=reset,
    )


def seed_learner(estimator: Any, seed: int | None) -> Any:
    """Set every ``random_state`` of an estimator and its parts that is None, in place."""
    if seed is None:
        return estimator
    unset = [
        name
        for name, value in sorted(estimator.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    return estimator.set_params(**dict.fromkeys(unset, seed)) if unset else estimator


def fits_label_matrix(learner: Any) -> bool:
    """Return True if a base learner can be fitted to a matrix of labels, once for all of them.

    Its tags show it, or its parameters if it comes from CatBoost or XGBoost. Weights of classes
    and monotonic constraints are defined for one target, and a meta-estimator such as a search
    has measures for one target: they are fitted to each label.
    """
    learner = last_step(learner)[1]
    if not hasattr(learner, "get_params"):
        return False
    params = learner.get_params(deep=False)
    if "estimator" in params or any(
        params.get(name) is not None for name in ("class_weight", "monotonic_cst")
    ):
        return False
    if _is_named(learner, "CatBoostClassifier"):
        return _has_multi_label_loss(params)
    if _is_named(learner, "XGBClassifier"):
        return params.get("multi_strategy") is not None
    if not hasattr(learner, "__sklearn_tags__"):
        return False
    tags = get_tags(learner).classifier_tags
    return tags is not None and bool(tags.multi_label)


def flat_learner(learner: Any) -> Any:
    """Return a base learner that can be fitted to one target, such as the number of labels."""
    prefix, last = last_step(learner)
    if _is_named(last, "CatBoostClassifier") and _has_multi_label_loss(last.get_params()):
        return clone(learner).set_params(**{f"{prefix}loss_function": "MultiClass"})
    return learner


def _is_named(learner: Any, name: str) -> bool:
    """Return True if a class of the learner has this name; no library is imported."""
    return any(base.__name__ == name for base in type(learner).__mro__)


def _has_multi_label_loss(params: dict[str, Any]) -> bool:
    loss = str(params.get("loss_function")).partition(":")[0]
    return loss in ("MultiLogloss", "MultiCrossEntropy")
