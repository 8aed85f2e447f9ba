"""Models that commands fit or load, and what options say about them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fgfm._utils.optional import import_optional
from fgfm._utils.text import missing_columns
from fgfm.cli._learners import make_learner
from fgfm.cli._options import read_flag

if TYPE_CHECKING:
    from fgfm import FClassifier
    from fgfm.decision import Constraints
    from fgfm.io import Dataset, FeatureEncoder

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


def make_model(data: Dataset, encoder: FeatureEncoder, options: Mapping[str, Any]) -> FClassifier:
    """Return an unfitted classifier of a pipeline that begins with the encoder."""
    from scipy import sparse
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler
    from sklearn.utils import get_tags

    from fgfm import FClassifier

    jobs = None if options["jobs"] == 1 else options["jobs"]
    learner = make_learner(options["learner"], jobs, options["seed"])
    steps: list[Any] = [encoder]
    if not get_tags(learner).input_tags.sparse:
        encoder.set_params(dense=True)
    elif sparse.issparse(data.X) and options["learner"] in ("ridge", "logistic", "svm"):
        steps.append(MaxAbsScaler())  # the numbers of a table are scaled by the encoder
    return FClassifier(
        make_pipeline(*steps, learner),
        average=options["average"],
        beta=options["beta"],
        n_jobs=jobs,
        random_state=options["seed"],
    )


def label_frame(Y: Any, names: Sequence[str]) -> Any:
    """Return the labels as a data frame, so that the model stores their names."""
    pandas = import_optional("pandas", "fitting with the names of labels", "cli")
    return pandas.DataFrame(Y, columns=list(names))


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

    classifier: FClassifier  # of encoded features, if there is an encoder
    encoder: FeatureEncoder | None
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

    def load_blocks(self, path: Path, arguments: Mapping[str, Any]) -> Iterator[Dataset]:
        """Read the features of a file, in blocks of rows if the model encodes a table."""
        from fgfm.io import load_blocks

        if self.encoder is None:
            yield self.load(path, arguments)
        else:
            yield from load_blocks(path, self.encoder, **arguments)

    def load(self, path: Path, arguments: Mapping[str, Any]) -> Dataset:
        """Read a file, with the features that the classifier takes."""
        from fgfm.io import DataError, load

        data = load(path, encoder=self.encoder, **arguments)
        if self.encoder is not None or not hasattr(data.X, "columns"):
            return data
        wanted = getattr(self.classifier, "feature_names_in_", None)
        if wanted is None:
            return replace(data, X=data.X.to_numpy())
        names = [str(name) for name in data.X.columns]
        absent = [str(name) for name in wanted if str(name) not in names]
        if absent:
            reason = f"{missing_columns(absent, names)}, which training had"
            raise DataError(reason, source=data.source)
        return replace(data, X=data.X[list(wanted)])


def load_model(path: Path) -> LoadedModel:
    """Load a model that holds an `FClassifier`."""
    from sklearn.pipeline import Pipeline

    from fgfm import FClassifier, store
    from fgfm.io import FeatureEncoder

    refused = store.foreign_classes(path)
    if refused:
        raise ValueError(
            f"{path} holds classes that commands do not load, such as {refused[0]}: load it in "
            "Python, by fgfm.load(path, trusted=[...]), if you trust its author"
        )
    model = store.load(path)
    if not isinstance(model, FClassifier) or not hasattr(model, "decider_"):
        raise ValueError(
            f"{path} holds {type(model).__name__}: it must hold a fitted FClassifier, as fgfm fit "
            "saves it"
        )
    if not model.multilabel_:
        raise ValueError(f"{path} predicts one class for each row: use its predict in Python")
    names = [str(name) for name in model.classes_]
    inner = model.estimator_
    if not isinstance(inner, Pipeline) or not isinstance(inner[0], FeatureEncoder):
        return LoadedModel(model, None, names)
    encoded = copy.copy(model)
    encoded.estimator_ = inner[1:]
    return LoadedModel(encoded, inner[0], names)


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
