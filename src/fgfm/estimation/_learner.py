"""Base learners: their settings, checks of the estimator and of its features."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.utils import InputTags, get_tags
from sklearn.utils.validation import validate_data

from fgfm._utils.rows import frame_library, n_rows
from fgfm.learner import validate_numbers
from fgfm.ridge import RidgeLogistic

__all__ = [
    "AUTO",
    "RIDGE",
    "LearnerSettings",
    "check_learner",
    "check_not_frozen",
    "fits_label_matrix",
    "is_auto",
    "is_ridge",
    "is_splitter",
    "last_step",
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
    """Return True if a base learner is the stack of `fgfm.learner`."""
    return isinstance(learner, str) and learner == AUTO


def is_ridge(learner: Any) -> bool:
    """Return True if a base learner is ridge logistic regression."""
    named = isinstance(learner, str) and learner == RIDGE
    return learner is None or named or type(learner) is RidgeLogistic


def is_splitter(value: Any) -> bool:
    """Return True for a scikit-learn splitter."""
    return hasattr(value, "split") and not isinstance(value, str)


def last_step(learner: Any) -> Any:
    """Return the last step of a pipeline, or the learner itself."""
    while hasattr(learner, "steps"):
        learner = learner.steps[-1][1]
    return learner


def check_learner(learner: Any) -> None:
    """Raise unless `learner` is None, a known name or a classifier of one target."""
    if learner is None or is_auto(learner) or is_ridge(learner):
        return
    if isinstance(learner, str):
        raise ValueError(
            f"estimator is {learner!r}: it must be 'auto', 'ridge', or a scikit-learn classifier"
        )
    if isinstance(learner, type) or not hasattr(learner, "fit"):
        raise TypeError(
            f"estimator is {learner!r}: it must be a scikit-learn classifier (an instance), "
            "or None"
        )
    if not (hasattr(learner, "predict_proba") or hasattr(learner, "decision_function")):
        raise TypeError(
            f"estimator is {learner!r}: it must have predict_proba or decision_function"
        )
    if isinstance(last_step(learner), (MultiOutputClassifier, ClassifierChain)):
        raise TypeError(
            f"estimator is {learner!r}, a model of all labels: pass its base learner, which is "
            "fitted to one label at a time, or use fgfm.FClassifier"
        )


def check_not_frozen(learner: Any, m: int) -> None:
    """Raise TypeError if one fitted model would be used for each of m labels."""
    if m > 1 and isinstance(last_step(learner), FrozenEstimator):
        raise TypeError(
            f"estimator is {learner!r}, which is not fitted again, and y has {m} labels: a model "
            "is fitted to each label; fgfm.FClassifier takes a fitted model of all labels"
        )


def learner_input_tags(learner: Any) -> InputTags:
    """Return the input tags of a base learner; without tags it is taken to accept anything."""
    anything = InputTags(sparse=True, allow_nan=True)
    learner = RidgeLogistic() if is_ridge(learner) else learner
    if not hasattr(learner, "__sklearn_tags__"):
        return anything
    try:
        tags: InputTags = get_tags(learner).input_tags
    except AttributeError:  # scikit-learn's mixins without BaseEstimator
        return anything
    return tags


def validate_features(owner: Any, X: Any, learner: Any, *, reset: bool) -> Any:
    """Validate features as far as the base learner does not validate them itself.

    "auto" and "ridge" take numbers, "auto" also missing values if X is dense. Any other learner
    gets X in the form that the user passed, with names, categories and missing values. The
    attributes ``n_features_in_`` and ``feature_names_in_`` of `owner` are set in ``fit``
    (`reset`), and compared with later.
    """
    if not is_ridge(learner) and not is_auto(learner):
        accept_sparse = learner_input_tags(learner).sparse
        return validate_raw_features(owner, X, accept_sparse=accept_sparse, reset=reset)
    return validate_numbers(owner, X, allow_nan=is_auto(learner), reset=reset)


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
    """Return True if the tags of a base learner say that it takes a matrix of labels.

    Weights of classes and monotonic constraints are defined for one target, and a meta-estimator
    such as a search has measures for one target: they are fitted to each label.
    """
    learner = last_step(learner)
    if not hasattr(learner, "get_params") or not hasattr(learner, "__sklearn_tags__"):
        return False
    params = learner.get_params(deep=False)
    if "estimator" in params or any(
        params.get(name) is not None for name in ("class_weight", "monotonic_cst")
    ):
        return False
    tags = get_tags(learner).classifier_tags
    return tags is not None and bool(tags.multi_label)
