"""Probabilities and true labels of validation rows, from two files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from fgfm.io import DataError, LabelSetWriter, load_validation

NAMES = ["news", "sport", "arts", "war, peace"]
RNG = np.random.default_rng(0)
P = RNG.random((50, 4)).round(4)
Y = (RNG.random((50, 4)) < P).astype(np.int8)
Y[0] = 0


def write(values, path, ids=None, names=NAMES):
    """Write a matrix with id columns in the format of the suffix; return the path."""
    frame = pd.DataFrame(values, columns=names)
    for name, column in (ids or {}).items():
        frame.insert(0, name, column)
    match path.suffix:
        case ".csv" | ".tsv":
            frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
        case ".parquet":
            frame.to_parquet(path, index=False)
        case _:
            frame.to_json(path, orient="records", lines=True)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("truth", ["csv", "tsv", "parquet", "jsonl"])
def test_tables_of_all_formats(tmp_path, kind, truth):
    found = load_validation(write(P, tmp_path / f"p.{kind}"), write(Y, tmp_path / f"y.{truth}"))
    assert_array_equal(found.proba, P)
    assert_array_equal(found.Y, Y)
    assert found.label_names == NAMES


@pytest.mark.parametrize("out", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("wide", [False, True])
def test_label_sets_as_they_are_written(tmp_path, out, wide):
    with LabelSetWriter(tmp_path / f"y.{out}", NAMES, wide=wide) as writer:
        writer.write(Y, np.full(50, 0.5))
    found = load_validation(write(P, tmp_path / "p.parquet"), tmp_path / f"y.{out}")
    assert_array_equal(found.Y, Y)


@pytest.mark.parametrize("mark", [";", "|", "json"])
def test_labels_in_every_form(tmp_path, mark):
    names = np.array(["a", "b", "c", "d"])
    sets = [names[y == 1].tolist() for y in Y]
    cells = [str(tags) if mark == "json" else mark.join(tags) for tags in sets]
    p = write(P, tmp_path / "p.csv", names=names)
    pd.DataFrame({"tags": cells}).to_csv(tmp_path / "y.csv", index=False)
    assert_array_equal(load_validation(p, tmp_path / "y.csv").Y, Y)
    pd.DataFrame({"title": "x", "tags": cells}).to_csv(tmp_path / "z.csv", index=False)
    assert_array_equal(load_validation(p, tmp_path / "z.csv", columns="tags").Y, Y)


@pytest.mark.parametrize("given", [True, False])
def test_labels_and_rows_are_matched(tmp_path, given):
    ids, rows, order = RNG.permutation(50), RNG.permutation(50), [3, 0, 2, 1]
    write(P, tmp_path / "p.csv", {"doc_id": ids})
    names = [NAMES[j] for j in order]
    write(Y[rows][:, order], tmp_path / "y.parquet", {"doc_id": ids[rows] * 1.0}, names)
    options = {"ids": ["doc_id"]} if given else {}
    found = load_validation(tmp_path / "p.csv", tmp_path / "y.parquet", **options)
    assert_array_equal(found.proba, P)
    assert_array_equal(found.Y, Y)
    assert found.label_names == NAMES


def test_labels_that_were_not_observed_are_nan(tmp_path):
    p = write(P, tmp_path / "p.csv", names=list("abcd"))
    partly = pd.DataFrame(Y, columns=list("abcd")).astype(float)
    partly.loc[[3, 7], "b"] = np.nan
    partly.to_csv(tmp_path / "y.csv", index=False)
    found = load_validation(p, tmp_path / "y.csv", missing_labels=True)
    assert_array_equal(found.proba, P)
    assert_array_equal(found.Y, partly)
    assert_array_equal(load_validation(p, tmp_path / "y.csv").Y, partly.fillna(0.0))


@pytest.mark.parametrize("kind", ["svm", "arff", "sparse.arff"])
def test_labels_of_a_data_set(tmp_path, kind):
    names, labels = list("abcd"), Y.copy()
    if kind == "svm":  # labels that are numbers, of which the last occurs in no row
        labels[:, 3] = 0
        rows = [",".join(map(str, np.flatnonzero(y) + 1)) + " 1:1" for y in labels]
    else:
        head = [f"@attribute {name} {{0,1}}" for name in [*names[::-1], "x"]]
        rows = ["@relation 'r: -C 4'", *head, "@data"]
        for y in labels[:, ::-1]:
            pairs = ",".join(f"{j} 1" for j in np.flatnonzero(y))
            rows.append(f"{{{pairs}}}" if kind == "sparse.arff" else ",".join(map(str, [*y, 0])))
    (tmp_path / f"y.{kind}").write_text("\n".join(rows) + "\n")
    found = load_validation(write(P, tmp_path / "p.csv", names=names), tmp_path / f"y.{kind}")
    assert_array_equal(found.Y, labels)
    assert found.label_names == names


def test_two_id_columns_logits_and_single_precision(tmp_path):
    (tmp_path / "p.csv").write_text("day,id,a\n1,x,-3\n1,y,inf\n2,x,0.3\n")
    (tmp_path / "y.csv").write_text("id,day,a\nx,2,1\ny,1,0\nx,1,1\n")
    found = load_validation(tmp_path / "p.csv", tmp_path / "y.csv", ids=["day", "id"], logits=True)
    assert found.Y.tolist() == [[1], [0], [1]]
    write(P.astype(np.float32), tmp_path / "p.parquet")
    found = load_validation(tmp_path / "p.parquet", write(Y, tmp_path / "z.csv"))
    assert found.proba.dtype == np.float32


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,art,lav\nx,1,0\ny,0,1\n", "'lav' is not a label of the probabilities: .* 'law'"),
        ("id,art\nx,1\ny,0\n", r"y.csv: there is no column 'law'.*the probabilities has"),
        ("id,art,law\nx,1,0\ny,0.5,1\n", "row 1, column 'art': the label is '0.5'"),
        ("id,art,law\nx,1,0\nz,0,1\n", r"p.csv, row 1: id 'y' is not in .*y.csv: both"),
        ("id,art,law\nx,1,0\nz,0,1\ny,0,1\n", r"y.csv, row 1: id 'z' is not in .*p.csv"),
        ("id,art,law\nx,1,0\nx,0,1\n", "y.csv, row 1: id 'x' is there twice"),
        ("art,law\n1,0\n0,1\n1,1\n", r"there are 3 rows, and .*p.csv has 2 rows: .*: ids\)"),
        ("id,labels\nx,art\ny,art;lau\n", "row 1: there is no label 'lau' among .* 'law'"),
        ("", "the file is empty"),
    ],
)
def test_files_that_differ_raise(tmp_path, text, message):
    (tmp_path / "p.csv").write_text("id,art,law\nx,0.1,0.2\ny,0.3,0.4\n")
    (tmp_path / "y.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        load_validation(tmp_path / "p.csv", tmp_path / "y.csv")


def test_other_invalid_files_raise(tmp_path):
    p = write(P, tmp_path / "p.csv")
    (tmp_path / "five.svm").write_text("1,5 1:1\n" * 50)
    for name, message in {
        "five.svm": "row 0: 5 is an unknown label: labels must be numbered from 1 to 4",
        "none.csv": "it does not exist",
        "y.npz": "it has arrays of NumPy",
    }.items():
        with pytest.raises(DataError, match=message):
            load_validation(p, tmp_path / name)
    pd.DataFrame(P).to_csv(tmp_path / "q.csv", index=False, header=False)
    pd.DataFrame(Y[:, :3]).to_csv(tmp_path / "three.csv", index=False, header=False)
    with pytest.raises(DataError, match="the number of labels is 3: it must be 4, that of the"):
        load_validation(tmp_path / "q.csv", tmp_path / "three.csv", header=False)
    with pytest.raises(DataError, match=r"no column 'x'.* \(argument: ids\)"):
        load_validation(p, write(Y, tmp_path / "y.csv"), ids=["x"])
