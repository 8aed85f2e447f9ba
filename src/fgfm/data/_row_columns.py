"""What stands beside label sets in a file: columns of the rows' own table, and probabilities."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm.data._errors import bad, shown
from fgfm.data._extras import need
from fgfm.data._files import _guess
from fgfm.data._label_sets import LabelSetWriter
from fgfm.data._text import check_file, open_text, spooled

__all__ = ["ProbabilityWriter", "read_columns"]


def read_columns(
    path: str | os.PathLike[str],
    names: Sequence[str],
    *,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Any:
    """Read some columns of a table as they are, such as identifiers.

    Parameters
    ----------
    path : str or path-like
        The file: CSV, TSV or Parquet.
    names : sequence of str
        The columns.
    format : {"csv", "tsv", "parquet"}, optional
        By default the name of the file tells.
    delimiter : str, optional
        What stands between the values of CSV.
    encoding : str, default="utf-8"
        The encoding of text.

    Returns
    -------
    pyarrow.Table
        The columns; those of text files are texts, as written there.
    """
    pyarrow = need("pyarrow", "keeping columns")
    with spooled(path) as source:
        return _columns(source, names, format, delimiter, encoding, pyarrow)


def _columns(
    source: Path,
    names: Sequence[str],
    format: str | None,
    delimiter: str | None,
    encoding: str,
    pyarrow: Any,
) -> Any:
    check_file(source)
    format = _guess(source) if format is None else format
    if format == "parquet":
        parquet = need("pyarrow.parquet", "reading Parquet")
        try:
            with parquet.ParquetFile(source) as file:
                _check(names, file.schema_arrow.names, source)
                return file.read(columns=list(names)).select(list(names))
        except pyarrow.ArrowException as error:
            raise bad(source, f"this is no Parquet file, or is damaged: {error}") from error
    if format not in ("csv", "tsv"):
        raise bad(source, f"a file of format {format!r} has no columns to keep: tables have")
    if delimiter is None:
        delimiter = "," if format == "csv" else "\t"
    try:
        with open_text(source, encoding, newline="") as text:
            records = filter(None, csv.reader(text, delimiter=delimiter, strict=True))
            header = [name.strip() for name in next(records, [])]
            _check(names, header, source)
            where = [header.index(name) for name in names]
            rows = [[cells[j] for j in where] for cells in records]
    except (csv.Error, IndexError) as error:
        raise bad(source, f"this is no table: {error}") from error
    return pyarrow.table(
        {
            name: pyarrow.array([row[k] for row in rows], pyarrow.string())
            for k, name in enumerate(names)
        }
    )


def _check(names: Sequence[str], found: Sequence[str], source: Path) -> None:
    for name in names:
        if name not in found:
            raise bad(source, f"there is no column {shown(name)} to keep")


class ProbabilityWriter(LabelSetWriter):
    """Write a table of probabilities, block by block, as `fgfm.data.decide` reads it.

    Parameters
    ----------
    target : str or path-like
        The file, which appears when it is complete; "-" is standard output.
    label_names : sequence of str
        Names of the labels.
    format : {"csv", "tsv", "parquet"}, optional
        By default the name of the file tells; standard output gets CSV.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        label_names: Sequence[str],
        *,
        format: str | None = None,
    ) -> None:
        super().__init__(target, label_names, format=format, wide=True)
        if self.format == "jsonl":
            raise ValueError(f"{target}: probabilities are written as CSV, TSV or Parquet")

    def write_proba(self, proba: npt.NDArray[np.float64], ids: Any = None) -> None:
        """Write a block of rows.

        Parameters
        ----------
        proba : ndarray of shape (n, m)
            Probabilities, written with all their digits.
        ids : pyarrow.Table, optional
            Columns that stand before them.
        """
        columns: dict[str, Any] = (
            {} if ids is None else dict(zip(ids.column_names, ids, strict=True))
        )
        for j, name in enumerate(self.label_names):
            if name in columns:
                raise ValueError(f"column {name!r} is among those to keep, and is a label")
            columns[name] = self._pa.array(np.ascontiguousarray(proba[:, j]))
        self._append(self._pa.table(columns))
