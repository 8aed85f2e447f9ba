"""Labels among the columns of tables, in every form."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fgfm.io import DataError, load

SETS = [["a", "b"], [], ["b"], ["c c", "a"]]
NAMES = ["a", "b", "c c"]
Y = [[1, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 1]]


def written(folder, text):
    (folder / "a.csv").write_text(text)
    return folder / "a.csv"


@pytest.mark.parametrize("mark", [";", "|", ",", ", ", " | "])
def test_lists_in_one_column(tmp_path, mark):
    cells = "".join(f'1,"{mark.join(tags)}"\n' for tags in SETS)
    found = load(written(tmp_path, "x,t\n" + cells), "t")
    assert found.label_names == ("a", "b", "c c")
    assert found.Y.tolist() == Y


@pytest.mark.parametrize("notation", [repr, lambda tags: str(tags).replace("'", '"'), tuple])
def test_lists_of_python_and_json(tmp_path, notation):
    frame = pd.DataFrame({"x": range(4), "t": [str(notation(tags)) for tags in SETS]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert load(tmp_path / "a.csv", "t").Y.tolist() == Y
    bare = 'x,t\n1,"[a, b]"\n2,[]\n3,[b]\n4,"[c c, a]"\n'
    assert load(written(tmp_path, bare), "t").Y.tolist() == Y


@pytest.mark.parametrize("kind", [list, lambda tags: {name: int(name in tags) for name in NAMES}])
def test_lists_and_objects_of_parquet(tmp_path, kind):
    pd.DataFrame({"x": range(4), "t": map(kind, SETS)}).to_parquet(tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", "t")
    assert found.label_names == ("a", "b", "c c")
    assert found.Y.tolist() == Y


@pytest.mark.parametrize(
    ("labels", "names", "expected"),
    [
        (["label_a", "label_b"], ("label_a", "label_b"), [[1, 0], [0, 1]]),
        ("label_*", ("label_b", "label_a"), [[0, 1], [1, 0]]),
        (["*_a", "label_?"], ("label_a", "label_b"), [[1, 0], [0, 1]]),
        (-1, ("label_a",), [[1], [0]]),
    ],
)
def test_columns_of_0_and_1(tmp_path, labels, names, expected):
    path = written(tmp_path, "x,label_b,y,label_a\n1,0,2.5,1\n-3e2,1,0,0\n")
    found = load(path, labels)
    assert found.label_names == names
    assert found.Y.tolist() == expected
    path = written(tmp_path, "x,label_b,y,label_a\n1,no,2.5,Yes\n-3e2,yes,0,no\n")
    assert load(path, labels).Y.tolist() == expected
    frame = pd.DataFrame({"x": [1, 2], "label_b": [False, True], "y": 0, "label_a": [1.0, 0.0]})
    frame.to_parquet(tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet", labels).Y.tolist() == expected


def test_columns_of_names(tmp_path):
    path = written(tmp_path, "x,genre1,genre2,genre3\n1,a,b,\n2,,,\n3,b,,\n4,c c,,a\n")
    found = load(path, "genre*")
    assert found.label_names == ("a", "b", "c c")
    assert found.Y.tolist() == Y
    assert found.label_columns == ("genre1", "genre2", "genre3")


def test_blank_cells_are_no_label_or_not_observed(tmp_path):
    path = written(tmp_path, "x,a,b\n1,1,\n2,,0\n3,0,1\n")
    assert load(path, -2).Y.tolist() == [[1, 0], [0, 0], [0, 1]]
    found = load(path, -2, missing_labels=True).Y
    np.testing.assert_array_equal(found, [[1, np.nan], [np.nan, 0], [0, 1]])
    path = written(tmp_path, "x,t\n1,a;b\n2,\n3,b\n4,?\n")
    assert load(path, "t").Y.tolist() == [[1, 1], [0, 0], [0, 1], [0, 0]]
    found = load(path, "t", missing_labels=True).Y
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [False, True, False, True])


def test_classes_that_are_numbers(tmp_path):
    found = load(written(tmp_path, "x,l\n1,0\n2,2\n3,1\n"), "l")
    assert found.label_names == ("0", "1", "2")
    pd.DataFrame({"x": [1, 2, 3], "l": [0, 2, 1]}).to_parquet(tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet", "l").Y.tolist() == found.Y.tolist()


def test_labels_of_training(tmp_path):
    path = written(tmp_path, "x,t\n1,b\n2,\n")
    found = load(path, "t", label_names=["c", "b"])
    assert found.label_names == ("c", "b")
    assert found.Y.tolist() == [[0, 1], [0, 0]]
    with pytest.raises(DataError, match="row 0: there is no label 'b' among the known ones"):
        load(path, "t", label_names=["c"])
    path = written(tmp_path, "x,a,b\n1,1,0\n")
    assert load(path, -2, label_names=["b", "a"]).Y.tolist() == [[0, 1]]
    with pytest.raises(DataError, match="'a' is not a label of training"):
        load(path, -2, label_names=["b", "c"])


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        (
            "x,k,l\n1,0,0\n1,1,2\n2,0,1\n",
            -2,
            "row 1, column 'l': the label is '2': labels must be 0",
        ),
        ("x,l,m\n1,0,1\n2,1,q\n3,0,0\n", -2, "row 1, column 'm': the label is 'q'"),
        ("x,l\n1,0\n", "m", r"no column is called 'm': there are 'x', 'l' \(argument: labels\)"),
        ("x,tags\n1,0\n", "tag", r"did you mean 'tags'\? \(argument: labels\)"),
        ("x,l\n1,0\n", 2, "labels is 2: there are 2 columns"),
        ("x,t\n1,\n2,\n", "t", "there must be at least one"),
        (
            "x,l\n" + "".join(f"{k % 3},p{k}\n" for k in range(30)),
            "l",
            r"column 'l': there are 30 different labels in 30 rows, such as 'p0': .*separator\)",
        ),
    ],
)
def test_invalid_labels_raise(tmp_path, text, labels, message):
    with pytest.raises(DataError, match=message):
        load(written(tmp_path, text), labels)


def test_likely_labels_are_named(tmp_path):
    text = "x,genres,k_a,ok,k_b\n1,a|b,0,no,1\n2,b,1,yes,0\n3,a|b,0,no,0\n3,b|a,0,no,0\n"
    rule = r"name them, such as 'genres' \(lists\), 'k_a', 'ok', 'k_b' \(0 or 1\) \(argument"
    with pytest.raises(DataError, match=rule):
        load(written(tmp_path, text), require_labels=True)
    with pytest.raises(DataError, match=r"name them \(argument"):
        load(written(tmp_path, "x,y\n1,u\n2,v\n"), require_labels=True)


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (["(US)|(UK)", "(UK)"], ("(UK)", "(US)")),
        (["(no genres listed)", "drama"], ("(no genres listed)", "drama")),
        (["{US}|{UK}", "[a]|[b]"], ("[a]", "[b]", "{UK}", "{US}")),
        (["crime|sci-fi, fantasy", "sci-fi, fantasy"], ("crime", "sci-fi, fantasy")),
        (["a, b", "a, b", "a, b", "a, b|c", "c"], ("a, b", "c")),
        (["a,b", "b,c|d", "a,b,c|d"], ("a", "b", "c|d")),
    ],
)
def test_labels_with_brackets_and_commas(tmp_path, cells, names):
    pd.DataFrame({"x": range(len(cells)), "t": cells}).to_csv(tmp_path / "a.csv", index=False)
    assert load(tmp_path / "a.csv", "t").label_names == names


def test_semicolons_delimit_although_the_header_has_a_comma_in_quotes(tmp_path):
    text = 'film;"plot, short";g\nAlien;"In space, no one";a\nHeat;"Thieves, police";b\n'
    found = load(written(tmp_path, text), "g")
    assert list(found.X.columns) == ["film", "plot, short"]
    assert found.label_names == ("a", "b")
    with pytest.raises(DataError, match=r"expected 2 columns, got 3.*\(argument: delimiter\)"):
        load(written(tmp_path, "film,g\nAlien,a\nHeat, the film,b\n"), "g")
