"""Classes that a file may contain, and their names in its description.

The description of a model (schema.json) is a tree of nodes; each names a class, its module, and
the loader of skops that builds it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

TREE = "sklearn.tree._tree.Tree"
PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
_VOCABULARY = "fgfm.store._vocabulary.Vocabulary"  # constructed with arguments from the file

# Classes of fgfm by their module. In files they have names without private modules, so that a
# class that moves keeps its name there.
_OURS = {
    "fgfm._factor_models": "ClonedModels FactorModels RidgeModels",
    "fgfm.decider._log_linear_pool": "LogLinearPool",
    "fgfm.classifier": "FClassifier",
    "fgfm.decider._calibration": "IsotonicCalibrator NoCalibrator ScoreCalibrator "
    "ShrunkCalibrator",
    "fgfm.decider._quantiles": "Quantiles",
    "fgfm.decider._class_model": "ClassModel",
    "fgfm.decider._decider": "FDecider",
    "fgfm.decider._label_set_model": "LabelSetModel",
    "fgfm.decider._missed": "MissedItems",
    "fgfm.decider._rules": "ClassRule RowRule Settings ThresholdRule",
    "fgfm.decision._constraints": "Constraints",
    "fgfm.factors._ilf": "ILFCompo",
    "fgfm.factors._label_graph": "Cut",
    "fgfm.gfm": "FGFMClassifier",
    "fgfm.io._encoder": "FeatureEncoder",
    "fgfm.learner._boosting": "LabelBoosting",
    "fgfm.learner._classifier": "StackClassifier",
    "fgfm.learner._features": "CountFeatures StandardFeatures UsedFeatures",
    "fgfm.learner._forest": "LabelForest",
    "fgfm.learner._kernel_ridge": "KernelRidge",
    "fgfm.learner._logistic": "LabelLogistic",
    "fgfm.learner._stack": "MarginalStack",
    "fgfm.ridge._estimator": "RidgeLogistic",
    "fgfm.store._vocabulary": "Vocabulary",
}
# Others that skops does not trust: they hold numbers, texts and trusted objects, and their methods
# call nothing that a file can choose.
_OTHERS = {
    "numpy": "dtype floating generic integer number",
    "scipy.sparse._csc": "csc_array csc_matrix",
    "scipy.sparse._csr": "csr_array csr_matrix",
    "sklearn.calibration": "_CalibratedClassifier _SigmoidCalibration _TemperatureScaling",
    "sklearn.compose._column_transformer": "make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.predictor": "TreePredictor",  # checked when loaded
    "sklearn.feature_selection._univariate_selection": "chi2 f_classif f_regression",
    "sklearn.model_selection._split": "GroupKFold KFold LeaveOneOut RepeatedKFold "
    "RepeatedStratifiedKFold ShuffleSplit StratifiedKFold StratifiedShuffleSplit",
    "sklearn.neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "sklearn.tree._tree": "Tree",  # checked when loaded
    "sklearn.utils._bunch": "Bunch",
}
TRUSTED = frozenset(
    f"{module}.{name}" for module, names in (_OURS | _OTHERS).items() for name in names.split()
)
_PLACES = {  # name in a file -> (module, name)
    f"fgfm.{name}": (module, name) for module, names in _OURS.items() for name in names.split()
}
_STABLE_NAMES = {place: ("fgfm", place[1]) for place in _PLACES.values()}

# Nodes of skops that trusted classes may be the type of: others call them with arguments from the
# file.
_LOADERS = ("DType", "Dict", "Function", "Object", "SparseMatrix", "Tree", "Tuple", "Type")
_LIBSVM = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")


def _iterate_nodes(schema: Any) -> Iterator[dict[str, Any]]:
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending.extend(value.values())
            if _is_node(value):
                yield value
        elif isinstance(value, list):
            pending.extend(value)


def _is_node(value: Any) -> bool:
    names = ("__module__", "__class__")
    return isinstance(value, dict) and all(isinstance(value.get(name), str) for name in names)


def _full_name(node: dict[str, Any]) -> str:
    return f"{node['__module__']}.{node['__class__']}"


def _attributes(node: dict[str, Any]) -> dict[str, Any]:
    """Return the nodes of the attributes of an object; none for a node of another kind."""
    state = node.get("content") if node.get("__loader__") == "ObjectNode" else None
    attributes = state.get("content") if isinstance(state, dict) else None
    return attributes if isinstance(attributes, dict) else {}


def attribute_names(schema: Any) -> dict[str, str]:
    """Return the attributes that classes and functions are: {full name: "attribute of class"}."""
    return {
        _full_name(value): f"{attribute} of {node['__class__']}"
        for node in _iterate_nodes(schema)
        for attribute, value in _attributes(node).items()
        if _is_node(value)
    }


def refused_classes(schema: Any, unknown: set[str]) -> set[str]:
    """Return the classes and functions that need trust; `unknown`: those skops does not trust."""
    nodes = list(_iterate_nodes(schema))
    inert = {f"{name}Node" for name in _LOADERS}
    called = {_full_name(node) for node in nodes if node.get("__loader__") not in inert}
    unchecked = set().union(*map(_unchecked_classes, nodes))
    return (unknown - TRUSTED) | (called & TRUSTED - {_VOCABULARY}) | unchecked


def _unchecked_classes(node: dict[str, Any]) -> set[str]:
    """Return the classes of a model whose arrays compiled code follows, and that are not checked.

    `GradientBoostingClassifier` writes into an array of the shape of its initial predictions; with
    categorical features, the rows that trees get are those of an encoder; libsvm follows the
    numbers of support vectors.
    """
    name, unchecked = _full_name(node), set()
    if name in (f"sklearn.svm._classes.{kind}" for kind in _LIBSVM):
        unchecked = {name}
    elif name.startswith("sklearn.ensemble._gb.GradientBoosting"):
        unchecked = {TREE}
    elif name.startswith("sklearn.ensemble._hist_gradient_boosting.gradient_boosting."):
        encoder = _attributes(node).get("_preprocessor", {"content": "null"})
        unchecked = set() if encoder.get("content") == "null" else {PREDICTOR}
    return unchecked


def to_stable_names(schema: Any) -> None:
    """Replace the places of classes of fgfm by their names in files."""
    for node in _iterate_nodes(schema):
        module, name = node["__module__"], node["__class__"]
        if not hasattr(sys.modules.get(module), name):
            attribute = attribute_names(schema).get(_full_name(node), "a part of model")
            raise ValueError(
                f"{attribute} is a {name} of {module}, which cannot be imported when the file is "
                "loaded: use a function or class that a module defines"
            )
        node["__module__"], node["__class__"] = _STABLE_NAMES.get((module, name), (module, name))


def to_current_names(schema: Any) -> None:
    """Replace names in files by the places of classes."""
    for node in _iterate_nodes(schema):
        if _full_name(node) in _PLACES:
            node["__module__"], node["__class__"] = _PLACES[_full_name(node)]
