"""Models that commands fit or load."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fgfm._utils.optional import import_optional
from fgfm._utils.text import ignored_columns, missing_columns
from fgfm.cli._label_factors import read_factors
from fgfm.cli._learners import make_learner
from fgfm.cli._limits import read_constraints
from fgfm.cli._options import read_flag

if TYPE_CHECKING:
    from fgfm.io import Dataset, FeatureEncoder

__all__ = ["LoadedModel", "label_frame", "load_decider", "load_model", "make_model"]


def make_model(data: Dataset, encoder: FeatureEncoder, X: Any, options: Mapping[str, Any]) -> Any:
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
        nonempty=read_flag(options["nonempty"], "--nonempty"),
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
    if options["scale"] and not as_they_are:
        if not is_sparse:
            steps.insert(0, ("scaler", StandardScaler()))
        elif encoder.columns_ is None:
            steps.insert(0, ("scaler", MaxAbsScaler()))
    return Pipeline(steps)


def label_frame(Y: Any, names: Sequence[str]) -> Any:
    """Return the labels as a data frame, so that the model stores their names."""
    pandas = import_optional("pandas", "fitting with the names of labels", "cli")
    return pandas.DataFrame(Y, columns=list(names))


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
            values["nonempty"] = read_flag(values["nonempty"], "--nonempty")
        if "constraints" in values:
            constraints = read_constraints(values["constraints"])
            values["constraints"] = constraints.numbered(len(self.label_names), self.label_names)
        self.classifier.set_params(**values)

    @property
    def has_named_labels(self) -> bool:
        """Whether the model was fitted to labels with names."""
        return hasattr(self.classifier, "label_names_in_")

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
        if self.encoder is None:
            data = replace(data, X=_plain_features(data, self.model))
        return data


def load_model(path: Path, trust: Sequence[str]) -> LoadedModel:
    """Load a model that holds an `FGFMClassifier`."""
    from sklearn.pipeline import Pipeline

    from fgfm import FGFMClassifier, store
    from fgfm.io import FeatureEncoder

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
    after_encoder = model if encoder is None else model[1:]
    m = sum(len(factor) for factor in classifier.factors_)
    # Fitted to one 1-D label, the second class is the label.
    names = [str(name) for name in classifier.classes_[-m:]]
    return LoadedModel(encoder, after_encoder, classifier, names)


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
        extra = [name for name in X.columns if name not in set(names)]
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
    width = getattr(model, "n_features_in_", X.shape[1])
    if X.shape[1] != width:
        reason = f"there are {X.shape[1]} features: the model has {width}"
        raise DataError(reason, source=source)
    return X if wanted is not None else X.to_numpy()
