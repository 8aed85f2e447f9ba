"""Base learners by name."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from importlib import import_module
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
    learner_class = _import_class(LEARNERS.get(name, name))
    signature = inspect.signature(learner_class).parameters
    names = [key for key, given in signature.items() if given.kind is not given.VAR_KEYWORD]
    for key in values:
        if key not in names and len(names) == len(signature):  # no **kwargs
            raise ValueError(
                f"--set is {key}={values[key]!r}: {learner_class.__name__} has no such parameter; "
                f"it has {', '.join(names) or 'none'}"
            )
    try:
        return learner_class(**(_DEFAULTS.get(name, {}) | values))
    except Exception as error:
        raise ValueError(f"{learner_class.__name__} cannot be constructed: {error}") from error


def _import_class(path: str) -> Any:
    module_name, _, class_name = path.partition(":")
    try:
        module = import_module(module_name)
    except (ImportError, ValueError) as error:
        raise ValueError(f"--learner is {path!r}: {error}") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise ValueError(f"--learner is {path!r}: {module_name} has no class {class_name!r}")
    return found


def _parse_setting(text: str) -> tuple[str, Any]:
    """Return the name and the value of ``name=value``; a value is a Python literal or a text."""
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name.isidentifier():
        raise ValueError(f"--set is {text!r}: it must be name=value, as in C=0.5")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        words = {"true": True, "false": False, "none": None}
        return name, words.get(value.lower(), value)
