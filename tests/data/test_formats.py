"""Detection of formats."""

from __future__ import annotations

import gzip

import pytest

from dataset_files import assert_same, make_dataset, to_dense, write_file
from fgfm.data import DataError, load, save


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ("2 3 2\n0 1:1\n1 2:1\n", "xmc"),
        ("1,2 1:1\n", "svmlight"),
        ("1:1\n", "svmlight"),
        ("% x\n@relation r\n@attribute x numeric\n@data\n1\n", "arff"),
    ],
)
def test_text_format_is_detected_from_content(content, format, tmp_path):
    plain = load(write_file(tmp_path, content, "data"))
    packed = load(write_file(tmp_path, gzip.compress(content.encode()), "data.txt.gz"))
    stated = load(tmp_path / "data", format=format)
    for found in (packed, stated):
        assert (to_dense(found.X) == to_dense(plain.X)).all()


def test_binary_format_is_detected_from_content(tmp_path):
    one = make_dataset()
    for format in ("npz", "parquet"):
        save(one, tmp_path / "data", format=format)
        assert_same(one, load(tmp_path / "data"), "npz")


def test_unknown_format_raises(tmp_path):
    path = write_file(tmp_path, "hello\n", "a.dat")
    rule = r"a.dat: the format follows neither from .* 'npz' \(argument: format\)$"
    with pytest.raises(DataError, match=rule):
        load(path)
