"""Base learners by name."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Sequence
from typing import Any

__all__ = ["LEARNERS", "make_learner"]

LEARNERS = {
    "auto": "",
    "ridge": "fgfm.ridge:RidgeLogistic",
    "logistic": "sklearn.linear_model:LogisticRegression",
    "forest": "sklearn.ensemble:RandomForestClassifier",
    "extra-trees": "sklearn.ensemble:ExtraTreesClassifier",
    "boosting": "sklearn.ensemble:HistGradientBoostingClassifier",
    "tree": "sklearn.tree:DecisionTreeClassifier",
    "naive-bayes": "sklearn.naive_bayes:GaussianNB",
    "bernoulli-bayes": "sklearn.naive_bayes:BernoulliNB",
    "knn": "sklearn.neighbors:KNeighborsClassifier",
    "svm": "sklearn.svm:LinearSVC",
    "network": "sklearn.neural_network:MLPClassifier",
}
_DEFAULTS = {"logistic": {"max_iter": 1000}}  # 100 are not always enough, even for scaled features


def make_learner(name: str, settings: Sequence[str]) -> Any:
    """Return the base learner of a name of `LEARNERS` or ``package.module:Class``.

    The settings are parameters, as ``name=value``. A learner that `FGFMClassifier` knows by its
    name is returned as this text.
    """
    if name not in LEARNERS and ":" not in name:
        raise ValueError(
            f"--learner is {name!r}: it must be one of {', '.join(LEARNERS)}, or "
            "package.module:Class"
        )
    values = dict(_parse_setting(text) for text in settings)
    if name in ("auto", "ridge") and not values:
        return name
    if name == "auto":
        raise ValueError(f"--set is {settings[0]}: the learner auto has no parameters")
    try:
        learner = pkgutil.resolve_name(LEARNERS.get(name, name))(**_DEFAULTS.get(name, {}))
    except Exception as error:
        raise ValueError(f"--learner is {name!r}: {error}") from error
    try:
        return learner.set_params(**values)
    except (AttributeError, ValueError) as error:
        raise ValueError(f"--set is {' '.join(settings)}: {error}") from error


def _parse_setting(text: str) -> tuple[str, Any]:
    """Return the name and the value of ``name=value``; a value is a Python literal or a text."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.isidentifier():
        raise ValueError(f"--set is {text!r}: it must be name=value, as in C=0.5")
    words = {"true": True, "false": False, "none": None}
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return name, words.get(value.lower(), value)
