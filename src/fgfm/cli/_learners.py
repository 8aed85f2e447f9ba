"""Learners by name."""

from __future__ import annotations

import pkgutil
from typing import Any

# Each name: the class, its parameters, and whether it is fitted to each label by itself.
LEARNERS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "auto": ("fgfm.learner:StackClassifier", {}, False),
    "ridge": ("fgfm.ridge:RidgeLogistic", {}, True),
    "logistic": ("sklearn.linear_model:LogisticRegression", {"max_iter": 1000}, True),
    "forest": (
        "sklearn.ensemble:RandomForestClassifier",
        {"n_estimators": 300, "oob_score": True},
        False,
    ),
    "extra-trees": (
        "sklearn.ensemble:ExtraTreesClassifier",
        {"n_estimators": 300, "bootstrap": True, "oob_score": True},
        False,
    ),
    "boosting": ("sklearn.ensemble:HistGradientBoostingClassifier", {}, True),
    "svm": ("sklearn.svm:LinearSVC", {"max_iter": 10_000}, True),
}

# Those that predict probabilities of several classes, as the number of labels has
BASE_LEARNERS = ("ridge", "logistic", "forest", "extra-trees", "boosting")


def make_base_learner(name: str) -> Any:
    """Return the classifier of a name of `BASE_LEARNERS`."""
    if name not in BASE_LEARNERS:
        raise ValueError(f"--learner is {name!r}: it must be one of {', '.join(BASE_LEARNERS)}")
    path, params, _ = LEARNERS[name]
    return pkgutil.resolve_name(path)(**{k: v for k, v in params.items() if k != "oob_score"})


def make_learner(name: str, jobs: int | None, seed: int) -> Any:
    """Return the multi-label classifier of a name of `LEARNERS`."""
    from sklearn.multiclass import OneVsRestClassifier

    if name not in LEARNERS:
        raise ValueError(f"--learner is {name!r}: it must be one of {', '.join(LEARNERS)}")
    path, params, by_label = LEARNERS[name]
    learner = pkgutil.resolve_name(path)(**params)
    known = learner.get_params(deep=False)
    given = {"random_state": seed, "n_jobs": None if by_label else jobs}
    learner.set_params(**{key: value for key, value in given.items() if key in known})
    return OneVsRestClassifier(learner, n_jobs=jobs) if by_label else learner
