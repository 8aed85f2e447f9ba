"""CSV and TSV."""

from __future__ import annotations

import numpy as np
import pytest

from dataset_files import assert_invalid, write_file
from fgfm.data import DataError, load


def test_columns_are_numbers_or_categories(tmp_path):
    path = write_file(
        tmp_path,
        "size,colour,ok,id,zone\n1.5,red,yes,p1,3\n?,blue,no,p2,10\n4,,yes,p3,3\nNA,red,,p4,n/a\n",
    )
    found = load(path, drop=["id"], categorical=["zone"])
    assert found.feature_names == (
        "size",
        "ok",
        "size missing",
        "ok missing",
        "colour=blue",
        "colour=red",
        "colour missing",
        "zone=10",
        "zone=3",
        "zone missing",
    )
    assert found.X.tolist() == [
        [1.5, 1, 0, 0, 0, 1, 0, 0, 1, 0],
        [2.75, 0, 1, 0, 1, 0, 0, 1, 0, 0],
        [4.0, 1, 0, 0, 0, 0, 1, 0, 1, 0],
        [2.75, 1, 1, 1, 0, 1, 0, 0, 0, 1],
    ]
    # another order, an unseen category, numbers as texts, and the dropped column
    new = write_file(tmp_path, "id,zone,ok,colour,size\nq,3,YES,green,\nr,7,0,blue,9\n", "new.csv")
    with pytest.warns(UserWarning, match="training did not have") as caught:
        again = load(new, encoder=found.encoder)
    assert [str(warning.message) for warning in caught] == [
        f"{new}, column 'colour': 1 of 2 rows have a category that training did not have, such as "
        "'green'",
        f"{new}, column 'zone': 1 of 2 rows have a category that training did not have, such as "
        "'7'",
    ]
    assert again.X.tolist() == [
        [2.75, 1, 1, 0, 0, 0, 0, 0, 1, 0],
        [9.0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
    ]


def test_quotes_line_breaks_and_byte_order_mark(tmp_path):
    path = write_file(tmp_path, '﻿"a\nb","c,d"\r\n" 1 ","+2e0"\r\n\r\n.5,-0\r\n')
    found = load(path)
    assert found.feature_names == ("a\nb", "c,d")
    assert found.X.tolist() == [[1, 2], [0.5, 0]]


def test_missing_values_among_texts(tmp_path):
    cells = ["u", "-nan", "+NaN", " n/a ", "NULL", "", "v"]
    found = load(write_file(tmp_path, "x,c\n" + "".join(f"1,{cell}\n" for cell in cells)))
    assert found.feature_names == ("x", "c=u", "c=v", "c missing")
    assert found.X[:, 3].tolist() == [0, 1, 1, 1, 1, 1, 0]


def test_delimiter_and_encoding(tmp_path):
    path = write_file(tmp_path, "é;l\n1;1\n".encode("latin-1"))
    found = load(path, delimiter=";", encoding="latin-1", labels=["l"])
    assert found.feature_names == ("é",)


def test_blocks_do_not_change_the_result(tmp_path):
    n, p = 33_000, 7  # two blocks
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)).round(3)
    X[rng.random(X.shape) < 0.1] = np.nan
    words = rng.choice(["u", "v", ""], size=n)
    lines = ["c," + ",".join(f"x{j}" for j in range(p))]
    for row, word in zip(X, words, strict=True):
        lines.append(word + "," + ",".join("" if v != v else repr(v) for v in row.tolist()))
    found = load(write_file(tmp_path, "\n".join(lines)))
    assert found.feature_names[-3:] == ("c=u", "c=v", "c missing")
    imputed = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    assert (found.X[:, :p] == imputed).all()
    assert (found.X[:, -3] == (words == "u")).all()
    lines[32_901] = "u," + ",".join(["1"] * 6) + ",oops"
    rule = r"line 32902, column 'x6': 'oops' is not a number, and line"
    with pytest.raises(DataError, match=rule):
        load(write_file(tmp_path, "\n".join(lines)))


def test_decimal_commas(tmp_path):
    path = write_file(tmp_path, "x;y;c;l\n0,53;1;u;0\n-1,5e3;?;v;1\n,5;2;u;1\n")
    found = load(path, labels=["l"], delimiter=";", decimal=",")
    assert found.feature_names == ("x", "y", "y missing", "c=u", "c=v")
    assert found.X[:, :2].tolist() == [[0.53, 1], [-1500, 1.5], [0.5, 2]]
    quoted = write_file(tmp_path, 'x,y\n"0,5",1\n', "quoted.csv")
    assert load(quoted, decimal=",").X.tolist() == [[0.5, 1]]
    # as texts, if declared categorical
    found = load(path, labels=["l"], delimiter=";", categorical=["x"])
    assert found.feature_names[2:5] == ("x=,5", "x=-1,5e3", "x=0,53")
    # columns in which only some texts look like numbers, and versions, are categories
    odd = write_file(tmp_path, 'a,b,c\n"1,5",2024-01-02,1.2.3\nu,2024-01-03,1.2.4\n', "odd.csv")
    assert load(odd).X.shape == (2, 4 + 2 + 2)
    with pytest.raises(ValueError, match=r"decimal is ';': it must be '\.' or ','"):
        load(path, decimal=";")
    with pytest.raises(ValueError, match=r"decimal applies to csv, tsv"):
        load(write_file(tmp_path, "1 1:1\n", "a.svm"), decimal=",")


def test_blanks_around_names_are_removed(tmp_path):
    found = load(write_file(tmp_path, "a, b ,\tl\n1, 2, 0\n3, 4, 1\n"), labels=["l"])
    assert found.feature_names == ("a", "b")
    assert found.label_names == ("l",)
    one = load(write_file(tmp_path, '"size, in cm"\n1\n2\n', "one.csv"))
    assert one.feature_names == ("size, in cm",)


def test_columns_without_a_name_are_dropped_by_number(tmp_path):
    found = load(write_file(tmp_path, ",x,y,\n0,2,3,\n1,4,5,\n"), drop=["1", "4"])
    assert found.feature_names == ("x", "y")
    assert found.X.tolist() == [[2, 3], [4, 5]]
    new = write_file(tmp_path, ",x,y\n0,6,7\n", "new.csv")
    assert load(new, encoder=found.encoder).X.tolist() == [[6, 7]]


INVALID = {  # the content, the message, perhaps options and another name of the file
    "blank": ("\n\n", r"a.csv: the file is empty$"),
    "header only": ("x,y\n", r"a.csv: there are no rows after the header$"),
    "short row": ("x,y\n1,2\n3\n", r"a.csv, line 3: there are 1 values: the header"),
    "long row": ("x,y\n1,2,3\n", r"line 2: there are 3 values: .* has 2 columns$"),
    "row after a cell of two lines": ('x,c\n1,"u\nv"\n2\n', r"a.csv, line 4: there are 1 values"),
    "unclosed quote": ('x\n"1\n2\n', r"a.csv, line 2: the table cannot be parsed: unexpected"),
    "text among numbers": (
        "x\n1\n2\nq\n",
        r"line 4, column 'x': 'q' is not a number, and line 2 has '1': .* "
        r"\(argument: categorical\)$",
    ),
    "underscore in a number": ("x\n1\n1_0\n", r"line 3, column 'x': '1_0' is not a number"),
    "digits of another script": ("x\n1\n٣\n", r"line 3, column 'x': '٣' is not a num"),
    "overflow": ("x\n1\n1e999\n", r"line 3, column 'x': the value is infinite"),
    "infinity": ("x,c\n1,u\ninf,u\n", r"line 3, column 'x': the value is infinite"),
    "repeated name": ("x,y,x\n1,2,3\n", r"line 1, column 3: the name 'x' is that of column 1 too"),
    "missing name": ("x,,y\n1,2,3\n", r"line 1, column 2: this column has no name"),
    "index of pandas": (
        ",x\n0,2\n",
        r"line 1, column 1: .*without its index \(index=False\) .* the number of the column, 1 "
        r"\(argument: drop\)$",
        {"drop": ["x"]},
    ),
    "decimal commas": (
        "x;y\n?;1\n0,53;2\n1,5;3\n",
        r"line 3, column 'x': '0,53' is not a number, although .* 1234,5 with a decimal comma, .*"
        r"\(arguments: decimal, categorical\)$",
        {"delimiter": ";"},
    ),
    "decimal commas among integers": (
        "x;y\n1;1\n0,53;2\n",
        r"line 3, column 'x': '0,53' is not a number, and line 2 has '1': .* with a decimal comma "
        r"\(arguments: categorical, decimal\)$",
        {"delimiter": ";"},
    ),
    "decimal points": (
        "x;y\n1.5;1\n",
        r"line 2, column 'x': '1.5' is not a number, .*: numbers are written as 1234,5 with a",
        {"delimiter": ";", "decimal": ","},
    ),
    "thousands separators": (
        'x,y\n"1,500",1\n"12,000",2\n',
        r"column 'x': '1,500' is not a number, although every text of this column looks like one",
    ),
    "thousands with blanks": ("x,y\n1 500.5,1\n", r"column 'x': '1 500.5' is not"),
    "percents": ("x,y\n5%,1\n 7.5 %,1\n", r"line 2, column 'x': '5%' is not a num"),
    "dollars": ("x,y\n$5,1\n-$7.25,1\n", r"line 2, column 'x': '\$5' is not a numb"),
    "euros": ("x,y\n5 €,1\n", r"line 2, column 'x': '5 €' is not a number, although"),
    "another delimiter than in the next line": (
        "x;y\n1\n",
        r"a.csv, line 1: with the delimiter ',' there is one column, 'x;y': the file has another "
        r"delimiter \(argument: delimiter\)$",
    ),
    "two other delimiters": ("x;y|l\n1;0|0\n", r"\(argument: delimiter\)$"),
    "given delimiter": (
        "x;l\n1;0\n",
        r"\(argument: delimiter\)$",
        {"labels": "l", "delimiter": ","},
    ),
    "unknown column to drop": (
        "x,l\n1,0\n",
        r"a.csv: there is no column 'i' \(argument: drop\)$",
        {"drop": ["i"]},
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_file_raises(case, tmp_path):
    assert_invalid(tmp_path, "a.csv", *INVALID[case])
