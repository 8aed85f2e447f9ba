"""The formats of data files: to add one, write its reader and name it in `FORMATS`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fgfm._utils.optional import import_optional
from fgfm._utils.validation import check_choice
from fgfm.io._arff import open_arff
from fgfm.io._errors import DataError
from fgfm.io._files import TextFormat, bad_encoding, open_bytes
from fgfm.io._sparse import open_svmlight, open_xmc
from fgfm.io._tables import open_csv, open_excel, open_jsonl, open_parquet


class Format(NamedTuple):
    """A format of files.

    The reader is a context manager of the file, a `TextFormat` and the fitted encoder of
    training, or None. It opens a `Table`, or `SparseRows`.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: Callable[..., Any]
    head: str | None = None  # regular expression of the first bytes, if the name says nothing
    labels: str = "columns that `labels` names"


FORMATS = {
    "parquet": Format("Parquet", (".parquet", ".pq"), open_parquet, r"PAR1"),
    "arff": Format(
        "ARFF",
        (".arff",),
        open_arff,
        r"(?i)(\s*|%.*\n)*@relation|(?s:.*)\n@attribute",
        "as MULAN and MEKA declare them: an `.xml` file of the same name, or `-C n`",
    ),
    "jsonl": Format("JSON lines", (".jsonl", ".ndjson"), open_jsonl, r"\s*\{"),
    "xmc": Format(
        "extreme classification",
        (".xmc",),
        open_xmc,
        r"[0-9]+[ \t]+[0-9]+[ \t]+[0-9]+[ \t]*\r?\n",
        "first in each row",
    ),
    "svmlight": Format(
        "svmlight",
        (".svm", ".svmlight", ".libsvm"),
        open_svmlight,
        r"[0-9,]*[ \t]+[0-9]+:",
        "first in each row",
    ),
    "xlsx": Format("Excel", (".xlsx",), open_excel),
    "tsv": Format("TSV", (".tsv", ".tab"), open_csv, r"[^\n]*\t"),
    "csv": Format("CSV", (".csv",), open_csv),
}
_HEAD = 1 << 16  # bytes from which a format is found


def suffix_format(suffix: str) -> str | None:
    """Return the format of files with a suffix."""
    return next((key for key, format in FORMATS.items() if suffix in format.suffixes), None)


def detect_format(path: str | os.PathLike[str]) -> str:
    """Return the format of a file by its name, else by its first bytes; CSV for standard input.

    Examples
    --------
    >>> detect_format("films.csv.gz"), detect_format("-")
    ('csv', 'csv')
    """
    if os.fspath(path) == "-":
        return "csv"
    suffix = Path(Path(path).name.lower().removesuffix(".gz")).suffix
    if suffix in (".npy", ".npz"):
        reason = "it has arrays of NumPy: load and decide them in Python"
        raise DataError(reason, source=path)
    if known := suffix_format(suffix):
        return known
    with open_bytes(path) as file:
        head = file.read(_HEAD)
    found = (key for key, f in FORMATS.items() if f.head and re.match(f.head.encode(), head))
    return next(found, "csv")


@contextmanager
def open_file(
    path: str | os.PathLike[str],
    format: str | None = None,
    text: TextFormat | None = None,
    encoder: Any = None,
) -> Iterator[Any]:
    """Open a file as a `Table`, or as `SparseRows`."""
    text = (text or TextFormat()).check()
    check_choice(format, "format", (None, *FORMATS))
    format = format or detect_format(path)
    import_optional("pyarrow", f"reading {format}", "data")
    try:
        with FORMATS[format].reader(path, text, encoder) as content:
            yield content
    except UnicodeDecodeError:
        raise bad_encoding(text.encoding, path) from None
