"""Saved models: loaded unchanged, by stable names of classes, or refused with a message."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fgfm
from fgfm import FClassifier, FDecider, FGFMClassifier
from fgfm.ridge import RidgeLogistic
from model_files import assert_refused, dicts, read_members, replace_in_schema, saved_array
from model_files import write_members as write
from multilabel import X, Y

skops_io = pytest.importorskip("skops.io")

PROBA = np.clip(0.6 * Y + 0.2 + 0.1 * np.tanh(X[:, :1]), 0.0, 1.0)


class Mine(LogisticRegression):
    """A base learner that is loaded only if it is trusted."""


FINDER = fgfm.ILFCompo(max_factor_size=1, correction=None, alpha=0.5)
CUT = FGFMClassifier(factors=FINDER, random_state=0)
MODELS = {
    "default": (FClassifier(random_state=0), X, Y),
    "macro": (FClassifier(GaussianNB(), average="macro", random_state=0), X, Y),
    "isotonic": (FClassifier(GaussianNB(), calibration="isotonic", cv=KFold(3)), X, Y),
    "forest": (FClassifier(RandomForestClassifier(3, random_state=0), random_state=0), X, Y),
    "learner": (fgfm.StackClassifier(random_state=0), X, Y),
    "decider": (FDecider(average="micro", calibration=None), PROBA, Y),
    "classes": (FDecider(average="macro"), PROBA / PROBA.sum(axis=1)[:, None], Y.argmax(axis=1)),
    "paper": (FGFMClassifier(random_state=0), X, Y),
    "direct": (FGFMClassifier(method="direct", factors="single", random_state=0), X, Y),
    "any learner": (FGFMClassifier(LogisticRegression(), factors=[[0, 3], [1, 2]]), X, Y),
    "pipeline": (make_pipeline(StandardScaler(), FClassifier(RidgeLogistic([1.0]))), X, Y),
    "scikit-learn": (LogisticRegression(), X, Y[:, 0]),
    "cut edges": (
        CUT,
        X,
        np.column_stack([Y[:, 0], *(Y[:, 0] ^ (np.arange(len(Y)) % 8 == k) for k in (1, 2))]),
    ),
    **{
        f"flat {classes}": (
            FClassifier(LogisticRegression(), pos_label=classes[1], random_state=0),
            X,
            np.array(classes)[Y[:, 0]],
        )
        for classes in (["no", "yes"], [-1, 1], [False, True])
    },
}


@pytest.fixture(scope="module")
def model():
    return FClassifier(RidgeLogistic([1.0]), random_state=0).fit(X, Y)


@pytest.fixture
def saved(path, model):
    fgfm.save(model, path)
    return path


def assert_same(one, other, rows=X):
    """Assert that two models predict the same bits."""
    for method in ("predict", "predict_proba", "expected_f"):
        if hasattr(one, method):
            np.testing.assert_array_equal(getattr(one, method)(rows), getattr(other, method)(rows))


def class_names(path):
    """Return the full names of the classes of fgfm in a file."""
    schema = json.loads(read_members(path)["schema.json"])
    names = {f"{node.get('__module__')}.{node.get('__class__')}" for node in dicts(schema)}
    return {name for name in names if name.startswith("fgfm")}


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name, path):
    model, rows, target = MODELS[name]
    model.fit(rows, target)
    assert fgfm.save(model, path) is None
    assert not any("._" in name for name in class_names(path))
    again = fgfm.load(path)
    assert type(again) is type(model)
    assert str(again.get_params()) == str(model.get_params())
    assert_same(again, model, rows)
    assert again.predict(rows).dtype == model.predict(rows).dtype
    if model is CUT:
        assert model.factor_finder_.cuts_
        assert again.factor_finder_.cuts_ == model.factor_finder_.cuts_
    again.fit(rows, target)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_of_labels_and_features_are_kept(library, path):
    frames = pytest.importorskip(library)
    X_frame = frames.DataFrame({f"x{j}": X[:, j] for j in range(3)})
    Y_frame = frames.DataFrame({f"label {i}": Y[:, i] for i in range(4)})
    model = FGFMClassifier(factors=[["label 3", "label 0"], ["label 1", "label 2"]])
    fgfm.save(model.fit(X_frame, Y_frame), path)
    again = fgfm.load(path)
    assert again.label_names_in_.tolist() == [f"label {i}" for i in range(4)]
    assert again.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    assert again.predict_frame(X_frame).equals(model.predict_frame(X_frame))


def test_paths_of_any_type(tmp_path, model, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("plain", "./dotted.fgfm", str(tmp_path / "absolute"), tmp_path / "ä b"):
        fgfm.save(model, path)
        assert_same(fgfm.load(path), model)


def test_missing_files_raise(tmp_path, model):
    with pytest.raises(FileNotFoundError):
        fgfm.load(tmp_path / "nothing")
    with pytest.raises(OSError, match="directory"):
        fgfm.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        fgfm.save(model, tmp_path / "no such folder" / "model")


def test_model_that_cannot_be_saved_keeps_the_older_file(saved, model):
    other = FDecider().fit(PROBA, Y)
    other.extra_ = (i for i in range(3))  # a generator cannot be saved
    with pytest.raises(Exception, match=r"."):
        fgfm.save(other, saved)
    assert list(saved.parent.iterdir()) == [saved]
    assert_same(fgfm.load(saved), model)


def test_missing_skops_raises_with_the_install_command(path, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    sentence = r"saving and loading models needs skops: pip install 'fgfm\[store\]'"
    with pytest.raises(ImportError, match=sentence):
        fgfm.save(model, path)
    path.write_bytes(b"")
    with pytest.raises((ImportError, ValueError)):
        fgfm.load(path)


def test_loading_and_deciding_imports_no_other_library(path, tmp_path):
    fgfm.save(FDecider().fit(PROBA, Y), path)
    for library in ("torch", "cupy", "dask"):
        (tmp_path / library).mkdir()
        (tmp_path / library / "__init__.py").write_text(f"print('{library} is imported')")
    code = f"import fgfm; print(fgfm.load({str(path)!r}).predict([[0.5] * 4]).shape)"
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "(1, 4)\n"


# Names of classes


def test_files_contain_stable_names(saved):
    assert class_names(saved) == {
        "fgfm.FClassifier",
        "fgfm.FDecider",
        "fgfm.LabelSetModel",
        "fgfm.LogLinearPool",
        "fgfm.RidgeLogistic",
        "fgfm.RowRule",
        "fgfm.Settings",
        "fgfm.ShrunkCalibrator",
    }


def public_estimators():
    """Return the public classes of fgfm that are scikit-learn estimators."""
    packages = [getattr(fgfm, name) for name in fgfm.__all__]
    values = [getattr(p, name) for p in packages for name in getattr(p, "__all__", ())]
    kinds = {value for value in [*packages, *values] if isinstance(value, type)}
    estimators = [kind for kind in kinds if issubclass(kind, BaseEstimator)]
    return sorted(estimators, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", public_estimators())
def test_public_estimators_are_loaded_without_trust(kind, path):
    fgfm.save(kind(), path)
    assert type(fgfm.load(path)) is kind
    assert not any("._" in name for name in class_names(path))


def test_unregistered_class_of_fgfm_is_refused(saved):
    replace_in_schema(saved, b"LabelSetModel", b"OtherModel")
    with pytest.raises(ValueError, match=r"contains fgfm\.OtherModel \("):
        fgfm.load(saved)


# Other versions


def with_header(path, header):
    """Rewrite the archive with another header."""
    write(path, read_members(path) | {"fgfm.json": header})


def test_other_versions_of_scikit_learn_warn(path):
    fgfm.save(StandardScaler().fit(X), path)
    version = json.dumps(json.dumps(sklearn.__version__)).encode()
    replace_in_schema(path, version, json.dumps(json.dumps("1.2.3")).encode())
    with pytest.warns(InconsistentVersionWarning, match=r"StandardScaler from version 1\.2\.3"):
        again = fgfm.load(path)
    assert again.transform(X).shape == X.shape


def test_versions_are_named_where_a_file_cannot_be_read(saved):
    replace_in_schema(saved, b'"ObjectNode"', b'"OtherNode"')
    assert_refused(saved, "OtherNode")
    with_header(saved, json.dumps({"format": 1, "fgfm": "0.1.0", "scikit-learn": "1.2.3"}))
    sentence = r"is damaged or was written by .*scikit-learn 1\.2\.3 \(this is .*OtherNode"
    with pytest.raises(ValueError, match=sentence):
        fgfm.load(saved)


def test_later_format_raises_and_unknown_fields_do_not(saved, model):
    with_header(saved, json.dumps({"format": 1, "fgfm": "0.1.7", "note": "hello"}))
    assert_same(fgfm.load(saved), model)
    with_header(saved, json.dumps({"format": 99, "fgfm": "7.3.1"}))
    with pytest.raises(
        ValueError, match=r"was written by fgfm 7\.3\.1 in format 99, .* update fgfm"
    ):
        fgfm.load(saved)


HEADERS = [b"", b"{", b"\xff\xfe\x00", b"[]", b"{}", b'{"format": "1"}', b'{"format": 0}']
HEADERS += [b'{"format": 1.5}', b'{"format": true}', b"[" * 100_000]


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: str(header[:20]))
def test_damaged_header_raises(saved, header):
    with_header(saved, header)
    assert_refused(saved)


# Files that are not models, and damage


@pytest.mark.parametrize("value", [FClassifier, {"a": 1}, np.ones(3), None, "model"], ids=str)
def test_objects_other_than_estimators_raise(value, path):
    name = type(value).__name__
    with pytest.raises(TypeError, match=f"model is {name}: it must be a scikit-learn estimator"):
        fgfm.save(value, path)
    assert not path.exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"hello, I am a text file\n", b"PK\x03\x04", b"\x00" * 100, pickle.dumps({"a": 1})],
    ids=["empty", "text", "magic", "zeros", "pickle"],
)
def test_other_files_raise(content, path):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.fgfm .* is not a model saved by fgfm: "):
        fgfm.load(path)


def test_other_archives_raise(path, model):
    header = {"fgfm.json": json.dumps({"format": 1, "fgfm": "0.1.0"})}
    skops_io.dump(model, path)
    with pytest.raises(ValueError, match=r"is not a model saved by fgfm: it has no fgfm\.json"):
        fgfm.load(path)
    skops_io.dump({"a": np.ones(3)}, path)
    write(path, read_members(path) | header)
    assert_refused(path, "it contains dict in place of an estimator")
    write(path, header)
    assert_refused(path)


def bit_flips(whole):
    """Yield copies of a file with one bit flipped."""
    rng = np.random.default_rng(0)
    places = {
        *np.linspace(0, len(whole) - 1, 60).astype(int).tolist(),
        *range(60),  # the header of the first member
        *range(whole.rindex(b"PK\x05\x06"), len(whole)),  # the end of the archive
    }
    bits = [(place, int(rng.integers(8))) for place in sorted(places)]
    for name in (b"fgfm.json", b"schema.json"):
        # the last occurrence of the name is in the central directory, 46 bytes into its entry
        entry = whole.rindex(name) - 46
        bits += [(entry + field, bit) for field in (8, 10) for bit in range(8)]  # flags, method
    for place, bit in bits:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << bit
        yield bytes(damaged)


def test_flipped_bits_raise_or_do_not_matter(saved, model):
    refused, unchanged = [], 0
    for damaged in bit_flips(saved.read_bytes()):
        saved.write_bytes(damaged)
        try:
            again = fgfm.load(saved)
        except (ValueError, OSError) as error:
            refused.append("model.fgfm" in str(error))
        else:
            assert_same(again, model)
            unchanged += 1
    assert all(refused)
    assert len(refused) > unchanged


def test_truncated_file_raises(saved):
    whole = saved.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 40).astype(int):
        saved.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"model\.fgfm is"):
            fgfm.load(saved)


@pytest.mark.parametrize("change", ["missing", "empty"])
def test_missing_or_empty_members_raise(saved, change):
    members = read_members(saved)
    array = next(name for name in members if name.endswith(".npy"))
    content = members.pop(array)
    write(saved, members if change == "missing" else members | {array: content[:0]})
    assert_refused(saved)


# No code is run


class Bomb:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (os.mkdir, (self.target,))


def test_pickles_are_not_run(saved, tmp_path):
    bomb = Bomb(str(tmp_path / "exploded"))
    array = saved_array(np.array([bomb], dtype=object))
    members = read_members(saved)
    write(saved, {n: array if n.endswith(".npy") else c for n, c in members.items()})
    assert_refused(saved)
    saved.write_bytes(pickle.dumps(bomb))
    with pytest.raises(ValueError, match="is not a model saved by fgfm"):
        fgfm.load(saved)
    assert not (tmp_path / "exploded").exists()


def split_words(text):
    """A tokenizer of a user."""
    return text.split()


UNTRUSTED = {
    "learner": (FGFMClassifier(Mine(), random_state=0), Mine, "estimator of FGFMClassifier"),
    "function": (
        TfidfVectorizer(tokenizer=split_words, token_pattern=None),
        split_words,
        "tokenizer of TfidfVectorizer",
    ),
}


@pytest.mark.parametrize("name", UNTRUSTED)
def test_untrusted_classes_and_functions_are_loaded_only_if_named(name, path):
    model, thing, attribute = UNTRUSTED[name]
    is_text = isinstance(model, TfidfVectorizer)
    fgfm.save(model.fit(["a b", "b c"]) if is_text else model.fit(X, Y), path)
    full = f"{thing.__module__}.{thing.__name__}"
    for trusted in ([], ["some.other.Class"]):
        with pytest.raises(ValueError, match=rf"contains {full} \({attribute}\): such classes"):
            fgfm.load(path, trusted=trusted)
    again = fgfm.load(path, trusted=(full, "and.another"))
    if is_text:
        assert again.tokenizer is split_words
    else:
        assert_same(again, model)
    with pytest.raises(TypeError, match=r"trusted is 'a\.B': it must be a list of names"):
        fgfm.load(path, trusted="a.B")


@pytest.mark.parametrize(
    ("parameter", "function", "name"),
    [
        ("tokenizer", str.split, "method_descriptor of builtins"),
        ("preprocessor", lambda text: text, "<lambda> of"),
    ],
)
def test_functions_without_a_name_are_not_saved(parameter, function, name, path):
    model = TfidfVectorizer(**{parameter: function}, token_pattern=None)
    sentence = f"{parameter} of TfidfVectorizer is a {name}.*cannot be imported"
    with pytest.raises(ValueError, match=sentence):
        fgfm.save(model, path)
    assert not path.exists()
