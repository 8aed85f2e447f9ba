"""Validation rows: the probabilities of a model and the true labels, from two files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.text import counted, missing_columns, quoted
from fgfm.io._cells import as_texts
from fgfm.io._encoder import ID_NAME
from fgfm.io._errors import DataError
from fgfm.io._files import TABLES, detect_format
from fgfm.io._labels import label_order, read_labels, select_columns
from fgfm.io._load import load
from fgfm.io._npz import is_dataset, read_matrix
from fgfm.io._probabilities import open_probabilities
from fgfm.io._tables import TextFormat, open_table

__all__ = ["Validation", "load_validation"]

_LISTS, _EXPECTED = "labels", "expected_f"  # columns that `decide` writes


class Validation(NamedTuple):
    """Probabilities and true labels of the same rows and labels.

    Attributes
    ----------
    proba : ndarray or CSR of shape (n, m)
        The probabilities or logits, in single precision if the file has it.
    Y : ndarray or CSR of shape (n, m)
        The true labels, 0 or 1; sparse if `proba` is.
    label_names : list of str
        The names of the labels, or their numbers.
    """

    proba: Any
    Y: Any
    label_names: list[str]


class _TrueLabels(NamedTuple):
    Y: Any  # (n, m), in the order of the probabilities
    names: list[str] | None  # None if the file has none
    ids: Any  # pyarrow.Table, or None


def load_validation(
    probabilities: str | os.PathLike[str],
    labels: str | os.PathLike[str],
    *,
    ids: Sequence[str] = (),
    logits: bool = False,
    strict: bool = False,
    format: str | None = None,
    labels_format: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool | None = None,
    separator: str | None = None,
    missing_labels: bool = False,
    columns: int | str | Sequence[str] | None = None,
) -> Validation:
    """Read the probabilities that a model predicts for validation rows, and their true labels.

    Labels are matched by their names, and rows by the id columns that both files have, else by
    their order. Both files must have the same labels and rows.

    Parameters
    ----------
    probabilities : str or path-like
        A table with a column per label, as `decide` reads it; "-" is standard input.
    labels : str or path-like
        The true labels: a table with labels in any form that `load` reads, such as 0 and 1 with a
        column per label, or the lists in a column "labels" that `decide` writes; or a data set
        that declares its labels (ARFF, svmlight, .npz). A column "expected_f" is ignored.
    ids : sequence of str, default=()
        Columns that are not labels, of either file. Without any, columns that are called like an
        identifier are.
    logits : bool, default=False
        Whether there are logits instead of probabilities.
    strict : bool, default=False
        Whether a probability that is not a number is an error, as in `decide`.
    format, labels_format : str, optional
        The formats of the files; by default they follow from the file names.
    delimiter, decimal, encoding, header : optional
        How CSV and TSV are written in both files, as for `load`.
    separator : str, optional
        The separator of label lists; by default it is found.
    missing_labels : bool, default=False
        Whether a blank cell is a label that was not observed, NaN in Y.
    columns : int, str or sequence of str, optional
        The label columns of `labels`, as in `load`; by default "labels", or all but `ids`.

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
    >>> from fgfm.io import load_validation
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     p, y = Path(folder) / "p.csv", Path(folder) / "y.csv"
    ...     _ = p.write_text("name,cat,dog\\nrex,0.1,0.9\\nfelix,0.6,0.4\\n")
    ...     _ = y.write_text("name,labels\\nfelix,cat\\nrex,cat;dog\\n")
    ...     found = load_validation(p, y, ids=["name"])
    >>> found.Y
    array([[1, 1],
           [1, 0]], dtype=uint8)
    """
    text = TextFormat(delimiter, decimal, encoding, header)
    content = "logits" if logits else "probabilities"
    with open_probabilities(
        probabilities,
        format=format,
        text=text,
        content=content,
        ids=ids,
        optional_ids=True,
        strict=strict,
    ) as table:
        names, has_names, source = table.label_names, table.has_names, table.source
        proba, proba_ids = table.read()
    wanted = names if has_names else None
    truth = _read_truth(
        Path(labels),
        wanted,
        len(names),
        ids,
        labels_format,
        text,
        {"separator": separator, "missing": missing_labels},
        columns,
    )
    for name in ids:
        if name not in _names(proba_ids) and name not in _names(truth.ids):
            reason = missing_columns([name], names)
            raise DataError(reason, source=source, arguments=["ids"])
    shared = [name for name in _names(proba_ids) if name in _names(truth.ids)]
    if shared:
        order = _matching_rows(proba_ids, truth.ids, shared, source, str(labels))
        Y = truth.Y[order]
    elif truth.Y.shape[0] != proba.shape[0]:
        one, other = counted(truth.Y.shape[0], "row"), counted(proba.shape[0], "row")
        raise DataError(
            f"there are {one}, and {source} has {other}: they must be the same rows, or have an "
            "id column",
            source=labels,
            arguments=["ids"],
        )
    else:
        Y = truth.Y
    if sparse.issparse(proba):
        Y = sparse.csr_array(Y)
    elif sparse.issparse(Y):
        Y = Y.toarray()
    return Validation(proba, Y, names if has_names or truth.names is None else truth.names)


def _read_truth(
    path: Path,
    wanted: list[str] | None,
    m: int,
    ids: Sequence[str],
    format: str | None,
    text: TextFormat,
    given: dict[str, Any],
    columns: int | str | Sequence[str] | None,
) -> _TrueLabels:
    """Read true labels, in the order of the names `wanted`, or of m labels without names."""
    format = format or detect_format(path)
    found: list[str] | None = None
    id_rows = None
    if format in TABLES:
        with open_table(path, format, text) as table:
            arrow, names = table.read(), table.names
        kept = [name for name in names if name in ids or (not ids and ID_NAME.search(name))]
        apart = {*kept, *({_EXPECTED} - set(wanted or ()))}
        chosen = [name for name in names if name not in apart]
        if columns is not None:
            chosen = select_columns(names, columns, str(path))
        elif _LISTS in names and _LISTS not in (wanted or ()):
            chosen = [_LISTS]
        if not set(chosen).isdisjoint(wanted or ()):  # columns of 0 and 1
            label_order(chosen, wanted or (), "the probabilities", str(path), ["ids"])
        labels = read_labels(
            {name: arrow.column(name).combine_chunks() for name in chosen},
            str(path),
            **given,
            known=wanted,
        )
        Y, found = labels.Y, list(labels.names)
        id_rows = arrow.select(kept) if kept else None
    elif format == "npy" or (format == "npz" and not is_dataset(path)):
        Y = read_matrix(path, format)
        stored = Y if isinstance(Y, np.ndarray) else Y.data
        if not ((stored == 0) | (stored == 1)).all():
            raise DataError("a label is neither 0 nor 1", source=path)
        Y = Y.astype(np.uint8)
    else:
        data = load(path, format=format)
        if data.Y is None:
            raise DataError("the file has no labels", source=path)
        Y, found = data.Y, list(data.label_names)
        if all(name.isdecimal() for name in found):
            found = None  # numbers of labels without names
        elif wanted is not None:
            Y = Y[:, label_order(found, wanted, "the probabilities", str(path))]
    if Y.shape[1] != m:
        reason = f"the number of labels is {Y.shape[1]}: it must be {m}, that of the probabilities"
        raise DataError(reason, source=path)
    return _TrueLabels(Y, found, id_rows)


def _names(ids: Any) -> list[str]:
    return [] if ids is None else list(ids.column_names)


def _matching_rows(
    ids: Any, true_ids: Any, names: Sequence[str], source: str, labels: str
) -> npt.NDArray[np.int64]:
    """Return the row of the labels of each row of probabilities."""
    keys, true_keys = _keys(ids, names), _keys(true_ids, names)
    row_of = _row_of(true_keys, names, labels)
    known = _row_of(keys, names, source)
    for one, other, file, missing in (
        (keys, row_of, source, labels),
        (true_keys, known, labels, source),
    ):
        for row, key in enumerate(one):
            if key not in other:
                reason = f"{_shown(key, names)} is not in {missing}: both files must have all rows"
                raise DataError(reason, source=file, row=row)
    return np.array([row_of[key] for key in keys], dtype=np.int64)


def _keys(ids: Any, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the id columns of each row, as texts."""
    columns = [as_texts(ids.column(name).combine_chunks()).tolist() for name in names]
    return list(zip(*columns, strict=True))


def _row_of(
    keys: Sequence[tuple[str, ...]], names: Sequence[str], source: str
) -> dict[tuple[str, ...], int]:
    """Return the row of each key; raise if two rows have the same."""
    row_of: dict[tuple[str, ...], int] = {}
    for row, key in enumerate(keys):
        if row_of.setdefault(key, row) != row:
            reason = f"{_shown(key, names)} is there twice: rows must have unique ids"
            raise DataError(reason, source=source, row=row)
    return row_of


def _shown(key: tuple[str, ...], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {quoted(value)}" for name, value in zip(names, key, strict=True))
