"""DataError."""

from __future__ import annotations

import pickle

import pytest

from dataset_files import write_file
from fgfm.data import DataError, load


def test_message_names_what_is_given():
    assert str(DataError("it is empty")) == "it is empty"
    assert str(DataError("it is empty", source="a.csv")) == "a.csv: it is empty"
    error = DataError("1.5 is not a label", source="a.npz", row=3, column=2)
    assert str(error) == "a.npz, row 3, column 2: 1.5 is not a label"
    error = DataError("1.5 is not a label", source="a.csv", line=3, row=1, column="x")
    assert str(error) == "a.csv, line 3, column 'x': 1.5 is not a label"
    error = DataError("leave it out", source="a.csv", arguments=["drop", "labels"])
    assert str(error) == "a.csv: leave it out (arguments: drop, labels)"


def test_pickle_keeps_all_fields():
    error = DataError("no", source="a.csv", line=3, column="x", arguments=["drop"])
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_place_of_an_invalid_value(tmp_path):
    path = write_file(tmp_path, "x,y\n1,2\n3,oops\n")
    with pytest.raises(DataError) as caught:
        load(path)
    error = caught.value
    assert (error.source, error.line, error.column) == (str(path), 3, "y")
    assert error.arguments == ("categorical",)
    assert isinstance(error, ValueError)
