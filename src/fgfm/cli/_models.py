"""Models by the words of the command line: base learners, label factors, pipelines."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fgfm.data import Dataset

__all__ = [
    "LEARNERS",
    "LoadedModel",
    "label_frame",
    "load_model",
    "make_learner",
    "make_model",
    "match_columns",
    "read_factors",
    "read_flag",
]

LEARNERS = {
    "ridge": "fgfm.ridge._estimator:RidgeLogistic",
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
_DEFAULTS = {"logistic": {"max_iter": 1000}}  # scaled, and still not always done in 100


def make_learner(name: str, settings: Sequence[str]) -> Any:
    """Make a base learner.

    Parameters
    ----------
    name : str
        One of `LEARNERS`, or ``package.module:Class``.
    settings : sequence of str
        Parameters, as ``name=value``.

    Returns
    -------
    estimator or None
        The learner; None is the classifier's own, with its own settings.
    """
    if name not in LEARNERS and ":" not in name:
        raise ValueError(
            f"--estimator is {name!r}: it must be one of {', '.join(LEARNERS)}, or "
            "package.module:Class"
        )
    values = dict(_setting(text) for text in settings)
    if name == "ridge" and not values:
        return None
    kind = _class_of(LEARNERS.get(name, name))
    signature = inspect.signature(kind).parameters
    known = [key for key, given in signature.items() if given.kind is not given.VAR_KEYWORD]
    for key in values:
        if key not in known and len(known) == len(signature):
            raise ValueError(
                f"--set is {key}={values[key]!r}: {kind.__name__} has no such parameter; it has "
                f"{', '.join(known) or 'none'}"
            )
    try:
        return kind(**(_DEFAULTS.get(name, {}) | values))
    except Exception as error:
        raise ValueError(f"{kind.__name__} cannot be made: {error}") from error


def _class_of(path: str) -> Any:
    module_name, _, class_name = path.partition(":")
    try:
        module = import_module(module_name)
    except (ImportError, ValueError) as error:
        raise ValueError(f"--estimator is {path!r}: {error}") from error
    kind = getattr(module, class_name, None)
    if not isinstance(kind, type):
        raise ValueError(f"--estimator is {path!r}: {module_name} has no class {class_name!r}")
    return kind


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise ValueError(f"--set is {text!r}: it must be name=value, as in C=0.5")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        words = {"true": True, "false": False, "none": None}
        return name.strip(), words.get(value.strip().lower(), value.strip())


def read_factors(text: str, label_names: Sequence[str]) -> Any:
    """Give label factors as `FGFMClassifier` takes them.

    Parameters
    ----------
    text : str
        "ilf", "single" or "independent"; or factors as ``a,b|c``; or a file with such a text, one
        factor per line, or with JSON as ``fgfm factors --json`` writes it. Labels that are not
        named are factors by themselves.
    label_names : sequence of str
        All labels.

    Returns
    -------
    str or list of list of int
        A name, or the labels of each factor.
    """
    if text in ("ilf", "single", "independent"):
        return text
    if os.path.isfile(text):
        found = _factors_in(Path(text))
    elif "|" in text or "," in text or text.strip() in label_names:
        found = _split(text)
    else:
        raise ValueError(
            f"--factors is {text!r}: it must be ilf, single, independent, factors such as a,b|c, "
            "or a file with factors"
        )
    number = {name: k for k, name in enumerate(label_names)}
    factors: list[list[int]] = []
    seen: set[str] = set()
    for factor in found:
        for label in factor:
            if label not in number:
                raise ValueError(f"--factors: there is no label {label!r} in the data")
            if label in seen:
                raise ValueError(f"--factors: label {label!r} occurs twice")
            seen.add(label)
        if factor:
            factors.append([number[label] for label in factor])
    return factors + [[k] for name, k in number.items() if name not in seen]


def _split(text: str) -> list[list[str]]:
    return [
        [label for part in factor.split(",") if (label := part.strip())]
        for factor in re.split(r"[|\n]", text)
    ]


def _factors_in(path: Path) -> list[list[str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"--factors: {path} is no text: {error}") from error
    if text.lstrip()[:1] not in ("{", "["):
        return _split(text)
    try:
        found = json.loads(text)
        if isinstance(found, dict):
            found = found["factors"]
        if not all(isinstance(label, str) for factor in found for label in factor):
            raise TypeError("labels are named by texts")
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"--factors: {path} must hold factors as lists of labels, or an object with such "
            f"'factors': {error}"
        ) from error
    return [list(factor) for factor in found]


def read_flag(text: str, option: str) -> bool | str:
    """Give what yes, no or auto stand for."""
    values: dict[str, bool | str] = {"auto": "auto", "yes": True, "no": False}
    if text not in values:
        raise ValueError(f"{option} is {text!r}: it must be auto, yes or no")
    return values[text]


def make_model(
    data: Dataset,
    *,
    estimator: str,
    settings: Sequence[str],
    factors: str,
    method: str,
    calibration: str,
    beta: float,
    zero_division: float,
    nonempty: str,
    scale: bool,
    jobs: int,
    seed: int,
) -> Any:
    """Make a pipeline, not fitted, for encoded features: a scaler, if wanted, and a classifier."""
    from scipy import sparse
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler
    from sklearn.utils import get_tags

    from fgfm import FGFMClassifier

    learner = make_learner(estimator, settings)
    is_sparse = sparse.issparse(data.X)
    if is_sparse and not get_tags(FGFMClassifier(learner)).input_tags.sparse:
        raise ValueError(
            f"{data.source} has sparse features, and {estimator} takes dense ones only: give "
            "--dense, or another --estimator"
        )
    assert data.label_names is not None
    classifier = FGFMClassifier(
        learner,
        factors=read_factors(factors, data.label_names),
        method=method,
        calibration=None if calibration == "none" else calibration,
        nonempty=read_flag(nonempty, "--nonempty"),
        zero_division=zero_division,
        beta=beta,
        n_jobs=None if jobs == 1 else jobs,
        random_state=seed,
    )
    steps: list[tuple[str, Any]] = [("classifier", classifier)]
    if scale:
        steps.insert(0, ("scaler", MaxAbsScaler() if is_sparse else StandardScaler()))
    return Pipeline(steps)


def label_frame(data: Dataset) -> Any:
    """Give labels with their names, which the model keeps."""
    from fgfm.data._extras import need

    pandas = need("pandas", "fitting with the names of labels")
    return pandas.DataFrame(data.Y, columns=list(data.label_names or ()))


class LoadedModel(NamedTuple):
    """A model from a file, in the parts that a command needs."""

    encoder: Any  # FeatureEncoder, or None where the model has none
    model: Any  # what takes encoded features
    classifier: Any  # its last step
    label_names: list[str]


def load_model(path: Path, trust: Sequence[str]) -> LoadedModel:
    """Load a model that holds an `FGFMClassifier`."""
    from sklearn.pipeline import Pipeline

    from fgfm import FGFMClassifier, store
    from fgfm.data import FeatureEncoder

    refused = [name for name in store.foreign_classes(path) if name not in trust]
    if refused:
        raise ValueError(
            f"{path} holds classes that are loaded only if you trust who wrote it: give "
            + " ".join(f"--trust {name}" for name in refused)
        )
    model = store.load(path, trusted=list(trust))
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if not isinstance(steps[-1], FGFMClassifier) or not hasattr(steps[-1], "factors_"):
        raise ValueError(
            f"{path} holds {type(steps[-1]).__name__}: it must hold a fitted FGFMClassifier, or a "
            "pipeline that ends with one"
        )
    encoder = steps[0] if isinstance(steps[0], FeatureEncoder) else None
    rest = model[1:] if encoder is not None else model
    classifier = steps[-1]
    names = [str(name) for name in classifier.classes_]
    if not classifier.multilabel_:
        names = names[-1:]
    elif not hasattr(classifier, "label_names_in_") and encoder is not None:
        known = getattr(encoder, "label_names_", None)
        names = names if known is None else [str(name) for name in known]
    return LoadedModel(encoder, rest, classifier, names)


def match_columns(data: Dataset, model: Any) -> Dataset:
    """Give the features of a file as a model without an encoder wants them: by their names."""
    from fgfm.data import DataError

    encoder = data.encoder
    special = [*encoder.categorical_, *encoder.truth_, *encoder.indicated_] if encoder else []
    if special:
        names = getattr(encoder, "feature_names_in_", None)
        column = f"column {special[0] + 1}" if names is None else f"column {names[special[0]]!r}"
        raise DataError(
            f"{data.source}, {column}: it has texts or missing values, and the model was saved "
            "without the FeatureEncoder that says what they meant in training"
        )
    wanted = getattr(model, "feature_names_in_", None)
    if wanted is None or data.feature_names is None:
        return data
    place = {name: at for at, name in enumerate(data.feature_names)}
    for name in wanted:
        if str(name) not in place:
            raise DataError(f"{data.source}: there is no column {str(name)!r}, as in training")
    if len(wanted) < len(place):
        extra = next(name for name in place if name not in {str(w) for w in wanted})
        raise DataError(f"{data.source}: training had no column {extra!r}: leave it out (--drop)")
    # they are those of training now; scikit-learn sees an array, and would say that it has none
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    order = [place[str(name)] for name in wanted]
    return replace(data, X=data.X[:, order], feature_names=tuple(map(str, wanted)))
