"""Files for the tests of all commands."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from command_line import NAMES, make_rows, run_ok
from fgfm.data import Dataset, save

LONG = tuple(f"{name} {'of a very long and winding description ' * 3}" for name in NAMES)


@pytest.fixture(scope="session")
def dataset():
    X, Y = make_rows()
    features = tuple(f"x{j}" for j in range(1, 6))
    return Dataset(X, Y, features, NAMES, train=np.arange(80), test=np.arange(80, 120))


@pytest.fixture(scope="session")
def folder(tmp_path_factory, dataset):
    """A folder of the same rows in every format, and as tables with texts and gaps."""
    path = tmp_path_factory.mktemp("data")
    for name in ("all.csv", "all.parquet", "all.arff", "all.svm", "all.xmc", "all.npz"):
        save(dataset, path / name)
    save(Dataset(dataset.X, dataset.Y, dataset.feature_names, LONG), path / "long.npz")
    frame = pd.DataFrame(dataset.X, columns=dataset.feature_names)
    frame.insert(0, "id", [f"{k:03d}" for k in range(120)])
    frame["place"] = np.where(dataset.X[:, 4] > 0, "north", "south")
    frame.loc[7, "x1"] = np.nan
    lists = [";".join(np.array(NAMES)[y == 1]) for y in dataset.Y]
    labels = dict(zip(NAMES, dataset.Y.T, strict=True))
    frame.assign(**labels).to_csv(path / "table.csv", index=False)
    frame.assign(tags=lists).to_csv(path / "tags.csv", index=False)
    frame.to_csv(path / "new.csv", index=False)
    frame.to_parquet(path / "new.parquet")
    return path


@pytest.fixture(scope="session")
def model(folder):
    """A model fitted to the training rows."""
    path = folder / "model.fgfm"
    run_ok(
        "fit",
        folder / "all.npz",
        "--split",
        "train",
        "--factors",
        "single",
        "-e",
        "ridge",
        "-o",
        path,
    )
    return path
