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
from fgfm.cli._options import n_jobs

if TYPE_CHECKING:
    from fgfm import FClassifier
    from fgfm.decision import Constraints
    from fgfm.io import Dataset, FeatureEncoder


def require_skops() -> None:
    """Raise before a long fit if models cannot be saved."""
    import_optional("skops", "saving and loading models", "cli")


def make_model(data: Dataset, encoder: FeatureEncoder, params: Mapping[str, Any]) -> FClassifier:
    """Return an unfitted classifier of a pipeline that begins with the encoder."""
    from scipy import sparse
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler
    from sklearn.utils import get_tags

    from fgfm import FClassifier

    learner = make_learner(params["learner"], n_jobs(params), params["seed"])
    steps: list[Any] = [encoder]
    if not get_tags(learner).input_tags.sparse:
        encoder.set_params(dense=True)
    elif sparse.issparse(data.X) and params["learner"] in ("ridge", "logistic", "svm"):
        steps.append(MaxAbsScaler())  # the numbers of a table are scaled by the encoder
    return FClassifier(
        make_pipeline(*steps, learner),
        average=params.get("average", "samples"),
        beta=params["beta"],
        n_jobs=n_jobs(params),
        random_state=params["seed"],
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
    # The context of a command has a string, before typer 0.29.
    content = Path(path).read_bytes()
    try:
        found: Any = json.loads(content.decode("utf-8-sig"))
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
        constraints = read_constraints(values.pop("constraints", None))
        if constraints is not None:
            names = self.label_names
            values["constraints"] = constraints.numbered(len(names), names)
        self.classifier.set_params(**values)

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


def _load(path: Path, kind: str, attribute: str, wanted: str) -> Any:
    """Return the model in a file, which must be of a class of fgfm and fitted."""
    import fgfm
    from fgfm import store

    foreign = store.foreign_classes(path)
    model = None if foreign else store.load(path)
    if foreign or type(model).__name__ != kind or not hasattr(model, attribute):
        found = foreign[0] if foreign else type(model).__name__
        hint = ""
        if foreign and kind == "FClassifier":
            hint = "; in Python, fgfm.load(path, trusted=[...]) loads it if you trust its author"
        raise ValueError(f"{path} holds {found}: it must hold a fitted {wanted}{hint}")
    assert isinstance(model, getattr(fgfm, kind))
    return model


def load_model(path: Path) -> LoadedModel:
    """Load a model that holds an `FClassifier`."""
    from sklearn.pipeline import Pipeline

    from fgfm.io import FeatureEncoder

    model = _load(path, "FClassifier", "decider_", "FClassifier, as fgfm fit saves it")
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
    return _load(path, "FDecider", "classes_", "FDecider, as fgfm tune saves it")
