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
from model_files import assert_refused, dicts, rewrite, saved_array, saved_arrays, write_members
from model_files import read_members as members_of
from multilabel import X, Y

pytest.importorskip("skops")
resource = pytest.importorskip("resource")

TREE = "sklearn.tree._tree.Tree"
PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
FLAT = Y[:, 0]

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
PROBA = np.clip(0.6 * Y + 0.2 + 0.1 * np.tanh(X[:, :1]), 0.0, 1.0)
COUNTS = sparse.csr_array(np.where(np.abs(X) > 1.5, np.round(np.abs(X)), 0.0))
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
    "categories": (make_pipeline(ENCODER, LogisticRegression()), np.round(X).astype(int), FLAT),
}


def holder(**attributes):
    """Return a model with other attributes."""
    model = FunctionTransformer()
    vars(model).update(attributes)
    return model


def fitted(name):
    return MODELS[name][0].fit(*MODELS[name][1:])


# Changes of files: functions of the members of the archive and of the description


def member(suffix, change):
    """Return a change of every member of a type."""

    def apply(members, _):
        for name in [name for name in members if name.endswith(suffix)]:
            members[name] = change(members[name])

    return apply


def with_bomb(content):
    inner = io.BytesIO(content)
    with zipfile.ZipFile(inner, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(300 << 20))
    return inner.getvalue()


def with_index(index):
    def change(content):
        arrays = dict(np.load(io.BytesIO(content)))
        arrays["indices"][0] = index
        return saved_arrays(arrays)

    return member(".npz", change)


def with_header(shape):
    target = io.BytesIO()
    header = {"descr": "<i8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(target, header)
    return member(".npy", lambda _: target.getvalue() + bytes(24))


def nested_lists(reference):
    """Describe a list of two lists of two lists and so on."""
    kind = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    node = kind | {"content": [], "__id__": 1000}
    for level in range(1, 31):
        again = {"__id__": node["__id__"]} if reference == "bare" else {**node, "content": []}
        pair = [again, node] if reference == "first" else [node, again]
        node = kind | {"content": pair, "__id__": 1000 + level}
    return lambda _, schema: schema["content"]["content"].update(func=node)


def with_number(number):
    def change(_, schema):
        node = schema["content"]["content"]["vocabulary_"]
        node["content"][min(node["content"])]["content"] = number

    return change


def with_position(_, schema):
    for node in dicts(schema):
        if isinstance(node.get("pos"), dict):
            node["pos"]["content"] = str(10**9)


def nodes(change):
    """Return a change of every array that has the nodes of a tree."""

    def apply(content):
        array = np.load(io.BytesIO(content))
        return saved_array(change(array.copy())) if array.dtype.names else content

    return member(".npy", apply)


def with_value(array, name, row, value):
    array[name][row] = value
    return array


def field(name, value, row=0):
    """Return a change of a field of a node."""
    return nodes(lambda array: with_value(array, name, row, value))


def number(value):
    """Describe a number."""
    kind = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    return kind | {"content": json.dumps(value)}


def objects(kind, change):
    """Return a change of the description of every object of a class."""

    def apply(_, schema):
        for node in [node for node in dicts(schema) if node.get("__class__") == kind]:
            change(node)

    return apply


def attribute(kind, name, value):
    """Return a change of an attribute of every object of a class, to a number."""

    def change(node):
        state = node["content"]
        if name not in state["content"]:
            state["key_types"]["content"].append(dict(state["key_types"]["content"][0]))
        state["content"][name] = number(value)

    return objects(kind, change)


def without(kind, name):
    def change(node):
        state = node["content"]["content"]
        state["other"] = state.pop(name, number(0))

    return objects(kind, change)


def argument(position, value):
    """Return a change of an argument of the constructor of trees."""

    def change(node):
        node["__reduce__"]["args"]["content"][position] = number(value)

    return objects("Tree", change)


def tree_changes(left, right, feature):
    """Return changes of the nodes of a tree, by the names of their fields."""
    return [
        field(right, 10**6),  # no such node
        field(left, 0),  # a cycle
        nodes(lambda a: with_value(a, left, 0, a[right][0])),  # a shared child
        field(feature, -1),
        field(feature, 3),
        nodes(lambda a: a[:-1]),
        nodes(lambda a: a[:0]),
        nodes(lambda a: a[None]),
        nodes(lambda a: a.astype([(name, "<c8") for name in a.dtype.names])),
        nodes(lambda a: np.zeros(len(a))),
    ]


CHANGES = {
    "bomb": (
        [lambda members, _: members.update(bomb=bytes(300 << 20))],
        [holder()],
        "it inflates to too many bytes, at bomb",
    ),
    "bomb in a sparse matrix": (
        [member(".npz", with_bomb)],
        [holder(matrix_=sparse.csr_array(np.eye(2)))],
        "inflates to too many bytes, at bomb",
    ),
    "array without its values": (
        [with_header((10**11,)), with_header((10**6, 10**6))],
        [holder(numbers_=np.arange(3))],
        "Unable to allocate",
    ),
    "shared lists that expand": (
        [nested_lists(reference) for reference in ("bare", "empty", "first")],
        [holder()],
        r"the object 10\d\d is described in two ways",
    ),
    "index of a sparse matrix": (
        [with_index(index) for index in (-1, 2, 10**6)],
        [
            holder(matrix_=kind(np.eye(2)))
            for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array)
        ],
        "",
    ),
    "vocabulary": (
        [with_number(text) for text in ("-1", "1", "1000000", "0.5", '"a"', "null")],
        [CountVectorizer().fit(["love war", "space"])],
        "",
    ),
    "position of a generator": (
        [with_position],
        [
            FClassifier(random_state=generator)
            for generator in (np.random.RandomState(0), np.random.Generator(np.random.MT19937(0)))
        ],
        "a random generator has the position 1000000000",
    ),
    "tree": (
        [
            *tree_changes("left_child", "right_child", "feature"),
            field("left_child", -2),
            field("left_child", np.iinfo(np.int64).max),
            field("left_child", -1),
            field("left_child", 1, row=-1),
            attribute("Tree", "node_count", 1),
            attribute("Tree", "node_count", -1),
            attribute("Tree", "max_depth", 0),
            attribute("Tree", "max_depth", "a"),
            objects("Tree", lambda node: node.update(content=number({}))),
            *(argument(0, features) for features in (2, 4, -1, "a")),
            argument(1, 1),
            *(argument(2, outputs) for outputs in (10**6, 0, -1, "a")),
            attribute("DecisionTreeClassifier", "n_features_in_", 2),
            without("DecisionTreeClassifier", "n_features_in_"),
            attribute("RandomForestClassifier", "n_features_in_", 4),
        ],
        ["forest"],
        "",
    ),
    "boosting": (
        [
            *tree_changes("left", "right", "feature_idx"),
            field("is_leaf", 0, row=-1),
            field("is_categorical", 1),
            attribute("HistGradientBoostingClassifier", "n_features_in_", 2),
            attribute("HistGradientBoostingClassifier", "_in_fit", True),
            without("HistGradientBoostingClassifier", "n_features_in_"),
            objects(
                "HistGradientBoostingClassifier",
                lambda node: node["content"]["content"]["_predictors"].update(content=[number(1)]),
            ),
        ],
        ["boosting"],
        "",
    ),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_changed_file_is_refused(name, path):
    changes, models, reason = CHANGES[name]
    for model in models:
        fgfm.save(fitted(model) if isinstance(model, str) else model, path)
        fgfm.load(path)
        original = path.read_bytes()
        for change in changes:
            path.write_bytes(original)
            rewrite(path, change)
            assert_refused(path, reason)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compression_is_refused(compression, path):
    fgfm.save(FunctionTransformer(), path)
    write_members(path, members_of(path), compression)
    assert_refused(path, "is not compressed by deflate")


def test_deep_lists_are_refused(path):
    fgfm.save(FunctionTransformer(), path)
    members = members_of(path)
    kind = (
        b'{"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": ['
    )
    deep = b'"func": ' + kind * 5000 + b"]}" * 5000 + b', "f": {'
    members["schema.json"] = members["schema.json"].replace(b'"func": {', deep)
    write_members(path, members)
    assert_refused(path, "recursion")


def test_model_of_zeros_is_saved_such_that_it_can_be_loaded(path):
    fgfm.save(holder(zeros_=np.zeros(36 << 20)), path)  # 288 MiB, which deflate reduces to 0.3
    assert not fgfm.load(path).zeros_.any()


def inner_forest(outer):
    """Return a model with a tree of scikit-learn where an estimator should be."""
    model = outer.fit(X, FLAT)
    model.estimators_[0] = model.estimators_[0].tree_
    return model


def encoder(name, value):
    model = OneHotEncoder(min_frequency=4).fit(np.repeat(np.arange(5), [1, 2, 8, 9, 10])[:, None])
    setattr(model, name, value)
    return model


def other_rows(model, name, kept):
    model.fit(X, FLAT)
    setattr(model, name, getattr(model, name)[kept].copy())
    return model


def other_features(model):
    model.fit(X).estimators_features_[1] = np.array([0])
    return model


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (inner_forest(RandomForestClassifier(1)), "a RandomForestClassifier has a Tree of None"),
        (
            inner_forest(BaggingClassifier(DecisionTreeClassifier(), 1)),
            "a list has a tree of 3 features: it must be",
        ),
        (
            other_features(IsolationForest(n_estimators=2, max_features=2, random_state=0)),
            "of 2 features: it must be a tree of 1",
        ),
        *(
            (other_rows(make(), name, kept), f"{name} of a .* must have rows of 3 columns")
            for kept in (np.s_[:, :1], np.s_[:0])
            for make, name in (
                (lambda: KNeighborsClassifier(algorithm="brute"), "_fit_X"),
                (lambda: KMeans(2, n_init=1), "cluster_centers_"),
            )
        ),
        (encoder("_n_features_outs", [1]), "a OneHotEncoder has"),
        *(
            (
                encoder("_default_to_infrequent_mappings", [np.array([column, 0, 0, 1, 2])]),
                "a OneHotEncoder has",
            )
            for column in (10**9, -5)
        ),
    ],
)
def test_model_with_parts_that_do_not_fit_is_refused(model, reason, path):
    fgfm.save(model, path)
    assert_refused(path, reason)


# Trust


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


CATEGORIES = np.column_stack([X[:, 0] > 0, X[:, 1]])
UNCHECKED = {  # models whose arrays compiled code follows without checks
    "sklearn.svm._classes.SVC": (SVC(), X),
    "sklearn.svm._classes.OneClassSVM": (OneClassSVM(), X),
    # its trees write into an array whose shape is that of another part of the model
    TREE: (GradientBoostingClassifier(n_estimators=2), X),
    PREDICTOR: (
        HistGradientBoostingClassifier(
            max_iter=2, min_samples_leaf=5, categorical_features=[True, False]
        ),
        CATEGORIES,
    ),
}


@pytest.mark.parametrize("full", UNCHECKED)
def test_models_that_are_not_checked_need_trust(full, path):
    model, rows = UNCHECKED[full]
    fgfm.save(model.fit(rows, FLAT), path)
    foreign = foreign_classes(path)
    assert full in foreign
    assert full == PREDICTOR or foreign == [full]
    with pytest.raises(ValueError, match=rf"contains .*{full}.*: such classes and functions"):
        fgfm.load(path, trusted=[name for name in foreign if name != full])
    again = fgfm.load(path, trusted=foreign)
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    fgfm.save(LinearSVC().fit(X, FLAT), path)
    assert foreign_classes(path) == []


@pytest.mark.parametrize("loader", ["ConstructorFromReduceNode", "ListNode", "LossNode"])
def test_trusted_class_is_not_called_with_arguments_from_a_file(loader, path):
    fgfm.save(FunctionTransformer(kw_args={"x": (0, 1)}), path)
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


# Random changes: refused with a message, or a model that does not crash the process


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
