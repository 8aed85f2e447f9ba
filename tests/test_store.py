"""Models in files: back as they were, or refused with a sentence."""

from __future__ import annotations

import functools
import io
import json
import os
import pickle
import stat
import sys
import zipfile

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fgfm
from fgfm.estimation import Direct, Powerset, Reweighted, Tilted, TwoStep
from fgfm.ridge import RidgeLogistic

pytestmark = pytest.mark.compiled  # hundreds of small fits: minutes without the compiler

skops_io = pytest.importorskip("skops.io")


def some_data(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    Y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(n, 4)) > 0.3).astype(int)
    return X, Y


X, Y = some_data()
FGFMClassifier = functools.partial(fgfm.FGFMClassifier, factors="single")  # no tests of factors


class Mine(LogisticRegression):
    """A base learner that no file may name without leave."""


MODELS = {
    "default": fgfm.FGFMClassifier(random_state=0),
    "single": FGFMClassifier(random_state=0),
    "independent": FGFMClassifier(factors="independent", beta=2.0, random_state=0),
    "partition": FGFMClassifier(factors=[[0, 3], [1, 2]], random_state=0),
    "two-step": FGFMClassifier(method="two-step", random_state=0),
    "tilted": FGFMClassifier(method="tilted", random_state=0),
    "direct": FGFMClassifier(method="direct", random_state=0),
    "powerset": FGFMClassifier(method="powerset", nonempty=False, random_state=0),
    "object": FGFMClassifier(method=TwoStep(GaussianNB()), random_state=0),
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
    return FGFMClassifier(factors="independent", random_state=0).fit(X, Y)


@pytest.fixture
def path(tmp_path, model):
    fgfm.save(model, tmp_path / "model.fgfm")
    return tmp_path / "model.fgfm"


def same_answers(one, other):
    assert (one.predict(X) == other.predict(X)).all()
    assert (one.predict_proba(X) == other.predict_proba(X)).all()
    if isinstance(one, fgfm.FGFMClassifier):
        assert (one.expected_f(X) == other.expected_f(X)).all()
        assert (one.predict_cardinality_proba(X) == other.predict_cardinality_proba(X)).all()


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name, tmp_path):
    target = Y[:, 0] if name == "scikit-learn" else Y
    model = MODELS[name].fit(X, target)
    assert fgfm.save(model, tmp_path / "model.fgfm") is None
    again = fgfm.load(tmp_path / "model.fgfm")
    assert type(again) is type(model)
    assert str(again.get_params()) == str(model.get_params())
    same_answers(model, again)
    again.fit(X, target)  # it is an estimator like any other


@pytest.mark.parametrize("kind", [Reweighted, TwoStep, Tilted, Direct, Powerset])
@pytest.mark.parametrize("learner", [None, GaussianNB()])
def test_round_trip_of_estimates(kind, learner, tmp_path):
    model = kind(learner, random_state=0).fit(X, Y)
    fgfm.save(model, tmp_path / "model")
    again = fgfm.load(tmp_path / "model")
    assert (again.estimate(X).P == model.estimate(X).P).all()
    assert (again.estimate(X).d == model.estimate(X).d).all()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_are_kept(library, tmp_path):
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
    expected = FGFMClassifier(factors="independent", beta=2.0, random_state=0).fit(X, Y)
    same_answers(again, expected)


def test_an_unfitted_model_is_saved_too(tmp_path):
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
        same_answers(fgfm.load(path), model)


def test_permissions_are_those_of_any_new_file(path, tmp_path):
    other = tmp_path / "other"
    other.write_text("")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


# What is not a model


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (fgfm.FGFMClassifier, "type"),
        ({"a": 1}, "dict"),
        (np.ones(3), "ndarray"),
        (None, "NoneType"),
        ("model", "str"),
    ],
)
def test_only_estimators_are_saved(value, name, tmp_path):
    with pytest.raises(TypeError, match=f"model is {name}: it must be a scikit-learn estimator"):
        fgfm.save(value, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"hello, I am a text file\n", b"PK\x03\x04", b"\x00" * 100, pickle.dumps({"a": 1})],
    ids=["empty", "text", "magic", "zeros", "pickle"],
)
def test_foreign_files_are_refused(content, tmp_path):
    path = tmp_path / "model.fgfm"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.fgfm is not a model saved by fgfm"):
        fgfm.load(path)


def test_other_archives_are_refused(tmp_path, model):
    path = tmp_path / "model.fgfm"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "hello")
    with pytest.raises(ValueError, match=r"is not a model saved by fgfm: it has no fgfm\.json"):
        fgfm.load(path)
    skops_io.dump(model, path)  # without our header
    with pytest.raises(ValueError, match=r"is not a model saved by fgfm: it has no fgfm\.json"):
        fgfm.load(path)


def test_a_header_alone_is_refused(tmp_path):
    path = tmp_path / "model.fgfm"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("fgfm.json", json.dumps({"format": 1, "fgfm": "0.1.0"}))
    with pytest.raises(ValueError, match=r"model\.fgfm is damaged"):
        fgfm.load(path)


def test_an_archive_of_something_else_is_refused(tmp_path):
    path = tmp_path / "model.fgfm"
    skops_io.dump({"a": np.ones(3)}, path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("fgfm.json", json.dumps({"format": 1, "fgfm": "0.1.0"}))
    with pytest.raises(ValueError, match="contains dict: it must contain an estimator"):
        fgfm.load(path)


def with_header(path, header):
    """Write the archive anew with another header."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["fgfm.json"] = header
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_future_formats_are_refused(path):
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
def test_damaged_headers_are_refused(path, header):
    with_header(path, header)
    with pytest.raises(ValueError, match=r"model\.fgfm is damaged"):
        fgfm.load(path)


def test_a_header_of_today_is_read_whatever_else_it_says(path, model):
    with_header(path, json.dumps({"format": 1, "fgfm": "0.1.7", "note": "hello"}))
    same_answers(fgfm.load(path), model)


def test_files_that_are_not_there(tmp_path, model):
    with pytest.raises(FileNotFoundError):
        fgfm.load(tmp_path / "nothing")
    with pytest.raises(OSError, match="directory"):
        fgfm.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        fgfm.save(model, tmp_path / "no such folder" / "model")


# Damage


def test_truncated_files_are_refused(path):
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 40).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"model\.fgfm is"):
            fgfm.load(path)


def load_damaged(path, content, model):
    """Load a damaged file: it is refused, or the model is the same."""
    path.write_bytes(content)
    try:
        again = fgfm.load(path)
    except (ValueError, OSError) as error:
        return str(error)
    assert (again.predict(X) == model.predict(X)).all()
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    return None


@pytest.mark.parametrize("how", ["one bit", "all bits"])
def test_flipped_bytes_are_noticed_or_harmless(path, model, how):
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
        except Exception as error:  # what a user should not see
            unexpected[at] = f"{type(error).__name__}: {error}"
        else:
            refused += message is not None
    assert not unexpected
    assert refused > 0.5 * len(positions)


@pytest.mark.parametrize("name", ["fgfm.json", "schema.json"])
@pytest.mark.parametrize("field", ["flags", "method"])
def test_directory_entries_that_lie(path, model, name, field):
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


def test_members_that_are_missing_or_swapped(path):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    arrays = [name for name in members if name.endswith(".npy")]
    assert len(arrays) > 1
    for change in ("missing", "empty"):
        changed = dict(members)
        if change == "missing":
            del changed[arrays[0]]
        else:
            changed[arrays[0]] = b""
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in changed.items():
                archive.writestr(name, content)
        with pytest.raises(ValueError, match=r"model\.fgfm is damaged"):
            fgfm.load(path)


# Code


class Bomb:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (os.mkdir, (self.target,))


def test_a_pickle_is_not_run(tmp_path):
    bomb = tmp_path / "exploded"
    path = tmp_path / "model.fgfm"
    path.write_bytes(pickle.dumps(Bomb(str(bomb))))
    with pytest.raises(ValueError, match="is not a model saved by fgfm"):
        fgfm.load(path)
    assert not bomb.exists()


def test_an_array_of_objects_in_a_genuine_archive_is_not_run(path, tmp_path):
    bomb = tmp_path / "exploded"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    array = io.BytesIO()
    np.save(array, np.array([Bomb(str(bomb))], dtype=object), allow_pickle=True)
    for name in members:
        if name.endswith(".npy"):
            members[name] = array.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="is damaged"):
        fgfm.load(path)
    assert not bomb.exists()


def test_untrusted_classes_are_named_and_loaded_on_request(tmp_path):
    model = FGFMClassifier(Mine(), random_state=0).fit(X, Y)
    path = tmp_path / "model.fgfm"
    fgfm.save(model, path)
    full = f"{Mine.__module__}.Mine"
    with pytest.raises(ValueError, match=f"contains {full}: such classes are loaded only if you"):
        fgfm.load(path)
    with pytest.raises(ValueError, match=f"contains {full}: "):
        fgfm.load(path, trusted=["some.other.Class"])
    same_answers(fgfm.load(path, trusted=[full]), model)
    same_answers(fgfm.load(path, trusted=(full, "and.another")), model)


def test_trees_of_scikit_learn_need_a_word(tmp_path):
    # skops does not vouch for them: a wrong tree may read memory that is not its own
    model = FGFMClassifier(RandomForestClassifier(3), random_state=0).fit(X, Y)
    path = tmp_path / "model.fgfm"
    fgfm.save(model, path)
    with pytest.raises(ValueError, match=r"contains sklearn\.tree\._tree\.Tree: such classes"):
        fgfm.load(path)
    same_answers(fgfm.load(path, trusted=["sklearn.tree._tree.Tree"]), model)


def test_trusted_is_a_list(path):
    with pytest.raises(TypeError, match=r"trusted is 'a\.B': it must be a list of names"):
        fgfm.load(path, trusted="a.B")


# Saving is all or nothing


class InterruptedSaveError(Exception):
    pass


def fail_after_writing(model, file, **how):
    file.write(b"half of a model")
    raise InterruptedSaveError


def test_a_failing_save_leaves_nothing(tmp_path, model, monkeypatch):
    monkeypatch.setattr(skops_io, "dump", fail_after_writing)
    with pytest.raises(InterruptedSaveError):
        fgfm.save(model, tmp_path / "model.fgfm")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stage", ["dump", "fsync", "replace"])
def test_a_failing_save_leaves_the_older_file(path, model, monkeypatch, stage):
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
    same_answers(fgfm.load(path), model)


def test_a_model_that_cannot_be_saved_leaves_nothing(tmp_path):
    model = FGFMClassifier(LogisticRegression()).fit(X, Y)
    model.extra_ = (i for i in range(3))  # a generator has no state that could be written
    with pytest.raises(Exception, match=r"."):
        fgfm.save(model, tmp_path / "model.fgfm")
    assert list(tmp_path.iterdir()) == []


def test_saving_replaces_the_older_file_and_leaves_no_other(path, model):
    other = FGFMClassifier(random_state=0).fit(X, Y[:, :2])
    fgfm.save(other, path)
    assert list(path.parent.iterdir()) == [path]
    assert fgfm.load(path).predict(X).shape == (len(X), 2)


def test_saving_onto_a_folder(tmp_path, model):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        fgfm.save(model, tmp_path / "folder")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_without_skops_a_sentence_says_what_to_install(tmp_path, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    sentence = r"saving and loading models needs skops: pip install 'fgfm\[store\]'"
    with pytest.raises(ImportError, match=sentence):
        fgfm.save(model, tmp_path / "model")
    with pytest.raises(ImportError, match=sentence):
        fgfm.load(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_pickle_works_as_usual(model):
    same_answers(pickle.loads(pickle.dumps(model)), model)


def test_cut_factors_come_back(tmp_path):
    labels = np.repeat(Y[:, :1], 3, axis=1)
    labels[::9, 1] ^= 1
    labels[::7, 2] ^= 1
    finder = fgfm.ILFCompo(max_factor_size=1, correction=None, alpha=0.5)
    model = fgfm.FGFMClassifier(factors=finder, random_state=0).fit(X, labels)
    assert model.factor_finder_.cuts_
    fgfm.save(model, tmp_path / "model")
    again = fgfm.load(tmp_path / "model")
    assert again.factor_finder_.cuts_ == model.factor_finder_.cuts_
    same_answers(again, model)
