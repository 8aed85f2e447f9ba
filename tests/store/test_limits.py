"""Files that were made to exhaust memory or time, or to crash: refused before they are used."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM

import fgfm
from fgfm import FDecider, FGFMClassifier
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


def test_member_that_belongs_to_no_object_is_refused(path):
    fgfm.save(FunctionTransformer(), path)
    rewrite(path, lambda members, _: members.update(bomb=b"x"))
    assert_refused(path, "bomb belongs to no object")


def test_zip_bomb_is_refused(path):
    fgfm.save(FunctionTransformer(), path)
    rewrite(path, lambda members, _: members.update(bomb=bytes(400 << 20)))
    assert path.stat().st_size < 1 << 20
    assert_refused(path, "it inflates to too many bytes, at bomb")


def test_two_members_of_one_name_are_refused(path):
    fgfm.save(FunctionTransformer(), path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("schema.json", b"{}")
    assert_refused(path, r"it has two members schema\.json")


def test_zip_bomb_in_a_sparse_matrix_is_refused(path):
    model = FunctionTransformer()
    model.matrix_ = sparse.csr_array(np.eye(2))
    fgfm.save(model, path)

    def change(members, _):
        name = next(name for name in members if name.endswith(".npz"))
        inner = io.BytesIO(members[name])
        with zipfile.ZipFile(inner, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb", bytes(400 << 20))
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
    model.zeros_ = np.zeros(40 << 20)  # 320 MiB, which deflate reduces to 0.3
    fgfm.save(model, path)
    assert not fgfm.load(path).zeros_.any()


def nested_lists(levels, reference):
    """Return the node of a list of two lists of two lists and so on."""
    kind = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    node = kind | {"content": [], "__id__": 1000}
    for level in range(1, levels):
        again = {"__id__": node["__id__"]} if reference == "bare" else {**node, "content": []}
        if reference == "first":
            node = kind | {"content": [again, node], "__id__": 1000 + level}
        else:
            node = kind | {"content": [node, again], "__id__": 1000 + level}
    return node


@pytest.mark.parametrize("reference", ["bare", "empty", "first"])
def test_shared_lists_that_expand_are_refused(reference, path):
    fgfm.save(FunctionTransformer(), path)

    def change(_, schema):
        schema["content"]["content"]["func"] = nested_lists(31, reference)

    rewrite(path, change)
    assert path.stat().st_size < 5000
    assert_refused(path, r"the object 10\d\d is described in two ways")


@pytest.mark.parametrize("levels", [90, 5000])
def test_deep_lists_are_refused(levels, path):
    fgfm.save(FunctionTransformer(), path)
    kind = (
        b'{"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": ['
    )
    node = kind * levels + b"]}" * levels
    replace_in_schema(path, b'"func": {', b'"func": ' + node + b', "f": {')
    assert_refused(path, "" if levels == 90 else "(more than 200 levels|recursion)")


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


def test_array_of_two_objects_is_refused(path):
    model = FunctionTransformer()
    model.one_, model.two_ = np.arange(3), np.arange(4)
    fgfm.save(model, path)

    def change(_, schema):
        attributes = schema["content"]["content"]
        attributes["two_"]["file"] = attributes["one_"]["file"]

    rewrite(path, change)
    assert_refused(path, "belongs to two objects")


# Sizes


def set_array(path, name, change):
    """Change the array, or the number, of an attribute, wherever it is."""

    def apply(members, schema):
        found = [d[name] for d in dicts(schema) if isinstance(d.get(name), dict)]
        arrays = [node for node in found if node.get("type") == "numpy"]
        numbers = [node for node in found if "is_json" in node]
        assert arrays + numbers
        for node in arrays:
            array = np.load(io.BytesIO(members[node["file"]]))
            members[node["file"]] = saved_array(change(array))
        for node in numbers:
            node["content"] = json.dumps(change(json.loads(node["content"])))

    rewrite(path, apply)


WRONG = [[-1], [0, 2_000_000_000], [2, 1], [], [0, 5], [0.5, 1.0], [[0], [1]]]


@pytest.mark.parametrize("cardinalities", WRONG, ids=str)
@pytest.mark.parametrize("kind", ["auto", "ridge", "tilted", "two-step", "direct", "decider"])
def test_wrong_cardinalities_are_refused(kind, cardinalities, path):
    if kind == "decider":
        model = FDecider().fit(0.6 * Y + 0.2, Y)
    else:
        learner = "auto" if kind == "auto" else "ridge"
        method = kind if kind in ("tilted", "two-step", "direct") else "reweighted"
        model = FGFMClassifier(learner, method=method, random_state=0).fit(X, Y)
    fgfm.save(model, path)
    set_array(path, "cardinalities", lambda _: np.array(cardinalities))
    assert_refused(path, "cardinalities must")


@pytest.mark.parametrize("value", [-1, 0, 1, 2_000_000_000, "4", None])
@pytest.mark.parametrize("name", ["max_cardinality", "n_labels"])
def test_wrong_sizes_are_refused(name, value, path):
    for method in ("reweighted", "powerset"):
        fgfm.save(FGFMClassifier(method=method, random_state=0).fit(X, Y), path)
        set_array(path, name, lambda _: value)
        assert_refused(path)


def test_width_of_sparse_targets_is_checked(path):
    fgfm.save(FGFMClassifier("auto", random_state=0).fit(X, Y), path)

    def change(members, _):
        for name in [name for name in members if name.endswith(".npz")]:
            arrays = dict(np.load(io.BytesIO(members[name])))
            members[name] = saved_arrays(arrays | {"shape": arrays["shape"] * [1, 10**8]})

    rewrite(path, change)
    assert_refused(path, r"predicts \d+00000000 columns")


# Compiled code of scikit-learn


@pytest.mark.parametrize("kind", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_models_of_libsvm_need_trust(kind, path):
    model = kind().fit(X, Y[:, 0])
    fgfm.save(model, path)
    full = f"sklearn.svm._classes.{kind.__name__}"
    assert foreign_classes(path) == [full]
    with pytest.raises(ValueError, match=rf"contains {full}: such classes and functions"):
        fgfm.load(path)
    assert (fgfm.load(path, trusted=[full]).predict(X) == model.predict(X)).all()


def test_models_of_liblinear_need_none(path):
    fgfm.save(LinearSVC().fit(X, Y[:, 0]), path)
    assert foreign_classes(path) == []


def test_forest_of_trees_with_other_features_is_refused(path):
    model = RandomForestClassifier(2, random_state=0).fit(X, Y[:, 0])
    wide = RandomForestClassifier(2, random_state=0).fit(np.tile(X, 3), Y[:, 0])
    model.estimators_[1] = wide.estimators_[1]
    fgfm.save(model, path)
    assert_refused(path, "has a tree of 9 features and 2 classes: they must be 3 and 2")
    model = RandomForestClassifier(2, random_state=0).fit(X, Y[:, 0])
    model.n_classes_ = 10**9
    fgfm.save(model, path)
    assert_refused(path, "they must be 3 and 1000000000")
    model = IsolationForest(n_estimators=2, max_features=2, random_state=0).fit(X)
    model.estimators_features_[1] = np.array([0])
    fgfm.save(model, path)
    assert_refused(path, "has a tree of 2 features")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (KNeighborsClassifier(algorithm="brute"), "_fit_X"),
        (KMeans(2, n_init=1), "cluster_centers_"),
    ],
    ids=["neighbours", "k-means"],
)
@pytest.mark.parametrize("kept", [np.s_[:, :1], np.s_[:0]], ids=["columns", "rows"])
def test_rows_of_another_shape_are_refused(model, name, kept, path):
    model.fit(X, Y[:, 0])
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
    fgfm.save(FGFMClassifier(random_state=generator), path)
    fgfm.load(path)
    set_array(path, "pos", lambda _: 10**9)
    assert_refused(path, "a random generator has the position 1000000000")


# Attributes


@pytest.mark.parametrize(
    ("loader", "key"),
    [("DictNode", "key_types"), ("NdArrayNode", "file"), ("JsonNode", "content")],
)
def test_missing_keys_are_named(loader, key, path):
    fgfm.save(FGFMClassifier(random_state=0).fit(X, Y), path)

    def change(members, schema):
        for node in dicts(schema):
            if node.get("__loader__") == loader:
                removed = node.pop(key)
                if key == "file":
                    members.pop(removed, None)

    rewrite(path, change)
    assert_refused(path, f"there is no '{key}'")


def test_attribute_that_is_no_object_is_refused(path):
    class_name = "sklearn.svm._classes.SVC"
    fgfm.save(SVC().fit(X, Y[:, 0]), path)

    def change(_, schema):
        schema["content"]["content"]["C"] = {"content": "1.0"}

    rewrite(path, change)
    with pytest.raises(ValueError, match=r"model\.fgfm"):
        fgfm.load(path)
    with pytest.raises(ValueError, match=r"model\.fgfm is damaged"):
        fgfm.load(path, trusted=[class_name])


@pytest.mark.parametrize("name", ["coef", "factors_", "label_frequencies_", "_label_form"])
def test_missing_attributes_are_named(name, path):
    fgfm.save(FGFMClassifier(random_state=0).fit(X, Y), path)

    replace_in_schema(path, f'"{name}"'.encode(), b'"other"')
    assert_refused(path, name)
