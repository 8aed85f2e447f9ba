"""FDecider and FClassifier as scikit-learn estimators: checks, tags, searches, pipelines."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from decider_data import independent
from fgfm import FClassifier, FDecider
from multilabel import X, Y, close

_NOT_ARGMAX = "F-optimal labels of a batch are not the classes of probability above one half"
_COLUMNS = "the check passes several columns of features with one label"
_ONE_D = "the check passes a flat X, which is documented, and then indexes it as a matrix"
_EVERY_LABEL = "the check passes one column of features with five labels"

_POS_LABEL = "the check passes two classes of which none is the positive one by convention"
_OTHER_CLASSES = dict.fromkeys(
    [
        "check_classifier_data_not_an_array",
        "check_classifiers_classes",
        "check_estimators_dtypes",
        "check_fit2d_1feature",
        "check_sample_weights_not_an_array",
        "check_sample_weights_not_overwritten",
        "check_sample_weights_pandas_series",
        "check_sample_weights_shape",
    ],
    _POS_LABEL,
)
_RANDOM = "a forest draws other rows where rows are repeated"
KINDS = ["dense", "sparse"]

# The X of FDecider has one column per label. With the tag `one_d_array` most checks pass one
# column of features, which are scores; those that pass another X cannot succeed.
FLAT_X = {
    **dict.fromkeys(
        [
            "check_dict_unchanged",
            "check_dont_overwrite_parameters",
            "check_dtype_object",
            "check_f_contiguous_array_estimator",
            "check_fit2d_1feature",
            "check_fit2d_1sample",
            "check_fit2d_predict1d",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
            "check_n_features_in",
            "check_n_features_in_after_fitting",
            "check_fit1d",
        ],
        _ONE_D,
    ),
    **dict.fromkeys(
        [
            "check_classifiers_one_label_sample_weights",
            "check_estimator_sparse_array",
            "check_estimator_sparse_matrix",
            "check_estimator_sparse_tag",
            "check_estimators_nan_inf",
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        ],
        _COLUMNS,
    ),
    **dict.fromkeys(
        [
            "check_classifiers_multilabel_output_format_decision_function",
            "check_classifiers_multilabel_output_format_predict",
            "check_classifiers_multilabel_output_format_predict_proba",
            "check_classifiers_multilabel_representation_invariance",
        ],
        _EVERY_LABEL,
    ),
    "check_classifiers_train": _NOT_ARGMAX,
}


def expected_failures(estimator):
    """Return the checks that an estimator cannot pass, with reasons."""
    if isinstance(estimator, FDecider):
        return _OTHER_CLASSES | FLAT_X
    failures = dict(_OTHER_CLASSES)
    if isinstance(estimator.estimator, LogisticRegression):
        failures["check_classifiers_train"] = _NOT_ARGMAX
    if isinstance(estimator.estimator, RandomForestClassifier):
        failures |= {f"check_sample_weight_equivalence_on_{kind}_data": _RANDOM for kind in KINDS}
    return failures


@parametrize_with_checks(
    [
        FDecider(scores=True),
        FClassifier(LogisticRegression()),
    ],
    expected_failed_checks=expected_failures,
)
def test_common_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some checks pass data that raise a warning
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        FClassifier(DecisionTreeClassifier(max_depth=3, random_state=0), cv=3, random_state=0),
        FClassifier(GaussianNB(), calibration="isotonic", average="micro", cv=3),
        FClassifier(RandomForestClassifier(5, random_state=0), average="macro", random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_common_checks_of_other_configurations(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_tags():
    tags = sklearn.utils.get_tags(FDecider())
    assert tags.classifier_tags.multi_label
    assert not tags.classifier_tags.multi_class
    assert tags.input_tags.sparse
    assert tags.input_tags.positive_only
    assert not sklearn.utils.get_tags(FDecider(scores=True)).input_tags.positive_only
    assert sklearn.utils.get_tags(FClassifier(LogisticRegression())).input_tags.sparse
    for model in (RandomForestClassifier(), LogisticRegression()):  # which is wrapped
        assert sklearn.utils.get_tags(FClassifier(model)).classifier_tags.multi_label
    assert not sklearn.utils.get_tags(FClassifier(GaussianNB())).input_tags.sparse


def model():
    """Return a small multi-label model."""
    return MultiOutputClassifier(LogisticRegression())


def test_clone_and_pickle():
    fitted = FClassifier(model(), average="macro", random_state=0).fit(X, Y)
    again = clone(fitted)
    assert not hasattr(again, "decider_")
    assert again.get_params()["estimator__estimator__C"] == 1.0
    copy = pickle.loads(pickle.dumps(fitted))
    assert (copy.predict(X) == fitted.predict(X)).all()
    assert (again.fit(X, Y).predict_proba(X) == fitted.predict_proba(X)).all()


def test_cross_val_score_and_predict():
    p, labels = independent(200, 3)
    scores = cross_val_score(FDecider(average="macro"), p, labels, cv=3)
    assert (scores > 0.5).all()
    fitted = [
        FDecider(average="macro").fit(p[train], labels[train]).score(p[test], labels[test])
        for train, test in KFold(3).split(p)
    ]
    close(scores, fitted)
    wrapped = FClassifier(model(), random_state=0)
    assert cross_val_predict(wrapped, X, Y, cv=2).shape == Y.shape
    proba = cross_val_predict(wrapped, X, Y, cv=KFold(2), method="predict_proba")
    train, test = next(KFold(2).split(X))
    close(proba[test], clone(wrapped).fit(X[train], Y[train]).predict_proba(X[test]))
    flat = cross_val_predict(FClassifier(GaussianNB()), X, Y[:, 0], cv=2, method="predict_proba")
    assert flat.shape == (60, 2)


def test_grid_search():
    p, labels = independent(300, 3)
    search = GridSearchCV(
        FDecider(average="macro"), {"calibration": [None, "sigmoid"], "beta": [1.0]}, cv=3
    ).fit(p**3, labels)
    assert search.best_params_["calibration"] == "sigmoid"
    search = GridSearchCV(
        FClassifier(model(), cv=2, random_state=0),
        {"estimator__estimator__C": [1.0], "average": ["macro", "micro"]},
        cv=2,
    ).fit(X, Y)
    assert search.best_score_ > 0.5
    assert search.predict(X).shape == Y.shape


def test_pipelines():
    pipeline = make_pipeline(StandardScaler(), FClassifier(model(), random_state=0)).fit(X, Y)
    assert pipeline.score(X, Y) == pipeline[-1].score(pipeline[0].transform(X), Y)
    inside = FClassifier(make_pipeline(StandardScaler(), model()), random_state=0).fit(X, Y)
    assert inside.score(X, Y) > 0.5
    half = FunctionTransformer(np.sqrt)
    p, labels = independent(200, 3)
    behind = make_pipeline(half, FDecider()).fit(p, labels)
    assert (behind.predict(p) == FDecider().fit(np.sqrt(p), labels).predict(np.sqrt(p))).all()
