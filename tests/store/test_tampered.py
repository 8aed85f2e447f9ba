"""Files that were made to exhaust memory or time, or to crash: refused, or without effect."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.svm import SVC, LinearSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import fgfm
from fgfm import FClassifier, FDecider, FGFMClassifier
from fgfm.store import foreign_classes
from model_files import (
    assert_refused,
    dicts,
    replace_in_schema,
    rewrite,
    saved_array,
    saved_arrays,
)
from multilabel import X, Y

pytest.importorskip("skops")
resource = pytest.importorskip("resource")

TREE = "sklearn.tree._tree.Tree"
PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
FLAT = Y[:, 0]


# Memory and time


def test_zip_bomb_is_refused(path):
    fgfm.save(FunctionTransformer(), path)
    rewrite(path, lambda members, _: members.update(bomb=bytes(300 << 20)))
    assert path.stat().st_size < 1 << 20
    assert_refused(path, "it inflates to too many bytes, at bomb")


def test_zip_bomb_in_a_sparse_matrix_is_refused(path):
    model = FunctionTransformer()
    model.matrix_ = sparse.csr_array(np.eye(2))
    fgfm.save(model, path)

    def change(members, _):
        name = next(name for name in members if name.endswith(".npz"))
        inner = io.BytesIO(members[name])
        with zipfile.ZipFile(inner, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb", bytes(300 << 20))
        members[name] = inner.getvalue()

    rewrite(path, change)
    assert_refused(path, "inflates to too many bytes, at bomb")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compression_is_refused(compression, path):
    fgfm.save(FunctionTransformer(), path)
    rewrite(path, lambda *_: None, compression)
    assert_refused(path, "is not compressed by deflate")


def test_model_of_zeros_is_saved_such_that_it_can_be_loaded(path):
    model = FunctionTransformer()
    model.zeros_ = np.zeros(36 << 20)  # 288 MiB, which deflate reduces to 0.3
    fgfm.save(model, path)
    assert not fgfm.load(path).zeros_.any()


def nested_lists(levels, reference):
    """Return the node of a list of two lists of two lists and so on."""
    kind = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    node = kind | {"content": [], "__id__": 1000}
    for level in range(1, levels):
        again = {"__id__": node["__id__"]} if reference == "bare" else {**node, "content": []}
        pair = [again, node] if reference == "first" else [node, again]
        node = kind | {"content": pair, "__id__": 1000 + level}
    return node


@pytest.mark.parametrize("reference", ["bare", "empty", "first"])
def test_shared_lists_that_expand_are_refused(reference, path):
    fgfm.save(FunctionTransformer(), path)
    nested = nested_lists(31, reference)
    rewrite(path, lambda _, schema: schema["content"]["content"].update(func=nested))
    assert path.stat().st_size < 5000
    assert_refused(path, r"the object 10\d\d is described in two ways")


def test_deep_lists_are_refused(path):
    fgfm.save(FunctionTransformer(), path)
    kind = (
        b'{"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": ['
    )
    node = kind * 5000 + b"]}" * 5000
    replace_in_schema(path, b'"func": {', b'"func": ' + node + b', "f": {')
    assert_refused(path, "recursion")


@pytest.mark.parametrize("shape", [(10**11,), (10**11, 0), (10**6, 10**6)])
def test_array_without_its_values_is_refused(shape, path):
    model = FunctionTransformer()
    model.numbers_ = np.arange(3)
    fgfm.save(model, path)

    def change(members, _):
        target = io.BytesIO()
        header = {"descr": "<i8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(target, header)
        name = next(name for name in members if name.endswith(".npy"))
        members[name] = target.getvalue() + bytes(24)

    rewrite(path, change)
    assert_refused(path, r"has an array of shape \(10+,")


# Trust


@pytest.mark.parametrize("kind", [SVC, OneClassSVM])
def test_models_of_libsvm_need_trust(kind, path):
    model = kind().fit(X, FLAT)
    fgfm.save(model, path)
    full = f"sklearn.svm._classes.{kind.__name__}"
    assert foreign_classes(path) == [full]
    with pytest.raises(ValueError, match=rf"contains {full}: such classes and functions"):
        fgfm.load(path)
    assert (fgfm.load(path, trusted=[full]).predict(X) == model.predict(X)).all()
    fgfm.save(LinearSVC().fit(X, FLAT), path)
    assert foreign_classes(path) == []


def test_trees_of_unchecked_models_need_trust(path):
    # its trees write into an array whose shape is that of another part of the model
    model = GradientBoostingClassifier(n_estimators=2).fit(X, FLAT)
    fgfm.save(model, path)
    assert foreign_classes(path) == [TREE]
    with pytest.raises(ValueError, match=rf"contains {TREE} \(tree_ of DecisionTreeRegressor\)"):
        fgfm.load(path)
    np.testing.assert_array_equal(fgfm.load(path, trusted=[TREE]).predict(X), model.predict(X))


def test_boosting_with_categories_needs_trust(path):
    categories = np.column_stack([X[:, 0] > 0, X[:, 1]])
    model = HistGradientBoostingClassifier(
        max_iter=2, min_samples_leaf=5, categorical_features=[True, False]
    ).fit(categories, FLAT)
    fgfm.save(model, path)
    foreign = foreign_classes(path)
    assert PREDICTOR in foreign
    with pytest.raises(ValueError, match="such classes and functions"):
        fgfm.load(path, trusted=[name for name in foreign if name != PREDICTOR])
    again = fgfm.load(path, trusted=foreign)
    np.testing.assert_array_equal(again.predict(categories), model.predict(categories))


@pytest.mark.parametrize("loader", ["ConstructorFromReduceNode", "ListNode", "LossNode"])
def test_trusted_class_is_not_called_with_arguments_from_a_file(loader, path):
    model = FunctionTransformer(kw_args={"x": (0, 1)})
    fgfm.save(model, path)
    calls = {"__class__": "csr_array", "__module__": "scipy.sparse._csr", "__loader__": loader}

    def change(_, schema):
        node = schema["content"]["content"]["kw_args"]["content"]["x"]
        empty = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode"}
        types = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
        empty |= {"content": {}, "key_types": types | {"content": []}}
        inner = {name: value for name, value in node.items() if name != "__id__"}
        if loader == "ListNode":
            node |= calls
        elif loader == "LossNode":
            node |= {**calls, "__reduce__": {"args": inner}, "content": empty}
        else:
            node |= {**calls, "content": inner}

    rewrite(path, change)
    with pytest.raises(ValueError, match=r"contains scipy\.sparse\._csr\.csr_array: such"):
        fgfm.load(path)


# Indices


@pytest.mark.parametrize("index", [-1, 2, 10**6])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_sparse_matrix_with_an_index_out_of_range_is_refused(kind, index, path):
    model = FunctionTransformer()
    model.matrix_ = kind(np.eye(2))
    fgfm.save(model, path)
    assert (fgfm.load(path).matrix_.toarray() == np.eye(2)).all()

    def change(members, _):
        name = next(name for name in members if name.endswith(".npz"))
        arrays = dict(np.load(io.BytesIO(members[name])))
        arrays["indices"][0] = index
        members[name] = saved_arrays(arrays)

    rewrite(path, change)
    assert_refused(path)


@pytest.mark.parametrize("number", ["-1", "1", "1000000", "0.5", '"a"', "null"])
def test_vocabulary_without_columns_is_refused(number, path):
    fgfm.save(CountVectorizer().fit(["love war", "space"]), path)

    def change(_, schema):
        node = schema["content"]["content"]["vocabulary_"]
        node["content"][min(node["content"])]["content"] = number

    rewrite(path, change)
    assert_refused(path)


@pytest.mark.parametrize("model", [KNeighborsClassifier(algorithm="brute"), KMeans(2, n_init=1)])
@pytest.mark.parametrize("kept", [np.s_[:, :1], np.s_[:0]], ids=["columns", "rows"])
def test_rows_of_another_shape_are_refused(model, kept, path):
    name = "_fit_X" if isinstance(model, KNeighborsClassifier) else "cluster_centers_"
    model.fit(X, FLAT)
    setattr(model, name, getattr(model, name)[kept].copy())
    fgfm.save(model, path)
    assert_refused(path, f"{name} of a .* must have rows of 3 columns")


def test_categories_without_columns_are_refused(path):
    rows = np.repeat(np.arange(5), [1, 2, 8, 9, 10])[:, None]
    for name, value in (
        ("_n_features_outs", [1]),
        ("_default_to_infrequent_mappings", [np.array([10**9, 0, 0, 1, 2])]),
        ("_default_to_infrequent_mappings", [np.array([-5, 0, 0, 1, 2])]),
    ):
        model = OneHotEncoder(min_frequency=4).fit(rows)
        setattr(model, name, value)
        fgfm.save(model, path)
        assert_refused(path, "a OneHotEncoder has")


@pytest.mark.parametrize("old", [True, False])
def test_position_of_a_generator_is_checked(old, path):
    generator = np.random.RandomState(0) if old else np.random.Generator(np.random.MT19937(0))
    fgfm.save(FClassifier(random_state=generator), path)
    fgfm.load(path)

    def change(_, schema):
        for node in dicts(schema):
            if isinstance(node.get("pos"), dict):
                node["pos"]["content"] = str(10**9)

    rewrite(path, change)
    assert_refused(path, "a random generator has the position 1000000000")


# Trees of scikit-learn

LEARNERS = {
    "tree": DecisionTreeClassifier(random_state=0),
    "pruned": DecisionTreeRegressor(max_leaf_nodes=7, ccp_alpha=0.02, random_state=0),
    "forest": RandomForestClassifier(3, random_state=0),
    "extra trees": ExtraTreesRegressor(3, random_state=0),
    "isolation": IsolationForest(n_estimators=3, max_features=2, random_state=0),
    "bagging": BaggingClassifier(n_estimators=3, max_features=0.7, random_state=0),
    "adaboost": AdaBoostClassifier(n_estimators=3, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5),
    "boosting of numbers": HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=5),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_trees_are_loaded_without_trust(name, path):
    several = "forest" in name or "tree" in name
    model = LEARNERS[name].fit(X, Y if several else FLAT)
    fgfm.save(model, path)
    assert foreign_classes(path) == []
    again = fgfm.load(path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    if name == "forest":
        np.testing.assert_array_equal(again.apply(X), model.apply(X))
        assert (again.decision_path(X)[0] != model.decision_path(X)[0]).nnz == 0
    again.fit(X, FLAT)


def change_nodes(path, change):
    """Apply a function to every array of an archive that has the nodes of a tree."""

    def apply(members, schema):
        for name, content in members.items():
            array = np.load(io.BytesIO(content)) if name.endswith(".npy") else np.empty(0)
            if array.dtype.names:
                members[name] = saved_array(change(array.copy()))

    rewrite(path, apply)


def change_objects(path, kind, change):
    """Apply a function to the description of every object of a class."""

    def apply(members, schema):
        nodes = [node for node in dicts(schema) if node.get("__class__") == kind]
        assert nodes
        for node in nodes:
            change(node)

    rewrite(path, apply)


def changed(field, value, row=0):
    """Return a function that sets a field of a node."""

    def change(nodes):
        nodes[field][row] = value
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
    "leaf with a child": changed("left_child", 1, row=-1),
}
CHANGED_BOOSTING = changed_nodes("left", "right", "feature_idx") | {
    "split leaf": changed("is_leaf", 0, row=-1),
    "category": changed("is_categorical", 1),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", CHANGED_NODES)
def test_changed_nodes_are_refused(name, path):
    fgfm.save(LEARNERS["forest"].fit(X, Y), path)
    change_nodes(path, CHANGED_NODES[name])
    assert_refused(path)


@pytest.mark.parametrize("name", CHANGED_BOOSTING)
def test_changed_nodes_of_boosting_are_refused(name, path):
    fgfm.save(LEARNERS["boosting"].fit(X, FLAT), path)
    change_nodes(path, CHANGED_BOOSTING[name])
    assert_refused(path)


def number(value):
    """Return the node of a number."""
    kind = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    return kind | {"content": json.dumps(value)}


def attribute(name, value):
    """Return a function that sets an attribute of an object to a number."""

    def change(node):
        state = node["content"]
        if name not in state["content"]:
            state["key_types"]["content"].append(dict(state["key_types"]["content"][0]))
        state["content"][name] = number(value)

    return change


def without(name):
    """Return a function that renames an attribute of an object."""

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
        ("RandomForestClassifier", attribute("n_features_in_", 4)),
    ],
)
def test_changed_sizes_are_refused(kind, change, path):
    fgfm.save(LEARNERS["forest"].fit(X, Y), path)
    change_objects(path, kind, change)
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
def test_changed_sizes_of_boosting_are_refused(change, path):
    fgfm.save(LEARNERS["boosting"].fit(X, FLAT), path)
    change_objects(path, "HistGradientBoostingClassifier", change)
    assert_refused(path)


def test_tree_in_another_object_is_refused(path):
    model = RandomForestClassifier(1).fit(X, FLAT)
    model.estimators_[0] = model.estimators_[0].tree_
    fgfm.save(model, path)
    assert_refused(path, "a RandomForestClassifier has a Tree of None features")
    model = BaggingClassifier(DecisionTreeClassifier(), 1).fit(X, FLAT)
    model.estimators_[0] = model.estimators_[0].tree_
    fgfm.save(model, path)
    assert_refused(path, "a list has a tree of 3 features: it must be")
    model = IsolationForest(n_estimators=2, max_features=2, random_state=0).fit(X)
    model.estimators_features_[1] = np.array([0])
    fgfm.save(model, path)
    assert_refused(path, "of 2 features: it must be a tree of 1")


# Random changes: refused with a message, or a model that does not crash the process

PROBA = np.clip(0.6 * Y + 0.2 + 0.1 * np.tanh(X[:, :1]), 0.0, 1.0)
COUNTS = sparse.csr_array(np.where(np.abs(X) > 1.5, np.round(np.abs(X)), 0.0))
CODES = np.round(X).astype(int)
ENCODER = OneHotEncoder(min_frequency=3, handle_unknown="infrequent_if_exist")

MODELS = {
    "default": (FClassifier(random_state=0), X, Y),
    "default, counts": (FClassifier(random_state=0), COUNTS, Y),
    "decider": (FDecider(), PROBA, Y),
    "decider, macro": (FDecider(average="macro", calibration="isotonic"), PROBA, Y),
    "paper": (FGFMClassifier(factors=[[0, 3], [1], [2]], random_state=0), X, Y),
    "paper, direct": (FGFMClassifier(factors="single", method="direct"), X, Y),
    "forest": (LEARNERS["forest"], X, Y),
    "isolation": (LEARNERS["isolation"], X, Y),
    "boosting": (LEARNERS["boosting"], X, FLAT),
    "neighbours": (KNeighborsClassifier(algorithm="brute"), X, FLAT),
    "categories": (make_pipeline(ENCODER, LogisticRegression()), CODES, FLAT),
}


def change_array(content, rng):
    """Change values, shape, type or length of an array."""
    array = np.load(io.BytesIO(content))
    how = rng.choice(["value", "value", "shape", "type", "length", "order"])
    if how == "value" and array.size:
        extremes = {"i": [-1, 10**9, -(2**31), 2**31 - 1], "f": [np.nan, 1e300]}
        for field in array.dtype.names or [...]:
            options = [0, 1, 100, *extremes.get(array[field].dtype.kind, [])]
            if array[field].dtype.kind in "iufb" and rng.random() < 0.5:
                array[field].flat[rng.integers(array.size)] = options[rng.integers(len(options))]
    elif how == "shape":
        array = [array[None], array.ravel(), array.reshape(-1)[:, None]][rng.integers(3)]
    elif how == "type" and not array.dtype.names:
        array = array.astype(["f4", "i8", "c16", "?", "u1"][rng.integers(5)])
    elif how == "length":
        array = np.atleast_1d(array)
        array = [array[:0], array[:-1], np.concatenate([array, array])][rng.integers(3)]
    elif how == "order":
        array = array[..., ::-1] if array.ndim else array
    return saved_array(array)


def change_randomly(members, schema, rng):
    """Change an array, or a number in the description."""
    arrays = [name for name in members if name.endswith((".npy", ".npz"))]
    if arrays and rng.random() < 0.7:
        name = arrays[rng.integers(len(arrays))]
        if name.endswith(".npy"):
            members[name] = change_array(members[name], rng)
        else:
            parts = dict(np.load(io.BytesIO(members[name])))
            part = list(parts)[rng.integers(len(parts))]
            if parts[part].dtype.kind in "if":
                parts[part] = np.load(io.BytesIO(change_array(saved_array(parts[part]), rng)))
            members[name] = saved_arrays(parts)
    else:
        leaves = [node for node in dicts(schema) if "is_json" in node]
        values = [None, True, -1, 0, 3, 10**9, 2**70, 1e308, "", "x", [], [[1]], {}]
        leaf = leaves[rng.integers(len(leaves))]
        leaf["content"] = json.dumps(values[rng.integers(len(values))])


@contextlib.contextmanager
def limited():
    """Limit memory to 2 GiB more than there is, and time to 20 seconds."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), before[1]))
    signal.alarm(20)  # kills the process: the seed has been printed
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.skipif("sys.platform != 'linux'", reason="limits of Linux")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "seeds", [range(25), pytest.param(range(25, 500), marks=pytest.mark.slow)]
)
def test_random_changes_do_not_crash(name, seeds, path):
    model, rows, labels = MODELS[name]
    fgfm.save(model.fit(rows, labels), path)
    original, refused, loaded = path.read_bytes(), 0, 0
    for seed in seeds:
        print(f"model {name!r}, seed {seed}", flush=True)
        path.write_bytes(original)
        rng = np.random.default_rng([seed, len(name)])
        rewrite(path, lambda members, schema, rng=rng: change_randomly(members, schema, rng))
        with limited():
            try:
                again = fgfm.load(path)
            except ValueError as error:
                refused += str(path) in str(error)
                continue
            loaded += 1
            with contextlib.suppress(Exception):  # attributes of another type, say
                again.predict(rows)
                again.predict_proba(rows)
    assert refused + loaded == len(seeds)  # each refusal names the file
    assert loaded > 0
