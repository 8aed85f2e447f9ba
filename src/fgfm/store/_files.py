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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from sklearn.base import BaseEstimator

from fgfm._utils.atomic import atomic_file
from fgfm.store._archive import (
    HEADER,
    SCHEMA,
    check_schema,
    most_bytes,
    read_members,
    write_members,
)
from fgfm.store._checks import check_loaded
from fgfm.store._schema import (
    PREDICTOR,
    TREE,
    call_checked_tree,
    check_names,
    full_name,
    iterate_nodes,
    places,
    unchecked_classes,
)
from fgfm.store._vocabulary import pack_vocabularies

_FORMAT = 1
_WRITERS = ("fgfm", "scikit-learn", "skops")  # whose versions a file has
_FORMS = ("array", "matrix")
_LOSS_MODULES = ("_loss", "sklearn._loss._loss")  # the same one in versions of scikit-learn

# Classes of fgfm that a file may contain, by the module to import them from. In files they have
# stable names, without the private modules: when a class moves, it must keep its name.
_CLASSES = {
    "fgfm": "FClassifier FDecider FGFMClassifier ILFCompo StackClassifier",
    "fgfm._utils.log_linear_pool": "LogLinearPool",
    "fgfm.decider._class_model": "ClassModel",
    "fgfm.decider._calibration": "IsotonicCalibrator NoCalibrator ShrunkCalibrator",
    "fgfm.decider._label_set_model": "LabelSetModel",
    "fgfm.decision": "Constraints",
    "fgfm._factor_models": "ClonedModels FactorModels RidgeModels",
    "fgfm.factors": "GCM MutualInformation",
    "fgfm.factors._label_graph": "Cut",
    "fgfm.io": "FeatureEncoder",
    "fgfm.ridge": "RidgeLogistic",
    "fgfm.learner._boosting": "LabelBoosting",
    "fgfm.learner._features": "CountFeatures StandardFeatures",
    "fgfm.learner._forest": "LabelForest",
    "fgfm.learner._kernel_ridge": "KernelRidge",
    "fgfm.learner._learner": "StackedLearner",
    "fgfm.learner._logistic": "LabelLogistic",
    "fgfm.learner._marginals": "MarginalStack",
    "fgfm.store._vocabulary": "Vocabulary",
}
_REGISTRY = {  # stable name -> module and name
    f"{module.partition('._')[0]}.{name}": f"{module}.{name}"
    for module, names in _CLASSES.items()
    for name in names.split()
}

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
        An `FClassifier`, a pipeline that contains one, or any other estimator.
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
    `HistGradientBoostingClassifier` without categorical features; not support vector machines but
    `LinearSVC`. A function of yours (a
    tokenizer, a column selector) is saved by its name, if it can be imported, and loaded only if
    it is trusted.

    The file has the versions of fgfm, scikit-learn and skops. scikit-learn warns
    (`InconsistentVersionWarning`) if an estimator was fitted by another version of it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import fgfm
    >>> X, Y = [[0], [0], [1]], [[1, 0], [1, 0], [0, 1]]
    >>> model = fgfm.FGFMClassifier(factors="single").fit(X, Y)
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
        with zipfile.ZipFile(draft) as source:
            members = {name: source.read(name) for name in source.namelist()}
        schema = json.loads(members[SCHEMA])
        _to_stable_names(schema)
        members[SCHEMA] = json.dumps(schema).encode()
        header = {"format": _FORMAT} | {name: version(name) for name in _WRITERS}
        members[HEADER] = json.dumps(header).encode()
        _write(members, file)


def _write(members: dict[str, bytes], file: BinaryIO) -> None:
    """Write an archive, without compression if it would exceed what `load` inflates."""
    total = sum(map(len, members.values()))
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        file.seek(0)
        file.truncate()
        with zipfile.ZipFile(file, "w", compression) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        if total <= most_bytes(file.tell()):
            break


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Load a model from a file written by `save`.

    Parameters
    ----------
    path : str or path-like
        The file.
    trusted : sequence of str, optional
        Full names of further classes and functions that the file may contain, such as those of a
        base learner from another library; the error that refuses them has their names. Name only
        what you trust: loading may run its code. Models whose arrays compiled code of scikit-learn
        follows without checks, and that are not checked here either, need it too:
        ``"sklearn.tree._tree.Tree"`` for `GradientBoostingClassifier`, and the name of the class
        for models of libsvm (``"sklearn.svm._classes.SVC"``, `NuSVC`, `SVR`, `NuSVR`,
        `OneClassSVM`).

    Returns
    -------
    scikit-learn estimator
        The model.

    See Also
    --------
    save : Write the file.

    Notes
    -----
    No code of the file is run: it has arrays, numbers, texts and names, and may name only classes
    that are known to do nothing else when they are loaded. A file may inflate to 256 MiB and 100
    times its size. Indices that compiled code follows without checks (of sparse matrices, trees,
    forests, `HistGradientBoostingClassifier`, the learner "auto") and sizes of models of fgfm are
    checked, and these models predict one row before they are returned.
    """
    if isinstance(trusted, str):
        raise TypeError(f"trusted is {trusted!r}: it must be a list of names of classes")
    skops_io = _skops()
    source = Path(path)
    members, schema = _read(source)
    refused = sorted(set(_untrusted_classes(source, members, schema)) - set(trusted))
    if refused:
        found = places(schema)
        named = ", ".join(f"{name} ({found[name]})" if name in found else name for name in refused)
        raise ValueError(
            f"{source} contains {named}: such classes and functions are loaded only if you trust "
            "them and name them in trusted=[...]"
        )
    with _damage_reported(source, members):
        model = skops_io.load(
            write_members(members), trusted=[*_TRUSTED, *_CONSTRUCTORS, *trusted]
        )
        if not isinstance(model, BaseEstimator):
            raise ValueError(f"it contains {type(model).__name__} in place of an estimator")
        check_loaded(model, trees=not {TREE, PREDICTOR} & set(trusted))
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
    return _untrusted_classes(source, *_read(source))


def _untrusted_classes(source: Path, members: dict[str, bytes], schema: Any) -> list[str]:
    with _damage_reported(source, members):
        unknown = set(_skops().get_untrusted_types(file=write_members(members)))
        nodes = list(iterate_nodes(schema))
        unchecked = set().union(*map(unchecked_classes, nodes))
    called = {full_name(node) for node in nodes if node.get("__loader__") not in _LOADERS}
    called -= _CONSTRUCTORS
    return sorted((unknown - _TRUSTED - _CONSTRUCTORS) | (called & _TRUSTED) | unchecked)


def _read(source: Path) -> tuple[dict[str, bytes], Any]:
    """Return the members of a file and its schema, both with the current names of classes."""
    with source.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                has_header = HEADER in archive.namelist()
        except Exception as error:
            raise ValueError(
                f"{source} is not a model saved by fgfm, or is damaged: {error}"
            ) from error
        if not has_header:
            raise ValueError(f"{source} is not a model saved by fgfm: it has no {HEADER}")
        try:  # decompressors and the JSON parser have various errors
            members = read_members(file, most_bytes(os.fstat(file.fileno()).st_size))
            header = json.loads(members[HEADER])
        except Exception as error:
            raise ValueError(f"{source} is damaged: {error}") from error
    found = header.get("format") if isinstance(header, dict) else None
    if type(found) is not int or found < 1:
        raise ValueError(f"{source} is damaged: its format is {found!r}")
    if found > _FORMAT:
        raise ValueError(
            f"{source} was written by fgfm {header.get('fgfm')} in format {found}, but this is "
            f"fgfm {version('fgfm')}, which reads formats up to {_FORMAT}: update fgfm"
        )
    with _damage_reported(source, members):
        schema = json.loads(members[SCHEMA])
        check_schema(schema, members)
        _to_current_names(schema)
        members[SCHEMA] = json.dumps(schema).encode()
    return members, schema


@contextmanager
def _damage_reported(source: Path, members: dict[str, bytes]) -> Iterator[None]:
    """Let every error name the file, and the versions that wrote it if they are others."""
    try:
        yield
    except Exception as error:
        header = json.loads(members[HEADER])
        others = [
            f"{name} {header[name]} (this is {version(name)})"
            for name in _WRITERS
            if header.get(name, version(name)) != version(name)
        ]
        written = f"was written by {' and '.join(others)}" if others else "was changed"
        reason = f"there is no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{source} is damaged or {written}: {reason}") from error


# Names in schema.json


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
    """Replace stable names by the places of classes, and have trees checked."""
    nodes = list(iterate_nodes(schema))
    check_trees = not any(TREE in unchecked_classes(node) for node in nodes)
    for node in nodes:
        name = full_name(node)
        if name == TREE and node.get("__loader__") == "TreeNode" and check_trees:
            call_checked_tree(node)
        if node["__module__"] in _LOSS_MODULES:
            loss = getattr(import_module(_LOSS_MODULES[1]), node["__class__"], None)
            node["__module__"] = getattr(loss, "__module__", node["__module__"])
        if name in _REGISTRY:
            node["__module__"], _, node["__class__"] = _REGISTRY[name].rpartition(".")


def _import_class(place: str) -> Any:
    module, _, name = place.rpartition(".")
    return getattr(import_module(module), name)
