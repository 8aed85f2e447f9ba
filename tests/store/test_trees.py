"""Trees of scikit-learn are loaded without trust; those that could crash are refused."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

import fgfm
from fgfm import FGFMClassifier
from fgfm.store import foreign_classes
from fgfm.store._trees import checked_tree
from model_files import assert_refused, dicts, rewrite, saved_array
from multilabel import X, Y, assert_same

skops_io = pytest.importorskip("skops.io")

TREE = "sklearn.tree._tree.Tree"
PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"

LEARNERS = {
    "tree": DecisionTreeClassifier(random_state=0),
    "pruned": DecisionTreeClassifier(ccp_alpha=0.02, random_state=0),
    "best first": DecisionTreeRegressor(max_leaf_nodes=7, random_state=0),
    "extra tree": ExtraTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(3, random_state=0),
    "forest of numbers": RandomForestRegressor(3, random_state=0),
    "extra trees": ExtraTreesClassifier(3, random_state=0),
    "extra trees of numbers": ExtraTreesRegressor(3, random_state=0),
    "bagging": BaggingClassifier(n_estimators=3, max_features=0.7, random_state=0),
    "adaboost": AdaBoostClassifier(n_estimators=3, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5),
    "boosting of numbers": HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=5),
}


@pytest.fixture(scope="module")
def boosting(tmp_path_factory):
    """A fitted model of boosting, and the content of its file."""
    file = tmp_path_factory.mktemp("boosting") / "model.fgfm"
    model = clone(LEARNERS["boosting"]).fit(X, Y[:, 0])
    fgfm.save(model, file)
    return model, file.read_bytes()


@pytest.mark.parametrize("name", LEARNERS)
def test_trees_are_loaded_without_trust(name, path):
    several = "forest" in name or "tree" in name
    model = LEARNERS[name].fit(X, Y if several else Y[:, 0])
    fgfm.save(model, path)
    assert foreign_classes(path) == []
    again = fgfm.load(path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    rows = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    if name == "forest":
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
        np.testing.assert_array_equal(again.apply(X), model.apply(X))
        assert (again.decision_path(X)[0] != model.decision_path(X)[0]).nnz == 0
    again.fit(X, Y[:, 0])


@pytest.mark.parametrize(
    "learner", [RandomForestClassifier(3), HistGradientBoostingClassifier(max_iter=2)], ids=str
)
def test_classifier_over_trees_is_loaded_without_trust(learner, path):
    model = FGFMClassifier(learner, random_state=0).fit(X, Y)
    fgfm.save(model, path)
    assert_same(fgfm.load(path), model)
    assert_same(fgfm.load(path, trusted=[TREE, PREDICTOR]), model)


def test_trees_of_unchecked_models_must_be_trusted(path):
    # its trees write into an array whose shape is that of another part of the model
    model = GradientBoostingClassifier(n_estimators=2).fit(X, Y[:, 0])
    fgfm.save(model, path)
    assert foreign_classes(path) == [TREE]
    with pytest.raises(ValueError, match=rf"contains {TREE} \(tree_ of DecisionTreeRegressor\)"):
        fgfm.load(path)
    again = fgfm.load(path, trusted=[TREE])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_boosting_with_categories_must_be_trusted(path):
    categories = np.column_stack([X[:, 0] > 0, X[:, 1]])
    model = HistGradientBoostingClassifier(
        max_iter=2, min_samples_leaf=5, categorical_features=[True, False]
    ).fit(categories, Y[:, 0])
    fgfm.save(model, path)
    foreign = foreign_classes(path)
    assert PREDICTOR in foreign
    with pytest.raises(ValueError, match="such classes and functions"):
        fgfm.load(path, trusted=[name for name in foreign if name != PREDICTOR])
    again = fgfm.load(path, trusted=foreign)
    np.testing.assert_array_equal(again.predict(categories), model.predict(categories))


@pytest.mark.parametrize("module", ["_loss", "sklearn._loss._loss"])
def test_losses_of_other_versions_are_loaded(module, boosting, path):
    # scikit-learn 1.7 and 1.9 have different names for the module of a loss
    model, content = boosting
    path.write_bytes(content)
    change_attributes(path, "CyHalfBinomialLoss", lambda node: node.update(__module__=module))
    np.testing.assert_array_equal(fgfm.load(path).predict_proba(X), model.predict_proba(X))


# Damage: each change of the nodes or sizes of a valid tree is refused before the tree is used


def change_arrays(path, change):
    """Apply a function to every array of an archive that has the nodes of a tree."""

    def apply(members, schema):
        for name, content in members.items():
            array = np.load(io.BytesIO(content)) if name.endswith(".npy") else np.empty(0)
            if array.dtype.names:
                members[name] = saved_array(change(array.copy()))

    rewrite(path, apply)


def change_attributes(path, kind, change):
    """Apply a function to the description of every object of a class."""

    def apply(members, schema):
        found = [node for node in dicts(schema) if node.get("__class__") == kind]
        assert found
        for node in found:
            change(node)

    rewrite(path, apply)


def changed(field, value, at=0):
    """Return a function that sets a field of a node."""

    def change(nodes):
        nodes[field][at] = value
        return nodes

    return change


def changed_nodes(left, right, feature):
    """Return changes of the nodes of a tree, by the names of their fields."""
    return {
        "child above": changed(right, 10**6),
        "cycle": changed(left, 0),
        "shared child": lambda nodes: changed(left, nodes[right][0])(nodes),
        "feature below": changed(feature, -1),
        "feature above": changed(feature, 3),
        "fewer nodes": lambda nodes: nodes[:-1],
        "no nodes": lambda nodes: nodes[:0],
        "two dimensions": lambda nodes: nodes[None],
        "other type": lambda nodes: nodes.astype([(name, "<c8") for name in nodes.dtype.names]),
        "numbers": lambda nodes: np.zeros(len(nodes)),
    }


CHANGED_NODES = changed_nodes("left_child", "right_child", "feature") | {
    "child below": changed("left_child", -2),
    "largest child": changed("left_child", np.iinfo(np.int64).max),
    "one child": changed("left_child", -1),
    "leaf with a child": changed("left_child", 1, at=-1),
}
CHANGED_BOOSTING = changed_nodes("left", "right", "feature_idx") | {
    "split leaf": changed("is_leaf", 0, at=-1),
    "category": changed("is_categorical", 1),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", CHANGED_NODES)
def test_changed_nodes_are_refused(name, path):
    fgfm.save(LEARNERS["forest"].fit(X, Y), path)
    change_arrays(path, CHANGED_NODES[name])
    assert_refused(path)


@pytest.mark.parametrize("name", CHANGED_BOOSTING)
def test_changed_nodes_of_boosting_are_refused(name, boosting, path):
    path.write_bytes(boosting[1])
    change_arrays(path, CHANGED_BOOSTING[name])
    assert_refused(path)


def number(value):
    """Return the node of a number."""
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(value),
    }


def attribute(name, value):
    """Return a function that sets an attribute of an object to a number."""

    def change(node):
        state = node["content"]
        if name not in state["content"]:
            state["key_types"]["content"].append(dict(state["key_types"]["content"][0]))
        state["content"][name] = number(value)

    return change


def without(name):
    """Return a function that removes an attribute of an object."""

    def change(node):
        state = node["content"]["content"]
        state["other"] = state.pop(name, number(0))

    return change


def argument(position, value):
    """Return a function that sets an argument of the constructor of a tree."""

    def change(node):
        node["__reduce__"]["args"]["content"][position] = number(value)

    return change


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("Tree", attribute("node_count", 10**6)),
        ("Tree", attribute("node_count", -1)),
        ("Tree", attribute("node_count", 1.5)),
        ("Tree", attribute("max_depth", 0)),
        ("Tree", attribute("max_depth", "a")),
        ("Tree", argument(0, 2)),
        ("Tree", argument(0, 4)),
        ("Tree", argument(1, 1)),
        ("Tree", argument(2, 10**6)),
        ("Tree", argument(2, 0)),
        ("Tree", argument(2, -1)),
        ("DecisionTreeClassifier", attribute("n_features_in_", 2)),
        ("DecisionTreeClassifier", without("n_features_in_")),
    ],
)
def test_changed_sizes_are_refused(kind, change, path):
    fgfm.save(LEARNERS["forest"].fit(X, Y), path)
    change_attributes(path, kind, change)
    assert_refused(path)


@pytest.mark.parametrize(
    "change",
    [
        attribute("n_features_in_", 2),
        attribute("_in_fit", True),
        without("n_features_in_"),
        lambda node: node["content"]["content"]["_predictors"].update(content=[number(1)]),
    ],
)
def test_changed_sizes_of_boosting_are_refused(change, boosting, path):
    path.write_bytes(boosting[1])
    change_attributes(path, "HistGradientBoostingClassifier", change)
    assert_refused(path)


def test_tree_in_another_object_is_refused(path):
    model = RandomForestClassifier(1).fit(X, Y[:, 0])
    model.estimators_[0] = model.estimators_[0].tree_
    fgfm.save(model, path)
    assert_refused(path, "a RandomForestClassifier has a Tree as a tree")
    model = BaggingClassifier(DecisionTreeClassifier(), 1).fit(X, Y[:, 0])
    model.estimators_[0] = model.estimators_[0].tree_
    fgfm.save(model, path)
    assert_refused(path, "a list has a tree of 3 features: it must be")


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_are_refused_or_safe(seed, path):
    # Whatever the nodes are: a tree that is accepted predicts from its own values.
    rng = np.random.default_rng(seed)
    tree = DecisionTreeRegressor(random_state=0, max_depth=3).fit(X, Y).tree_
    _, arguments, state = tree.__reduce__()
    accepted = 0
    for _ in range(500):
        nodes = state["nodes"].copy()
        for _ in range(rng.integers(1, 3)):
            field = rng.choice(["left_child", "right_child", "feature"])
            nodes[field][rng.integers(len(nodes))] = rng.integers(-2, len(nodes) + 2)
        try:
            again = checked_tree(arguments, state | {"nodes": nodes})
        except ValueError:
            continue
        accepted += 1
        rows = X.astype(np.float32)
        assert np.isin(again.predict(rows), tree.value).all()
        again.decision_path(rows)
    assert 0 < accepted < 250
