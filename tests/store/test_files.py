"""Saved models: loaded unchanged, by stable names of classes, or refused with a message."""

from __future__ import annotations

import io
import json
import os
import pickle
import stat
import sys
import zipfile

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fgfm
from fgfm import FGFMClassifier
from fgfm.cardinality import of_marginals
from fgfm.ridge import RidgeLogistic
from multilabel import X, Y, assert_same

skops_io = pytest.importorskip("skops.io")


class Mine(LogisticRegression):
    """A base learner that is loaded only if it is trusted."""


class Frequencies(BaseEstimator):
    """An object for ``method=``: independent labels with the frequencies of training."""

    def fit(self, X, Y):
        self.frequencies_ = Y.mean(axis=0)
        return self

    def estimate(self, X):
        return of_marginals(np.tile(self.frequencies_, (X.shape[0], 1)))


MODELS = {
    "default": FGFMClassifier(random_state=0),
    "independent": FGFMClassifier(factors="independent", beta=2.0, random_state=0),
    "partition": FGFMClassifier(factors=[[0, 3], [1, 2]], random_state=0),
    "two-step": FGFMClassifier(method="two-step", random_state=0),
    "tilted": FGFMClassifier(method="tilted", random_state=0),
    "direct": FGFMClassifier(method="direct", random_state=0),
    "powerset": FGFMClassifier(method="powerset", nonempty=False, random_state=0),
    "splitter": FGFMClassifier(cv=KFold(3)),
    "RidgeLogistic": FGFMClassifier(RidgeLogistic([1.0]), random_state=0),
    "LogisticRegression": FGFMClassifier(LogisticRegression()),
    "GaussianNB": FGFMClassifier(GaussianNB(), random_state=0),
    "isotonic": FGFMClassifier(GaussianNB(), calibration="isotonic", random_state=0),
    "LinearSVC": FGFMClassifier(LinearSVC(), random_state=0),
    "scaled learner": FGFMClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
    "Pipeline": make_pipeline(StandardScaler(), FGFMClassifier(random_state=0)),
    "scikit-learn": LogisticRegression(),
}


@pytest.fixture(scope="module")
def model():
    return FGFMClassifier("ridge", factors="independent", random_state=0).fit(X, Y)


@pytest.fixture
def path(tmp_path, model):
    fgfm.save(model, tmp_path / "model.fgfm")
    return tmp_path / "model.fgfm"


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name, tmp_path):
    target = Y[:, 0] if name == "scikit-learn" else Y
    model = MODELS[name].fit(X, target)
    assert fgfm.save(model, tmp_path / "model.fgfm") is None
    assert not any("._" in name for name in class_names(tmp_path / "model.fgfm"))
    again = fgfm.load(tmp_path / "model.fgfm")
    assert isinstance(again, type(model))
    assert str(again.get_params()) == str(model.get_params())
    if isinstance(model, LogisticRegression):
        assert (again.predict_proba(X) == model.predict_proba(X)).all()
    else:
        final, features = last_step(model, X)
        assert_same(final, last_step(again, X)[0], features)
    again.fit(X, target)


def test_object_as_method(tmp_path):
    model = FGFMClassifier(method=Frequencies(), factors=[[0, 3], [1, 2]]).fit(X, Y)
    fgfm.save(model, tmp_path / "model")
    name = f"{Frequencies.__module__}.Frequencies"
    with pytest.raises(ValueError, match=f"contains {name}"):
        fgfm.load(tmp_path / "model")
    assert_same(fgfm.load(tmp_path / "model", trusted=[name]), model)


def last_step(model, X):
    """Return the classifier of a pipeline, and the features that it gets."""
    return (model[-1], model[:-1].transform(X)) if isinstance(model, Pipeline) else (model, X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_of_labels_and_features_are_kept(library, tmp_path):
    frames = pytest.importorskip(library)
    X_frame = frames.DataFrame({f"x{j}": X[:, j] for j in range(3)})
    Y_frame = frames.DataFrame({f"label {i}": Y[:, i] for i in range(4)})
    model = FGFMClassifier(factors=[["label 3", "label 0"], ["label 1", "label 2"]])
    model.fit(X_frame, Y_frame)
    fgfm.save(model, tmp_path / "model")
    again = fgfm.load(tmp_path / "model")
    assert again.label_names_in_.tolist() == [f"label {i}" for i in range(4)]
    assert again.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    assert again.predict_frame(X_frame).equals(model.predict_frame(X_frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(X_frame[["x2", "x1", "x0"]])


@pytest.mark.parametrize("classes", [["no", "yes"], [-1, 1], [False, True]])
def test_flat_classes_are_kept(classes, tmp_path):
    y = np.array(classes)[Y[:, 0]]
    model = FGFMClassifier(random_state=0).fit(X, y)
    fgfm.save(model, tmp_path / "model")
    again = fgfm.load(tmp_path / "model")
    assert (again.predict(X) == model.predict(X)).all()
    assert again.predict(X).dtype == y.dtype


def test_set_params_works_after_loading(path, model):
    again = fgfm.load(path).set_params(beta=2.0)
    expected = FGFMClassifier("ridge", factors="independent", beta=2.0, random_state=0).fit(X, Y)
    assert_same(again, expected)


def test_unfitted_model(tmp_path):
    fgfm.save(FGFMClassifier(beta=0.5), tmp_path / "model")
    assert fgfm.load(tmp_path / "model").beta == 0.5


def test_paths_of_any_type(tmp_path, model, monkeypatch):
    class Elsewhere:
        def __fspath__(self):
            return str(tmp_path / "elsewhere")

    monkeypatch.chdir(tmp_path)
    for path in (
        "plain",
        "./dotted.fgfm",
        str(tmp_path / "absolute"),
        Elsewhere(),
        tmp_path / "ä b",
    ):
        fgfm.save(model, path)
        assert_same(fgfm.load(path), model)


def test_permissions_are_those_of_a_new_file(path, tmp_path):
    other = tmp_path / "other"
    other.write_text("")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


# Names of classes


def class_names(path):
    """Return the full names of the classes of fgfm in a file."""
    names = set()

    def visit(value):
        if isinstance(value, dict):
            if str(value.get("__module__")).startswith("fgfm"):
                names.add(f"{value['__module__']}.{value['__class__']}")
            for child in value.values():
                visit(child)
        elif isinstance(value, list):
            for child in value:
                visit(child)

    visit(json.loads(read_members(path)["schema.json"]))
    return names


def test_files_contain_stable_names(tmp_path):
    model = make_pipeline(StandardScaler(), FGFMClassifier(RidgeLogistic([1.0])))
    fgfm.save(model.fit(X, Y), tmp_path / "model")
    assert class_names(tmp_path / "model") == {
        "fgfm.FGFMClassifier",
        "fgfm.estimation.FactorModels",
        "fgfm.LogLinearPool",
        "fgfm.estimation.Reweighted",
        "fgfm.estimation.RidgeModels",
        "fgfm.ridge.RidgeLogistic",
    }


def public_estimators():
    """Return the public classes of fgfm that are scikit-learn estimators."""
    found = {fgfm.FGFMClassifier, fgfm.ILFCompo}
    for package in (getattr(fgfm, name) for name in fgfm.__all__):
        for name in getattr(package, "__all__", ()):
            value = getattr(package, name)
            if isinstance(value, type) and issubclass(value, BaseEstimator):
                found.add(value)
    return sorted(found, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", public_estimators())
def test_public_estimators_are_loaded_without_trust(kind, tmp_path):
    fgfm.save(kind(), tmp_path / "model")
    assert type(fgfm.load(tmp_path / "model")) is kind
    assert not any("._" in name for name in class_names(tmp_path / "model"))


def replace_in_schema(path, old, new):
    """Replace a text in schema.json."""
    members = read_members(path)
    assert old in members["schema.json"]
    members["schema.json"] = members["schema.json"].replace(old, new)
    write_members(path, members)


def test_unregistered_class_of_fgfm_is_refused(path):
    replace_in_schema(path, b"RidgeModels", b"OtherModels")
    with pytest.raises(ValueError, match=r"contains fgfm\.estimation\.OtherModels \(models of"):
        fgfm.load(path)


# Files that are not models


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (FGFMClassifier, "type"),
        ({"a": 1}, "dict"),
        (np.ones(3), "ndarray"),
        (None, "NoneType"),
        ("model", "str"),
    ],
)
def test_objects_other_than_estimators_raise(value, name, tmp_path):
    with pytest.raises(TypeError, match=f"model is {name}: it must be a scikit-learn estimator"):
        fgfm.save(value, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"hello, I am a text file\n", b"PK\x03\x04", b"\x00" * 100, pickle.dumps({"a": 1})],
    ids=["empty", "text", "magic", "zeros", "pickle"],
)
def test_other_files_raise(content, tmp_path):
    path = tmp_path / "model.fgfm"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.fgfm is not a model saved by fgfm"):
        fgfm.load(path)


def test_other_archives_raise(tmp_path, model):
    path = tmp_path / "model.fgfm"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "hello")
    with pytest.raises(ValueError, match=r"is not a model saved by fgfm: it has no fgfm\.json"):
        fgfm.load(path)
    skops_io.dump(model, path)  # without the header of fgfm
    with pytest.raises(ValueError, match=r"is not a model saved by fgfm: it has no fgfm\.json"):
        fgfm.load(path)


def test_header_without_a_model_raises(tmp_path):
    path = tmp_path / "model.fgfm"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("fgfm.json", json.dumps({"format": 1, "fgfm": "0.1.0"}))
    with pytest.raises(ValueError, match=r"model\.fgfm is damaged"):
        fgfm.load(path)


def test_archive_of_another_object_raises(tmp_path):
    path = tmp_path / "model.fgfm"
    skops_io.dump({"a": np.ones(3)}, path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("fgfm.json", json.dumps({"format": 1, "fgfm": "0.1.0"}))
    with pytest.raises(ValueError, match="it contains dict in place of an estimator"):
        fgfm.load(path)


def read_members(path):
    """Return the contents of the members of an archive."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, members):
    """Write an archive."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def with_header(path, header):
    """Rewrite the archive with another header."""
    members = read_members(path)
    members["fgfm.json"] = header
    write_members(path, members)


def test_later_format_raises(path):
    with_header(path, json.dumps({"format": 99, "fgfm": "7.3.1"}))
    with pytest.raises(
        ValueError, match=r"was written by fgfm 7\.3\.1 in format 99, .* update fgfm"
    ):
        fgfm.load(path)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"{}",
        b"null",
        b'{"format": "1"}',
        b'{"format": 0}',
        b'{"format": -1}',
        b'{"format": 1.5}',
        b'{"format": true}',
        b'{"format": null}',
        b"[" * 100_000,
    ],
    ids=lambda header: str(header[:20]),
)
def test_damaged_header_raises(path, header):
    with_header(path, header)
    with pytest.raises(ValueError, match=r"model\.fgfm is damaged"):
        fgfm.load(path)


def test_unknown_fields_of_the_header_are_ignored(path, model):
    with_header(path, json.dumps({"format": 1, "fgfm": "0.1.7", "note": "hello"}))
    assert_same(fgfm.load(path), model)


def test_missing_files_raise(tmp_path, model):
    with pytest.raises(FileNotFoundError):
        fgfm.load(tmp_path / "nothing")
    with pytest.raises(OSError, match="directory"):
        fgfm.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        fgfm.save(model, tmp_path / "no such folder" / "model")


# Damage


def test_truncated_file_raises(path):
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 40).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"model\.fgfm is"):
            fgfm.load(path)


def load_damaged(path, content, model):
    """Return the message of a damaged file, or None if the model is loaded unchanged."""
    path.write_bytes(content)
    try:
        again = fgfm.load(path)
    except (ValueError, OSError) as error:
        return str(error)
    assert (again.predict(X) == model.predict(X)).all()
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    return None


@pytest.mark.parametrize("how", ["one bit", pytest.param("all bits", marks=pytest.mark.slow)])
def test_flipped_bytes_raise_or_do_not_matter(path, model, how):
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    directory = whole.rindex(b"PK\x05\x06")
    positions = {
        *np.linspace(0, len(whole) - 1, 100).astype(int).tolist(),
        *range(60),  # the header of the first member
        *range(directory, len(whole)),  # the end of the archive
        *rng.integers(0, len(whole), 60).tolist(),
    }
    refused = 0
    unexpected = {}
    for at in sorted(positions):
        flip = 1 << int(rng.integers(8)) if how == "one bit" else 0xFF
        damaged = bytearray(whole)
        damaged[at] ^= flip
        try:
            message = load_damaged(path, bytes(damaged), model)
        except Exception as error:  # of another type than documented
            unexpected[at] = f"{type(error).__name__}: {error}"
        else:
            refused += message is not None
    assert not unexpected
    assert refused > 0.5 * len(positions)


@pytest.mark.parametrize("name", ["fgfm.json", "schema.json"])
@pytest.mark.parametrize("field", ["flags", "method"])
def test_wrong_directory_entries_raise_or_do_not_matter(path, model, name, field):
    whole = bytearray(path.read_bytes())
    entry = -1
    while True:  # entries of the central directory
        entry = whole.index(b"PK\x01\x02", entry + 1)
        length = int.from_bytes(whole[entry + 28 : entry + 30], "little")
        if whole[entry + 46 : entry + 46 + length] == name.encode():
            break
    for value in range(8):
        damaged = bytearray(whole)
        at = entry + (8 if field == "flags" else 10)
        damaged[at] ^= 1 << value  # encrypted, other compression, ...
        message = load_damaged(path, bytes(damaged), model)
        assert message is None or "model.fgfm" in message


def test_missing_or_empty_members_raise(path):
    members = read_members(path)
    arrays = [name for name in members if name.endswith(".npy")]
    assert len(arrays) > 1
    for change in ("missing", "empty"):
        changed = dict(members)
        if change == "missing":
            del changed[arrays[0]]
        else:
            changed[arrays[0]] = b""
        write_members(path, changed)
        with pytest.raises(ValueError, match=r"model\.fgfm is damaged"):
            fgfm.load(path)


# No code is run


class Bomb:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (os.mkdir, (self.target,))


def test_pickle_is_not_run(tmp_path):
    bomb = tmp_path / "exploded"
    path = tmp_path / "model.fgfm"
    path.write_bytes(pickle.dumps(Bomb(str(bomb))))
    with pytest.raises(ValueError, match="is not a model saved by fgfm"):
        fgfm.load(path)
    assert not bomb.exists()


def test_array_of_objects_is_not_run(path, tmp_path):
    bomb = tmp_path / "exploded"
    members = read_members(path)
    array = io.BytesIO()
    np.save(array, np.array([Bomb(str(bomb))], dtype=object), allow_pickle=True)
    for name in members:
        if name.endswith(".npy"):
            members[name] = array.getvalue()
    write_members(path, members)
    with pytest.raises(ValueError, match="is damaged"):
        fgfm.load(path)
    assert not bomb.exists()


def test_untrusted_classes_are_loaded_only_if_named(tmp_path):
    model = FGFMClassifier(Mine(), random_state=0).fit(X, Y)
    path = tmp_path / "model.fgfm"
    fgfm.save(model, path)
    full = f"{Mine.__module__}.Mine"
    sentence = rf"contains {full} \(estimator of FGFMClassifier\): such classes and functions are"
    with pytest.raises(ValueError, match=sentence):
        fgfm.load(path)
    with pytest.raises(ValueError, match=sentence):
        fgfm.load(path, trusted=["some.other.Class"])
    assert_same(fgfm.load(path, trusted=[full]), model)
    assert_same(fgfm.load(path, trusted=(full, "and.another")), model)


def split_words(text):
    """A tokenizer of a user."""
    return text.split()


def test_functions_are_loaded_only_if_named(tmp_path):
    model = TfidfVectorizer(tokenizer=split_words, token_pattern=None).fit(["a b", "b c"])
    path = tmp_path / "model.fgfm"
    fgfm.save(model, path)
    full = f"{split_words.__module__}.split_words"
    sentence = rf"contains {full} \(tokenizer of TfidfVectorizer\): such classes and functions"
    with pytest.raises(ValueError, match=sentence):
        fgfm.load(path)
    assert fgfm.load(path, trusted=[full]).tokenizer is split_words


@pytest.mark.parametrize(
    ("parameter", "function", "name"),
    [
        ("tokenizer", str.split, "method_descriptor of builtins"),
        ("preprocessor", lambda text: text, "<lambda> of"),
        ("analyzer", lambda text: [text], "<lambda> of"),
    ],
)
def test_functions_without_a_name_are_not_saved(parameter, function, name, tmp_path):
    model = TfidfVectorizer(**{parameter: function}, token_pattern=None)
    sentence = f"{parameter} of TfidfVectorizer is a {name}.*cannot be imported"
    with pytest.raises(ValueError, match=sentence):
        fgfm.save(model, tmp_path / "model.fgfm")
    assert list(tmp_path.iterdir()) == []


def test_attribute_in_place_of_a_method_is_refused(path):
    replace_in_schema(path, b'"beta":', b'"predict":')
    with pytest.raises(ValueError, match=r"a FGFMClassifier has an attribute in place of predict"):
        fgfm.load(path)


def test_other_versions_of_scikit_learn_warn(tmp_path):
    fgfm.save(StandardScaler().fit(X), tmp_path / "model")
    version = json.dumps(json.dumps(sklearn.__version__)).encode()
    replace_in_schema(tmp_path / "model", version, json.dumps(json.dumps("1.2.3")).encode())
    with pytest.warns(InconsistentVersionWarning, match=r"StandardScaler from version 1\.2\.3"):
        again = fgfm.load(tmp_path / "model")
    assert again.transform(X).shape == X.shape


def test_versions_are_named_where_a_file_cannot_be_read(path):
    replace_in_schema(path, b'"ObjectNode"', b'"OtherNode"')
    with pytest.raises(ValueError, match=r"model\.fgfm is damaged or was changed: .*OtherNode"):
        fgfm.load(path)
    with_header(path, json.dumps({"format": 1, "fgfm": "0.1.0", "scikit-learn": "1.2.3"}))
    sentence = r"is damaged or was written by .*scikit-learn 1\.2\.3 \(this is .*OtherNode"
    with pytest.raises(ValueError, match=sentence):
        fgfm.load(path)


def test_trusted_must_be_a_list(path):
    with pytest.raises(TypeError, match=r"trusted is 'a\.B': it must be a list of names"):
        fgfm.load(path, trusted="a.B")


# Saving is all or nothing


class InterruptedSaveError(Exception):
    pass


def fail_after_writing(model, file, **how):
    file.write(b"half of a model")
    raise InterruptedSaveError


def test_failing_save_leaves_no_file(tmp_path, model, monkeypatch):
    monkeypatch.setattr(skops_io, "dump", fail_after_writing)
    with pytest.raises(InterruptedSaveError):
        fgfm.save(model, tmp_path / "model.fgfm")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stage", ["dump", "fsync", "replace"])
def test_failing_save_keeps_the_older_file(path, model, monkeypatch, stage):
    before = path.read_bytes()

    def fail(*_, **__):
        raise InterruptedSaveError

    if stage == "dump":
        monkeypatch.setattr(skops_io, "dump", fail_after_writing)
    else:
        monkeypatch.setattr(os, stage, fail)
    with pytest.raises(InterruptedSaveError):
        fgfm.save(FGFMClassifier().fit(X, Y[:, :2]), path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    assert_same(fgfm.load(path), model)


def test_model_that_cannot_be_saved_leaves_no_file(tmp_path):
    model = FGFMClassifier(LogisticRegression()).fit(X, Y)
    model.extra_ = (i for i in range(3))  # a generator cannot be saved
    with pytest.raises(Exception, match=r"."):
        fgfm.save(model, tmp_path / "model.fgfm")
    assert list(tmp_path.iterdir()) == []


def test_saving_replaces_the_older_file(path, model):
    other = FGFMClassifier(random_state=0).fit(X, Y[:, :2])
    fgfm.save(other, path)
    assert list(path.parent.iterdir()) == [path]
    assert fgfm.load(path).predict(X).shape == (len(X), 2)


def test_saving_to_a_folder_raises(tmp_path, model):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        fgfm.save(model, tmp_path / "folder")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_missing_skops_raises_with_the_install_command(tmp_path, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    sentence = r"saving and loading models needs skops: pip install 'fgfm\[store\]'"
    with pytest.raises(ImportError, match=sentence):
        fgfm.save(model, tmp_path / "model")
    with pytest.raises(ImportError, match=sentence):
        fgfm.load(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_cut_edges_of_factors_are_kept(tmp_path):
    labels = np.repeat(Y[:, :1], 3, axis=1)
    labels[::9, 1] ^= 1
    labels[::7, 2] ^= 1
    finder = fgfm.ILFCompo(max_factor_size=1, correction=None, alpha=0.5)
    model = FGFMClassifier(factors=finder, random_state=0).fit(X, labels)
    assert model.factor_finder_.cuts_
    fgfm.save(model, tmp_path / "model")
    again = fgfm.load(tmp_path / "model")
    assert again.factor_finder_.cuts_ == model.factor_finder_.cuts_
    assert_same(again, model)
