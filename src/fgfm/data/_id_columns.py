"""Identifier columns, read as they are."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fgfm._utils.optional import import_optional
from fgfm.data._errors import DataError
from fgfm.data._formats import default_delimiter
from fgfm.data._text_files import open_text

__all__ = ["read_id_columns"]


def read_id_columns(
    path: Path, names: Sequence[str], format: str, delimiter: str | None, encoding: str
) -> Any:
    """Read some columns of a table that has been read once, so that the names are known to exist.

    Parameters
    ----------
    path : Path
        The file.
    names : sequence of str
        The columns.
    format : {"csv", "tsv", "parquet"}
        The format of the file.
    delimiter : str or None
        The delimiter of CSV, if it is not the default.
    encoding : str
        The encoding of CSV and TSV.

    Returns
    -------
    pyarrow.Table
        The columns; those of CSV and TSV are strings.
    """
    pyarrow = import_optional("pyarrow", "reading id columns", "data")
    if format == "parquet":
        parquet = import_optional("pyarrow.parquet", "reading Parquet", "data")
        try:
            with parquet.ParquetFile(path) as file:
                return file.read(columns=list(names)).select(list(names))
        except pyarrow.ArrowException as error:
            reason = f"this is not a Parquet file, or it is damaged: {error}"
            raise DataError(reason, source=path) from error
    with open_text(path, encoding, newline="") as text:
        reader = csv.reader(text, delimiter=delimiter or default_delimiter(format), strict=True)
        records = filter(None, reader)
        header = [name.strip(" \t") for name in next(records)]
        where = [header.index(name) for name in names]
        rows = [[cells[j] for j in where] for cells in records]
    return pyarrow.table(
        {
            name: pyarrow.array([row[k] for row in rows], pyarrow.string())
            for k, name in enumerate(names)
        }
    )
