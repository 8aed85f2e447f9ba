"""Labels among the columns of tables."""

from __future__ import annotations

import pytest

from dataset_files import assert_invalid, make_dataset, write_file
from fgfm.data import DataError, load, save

TABLE = "x,label_b,y,label_a\n1,0,2.5,1\n-3e2,1,0,0\n"


@pytest.mark.parametrize(
    ("labels", "names", "Y"),
    [
        (["label_a", "label_b"], ("label_a", "label_b"), [[1, 0], [0, 1]]),
        ("label_*", ("label_b", "label_a"), [[0, 1], [1, 0]]),
        (["*_a", "label_?"], ("label_a", "label_b"), [[1, 0], [0, 1]]),
        ("label_a", ("label_a",), [[1], [0]]),
        (-1, ("label_a",), [[1], [0]]),
    ],
)
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_labels_by_name_pattern_and_count(labels, names, Y, format, tmp_path):
    path = write_file(tmp_path, TABLE)
    if format == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        csv = pytest.importorskip("pyarrow.csv")
        parquet.write_table(csv.read_csv(path), tmp_path / "a.parquet")
        path = tmp_path / "a.parquet"
    found = load(path, labels=labels)
    assert found.label_names == names
    assert found.Y.tolist() == Y
    assert set(found.feature_names) == {"x", "y", "label_a", "label_b"} - set(names)


def test_first_columns_as_labels(tmp_path):
    found = load(write_file(tmp_path, "a,b,x\n1,0,5\n0,true,6\n".replace("true", "1")), labels=2)
    assert found.label_names == ("a", "b")
    assert found.X.tolist() == [[5], [6]]


def test_words_for_0_and_1_are_labels(tmp_path):
    found = load(write_file(tmp_path, "x,a,b\n1,TRUE,no\n2,False,YES\n"), labels=["a", "b"])
    assert found.Y.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("format", ["csv", "arff", "parquet"])
def test_labels_can_be_dropped(format, tmp_path):
    one = make_dataset()
    save(one, tmp_path / "a", format=format)
    labels = list(one.label_names)
    found = load(tmp_path / "a", format=format, labels=labels, drop=["l, m", "a"])
    assert found.label_names == ("1st", "Ω", "{q}%")
    assert (one.Y[:, [0, 2, 3]] == found.Y).all()
    assert found.feature_names == one.feature_names[1:]
    again = load(tmp_path / "a", format=format, encoder=found.encoder)
    assert (again.Y == found.Y).all()


def test_label_lists(tmp_path):
    path = write_file(tmp_path, 'x,tags\n1,"b; a"\n2,\n3,a;;c\n')
    found = load(path, labels="tags", separator=";")
    assert found.label_names == ("a", "b", "c")
    assert found.Y.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 1]]
    assert found.feature_names == ("x",)
    new = write_file(tmp_path, "tags,x\nc,1\na,7\n", "new.csv")
    assert load(new, encoder=found.encoder).Y.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert load(write_file(tmp_path, "x\n7\n", "bare.csv"), encoder=found.encoder).Y is None
    wrong = write_file(tmp_path, "x,tags\n1,a\n2,a;z\n", "wrong.csv")
    with pytest.raises(DataError, match=r"line 3, column 'tags': 'z' is an unknown label: .*'a'"):
        load(wrong, encoder=found.encoder)


@pytest.mark.parametrize("mark", [";", "|", ",", ", "])
def test_separator_is_found(mark, tmp_path):
    path = write_file(tmp_path, f'x,tags\n1,"b{mark}a"\n2,\n3,"a{mark}c c"\n4,a\n')
    found = load(path, labels="tags")
    assert found.label_names == ("a", "b", "c c")
    assert found.Y.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 1], [1, 0, 0]]
    assert found.feature_names == ("x",)
    new = write_file(tmp_path, f'x,tags\n1,"c c{mark}b"\n', "new.csv")
    for labels in (None, "tags"):
        assert load(new, labels=labels, encoder=found.encoder).Y.tolist() == [[0, 1, 1]]


def test_one_label_per_row(tmp_path):
    found = load(write_file(tmp_path, "x,l\n1,p\n2,q\n"), labels=-1)
    assert found.label_names == ("p", "q")
    assert found.Y.tolist() == [[1, 0], [0, 1]]


def test_separator_of_training_is_used(tmp_path):
    found = load(write_file(tmp_path, "x,tags\n1,b|a\n"), labels="tags", separator="|")
    assert found.label_names == ("a", "b")
    again = load(write_file(tmp_path, "x,tags\n1,b|a\n", "b.csv"), encoder=found.encoder)
    assert again.Y.tolist() == [[1, 1]]


def test_missing_label_lists_are_empty(tmp_path):
    path = write_file(tmp_path, "x,t\n1,a;b\n2,NA\n3,?\n4,\n5,b;NA\n6,nan\n7,[b]\n")
    found = load(path, labels="t", separator=";")
    assert found.label_names == ("NA", "[b]", "a", "b")
    assert found.Y.sum(axis=1).tolist() == [2, 0, 0, 0, 2, 0, 1]
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"x": [1, 2, 3], "t": ["a;b", "NA", None]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", labels="t", separator=";")
    assert found.Y.tolist() == [[1, 1], [0, 0], [0, 0]]
    table = pa.table({"x": [1, 2], "t": ["a", "['a', 'b']"]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "a.parquet")
    with pytest.raises(
        DataError, match=r"row 1, column 't': .* notation of a programming language"
    ):
        load(tmp_path / "a.parquet", labels="t", separator=",")


INVALID = {  # the content, the message, perhaps options and another name of the file
    "list of Python": (
        "x,t\n1,a\n2,\"['x', 'y']\"\n",
        r"line 3, column 't': .* is a list in the notation of a programming language: .* as a;b",
        {"labels": "t", "separator": ","},
    ),
    "list of JSON": (
        'x,t\n1,"[""x"", ""y""]"\n',
        r"line 2, column 't': .* is a list in the notation of a programming language",
        {"labels": "t", "separator": ";"},
    ),
    "unknown column of lists": (
        "x,y,l\n1,2,0\n",
        r"no column is called 'm': there are 'x', 'y', 'l' \(argument: labels\)$",
        {"labels": "m", "separator": ";"},
    ),
    "label 2": ("x,l\n1,0\n1,2\n", r"line 3, column 'l': the label is 2", {"labels": -1}),
    "label NaN": ("x,l\n1,nan\n", r"'l': the label is missing: labels", {"labels": -1}),
    "missing label": (
        "x,l\n1,\n",
        r"line 2, column 'l': the label is missing: labels must be 0 or 1$",
        {"labels": -1},
    ),
    "infinite label": (
        "x,l\n1,inf\n",
        r"line 2, column 'l': the label is inf: labels must",
        {"labels": -1},
    ),
    "text among labels": (
        "x,l\n1,0\n2,q\n",
        r"line 3, column 'l': the label is 'q': labels must be 0 or 1$",
        {"labels": -1},
    ),
    "texts as one of two labels": (
        "x,l,m\n1,p,0\n2,q,1\n",
        r"line 2, column 'l': the label is 'p': labels must be 0 or 1$",
        {"labels": -2},
    ),
    "a text for each row": (
        "x,l\n" + "".join(f"{k % 3},p{k}\n" for k in range(30)),
        r"column 'l': there are 30 different labels in 30 rows, such as 'p0': this is not a "
        r"column of labels, or they have another separator \(arguments: labels, separator\)$",
        {"labels": "l"},
    ),
    "no labels, though required": (
        "x,genres,k_a,ok,k_b\n1,a|b,0,no,1\n2,b,1,yes,0\n3,a|b,0,no,0\n3,b|a,0,no,0\n",
        r"a.csv: the file does not declare which columns are labels: name them, such as "
        r"'genres' \(lists\), 'k_\*', 'ok' \(0 or 1\) \(argument: labels\)$",
        {"require_labels": True},
    ),
    "no candidates for labels": (
        "x,y\n1,u\n2,v\n",
        r"are labels: name them \(argument: labels\)$",
        {"require_labels": True},
    ),
    "misspelt label": (
        "x,genres\n1,0\n",
        r"no column is called 'genre': did you mean 'genres'\? \(argument: labels\)$",
        {"labels": "genre"},
    ),
    "unknown label": (
        "x,l\n1,0\n",
        r"no column is called 'm': there are 'x', 'l' \(argument: labels\)$",
        {"labels": ["m"]},
    ),
    "unknown pattern": ("x,l\n1,0\n", r"no column is called 'm\*'", {"labels": "m*"}),
    "repeated label": (
        "x,l\n1,0\n",
        r"the column 'l' is named twice \(argument: labels\)$",
        {"labels": ["l", "l"]},
    ),
    "only labels": (
        "x,l\n1,0\n",
        r"2 labels leave no features: there are 2 columns in all \(argument: labels\)$",
        {"labels": 2},
    ),
    "only labels by name": ("l\n0\n", r"a.csv: there are no features", {"labels": "l"}),
    "only dropped labels": (
        "x,l\n1,0\n",
        r"no label column is left: there must be at least one label",
        {"labels": "l", "drop": ["l"]},
    ),
    "only label lists": (
        "t\na;b\n",
        r"there are no features: every column is a label",
        {"labels": "t", "separator": ";"},
    ),
    "empty label lists": (
        "x,t\n1,\n",
        r"column 't': no row has a label",
        {"labels": "t", "separator": ";"},
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_file_raises(case, tmp_path):
    assert_invalid(tmp_path, "a.csv", *INVALID[case])
