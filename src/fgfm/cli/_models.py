"""Models that commands fit or load."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fgfm._utils.optional import import_optional
from fgfm._utils.text import ignored_columns, missing_columns
from fgfm.cli._inputs import rows_of_split
from fgfm.cli._label_factors import read_factors
from fgfm.cli._learners import make_learner
from fgfm.cli._limits import read_constraints
from fgfm.cli._options import read_flag

if TYPE_CHECKING:
    from fgfm.data import Dataset

__all__ = [
    "LoadedModel",
    "ModelOptions",
    "label_frame",
    "load_decider",
    "load_model",
    "make_model",
]


@dataclass(frozen=True)
class ModelOptions:
    """The options of a command on the model to fit."""

    estimator: str
    settings: Sequence[str] | None
    factors: str
    method: str
    calibration: str
    beta: float
    zero_division: float
    nonempty: str
    scale: bool
    jobs: int
    seed: int

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> ModelOptions:
        """Select the options from ``typer.Context.params``."""
        return cls(**{field.name: params[field.name] for field in fields(cls)})


def make_model(data: Dataset, options: ModelOptions) -> Any:
    """Return an unfitted pipeline for encoded features: a scaler, if wanted, and a classifier."""
    from scipy import sparse
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler
    from sklearn.utils import get_tags

    from fgfm import FGFMClassifier

    classifier = FGFMClassifier(
        make_learner(options.estimator, options.settings or ()),
        factors=read_factors(options.factors, data.label_names or ()),
        method=options.method,
        calibration=None if options.calibration == "none" else options.calibration,
        nonempty=read_flag(options.nonempty, "--nonempty"),
        zero_division=options.zero_division,
        beta=options.beta,
        n_jobs=None if options.jobs == 1 else options.jobs,
        random_state=options.seed,
    )
    is_sparse = sparse.issparse(data.X)
    if is_sparse and not get_tags(classifier).input_tags.sparse:
        raise ValueError(
            f"{data.source} has sparse features, and --estimator {options.estimator} accepts only "
            "dense ones: give --dense, or another estimator"
        )
    assert data.encoder is not None
    steps: list[tuple[str, Any]] = [("classifier", classifier)]
    # The stack "auto" takes features as they are; with other methods it stands for "ridge".
    as_they_are = options.estimator == "auto" and options.method in ("reweighted", "tilted")
    if options.scale and not as_they_are and not data.encoder.is_scaled_:
        steps.insert(0, ("scaler", MaxAbsScaler() if is_sparse else StandardScaler()))
    return Pipeline(steps)


def label_frame(data: Dataset) -> Any:
    """Return the labels as a data frame, so that the model stores their names."""
    pandas = import_optional("pandas", "fitting with the names of labels", "data")
    return pandas.DataFrame(data.Y, columns=list(data.label_names or ()))


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

    def load_blocks(
        self, path: Path, split: str | None, arguments: Mapping[str, Any]
    ) -> Iterator[Dataset]:
        """Read the features of a file, in blocks of rows if the model has an encoder."""
        from fgfm.data import load_blocks

        if self.encoder is None or split is not None:
            yield self.load(path, split, {**arguments, "with_labels": False})
            return
        for block in load_blocks(path, self.encoder, **arguments):
            self._check_width(block, path)
            yield block

    def load(self, path: Path, split: str | None, arguments: Mapping[str, Any]) -> Dataset:
        """Read the rows of a file with the columns of training."""
        from fgfm.data import FeatureEncoder, load

        encoder = FeatureEncoder(drop_identifiers=False) if self.encoder is None else self.encoder
        data = load(path, encoder=encoder, **arguments)
        if self.encoder is None:
            data = _match_columns(data, self.model)
        self._check_width(data, path)
        return rows_of_split(data, split)

    def _check_width(self, data: Dataset, path: Path) -> None:
        from fgfm.data import DataError

        n_features = getattr(self.model, "n_features_in_", None)
        if n_features not in (None, data.X.shape[1]):
            raise DataError(
                f"there are {data.X.shape[1]} features: the model has {n_features}", source=path
            )


def load_model(path: Path, trust: Sequence[str]) -> LoadedModel:
    """Load a model that holds an `FGFMClassifier`."""
    from sklearn.pipeline import Pipeline

    from fgfm import FGFMClassifier, store
    from fgfm.data import FeatureEncoder

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
    return LoadedModel(encoder, after_encoder, classifier, _label_names(classifier, encoder))


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


def _label_names(classifier: Any, encoder: Any) -> list[str]:
    """Return the names of the labels: of the data frame, else of the file, else numbers."""
    m = sum(len(factor) for factor in classifier.factors_)
    names = classifier.classes_[-m:]  # fitted to one 1-D label, the second class is the label
    is_matrix = len(classifier.classes_) == m
    if is_matrix and encoder is not None and not hasattr(classifier, "label_names_in_"):
        names = encoder.schema_.label_names or names
    return [str(name) for name in names]


def _match_columns(data: Dataset, model: Any) -> Dataset:
    """Return the data with the columns in the order of a model without an encoder."""
    from fgfm.data import DataError

    assert data.encoder is not None
    wanted = getattr(model, "feature_names_in_", None)
    if data.feature_names is None:
        wanted = None
    known = None if wanted is None else set(wanted)
    encoded = [
        name
        for name, kind, becomes in data.encoder.summary()
        if kind not in ("number", "boolean") or becomes != "1 number"
        if known is None or name in known
    ]
    if encoded:
        raise DataError(
            "it has texts or missing values, and the model was saved without the FeatureEncoder "
            "that encoded them in training",
            source=data.source,
            column=encoded[0],
        )
    if wanted is None or known is None or data.feature_names is None:
        return data
    wanted = [str(name) for name in wanted]
    position = {name: at for at, name in enumerate(data.feature_names)}
    absent = [name for name in wanted if name not in position]
    extra = [name for name in position if name not in known]
    if absent:
        reason = f"{missing_columns(absent, extra)}, which training had"
        raise DataError(reason, source=data.source)
    if extra:
        warnings.warn(f"{data.source}: {ignored_columns(extra)}", UserWarning, stacklevel=2)
    # The columns are those of training; scikit-learn gets an array, which has no names.
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    order = [position[name] for name in wanted]
    return replace(data, X=data.X[:, order], feature_names=tuple(wanted))
