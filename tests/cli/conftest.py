"""Files for the tests of all commands."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from command_line import NAMES, make_rows, run_ok, save_arff

LONG = tuple(f"{name} {'of a very long and winding description ' * 3}" for name in NAMES)
FEATURES = tuple(f"x{j}" for j in range(1, 6))


@pytest.fixture(scope="session")
def dataset():
    X, Y = make_rows()
    split = {"train": np.arange(80), "test": np.arange(80, 120)}
    return SimpleNamespace(X=X, Y=Y, feature_names=FEATURES, label_names=NAMES, **split)


@pytest.fixture(scope="session")
def folder(tmp_path_factory, dataset):
    """A folder of the same rows in every format, and as tables with texts and gaps."""
    path = tmp_path_factory.mktemp("data")
    X, Y = dataset.X, dataset.Y
    frame = pd.DataFrame(X.copy(), columns=FEATURES)  # pandas 2 would write into X
    labels = dict(zip(NAMES, Y.T, strict=True))
    whole = frame.assign(**labels)
    whole.to_csv(path / "all.csv", index=False)
    whole.to_parquet(path / "all.parquet")
    whole.to_json(path / "all.jsonl", orient="records", lines=True)
    save_arff(path / "all.arff", X, Y)
    save_arff(path / "train.arff", X[:80], Y[:80])
    save_arff(path / "test.arff", X[80:], Y[80:])
    save_arff(path / "long.arff", X, Y, LONG)
    dump_svmlight_file(X, Y, str(path / "all.svm"), multilabel=True, zero_based=False)
    tags = [",".join(map(str, np.flatnonzero(y))) for y in Y]
    pairs = [" ".join(f"{j}:{v!r}" for j, v in enumerate(x)) for x in X.tolist()]
    lines = [f"{a} {b}" for a, b in zip(tags, pairs, strict=True)]
    (path / "all.xmc").write_text("\n".join(["120 5 4", *lines]))
    frame.insert(0, "id", [f"{k:03d}" for k in range(120)])
    frame["place"] = np.where(X[:, 4] > 0, "north", "south")
    frame.loc[7, "x1"] = np.nan
    lists = [";".join(np.array(NAMES)[y == 1]) for y in Y]
    frame.assign(**labels).to_csv(path / "table.csv", index=False)
    frame.assign(tags=lists).to_csv(path / "tags.csv", index=False)
    frame.to_csv(path / "new.csv", index=False)
    frame.to_parquet(path / "new.parquet")
    return path


@pytest.fixture(scope="session")
def model(folder):
    """A model fitted to the training rows."""
    path = folder / "model.fgfm"
    run_ok("fit", folder / "train.arff", "-e", "ridge", "-o", path)
    return path
