"""Tables in CSV, TSV and Parquet, read in blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fgfm.data._formats import default_delimiter
from fgfm.data._parquet import ParquetTable, open_parquet
from fgfm.data._text_files import open_utf8
from fgfm.data._text_table import Blank, TextTable

__all__ = ["open_table"]


@contextmanager
def open_table(
    path: str | os.PathLike[str] | None,
    format: str,
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool | None = None,
    blank: Blank = "skip",
) -> Iterator[TextTable | ParquetTable]:
    """Open a table of named columns, to be read in blocks of rows.

    Parameters
    ----------
    path : str or path-like or None
        The file; None is standard input, in CSV or TSV.
    format : {"csv", "tsv", "parquet"}
        Its format. The other parameters apply to CSV and TSV.
    delimiter : str, optional
        The delimiter. By default it is that of the format, or the only other one that the first
        two lines have.
    decimal : {".", ","}, default="."
        The decimal mark of numbers.
    encoding : str, default="utf-8"
        The encoding.
    header : bool, optional
        Whether the first row has the names of the columns. By default it does, and an error is
        raised if they look like values.
    blank : {"skip", "refuse", "row"}, default="skip"
        What an empty line is: nothing; an error, except at the end; or a row of one empty cell.

    Yields
    ------
    TextTable or ParquetTable
        The table: ``names``, the names of its columns, and ``blocks(texts, skipped)``, an iterator
        of `RowBlock`, each with the number of its first row and the lines of its rows.
    """
    if format == "parquet":
        assert path is not None
        with open_parquet(Path(path)) as table:
            yield table
        return
    with open_utf8(None if path is None else Path(path), encoding) as read:
        yield TextTable(
            read,
            "standard input" if path is None else os.fspath(path),
            delimiter=delimiter or default_delimiter(format),
            detect=delimiter is None,
            decimal=decimal,
            header=header,
            blank=blank,
        )
