"""Saved models with random changes: refused with a message, or models that predict.

A failure prints the seed and the change; ``FGFM_SEED`` sets the first seed of the long run.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import warnings
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fgfm
from fgfm import FClassifier, FDecider, FGFMClassifier
from multilabel import X, Y

pytest.importorskip("skops")
resource = pytest.importorskip("resource")

MOST_BYTES = 2 << 30  # beyond what the process has
MOST_SECONDS = 20
PROBA = np.clip(0.6 * Y + 0.2 + 0.1 * np.tanh(X[:, :1]), 0.0, 1.0)
COUNTS = sparse.csr_array(np.where(np.abs(X) > 1.5, np.round(np.abs(X)), 0.0))
CODES = np.round(X).astype(int)

# Models, the rows that they predict, and whether all of their code is that of fgfm.
MODELS = {
    "auto": (FClassifier(random_state=0), X, Y, True),
    "auto, counts": (FClassifier(random_state=0), COUNTS, Y, True),
    "ridge": (FGFMClassifier(factors=[[0, 3], [1], [2]], random_state=0), X, Y, True),
    "two-step": (FGFMClassifier(method="two-step", random_state=0), X, Y, True),
    "direct": (FGFMClassifier(method="direct", random_state=0), X, Y, True),
    "one label": (FGFMClassifier(random_state=0), X, Y[:, 0], True),
    "decider": (FDecider(), PROBA, Y, True),
    "decider, isotonic": (FDecider(calibration="isotonic"), PROBA, Y, True),
    "decider, macro": (FDecider(average="macro"), PROBA, Y, True),
    "decider, micro": (FDecider(average="micro"), PROBA, Y, True),
    "logistic": (FGFMClassifier(LogisticRegression(), random_state=0), X, Y, False),
    "pipeline": (make_pipeline(StandardScaler(), FGFMClassifier()), X, Y, False),
    "forest": (RandomForestClassifier(3, random_state=0), X, Y, False),
    "isolation": (IsolationForest(n_estimators=3, max_features=2, random_state=0), X, Y, False),
    "boosting": (HistGradientBoostingClassifier(max_iter=3), X, Y[:, 0], False),
    "neighbours": (KNeighborsClassifier(algorithm="brute"), X, Y[:, 0], False),
    "categories": (
        make_pipeline(
            OneHotEncoder(min_frequency=3, handle_unknown="infrequent_if_exist"),
            LogisticRegression(),
        ),
        CODES,
        Y[:, 0],
        False,
    ),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The members of the file of each model."""
    found = {}
    path = tmp_path_factory.mktemp("models") / "model.fgfm"
    for name, (model, rows, labels, _) in MODELS.items():
        fgfm.save(model.fit(rows, labels), path)
        with zipfile.ZipFile(path) as archive:
            found[name] = [(member, archive.read(member)) for member in archive.namelist()]
    return found


VALUES = [None, True, -1, 0, 1, 3, 10**9, 2**70, 1e308, float("nan"), "", "x", [], [[1]], {}]


def containers(value, path=()):
    """Yield all lists and dicts of a JSON value that are not empty, with their place."""
    if isinstance(value, dict | list) and value:
        yield path, value
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from containers(child, (*path, key))


def change_schema(content, rng):
    """Delete, replace, exchange or repeat a part of the description."""
    schema = json.loads(content)
    found = list(containers(schema))
    path, value = found[rng.integers(len(found))]
    key = list(value)[rng.integers(len(value))] if isinstance(value, dict) else -1
    how = rng.choice(["delete", "replace", "move", "json", "rename"])
    if how == "delete":
        del value[key]
    elif how == "replace":
        value[key] = VALUES[rng.integers(len(VALUES))]
    elif how == "move":
        value[key] = found[rng.integers(len(found))][1]
    elif how == "rename" and isinstance(value, dict):
        value[f"{key}x"] = value.pop(key)
    else:
        leaves = [(p, v) for p, v in found if isinstance(v, dict) and "is_json" in v]
        path, value = leaves[rng.integers(len(leaves))]
        key, value["content"] = "content", json.dumps(VALUES[rng.integers(len(VALUES))])
    with contextlib.suppress(ValueError):  # a part moved into itself
        return json.dumps(schema).encode(), (how, *path, key, str(value)[:100])
    return b"{}", ("a part of itself", *path, key)


def change_array(content, rng):
    """Change values, shape or type of an array."""
    array = np.load(io.BytesIO(content))
    how = rng.choice(["value", "shape", "type", "length", "order", "huge"])
    if how == "value" and array.size:
        extremes = {"i": [-1, 10**9, -(2**31), 2**31 - 1], "u": [255], "b": [True], "f": [np.nan]}
        if array.dtype.names:
            field = array.dtype.names[rng.integers(len(array.dtype.names))]
            array[field].flat[rng.integers(array.size)] = rng.choice([0, 1, 100])
        elif array.dtype.kind in extremes:
            options = [*extremes[array.dtype.kind], 0, 1, 100]
            array.flat[rng.integers(array.size)] = options[rng.integers(len(options))]
    elif how == "shape":
        array = [array[None], array.ravel(), array.reshape(-1)[:, None]][rng.integers(3)]
    elif how == "type":
        kinds = ["f4", "i8", "U3", "c16", "?", "u1"]
        with contextlib.suppress(ValueError, TypeError):
            array = array.astype(kinds[rng.integers(len(kinds))])
    elif how == "length":
        array = np.atleast_1d(array)
        array = [array[:0], array[:-1], np.concatenate([array, array])][rng.integers(3)]
    elif how == "order":
        array = array[..., ::-1] if array.ndim else array
    target = io.BytesIO()
    np.save(target, array)
    content = target.getvalue()
    if how == "huge":
        shape = str(array.shape).encode()
        content = content.replace(shape, b"(99999999999,)", 1)
    return content, (how, array.dtype, array.shape)


def change_sparse(content, rng):
    """Change one array of a sparse matrix."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = list(members)[rng.integers(len(members))]
    if name == "shape.npy" and rng.random() < 0.5:
        target = io.BytesIO()
        np.save(target, np.load(io.BytesIO(members[name])) * [1, 10**8])
        members[name], change = target.getvalue(), ("wide",)
    else:
        members[name], change = change_array(members[name], rng)
    return archive_of(members.items()), (name, *change)


def archive_of(members):
    """Return a zip file."""
    target = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members with the same name
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                archive.writestr(name, content)
    return target.getvalue()


def changed(members, rng):
    """Return a changed file, and a description of the change."""
    members = list(members)
    kind = rng.choice(["schema", "array", "members"], p=[0.5, 0.4, 0.1])
    at = rng.integers(len(members))
    names = [name for name, _ in members]
    if kind == "schema":
        at = names.index("schema.json")
        members[at], change = (names[at], (new := change_schema(members[at][1], rng))[0]), new[1]
    elif kind == "array" and names[at].endswith((".npy", ".npz")):
        alter = change_array if names[at].endswith(".npy") else change_sparse
        members[at], change = (names[at], (new := alter(members[at][1], rng))[0]), new[1]
    else:
        other = rng.integers(len(members))
        how = rng.choice(["drop", "repeat", "exchange", "cut", "rename"])
        if how == "drop":
            del members[at]
        elif how == "repeat":
            members.append((names[at], members[other][1]))
        elif how == "exchange":
            one, two = members[at][1], members[other][1]
            members[at], members[other] = (names[at], two), (names[other], one)
        elif how == "cut":
            content = members[at][1]
            members[at] = (names[at], content[: rng.integers(len(content) + 1)])
        else:
            members[at] = (f"{names[at]}x", members[at][1])
        change = (how, names[at], names[other])
    return archive_of(members), (kind, *change)


@contextlib.contextmanager
def limits():
    """Limit memory and time; running out of memory is a MemoryError."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, before[1]))
    signal.alarm(MOST_SECONDS)  # kills the process: the seed has been printed
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, before)


def predict(model, rows):
    """Call the methods of a model."""
    for method in ("predict", "predict_proba", "expected_f", "estimate"):
        if hasattr(model, method):
            getattr(model, method)(rows)


def attack(name, files, path, seeds):
    """Load and use changed files; return the number of those that are refused."""
    _, rows, _, is_ours = MODELS[name]
    refused, failures = 0, []
    for seed in seeds:
        content, change = changed(files[name], np.random.default_rng([seed, len(name)]))
        print(f"model {name!r}, seed {seed}: {change}", flush=True)
        path.write_bytes(content)
        with warnings.catch_warnings(), limits():
            warnings.simplefilter("ignore")
            try:
                model = fgfm.load(path)
                predict(model, rows)
            except ValueError as error:
                refused += str(path) in str(error)
            except Exception as error:
                # Attributes of scikit-learn are its own matter, but never exhaust memory.
                if is_ours or isinstance(error, MemoryError):
                    failures.append((seed, change, error))
    assert not failures
    return refused


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="limits of Linux")
@pytest.mark.parametrize("name", MODELS)
def test_changed_models_are_refused_or_predict(name, files, tmp_path):
    assert attack(name, files, tmp_path / "model.fgfm", range(25)) > 5


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="limits of Linux")
@pytest.mark.parametrize("name", MODELS)
def test_many_changed_models_are_refused_or_predict(name, files, tmp_path):
    first = int(os.environ.get("FGFM_SEED", "1000"))
    assert attack(name, files, tmp_path / "model.fgfm", range(first, first + 200)) > 50
