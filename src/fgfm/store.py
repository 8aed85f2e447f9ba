"""Save fitted models to files, and load them without running code.

A file is a skops archive, a zip file with arrays and a description of the model (schema.json),
with one more member (fgfm.json) that has the version of the format. In the description classes of
fgfm have the stable names of a registry, so that their modules can move.
"""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from sklearn.base import BaseEstimator

from fgfm._utils.atomic import atomic_file

__all__ = ["foreign_classes", "load", "save"]

_FORMAT = 1
_HEADER = "fgfm.json"
_SCHEMA = "schema.json"

# Classes of fgfm that a file may contain: stable name -> where to import the class from today.
# The names are part of the format: add to them, and change the places, but never change a name.
_REGISTRY = {
    # public classes, which are imported by their stable name
    **{
        name: name
        for name in (
            "fgfm.FDecider",
            "fgfm.FDeciderCV",
            "fgfm.FGFMClassifier",
            "fgfm.ILFCompo",
            "fgfm.data.FeatureEncoder",
            "fgfm.decision.Constraints",
            "fgfm.estimation.Direct",
            "fgfm.estimation.Powerset",
            "fgfm.estimation.Reweighted",
            "fgfm.estimation.Tilted",
            "fgfm.estimation.TwoStep",
            "fgfm.factors.Cut",
            "fgfm.factors.GCM",
            "fgfm.factors.MutualInformation",
            "fgfm.ridge.RidgeLogistic",
        )
    },
    # parts of fitted models
    "fgfm.data.ColumnKinds": "fgfm.data._typed.ColumnKinds",
    "fgfm.data.Schema": "fgfm.data._schema.Schema",
    "fgfm.decider.IsotonicCalibrator": "fgfm.decider._calibration.IsotonicCalibrator",
    "fgfm.decider.JointModel": "fgfm.decider._joint_model.JointModel",
    "fgfm.decider.NoCalibrator": "fgfm.decider._calibration.NoCalibrator",
    "fgfm.decider.ShrunkCalibrator": "fgfm.decider._calibration.ShrunkCalibrator",
    "fgfm.estimation.CustomFactorModels": "fgfm.estimation._factor_models.CustomFactorModels",
    "fgfm.estimation.FactorModels": "fgfm.estimation._factor_models.FactorModels",
    "fgfm.estimation.DirectStrategy": "fgfm.estimation._direct.DirectStrategy",
    "fgfm.estimation.PowersetStrategy": "fgfm.estimation._powerset.PowersetStrategy",
    "fgfm.estimation.ReweightedStrategy": "fgfm.estimation._reweighted.ReweightedStrategy",
    "fgfm.estimation.TiltedStrategy": "fgfm.estimation._tilted.TiltedStrategy",
    "fgfm.estimation.TwoStepStrategy": "fgfm.estimation._two_step.TwoStepStrategy",
    "fgfm.estimation.RidgeModels": "fgfm.estimation._models.RidgeModels",
    "fgfm.estimation.StackModels": "fgfm.estimation._models.StackModels",
    "fgfm.stack.CountFeatures": "fgfm.stack._features.CountFeatures",
    "fgfm.stack.KernelRidge": "fgfm.stack._kernel_ridge.KernelRidge",
    "fgfm.stack.LabelForest": "fgfm.stack._forest.LabelForest",
    "fgfm.stack.MarginalStack": "fgfm.stack._marginals.MarginalStack",
    "fgfm.stack.StackedLearner": "fgfm.stack._learner.StackedLearner",
    "fgfm.stack.StandardFeatures": "fgfm.stack._features.StandardFeatures",
    "fgfm.estimation.LearnerModels": "fgfm.estimation._models.LearnerModels",
    "fgfm.estimation.LearnerModel": "fgfm.estimation._models.LearnerModel",
    "fgfm.estimation.IsotonicCalibrator": "fgfm.estimation._calibration.IsotonicCalibrator",
    "fgfm.estimation.SigmoidCalibrator": "fgfm.estimation._calibration.SigmoidCalibrator",
    "fgfm.estimation.LogLinearPool": "fgfm._utils.log_linear_pool.LogLinearPool",
}

# Attributes of these classes that were renamed since a format that must still be read:
# stable name -> {old name: new name}. A new attribute needs a default in its class instead.
_RENAMED_ATTRIBUTES: dict[str, dict[str, str]] = {}

# Trusted classes beyond those of scikit-learn, NumPy and SciPy that skops trusts.
_TRUSTED = frozenset(
    {
        "scipy.sparse._csr.csr_array",
        # splitters have no state but numbers and a seed
        *(
            f"sklearn.model_selection._split.{name}"
            for name in (
                "GroupKFold",
                "KFold",
                "LeaveOneOut",
                "RepeatedKFold",
                "RepeatedStratifiedKFold",
                "ShuffleSplit",
                "StratifiedKFold",
                "StratifiedShuffleSplit",
            )
        ),
        *_REGISTRY.values(),
    }
)


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "saving and loading models needs skops: pip install 'fgfm[store]'"
        ) from error
    return skops.io


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted model to a file that runs no code when it is loaded.

    Parameters
    ----------
    model : scikit-learn estimator
        An `FGFMClassifier`, a pipeline that contains one, or any other estimator.
    path : str or path-like
        The file. It is replaced when the new one is complete.

    See Also
    --------
    load : Load the model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import fgfm
    >>> model = fgfm.FGFMClassifier(random_state=0).fit([[0], [0], [1]], [[1, 0], [1, 0], [0, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fgfm.save(model, Path(folder) / "model.fgfm")
    ...     again = fgfm.load(Path(folder) / "model.fgfm")
    >>> again.predict([[0], [1]])
    array([[1, 0],
           [0, 1]])
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(
            f"model is {type(model).__name__}: it must be a scikit-learn estimator (an instance)"
        )
    skops_io = _skops()
    with atomic_file(path) as file:
        draft = io.BytesIO()
        skops_io.dump(model, draft)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            _copy_members(draft, archive, _to_stable_names)
            header = {"format": _FORMAT, "fgfm": version("fgfm")}
            archive.writestr(_HEADER, json.dumps(header))


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Load a model from a file written by `save`.

    Parameters
    ----------
    path : str or path-like
        The file.
    trusted : sequence of str, optional
        Full names of further classes that the file may contain, such as those of a base learner
        from another library. Name only classes that you trust: loading may run their code. Trees
        and forests of scikit-learn need ``["sklearn.tree._tree.Tree"]``, since their node indices
        are not checked.

    Returns
    -------
    scikit-learn estimator
        The model.

    See Also
    --------
    save : Write the file.
    """
    if isinstance(trusted, str):
        raise TypeError(f"trusted is {trusted!r}: it must be a list of names of classes")
    skops_io = _skops()
    source = Path(path)
    archive = _read_archive(source)
    refused = sorted(set(_untrusted_classes(source, archive)) - set(trusted))
    if refused:
        raise ValueError(
            f"{source} contains {', '.join(refused)}: such classes are loaded only if you trust "
            "them and name them in trusted=[...]"
        )
    try:
        model = skops_io.load(archive, trusted=[*_TRUSTED, *trusted])
    except Exception as error:
        raise _damaged(source, error) from error
    if not isinstance(model, BaseEstimator):
        raise ValueError(f"{source} contains {type(model).__name__}: it must contain an estimator")
    return model


def foreign_classes(path: str | os.PathLike[str]) -> list[str]:
    """Return the classes in a file that `load` refuses unless they are trusted; run no code.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    list of str
        Their full names.
    """
    source = Path(path)
    return _untrusted_classes(source, _read_archive(source))


def _untrusted_classes(source: Path, archive: BinaryIO) -> list[str]:
    try:
        unknown = set(_skops().get_untrusted_types(file=archive))
    except Exception as error:
        raise _damaged(source, error) from error
    return sorted(unknown - _TRUSTED)


def _read_archive(source: Path) -> BinaryIO:
    """Return the archive in memory, with the current names of classes and attributes."""
    with source.open("rb") as file:
        _check_header(source, file)
        target = io.BytesIO()
        try:
            with zipfile.ZipFile(target, "w") as archive:
                _copy_members(file, archive, _to_current_names)
        except Exception as error:
            raise _damaged(source, error) from error
    return target


def _damaged(source: Path, error: Exception) -> ValueError:
    return ValueError(f"{source} is damaged, or was written by other versions: {error}")


def _check_header(source: Path, file: BinaryIO) -> None:
    """Raise ValueError unless the file is complete and has a known format."""
    try:
        with zipfile.ZipFile(file) as archive:
            has_header = _HEADER in archive.namelist()
            broken = archive.testzip()
            header: Any = json.loads(archive.read(_HEADER)) if has_header else None
    except zipfile.BadZipFile as error:
        raise ValueError(
            f"{source} is not a model saved by fgfm, or is damaged: {error}"
        ) from error
    except Exception as error:  # decompressors and the JSON parser have errors of their own
        raise ValueError(f"{source} is damaged: {error}") from error
    if not has_header:
        raise ValueError(f"{source} is not a model saved by fgfm: it has no {_HEADER}")
    if broken is not None:
        raise ValueError(f"{source} is damaged: the checksum of {broken} is wrong")
    found = header.get("format") if isinstance(header, dict) else None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ValueError(f"{source} is damaged: its format is {found!r}")
    if found > _FORMAT:
        raise ValueError(
            f"{source} was written by fgfm {header.get('fgfm')} in format {found}, but this is "
            f"fgfm {version('fgfm')}, which reads formats up to {_FORMAT}: update fgfm"
        )


# Names in schema.json


def _copy_members(
    source: BinaryIO, target: zipfile.ZipFile, translate: Callable[[dict[str, Any]], None]
) -> None:
    """Copy an archive, with every node of schema.json translated in place."""
    with zipfile.ZipFile(source) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            if name == _SCHEMA:
                schema = json.loads(content)
                for node in _nodes(schema):
                    translate(node)
                content = json.dumps(schema).encode()
            target.writestr(name, content)


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a schema: objects that name the module and the name of a class."""
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending.extend(value.values())
            if all(isinstance(value.get(key), str) for key in ("__module__", "__class__")):
                yield value
        elif isinstance(value, list):
            pending.extend(value)


def _to_stable_names(node: dict[str, Any]) -> None:
    """Replace the module and name of a class of fgfm by its stable name."""
    module, name = node["__module__"], node["__class__"]
    if module.partition(".")[0] != "fgfm":
        return
    kind = getattr(sys.modules.get(module), name, None)
    for stable, place in _REGISTRY.items():
        if place.endswith(f".{name}") and _import_class(place) is kind:
            node["__module__"], _, node["__class__"] = stable.rpartition(".")


def _to_current_names(node: dict[str, Any]) -> None:
    """Replace a stable name by the place of the class, and rename its attributes."""
    stable = f"{node['__module__']}.{node['__class__']}"
    if stable not in _REGISTRY:
        return
    node["__module__"], _, node["__class__"] = _REGISTRY[stable].rpartition(".")
    for old, new in _RENAMED_ATTRIBUTES.get(stable, {}).items():
        attributes = node["content"]["content"]
        if old in attributes:
            attributes[new] = attributes.pop(old)


def _import_class(place: str) -> Any:
    module, _, name = place.rpartition(".")
    return getattr(import_module(module), name)
