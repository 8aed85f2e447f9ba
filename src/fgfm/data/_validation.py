"""Validation rows: the probabilities of a model and the true labels, from two files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.text import counted, quoted
from fgfm._utils.validation import check_flag
from fgfm.data._errors import DataError
from fgfm.data._options import TextFormat
from fgfm.data._probability_reader import ProbabilityReader
from fgfm.data._probability_tables import Columns
from fgfm.data._row_buffer import RowBuffer
from fgfm.data._true_labels import TrueLabels, Wanted, read_true_labels

__all__ = ["Validation", "load_validation"]


class Validation(NamedTuple):
    """Probabilities and true labels of the same rows and labels.

    Attributes
    ----------
    proba : ndarray or CSR of shape (n, m)
        The probabilities or logits, in single precision if the file has it.
    Y : ndarray of int8 or CSR of shape (n, m)
        The true labels, 0 or 1; sparse if `proba` is.
    label_names : list of str
        The names of the labels, or their numbers.
    """

    proba: Any
    Y: Any
    label_names: list[str]


def load_validation(
    probabilities: str | os.PathLike[str],
    labels: str | os.PathLike[str],
    *,
    ids: Sequence[str] = (),
    logits: bool = False,
    format: str | None = None,
    labels_format: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool | None = None,
    separator: str = ";",
    progress: Callable[[int], object] | None = None,
) -> Validation:
    """Read the probabilities that a model predicts for validation rows, and their true labels.

    Labels are matched by their names, and rows by the id columns that both files have, else by
    their order. Both files must have the same labels and rows.

    Parameters
    ----------
    probabilities : str or path-like
        A table with a column per label, as `decide` reads it; "-" is standard input.
    labels : str or path-like
        The true labels, in one of three forms: a table of 0 and 1 with a column per label (CSV,
        TSV, Parquet, JSON lines, .npy, sparse .npz); label sets as `decide` writes them, with a
        column "labels"; or a data set that declares its labels (ARFF, svmlight, .npz, ...). A
        column "expected_f" is ignored.
    ids : sequence of str, default=()
        Columns that are not labels, of either file.
    logits : bool, default=False
        Whether there are logits instead of probabilities.
    format : {"csv", "tsv", "parquet", "npy", "npz"}, optional
        The format of the probabilities; by default it follows from the file name.
    labels_format : str, optional
        The format of the labels: one of these, "jsonl", or one of `load`.
    delimiter, decimal, encoding, header : optional
        How CSV and TSV are written in both files, as for `decide`.
    separator : str, default=";"
        The separator of label sets in CSV and TSV.
    progress : callable, optional
        Called with the number of rows read, after every block.

    Returns
    -------
    Validation
        Probabilities, true labels and names.

    See Also
    --------
    fgfm.FDecider : Learns from them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fgfm.data import load_validation
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     p, y = Path(folder) / "p.csv", Path(folder) / "y.csv"
    ...     _ = p.write_text("name,cat,dog\\nrex,0.1,0.9\\nfelix,0.6,0.4\\n")
    ...     _ = y.write_text("name,labels\\nfelix,cat\\nrex,cat;dog\\n")
    ...     found = load_validation(p, y, ids=["name"])
    >>> found.Y
    array([[1, 1],
           [1, 0]], dtype=int8)
    """
    text = TextFormat(delimiter, decimal, encoding, header)
    reader = ProbabilityReader(
        probabilities,
        format=format,
        text=text,
        content="logits" if check_flag(logits, "logits") else "probabilities",
        columns=Columns(tuple(ids), optional=True),
    )
    with reader:
        names = reader.label_names
        buffer = RowBuffer(len(names))
        for block, block_ids in reader:
            buffer.append(block, block_ids)
            if progress is not None:
                progress(buffer.rows)
    proba, proba_ids = buffer.array(), buffer.ids()
    if not buffer.rows:
        raise DataError("there are no rows", source=reader.source)
    wanted = Wanted(names, not reader.has_names, tuple(ids))
    read = buffer.rows
    truth = read_true_labels(
        Path(labels),
        wanted,
        format=labels_format,
        text=text,
        separator=separator,
        progress=None if progress is None else lambda rows: progress(read + rows),
    )
    known = {*_names(proba_ids), *_names(truth.ids)}
    for name in ids:
        if name not in known:
            raise DataError(
                f"there is no column {quoted(name)} here or in the probabilities",
                source=labels,
                arguments=["ids"],
            )
    if not _shared(proba_ids, truth.ids) and truth.labels.shape[0] != read:
        one, other = counted(truth.labels.shape[0], "row"), counted(read, "row")
        raise DataError(
            f"there are {one}, and {reader.source} has {other}: they must be the same rows, or "
            "have an id column",
            source=labels,
            arguments=["ids"],
        )
    order = _matching_rows(proba_ids, truth, reader, labels)
    Y = truth.labels if order is None else truth.labels[order]
    if sparse.issparse(proba):
        Y = sparse.csr_array(Y)
    elif sparse.issparse(Y):
        Y = Y.toarray()
    return Validation(proba, Y, truth.names if wanted.are_numbers and truth.names else names)


def _names(ids: Any) -> list[str]:
    return [] if ids is None else ids.column_names


def _shared(one: Any, other: Any) -> list[str]:
    """Return the id columns that both files have."""
    return [name for name in _names(one) if name in _names(other)]


def _matching_rows(
    ids: Any, truth: TrueLabels, reader: ProbabilityReader, labels: Any
) -> npt.NDArray[np.int64] | None:
    """Return the row of the labels of each row of probabilities; None if they are in order."""
    shared = _shared(ids, truth.ids)
    if not shared:
        return None
    keys = _keys(ids, shared)
    true_keys = _keys(truth.ids, shared)
    if keys == true_keys:
        return None
    row_of = _row_of(true_keys, shared, truth.error)
    _row_of(keys, shared, reader.error)
    for row, key in enumerate(keys):
        if key not in row_of:
            reason = f"{_shown(key, shared)} is not in {labels}"
            raise reader.error(f"{reason}: both files must have all rows", row)
    if len(true_keys) > len(keys):
        known = set(keys)
        row = next(row for row, key in enumerate(true_keys) if key not in known)
        reason = f"{_shown(true_keys[row], shared)} is not in {reader.source}"
        raise truth.error(f"{reason}: both files must have all rows", row)
    return np.array([row_of[key] for key in keys])


def _keys(ids: Any, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the id columns of each row, as texts."""
    columns = [ids.column(name).cast("string").to_pylist() for name in names]
    return list(zip(*columns, strict=True))


def _row_of(
    keys: Sequence[tuple[str, ...]],
    names: Sequence[str],
    error: Callable[[str, int], DataError],
) -> dict[tuple[str, ...], int]:
    """Return the row of each key; raise if two rows have the same."""
    row_of: dict[tuple[str, ...], int] = {}
    for row, key in enumerate(keys):
        if row_of.setdefault(key, row) != row:
            raise error(f"{_shown(key, names)} is there twice: rows must have unique ids", row)
    return row_of


def _shown(key: tuple[str, ...], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {quoted(value)}" for name, value in zip(names, key, strict=True))
