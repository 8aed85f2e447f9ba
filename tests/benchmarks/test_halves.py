"""Labels that are numbered differently in the two halves of a file are found."""

import numpy as np
import pytest

from benchmarks import halves


@pytest.mark.parametrize("renumbered", [False, True])
def test_renumbered_labels_are_found_and_matched(tmp_path, monkeypatch, renumbered):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 4, 400)
    X = 5.0 * np.eye(4)[label] + rng.normal(size=(400, 4))
    Y = np.eye(4, dtype=np.uint8)[label]
    if renumbered:
        Y[200:] = Y[200:][:, [1, 2, 3, 0]]
    names = np.array(["a", "b", "c", "d"])
    np.savez(tmp_path / "data.npz", X=X.astype(np.float32), Y=Y, label_names=names)
    monkeypatch.setattr(halves, "FOLDER", tmp_path)
    _, first, second, across, matched = halves.measure("data")
    assert min(first, second, matched) > 0.9
    assert across < 0.1 if renumbered else across > 0.9
