"""Models that commands fit or load, and what options say about them."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fgfm._utils.optional import import_optional
from fgfm._utils.text import ignored_columns, missing_columns
from fgfm.cli._learners import make_learner
from fgfm.cli._options import read_flag

if TYPE_CHECKING:
    from fgfm.decision import Constraints
    from fgfm.io import Dataset

__all__ = [
    "LoadedModel",
    "label_frame",
    "load_decider",
    "load_model",
    "make_model",
    "read_constraints",
    "require_skops",
]


def require_skops() -> None:
    """Raise before a long fit if models cannot be saved."""
    import_optional("skops.io", "saving and loading models", "cli")


def make_model(data: Dataset, encoder: Any, X: Any, options: Mapping[str, Any]) -> Any:
    """Return an unfitted pipeline for encoded features X: a scaler, if wanted, and a classifier.

    The options are those of the command on the model.
    """
    from scipy import sparse
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler
    from sklearn.utils import get_tags

    from fgfm import FGFMClassifier

    learner, method, calibration = (options[k] for k in ("learner", "method", "calibration"))
    classifier = FGFMClassifier(
        make_learner(learner, options["settings"] or ()),
        factors=read_factors(options["factors"], data.label_names),
        method=method,
        calibration=None if calibration == "none" else calibration,
        nonempty=read_flag(options["nonempty"]),
        zero_division=options["zero_division"],
        beta=options["beta"],
        average=options.get("average", "samples"),
        n_jobs=None if options["jobs"] == 1 else options["jobs"],
        random_state=options["seed"],
    )
    is_sparse = sparse.issparse(X)
    if is_sparse and not get_tags(classifier).input_tags.sparse:
        raise ValueError(
            f"{data.source} has sparse features, and --learner {learner} accepts only dense ones: "
            "give --dense, or another learner"
        )
    steps: list[tuple[str, Any]] = [("classifier", classifier)]
    # The stack "auto" takes features as they are; with other methods it stands for "ridge". The
    # encoder has scaled the numbers of a sparse table.
    as_they_are = learner == "auto" and method in ("reweighted", "tilted")
    if options["scale"] and not as_they_are and not (is_sparse and encoder.columns_ is not None):
        steps.insert(0, ("scaler", MaxAbsScaler() if is_sparse else StandardScaler()))
    return Pipeline(steps)


def label_frame(Y: Any, names: Sequence[str]) -> Any:
    """Return the labels as a data frame, so that the model stores their names."""
    pandas = import_optional("pandas", "fitting with the names of labels", "cli")
    return pandas.DataFrame(Y, columns=list(names))


def read_factors(text: str, label_names: Sequence[str]) -> Any:
    """Return label factors as `FGFMClassifier` accepts them.

    The text is "ilf", "single" or "independent"; or factors as ``a,b|c``; or a file with such a
    text, one factor per line, or with the JSON of ``fgfm factors --json``. Labels that are not
    named are factors of their own.
    """
    if text in ("ilf", "single", "independent"):
        return text
    if not os.path.isfile(text) and not re.search("[|,]", text) and text not in label_names:
        raise ValueError(
            f"--factors is {text!r}: it must be ilf, single, independent, factors such as a,b|c, "
            "or a file of factors"
        )
    named = _read_factor_file(Path(text)) if os.path.isfile(text) else _split_factors(text)
    number = {name: k for k, name in enumerate(label_names)}
    left = dict(number)
    for label in (label for factor in named for label in factor):
        if label not in number:
            raise ValueError(f"--factors: there is no label {label!r} in the data")
        if left.pop(label, None) is None:
            raise ValueError(f"--factors: label {label!r} occurs twice")
    given = [[number[label] for label in factor] for factor in named if factor]
    return given + [[k] for k in left.values()]


def _split_factors(text: str) -> list[list[str]]:
    return [
        [label for part in factor.split(",") if (label := part.strip())]
        for factor in re.split(r"[|\n]", text)
    ]


def _read_factor_file(path: Path) -> list[list[str]]:
    try:
        text = path.read_text(encoding="utf-8")
        if text.lstrip()[:1] not in ("{", "["):
            return _split_factors(text)
        found = json.loads(text)
        found = found["factors"] if isinstance(found, dict) else found
        if not all(isinstance(label, str) for factor in found for label in factor):
            raise TypeError("labels must be strings")
    except UnicodeDecodeError as error:
        raise ValueError(f"--factors: {path} is not a text file: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"--factors: {path} must hold factors as lists of labels, or an object with such "
            f"'factors': {error}"
        ) from error
    return [list(factor) for factor in found]


def read_constraints(path: Path | None) -> Constraints | None:
    """Read constraints from a JSON file."""
    from fgfm.decision import Constraints
    from fgfm.io import DataError

    if path is None:
        return None
    try:
        # The context of a command has a string, before typer 0.29.
        found: Any = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DataError(f"it is not JSON: {error}", source=path) from None
    if not isinstance(found, dict):
        raise DataError("it must be a JSON object of constraints", source=path)
    try:
        return Constraints.from_mapping(found)
    except (TypeError, ValueError) as error:
        raise DataError(str(error), source=path) from None


class LoadedModel(NamedTuple):
    """A fitted model from a file."""

    encoder: Any  # FeatureEncoder, or None if the model has none
    model: Any  # the steps after the encoder
    classifier: Any  # the last step
    label_names: list[str]

    def set_decision(self, params: Mapping[str, Any]) -> None:
        """Change the parameters of the decision that are not None, given as options."""
        values = {name: value for name, value in params.items() if value is not None}
        if "nonempty" in values:
            values["nonempty"] = read_flag(values["nonempty"])
        constraints = read_constraints(values.pop("constraints", None))
        if constraints is not None:
            names = self.label_names
            values["constraints"] = constraints.numbered(len(names), names)
        self.classifier.set_params(**values)

    @property
    def has_named_labels(self) -> bool:
        """Whether the model was fitted to labels with names."""
        return hasattr(self.classifier, "label_names_in_")

    def transform(self, X: Any) -> Any:
        """Return what the classifier takes, for features after the encoder."""
        preprocessing = None if self.model is self.classifier else self.model[:-1]
        return preprocessing.transform(X) if preprocessing else X  # one without steps is false

    def load_blocks(self, path: Path, arguments: Mapping[str, Any]) -> Iterator[Dataset]:
        """Read the features of a file, in blocks of rows if the model encodes a table."""
        from fgfm.io import load_blocks

        if self.encoder is None:
            yield self.load(path, arguments)
        else:
            yield from load_blocks(path, self.encoder, **arguments)

    def load(self, path: Path, arguments: Mapping[str, Any]) -> Dataset:
        """Read a file, with the features that the steps after the encoder take."""
        from fgfm.io import load

        data = load(path, encoder=self.encoder, **arguments)
        return data if self.encoder else replace(data, X=_plain_features(data, self.model))


def load_model(path: Path, trust: Sequence[str] | None) -> LoadedModel:
    """Load a model that holds an `FGFMClassifier`."""
    from sklearn.pipeline import Pipeline

    from fgfm import FGFMClassifier, store
    from fgfm.io import FeatureEncoder

    trust = trust or []
    refused = [name for name in store.foreign_classes(path) if name not in trust]
    if refused:
        raise ValueError(
            f"{path} holds classes that are loaded only if you trust the author of the file: give "
            + " ".join(f"--trust {name}" for name in refused)
        )
    model = store.load(path, trusted=list(trust))
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    classifier = steps[-1]
    if not isinstance(classifier, FGFMClassifier) or not hasattr(classifier, "factors_"):
        raise ValueError(
            f"{path} holds {type(classifier).__name__}: it must hold a fitted FGFMClassifier, or "
            "a pipeline that ends with one"
        )
    encoder = steps[0] if isinstance(steps[0], FeatureEncoder) else None
    m = sum(len(factor) for factor in classifier.factors_)
    # Fitted to one 1-D label, the second class is the label.
    names = [str(name) for name in classifier.classes_[-m:]]
    return LoadedModel(encoder, model if encoder is None else model[1:], classifier, names)


def load_decider(path: Path) -> Any:
    """Load a fitted `FDecider`."""
    from fgfm import FDecider, store

    foreign = store.foreign_classes(path)  # a decider has none
    decider = None if foreign else store.load(path)
    if not isinstance(decider, FDecider) or not hasattr(decider, "classes_"):
        found = foreign[0] if foreign else type(decider).__name__
        raise ValueError(
            f"{path} holds {found}: it must hold a fitted FDecider, as fgfm tune saves it"
        )
    return decider


def _plain_features(data: Dataset, model: Any) -> Any:
    """Return features of numbers for a model without an encoder, matched by name."""
    from fgfm.io import DataError

    X, source = data.X, data.source
    wanted = getattr(model, "feature_names_in_", None)
    if not hasattr(X, "columns"):
        if wanted is not None:
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return X
    if wanted is not None:
        names = [str(name) for name in wanted]
        extra = [name for name in X.columns if name not in names]
        absent = [name for name in names if name not in X.columns]
        if absent:
            reason = f"{missing_columns(absent, extra)}, which training had"
            raise DataError(reason, source=source)
        if extra:
            warnings.warn(f"{source}: {ignored_columns(extra)}", UserWarning, stacklevel=2)
        X = X[names]
    for name in X.columns:
        if X[name].dtype.kind not in "fiub" or X[name].isna().any():
            raise DataError(
                "it has texts or missing values, and the model was saved without the "
                "FeatureEncoder that encoded them in training",
                source=source,
                column=name,
            )
    return X if wanted is not None else X.to_numpy()  # scikit-learn checks their number
