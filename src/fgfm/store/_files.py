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
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import sklearn.pipeline
from sklearn.base import BaseEstimator

from fgfm._utils.atomic import atomic_file
from fgfm.pipeline import Pipeline
from fgfm.store._checks import check_loaded
from fgfm.store._schema import (
    PREDICTOR,
    SCHEMA,
    TREE,
    call_checked_tree,
    check_names,
    full_name,
    iterate_nodes,
    places,
    read_schema,
    unchecked_trees,
)
from fgfm.store._vocabulary import pack_vocabularies

__all__ = ["foreign_classes", "load", "save"]

_FORMAT = 1
_HEADER = "fgfm.json"
_WRITERS = ("fgfm", "scikit-learn", "skops")  # whose versions a file has
_FORMS = ("array", "matrix")
_LOSS_MODULES = ("_loss", "sklearn._loss._loss")  # the same one in versions of scikit-learn

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
            "fgfm.Pipeline",
            "fgfm.data.FeatureEncoder",
            "fgfm.decision.Constraints",
            "fgfm.factors.Cut",
            "fgfm.factors.GCM",
            "fgfm.factors.MutualInformation",
            "fgfm.ridge.RidgeLogistic",
        )
    },
    # parts of fitted models
    "fgfm.data.ColumnKinds": "fgfm.data._typed.ColumnKinds",
    "fgfm.data.NumberColumns": "fgfm.data._number_columns.NumberColumns",
    "fgfm.data.Schema": "fgfm.data._schema.Schema",
    "fgfm.decider.JointModel": "fgfm.decider._joint_model.JointModel",
    "fgfm.estimation.CustomModels": "fgfm.estimation._fitting.CustomModels",
    "fgfm.estimation.FactorModels": "fgfm.estimation._fitting.FactorModels",
    "fgfm.estimation.IsotonicCalibrator": "fgfm.estimation._calibration.IsotonicCalibrator",
    "fgfm.estimation.LearnerModel": "fgfm.estimation._models.LearnerModel",
    "fgfm.estimation.LearnerModels": "fgfm.estimation._models.LearnerModels",
    "fgfm.estimation.NoCalibrator": "fgfm.estimation._calibration.NoCalibrator",
    "fgfm.estimation.LogLinearPool": "fgfm._utils.log_linear_pool.LogLinearPool",
    "fgfm.estimation.RidgeModels": "fgfm.estimation._models.RidgeModels",
    "fgfm.estimation.ShrunkCalibrator": "fgfm.estimation._calibration.ShrunkCalibrator",
    "fgfm.estimation.SigmoidCalibrator": "fgfm.estimation._calibration.SigmoidCalibrator",
    "fgfm.estimation.StackModels": "fgfm.estimation._models.StackModels",
    **{
        f"fgfm.estimation.{name}": f"fgfm.estimation._methods.{name}"
        for name in ("Direct", "Powerset", "Reweighted", "Tilted", "TwoStep")
    },
    "fgfm.stack.CountFeatures": "fgfm.stack._features.CountFeatures",
    "fgfm.stack.KernelRidge": "fgfm.stack._kernel_ridge.KernelRidge",
    "fgfm.stack.LabelForest": "fgfm.stack._forest.LabelForest",
    "fgfm.stack.MarginalStack": "fgfm.stack._marginals.MarginalStack",
    "fgfm.stack.StackedLearner": "fgfm.stack._learner.StackedLearner",
    "fgfm.stack.StandardFeatures": "fgfm.stack._features.StandardFeatures",
    "fgfm.store.Vocabulary": "fgfm.store._vocabulary.Vocabulary",
}

# Attributes of these classes that were renamed since a format that must still be read:
# stable name -> {old name: new name}. A new attribute needs a default in its class instead.
_RENAMED_ATTRIBUTES: dict[str, dict[str, str]] = {}

# Trusted classes beyond those that skops trusts: they hold numbers, texts and trusted objects, and
# their methods call nothing that a file can choose.
_TRUSTED = frozenset(
    {
        "numpy.dtype",
        # types of columns that a make_column_selector selects
        *(f"numpy.{name}" for name in ("floating", "generic", "integer", "number")),
        *(f"scipy.sparse._{kind}.{kind}_{form}" for kind in ("csr", "csc") for form in _FORMS),
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.compose._column_transformer.make_column_selector",
        PREDICTOR,  # checked when loaded
        *(
            f"sklearn.feature_selection._univariate_selection.{name}"
            for name in ("chi2", "f_classif", "f_regression")
        ),
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
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.utils._bunch.Bunch",
        *_REGISTRY.values(),
    }
)

# Nodes of skops that these classes may be the type of: others call a class with arguments from the
# file.
_LOADERS = frozenset(
    {
        "DTypeNode",
        "DictNode",
        "FunctionNode",
        "ObjectNode",
        "SparseMatrixNode",
        "TupleNode",
        "TypeNode",
    }
)

# What is called with arguments from the file, and checks them.
_CONSTRUCTORS = frozenset({"fgfm.store._trees.checked_tree", "fgfm.store._vocabulary.Vocabulary"})


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

    Notes
    -----
    These are loaded without trust: the classes of fgfm, and estimators of scikit-learn whose
    parameters are numbers, texts, arrays, other such estimators or functions of NumPy and SciPy
    (`numpy.ufunc`): preprocessing such as `TfidfVectorizer`, `OneHotEncoder` and
    `ColumnTransformer`, linear models, naive Bayes, `MLPClassifier`, trees, forests and
    `HistGradientBoostingClassifier` without categorical features. A function of yours (a
    tokenizer, a column selector) is saved by its name, if it can be imported, and loaded only if
    it is trusted.

    The file has the versions of fgfm, scikit-learn and skops. scikit-learn warns
    (`InconsistentVersionWarning`) if an estimator was fitted by another version of it.

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
        skops_io.dump(pack_vocabularies(model), draft)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            _copy_members(draft, archive, _to_stable_names)
            header = {"format": _FORMAT} | {name: version(name) for name in _WRITERS}
            archive.writestr(_HEADER, json.dumps(header))


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Load a model from a file written by `save`.

    Parameters
    ----------
    path : str or path-like
        The file.
    trusted : sequence of str, optional
        Full names of further classes and functions that the file may contain, such as those of a
        base learner from another library; the error that refuses them has their names. Name only
        what you trust: loading may run its code. `GradientBoostingClassifier` needs
        ``["sklearn.tree._tree.Tree"]``, since its trees are not checked.

    Returns
    -------
    scikit-learn estimator
        The model. A pipeline that ends with a classifier of fgfm is a `fgfm.Pipeline`.

    See Also
    --------
    save : Write the file.

    Notes
    -----
    No code of the file is run: it has arrays, numbers, texts and names, and may name only classes
    that are known to do nothing else when they are loaded. Indices of sparse matrices and of trees
    (trees, forests and `HistGradientBoostingClassifier` of scikit-learn, the learner "auto") are
    checked, since compiled code follows them without checks.
    """
    if isinstance(trusted, str):
        raise TypeError(f"trusted is {trusted!r}: it must be a list of names of classes")
    skops_io = _skops()
    source = Path(path)
    archive = _read_archive(source)
    refused = sorted(set(_untrusted_classes(source, archive)) - set(trusted))
    if refused:
        found = places(read_schema(archive))
        named = ", ".join(f"{name} ({found[name]})" if name in found else name for name in refused)
        raise ValueError(
            f"{source} contains {named}: such classes and functions are loaded only if you trust "
            "them and name them in trusted=[...]"
        )
    try:
        model = skops_io.load(archive, trusted=[*_TRUSTED, *_CONSTRUCTORS, *trusted])
        check_loaded(model, trees=not {TREE, PREDICTOR} & set(trusted))
    except Exception as error:
        raise _damaged(source, error) from error
    if not isinstance(model, BaseEstimator):
        raise ValueError(f"{source} contains {type(model).__name__}: it must contain an estimator")
    return _with_methods(model)


def _with_methods(model: Any) -> Any:
    """Return a pipeline of scikit-learn that ends with a classifier of fgfm as our `Pipeline`."""
    if type(model) is not sklearn.pipeline.Pipeline or not hasattr(model.steps[-1][1], "decide"):
        return model
    pipeline = Pipeline(model.steps)
    pipeline.__dict__.update(vars(model))
    return pipeline


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
        nodes = list(iterate_nodes(read_schema(archive)))
        unchecked = set().union(*map(unchecked_trees, nodes))
    except Exception as error:
        raise _damaged(source, error) from error
    called = {full_name(node) for node in nodes if node.get("__loader__") not in _LOADERS}
    called -= _CONSTRUCTORS
    return sorted((unknown - _TRUSTED - _CONSTRUCTORS) | (called & _TRUSTED) | unchecked)


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
    """Return the error of a file that has a valid header."""
    with zipfile.ZipFile(source) as archive:
        header = json.loads(archive.read(_HEADER))
    others = [
        f"{name} {header[name]} (this is {version(name)})"
        for name in _WRITERS
        if header.get(name, version(name)) != version(name)
    ]
    written = f"was written by {' and '.join(others)}" if others else "was changed"
    return ValueError(f"{source} is damaged or {written}: {error}")


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
    """Copy an archive, with schema.json translated in place."""
    with zipfile.ZipFile(source) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            if name == SCHEMA:
                schema = json.loads(content)
                translate(schema)
                content = json.dumps(schema).encode()
            target.writestr(name, content)


def _to_stable_names(schema: dict[str, Any]) -> None:
    """Replace the modules and names of classes of fgfm by their stable names."""
    check_names(schema)
    for node in iterate_nodes(schema):
        module, name = node["__module__"], node["__class__"]
        if module.partition(".")[0] != "fgfm":
            continue
        kind = getattr(sys.modules.get(module), name, None)
        for stable, place in _REGISTRY.items():
            if place.endswith(f".{name}") and _import_class(place) is kind:
                node["__module__"], _, node["__class__"] = stable.rpartition(".")


def _to_current_names(schema: dict[str, Any]) -> None:
    """Replace stable names by the places of classes, rename attributes, and check trees."""
    nodes = list(iterate_nodes(schema))
    check_trees = not any(TREE in unchecked_trees(node) for node in nodes)
    for node in nodes:
        stable = full_name(node)
        if stable == TREE and node.get("__loader__") == "TreeNode" and check_trees:
            call_checked_tree(node)
        if node["__module__"] in _LOSS_MODULES:
            loss = getattr(import_module(_LOSS_MODULES[1]), node["__class__"], None)
            node["__module__"] = getattr(loss, "__module__", node["__module__"])
        if stable not in _REGISTRY:
            continue
        node["__module__"], _, node["__class__"] = _REGISTRY[stable].rpartition(".")
        for old, new in _RENAMED_ATTRIBUTES.get(stable, {}).items():
            attributes = node["content"]["content"]
            if old in attributes:
                attributes[new] = attributes.pop(old)


def _import_class(place: str) -> Any:
    module, _, name = place.rpartition(".")
    return getattr(import_module(module), name)
