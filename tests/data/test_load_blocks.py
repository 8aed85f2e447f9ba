"""Reading in blocks of rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dataset_files import make_dataset, to_dense, write_file
from fgfm.data import DataError, FeatureEncoder, load, load_blocks, save

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Training rows and new rows, with texts, categories, dates and missing values."""
    folder = tmp_path_factory.mktemp("blocks")
    rng = np.random.default_rng(0)
    n = 60
    words = ["river", "stone", "cloud", "train", "letter"]
    frame = pd.DataFrame(
        {
            "key": [f"k{k:03d}" for k in range(n)],
            "x": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(3)),
            "c": rng.choice(["u", "v", "w"], size=n),
            "t": [" ".join(rng.choice(words, 9)) for _ in range(n)],
            "d": pd.date_range("2001-01-01", periods=n, freq="9D").astype(str),
        }
    )
    frame.loc[::7, "c"] = None
    frame.loc[40:, "c"] = frame.loc[40:, "c"].replace("w", "new")
    frame.assign(l=rng.integers(0, 2, size=n))[:40].to_csv(folder / "train.csv", index=False)
    frame.to_csv(folder / "new.csv", index=False)
    frame.to_csv(folder / "new.tsv", index=False, sep="\t")
    frame.to_parquet(folder / "new.parquet")
    return folder


@pytest.fixture(scope="module")
def encoder(files):
    with pytest.warns(UserWarning, match="'key' is left out"):
        return load(files / "train.csv", labels=["l"]).encoder


@pytest.mark.filterwarnings("ignore:.*category that training did not have:UserWarning")
@pytest.mark.parametrize("name", ["new.csv", "new.tsv", "new.parquet"])
@pytest.mark.parametrize("rows", [1, 7, 59, 60, 1000, None])
@pytest.mark.parametrize("size", [100, 999, 1 << 22])
def test_blocks_have_the_rows_of_the_file(files, encoder, monkeypatch, name, rows, size):
    whole = load(files / name, encoder=encoder, ids=["key"])
    monkeypatch.setattr("fgfm.data._text_table._BLOCK_BYTES", size)
    blocks = list(load_blocks(files / name, encoder, rows=rows, ids=["key"]))
    sizes = [block.X.shape[0] for block in blocks]
    assert sum(sizes) == 60
    assert set(sizes[:-1]) <= {rows}
    X = sparse.vstack([block.X for block in blocks])
    assert (X != whole.X).nnz == 0
    keys = [key for block in blocks for key in block.ids["key"].to_pylist()]
    assert keys == whole.ids["key"].to_pylist() == [f"k{k:03d}" for k in range(60)]


@pytest.mark.parametrize("rows", [1, 13, 100])
def test_unseen_categories_are_counted_over_all_blocks(files, encoder, monkeypatch, rows):
    monkeypatch.setattr("fgfm.data._text_table._BLOCK_BYTES", 100 * rows)
    path = files / "new.csv"
    count = int((pd.read_csv(path)["c"] == "new").sum())
    rule = rf"new.csv, column 'c': {count} of 60 rows have a category .* such as 'new'$"
    with pytest.warns(UserWarning, match=rule) as caught:
        list(load_blocks(path, encoder, rows=rows))
    assert len(caught) == 1


@pytest.mark.parametrize("name", ["a.npz", "a.svm", "a.arff"])
def test_other_formats_are_read_as_a_whole(name, tmp_path):
    one = make_dataset("dense" if name == "a.arff" else "sparse")
    save(one, tmp_path / name)
    found = load(tmp_path / name)
    blocks = [block.X for block in load_blocks(tmp_path / name, found.encoder, rows=7)]
    assert [block.shape[0] for block in blocks] == [7, 7, 7, 7, 2]
    assert (np.vstack(list(map(to_dense, blocks))) == to_dense(found.X)).all()


def test_errors_name_the_row_of_the_file(files, encoder, monkeypatch, tmp_path):
    monkeypatch.setattr("fgfm.data._text_table._BLOCK_BYTES", 1000)
    lines = (files / "new.csv").read_text().splitlines()
    lines[50] = "k,soon,u,a,2001-01-01"
    path = write_file(tmp_path, "\n".join(lines))
    with pytest.raises(DataError, match=r"a.csv, line 51, column 'x': 'soon' is not a number"):
        list(load_blocks(path, encoder, rows=10))
    frame = pd.read_csv(files / "new.csv")
    frame.loc[49, "d"] = "soon"
    frame.to_parquet(tmp_path / "a.parquet")
    for rows in (1, 10, 100):
        with pytest.raises(
            DataError, match=r"a.parquet, row 49, column 'd': 'soon' is not a date"
        ):
            list(load_blocks(tmp_path / "a.parquet", encoder, rows=rows))
    with pytest.raises(DataError, match=r"there are no columns 'x', 'd', which training had"):
        list(load_blocks(write_file(tmp_path, "c,t\nu,v\n"), encoder))
    with pytest.raises(DataError, match=r"there are no rows"):
        list(load_blocks(write_file(tmp_path, "x,c,t,d\n"), encoder))


def test_arguments_are_checked(files, encoder):
    with pytest.raises(TypeError, match=r"encoder is str: it must be a FeatureEncoder"):
        next(load_blocks(files / "new.csv", "one-hot"))
    with pytest.raises(ValueError, match=r"rows is 0"):
        next(load_blocks(files / "new.csv", encoder, rows=0))
    with pytest.raises(ValueError, match=r"fitted"):
        next(load_blocks(files / "new.csv", FeatureEncoder()))
