"""Checks of loaded models, before they are returned.

Compiled code follows indices without bounds checks, and sizes in a file become sizes of arrays:
both are compared with the arrays that the file has. Models of fgfm then predict one row, so that a
missing attribute or one of another type is found when the file is loaded.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder

from fgfm.decider import FDecider
from fgfm.store._trees import check_owner_of_trees

_FITTED = {"_factor_models", "_learned"}  # attributes of fitted models of fgfm
_DENSE = 1000  # labels of a row of probabilities that is not sparse
_WIDE = 1 << 22  # features of a row that is not empty


def check_loaded(model: Any, *, trees: bool = True) -> None:
    """Raise an error if a loaded model cannot predict, or could leave arrays or exhaust memory.

    Parameters
    ----------
    model : object
        What a file contains, before any of its methods is called.
    trees : bool
        Whether to check trees of scikit-learn.
    """
    pending, seen = [model], {}
    while pending:
        part = pending.pop()
        if id(part) in seen or isinstance(part, (str, bytes, int, float, type)):
            continue
        seen[id(part)] = part  # keeps it alive, so that its id is not used again
        children = _children(part)
        pending.extend(children)
        _check_attributes(part)
        if trees:
            check_owner_of_trees(part, children)
        if sparse.issparse(part):
            _check_sparse(part)
        elif isinstance(part, (np.random.RandomState, np.random.Generator)):
            _check_generator(part)
    for part in seen.values():
        if _FITTED & set(getattr(part, "__dict__", {})):
            _check_predictions(part)


def _children(value: Any) -> list[Any]:
    """Return the items of a container and the values of attributes."""
    children = list(getattr(value, "__dict__", {}).values())
    if isinstance(value, dict):
        children.extend(value.keys())
        children.extend(value.values())
    elif isinstance(value, (list, tuple, set)):
        children.extend(value)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        children.extend(value.ravel().tolist())
    return children


def _check_attributes(part: Any) -> None:
    """Raise ValueError if attributes of an object hide a method, or index other arrays wrongly."""
    name, found = type(part).__name__, getattr(part, "__dict__", {})
    for attribute in found:
        if callable(getattr(type(part), attribute, None)):
            raise ValueError(f"a {name} has an attribute in place of {attribute}()")
    words = found.get("vocabulary_", {})
    if not isinstance(words, dict) or set(words.values()) != set(range(len(words))):
        raise ValueError(f"the vocabulary of a {name} has no column for each word")
    for attribute in ("_fit_X", "cluster_centers_"):  # compared with rows of n_features_in_
        rows, p = found.get(attribute), found.get("n_features_in_")
        if rows is None or p is None:
            continue
        shape = np.shape(rows)
        if shape[1:] != (p,) or shape[0] == 0:  # without rows, scikit-learn divides by 0
            raise ValueError(f"{attribute} of a {name} must have rows of {p} columns: {shape}")
    if isinstance(part, OneHotEncoder):
        _check_categories(found)
    if name == "FactorModels" and "cardinalities" in found:
        for m, cardinalities in zip(found["sizes"], found["cardinalities"], strict=True):
            if type(m) is not int or not 1 <= m <= len(found["models"].classes):
                raise ValueError(f"a factor has {m!r} labels")
            _check_cardinalities(cardinalities, m)
    elif name == "FactorModels":
        _check_methods(found["methods"], len(found["models"].classes))
    if "first_column" in found:
        wanted = sum(len(classes) for classes in found["classes"])
        for one in found["parts"]:
            arrays = (getattr(one, array, None) for array in ("targets", "coef", "rare"))
            width = next(array for array in arrays if array is not None).shape[-1]
            if width > wanted:
                raise ValueError(f"a part of a {name} predicts {width} columns, not {wanted}")


def _check_categories(found: dict[str, Any]) -> None:
    """Raise ValueError if categories would get columns that an encoder does not have."""
    if "categories_" not in found:
        return
    m = len(found["categories_"])
    groups = found.get("_default_to_infrequent_mappings", [None] * m)
    dropped = found.get("drop_idx_")
    dropped = [None] * m if dropped is None else dropped
    widths = found["_n_features_outs"]
    for categories, group, drop, width in zip(
        found["categories_"], groups, dropped, widths, strict=True
    ):
        columns = range(len(categories)) if group is None else np.asarray(group)
        least = max(columns, default=-1) + 1 - (drop is not None)
        if min(columns, default=0) < 0 or least > width:
            raise ValueError(f"a OneHotEncoder has {width} columns for {least} categories")


def _check_sparse(matrix: Any) -> None:
    """Raise ValueError unless all indices of a CSR or CSC matrix are valid."""
    if matrix.format not in ("csr", "csc"):
        raise ValueError(f"a sparse matrix has format {matrix.format}: it must be csr or csc")
    matrix.check_format(full_check=True)


def _check_generator(generator: Any) -> None:
    """Raise ValueError if a random generator would read outside of its state."""
    is_old = isinstance(generator, np.random.RandomState)
    state: Any = generator.get_state(legacy=False) if is_old else generator.bit_generator.state
    inner = state["state"] if isinstance(state["state"], dict) else {}
    position, most = inner.get("pos", state.get("buffer_pos", 0)), 624 if "pos" in inner else 4
    if not 0 <= position <= most:
        raise ValueError(f"a random generator has the position {position}, not 0 to {most}")


def _check_methods(methods: list[Any], n_targets: int) -> None:
    """Raise ValueError unless the numbers of labels of factors are within those of the models."""
    for method in methods:
        sets = getattr(method, "labelsets", None)
        most = n_targets if sets is None else sets.shape[1]
        m, S = method.n_labels, method.max_cardinality
        if not (type(m) is type(S) is int and 1 <= m <= most):
            raise ValueError(f"a factor has {m!r} labels, with models of {most}")
        _check_cardinalities(method.cardinalities, m)
        if max(1, method.cardinalities[-1]) != S:
            raise ValueError(f"max_cardinality is {S}: cardinalities are {method.cardinalities}")


def _check_cardinalities(cardinalities: Any, m: int) -> None:
    valid = type(cardinalities) is np.ndarray and cardinalities.dtype.kind == "i"
    if not valid or cardinalities.ndim != 1 or not len(cardinalities):
        raise ValueError(f"cardinalities must be integers: {cardinalities!r:.60}")
    if cardinalities[0] < 0 or cardinalities[-1] > m or (np.diff(cardinalities) <= 0).any():
        raise ValueError(f"cardinalities must ascend from 0 to at most {m}: {cardinalities}")


def _check_predictions(model: Any) -> None:
    """Raise an error unless a fitted model of fgfm predicts one row of numbers.

    Base learners of scikit-learn are left out: their rows may be texts, or have categories.
    """
    p = model.n_features_in_
    if isinstance(model, FDecider):
        if hasattr(vars(model).get("_model"), "cardinalities"):
            _check_cardinalities(model._model.cardinalities, len(model.classes_))
        one = sparse.csr_array(([0.5], ([0], [0])), (1, p))
        classes = not model.multilabel_ and p > 1  # whose probabilities sum to 1
        rows = one if p > _DENSE and not classes else np.full((1, p), 1.0 / p if classes else 0.5)
    else:
        fitted = model._factor_models
        if not hasattr(fitted, "models"):
            return  # objects of the user
        if hasattr(fitted.models, "models") or hasattr(fitted.models, "estimators"):
            return  # base learners
        rows = sparse.csr_array(np.ones((1, p)) if p <= _WIDE else (1, p))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.predict(rows)
        model.predict_proba(rows)
