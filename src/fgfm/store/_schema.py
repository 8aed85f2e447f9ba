"""The description of a model in an archive of skops: schema.json, a tree of nodes.

A node names a class, its module, and the loader of skops that builds it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

TREE = "sklearn.tree._tree.Tree"
PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"

_LIBSVM = tuple(
    f"sklearn.svm._classes.{name}" for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
)


def is_node(value: Any) -> bool:
    """Return True for an object that names the module and the name of a class."""
    return isinstance(value, dict) and all(
        isinstance(value.get(key), str) for key in ("__module__", "__class__")
    )


def iterate_nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a schema."""
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending.extend(value.values())
            if is_node(value):
                yield value
        elif isinstance(value, list):
            pending.extend(value)


def full_name(node: dict[str, Any]) -> str:
    """Return the module and name of the class or function of a node."""
    return f"{node['__module__']}.{node['__class__']}"


def _attributes(node: dict[str, Any]) -> dict[str, Any]:
    """Return the nodes of the attributes of an object; none for a node of another kind."""
    found = node.get("content")
    found = found.get("content") if isinstance(found, dict) else None
    return found if node.get("__loader__") == "ObjectNode" and isinstance(found, dict) else {}


def places(schema: dict[str, Any]) -> dict[str, str]:
    """Return where classes and functions are: {full name: "attribute of class"}."""
    return {
        full_name(value): f"{attribute} of {node['__class__']}"
        for node in iterate_nodes(schema)
        for attribute, value in _attributes(node).items()
        if is_node(value)
    }


def check_names(schema: dict[str, Any]) -> None:
    """Raise ValueError if a class or function cannot be imported by its name."""
    for node in iterate_nodes(schema):
        module, name = node["__module__"], node["__class__"]
        if not hasattr(sys.modules.get(module), name):
            place = places(schema).get(full_name(node), "a part of model")
            raise ValueError(
                f"{place} is a {name} of {module}, which cannot be imported when the file is "
                "loaded: use a function or class that a module defines"
            )


def unchecked_classes(node: dict[str, Any]) -> set[str]:
    """Return the classes in a model whose safety depends on its other parts, or is not checked.

    `GradientBoostingClassifier` writes into an array of the shape of its initial predictions; with
    categorical features, the rows that trees get are those of an encoder; libsvm follows the
    numbers of support vectors.
    """
    name = full_name(node)
    if name in _LIBSVM:
        return {name}
    if name.startswith("sklearn.ensemble._gb.GradientBoosting"):
        return {TREE}
    if name.startswith("sklearn.ensemble._hist_gradient_boosting.gradient_boosting."):
        encoder = _attributes(node).get("_preprocessor")
        is_none = encoder is None or (is_node(encoder) and encoder.get("content") == "null")
        return set() if is_none else {PREDICTOR}
    return set()


def call_checked_tree(node: dict[str, Any]) -> None:
    """Have a tree built by `checked_tree` instead of skops."""
    try:
        arguments = [node.pop("__reduce__")["args"], node["content"]]
    except (KeyError, TypeError) as error:
        raise ValueError("a tree has no arguments, or no nodes") from error
    node["__module__"], node["__class__"] = "fgfm.store._trees", "checked_tree"
    node["__loader__"] = "ConstructorFromReduceNode"
    node["content"] = {
        "__module__": "builtins",
        "__class__": "tuple",
        "__loader__": "TupleNode",
        "content": arguments,
    }
