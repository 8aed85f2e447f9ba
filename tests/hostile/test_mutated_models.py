"""Models with a wrong number in their file: loading or predicting raises, or does no harm.

The sanitizers see what a kernel does with such a number (make test-sanitized).
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile

import numpy as np
import pytest

import fgfm
from fgfm import FDecider, FGFMClassifier
from multilabel import X, Y

pytest.importorskip("skops.io")

NUMBERS = [-1, 0, 3, 70, 1000]  # larger ones exhaust the memory, which is another matter
MODELS = {
    "reweighted": lambda: FGFMClassifier(method="reweighted", random_state=0),
    "tilted": lambda: FGFMClassifier(method="tilted", random_state=0),
    "auto": lambda: FGFMClassifier(factors="independent", random_state=0),
    "decider": FDecider,
}


@pytest.fixture(scope="module", params=MODELS)
def saved(request, tmp_path_factory):
    """Return the members of a saved model, and rows to predict."""
    rows = X
    if request.param == "decider":
        rows = np.clip(0.6 * Y + 0.4 * np.random.default_rng(0).random(Y.shape), 0.0, 1.0)
    path = tmp_path_factory.mktemp("models") / "model.fgfm"
    fgfm.save(MODELS[request.param]().fit(rows, Y), path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}, rows[:5]


def mutated(members, rng):
    """Return a copy of a file with one number changed, or one array shortened."""
    names = sorted(name for name in members if name.endswith((".npy", ".json")))
    name = names[rng.integers(len(names))]
    content, number = members[name], NUMBERS[rng.integers(len(NUMBERS))]
    if name.endswith(".npy"):
        array = np.load(io.BytesIO(content)).copy()
        if array.size and rng.random() < 0.3:
            array = array[:-1]
        elif array.size and array.dtype.kind in "iu":
            array.flat[rng.integers(array.size)] = (
                max(number, 0) if array.dtype.kind == "u" else number
            )
        buffer = io.BytesIO()
        np.save(buffer, array)
        content = buffer.getvalue()
    else:
        text = content.decode()
        places = [*re.finditer(r"(?<![\w.])-?\d+(?![\w.])", text)]
        if places:
            place = places[rng.integers(len(places))]
            content = (text[: place.start()] + str(number) + text[place.end() :]).encode()
    return {**members, name: content}


def test_mutated_models_raise_or_do_no_harm(saved, seeds, tmp_path):
    members, rows = saved
    path = tmp_path / "model.fgfm"
    for seed in seeds:
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in mutated(members, np.random.default_rng(seed)).items():
                archive.writestr(name, content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                labels = fgfm.load(path).predict(rows)
            except Exception:  # any error is an answer, but no crash, which ends the process
                continue
        assert len(labels) == len(rows), f"seed {seed}"
