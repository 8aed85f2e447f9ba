"""File formats by file name and by content."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from fgfm.data._errors import DataError
from fgfm.data._text_files import is_gzip_name, read_head

__all__ = [
    "FORMATS",
    "LABEL_SET_FORMATS",
    "LABEL_SET_SUFFIXES",
    "PARQUET_SUFFIXES",
    "PROBABILITY_FORMATS",
    "XMC_HEADER",
    "dataset_format",
    "default_delimiter",
    "detect_format",
    "label_set_format",
    "probability_format",
    "true_label_format",
]

FORMATS = ("csv", "tsv", "parquet", "arff", "meka", "svmlight", "xmc", "npz")  # of data sets
PROBABILITY_FORMATS = ("csv", "tsv", "parquet", "npy", "npz")
LABEL_SET_FORMATS = ("csv", "tsv", "jsonl", "parquet")

PARQUET_SUFFIXES = (".parquet", ".pq")
_TABLE_SUFFIXES = {".csv": "csv", ".tsv": "tsv"} | dict.fromkeys(PARQUET_SUFFIXES, "parquet")
_DATASET_SUFFIXES = _TABLE_SUFFIXES | {
    ".tab": "tsv",
    ".arff": "arff",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".xmc": "xmc",
    ".npz": "npz",
}
_PROBABILITY_SUFFIXES = _TABLE_SUFFIXES | {".npy": "npy", ".npz": "npz"}
LABEL_SET_SUFFIXES = _TABLE_SUFFIXES | {".jsonl": "jsonl", ".ndjson": "jsonl"}

# The first line of an xmc file: the numbers of rows, features and labels.
XMC_HEADER = re.compile(r"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]*")


def _suffix(path: str | os.PathLike[str]) -> str:
    """Return the extension of a file name in lower case: that before .gz, if there is one."""
    name = os.fspath(path)
    inner = Path(name[: -len(".gz")] if is_gzip_name(name) else name).suffix
    return (inner or Path(name).suffix).lower()


def dataset_format(path: str | os.PathLike[str]) -> str | None:
    """Return the format of a data set by its file name, or None if it has another extension."""
    return _DATASET_SUFFIXES.get(_suffix(path))


def probability_format(path: str | os.PathLike[str]) -> str:
    """Return the format of a table of probabilities by its file name."""
    return _required(path, _suffix(path), _PROBABILITY_SUFFIXES)


def label_set_format(path: str | os.PathLike[str]) -> str:
    """Return the format of a file of label sets by its file name; it is never compressed."""
    return _required(path, Path(path).suffix.lower(), LABEL_SET_SUFFIXES)


def true_label_format(path: str | os.PathLike[str]) -> str:
    """Return the format of a file of true labels by its name."""
    suffixes = LABEL_SET_SUFFIXES | _PROBABILITY_SUFFIXES | _DATASET_SUFFIXES
    return _required(path, _suffix(path), suffixes)


def _required(path: str | os.PathLike[str], suffix: str, suffixes: Mapping[str, str]) -> str:
    if suffix not in suffixes:
        raise ValueError(
            f"{path} has the extension {suffix!r}: it must be one of {', '.join(suffixes)}, or "
            "the format must be given"
        )
    return suffixes[suffix]


def default_delimiter(format: str) -> str:
    """Return the delimiter of CSV or TSV."""
    return "," if format == "csv" else "\t"


def detect_format(path: Path) -> str:
    """Return the format of a data set by its extension, else by the first bytes of the file."""
    found = dataset_format(path)
    if found not in (None, "svmlight"):  # xmc files are often named .svm
        return str(found)
    head = read_head(path)
    if head.startswith(b"PK\x03\x04"):
        return "npz"
    if head.startswith(b"PAR1"):
        return "parquet"
    lines = [line.strip() for line in head.decode("utf-8", "replace").splitlines()]
    first = next((line for line in lines if line and line[0] not in "#%"), "")
    if XMC_HEADER.fullmatch(first):
        return "xmc"
    if found is not None:
        return found
    if first.lower().startswith("@relation"):
        return "arff"
    if re.match(r"(?:[0-9]+(?:,[0-9]+)*[ \t]+)?[0-9]+:[0-9.+-]", first):
        return "svmlight"
    raise DataError(
        "the format follows neither from the file name nor from the first line: it must be one "
        f"of {', '.join(map(repr, FORMATS))}",
        source=path,
        arguments=["format"],
    )
