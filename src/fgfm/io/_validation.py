"""Validation rows: the probabilities of a model and the true labels, from two files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fgfm._utils.text import counted, missing_columns, quoted
from fgfm.io._cells import as_texts
from fgfm.io._errors import DataError
from fgfm.io._files import TextFormat
from fgfm.io._formats import open_file
from fgfm.io._kinds import ID_NAME
from fgfm.io._labels import Labels, label_order, read_labels, select_columns
from fgfm.io._probabilities import open_probabilities
from fgfm.io._sparse import SparseRows
from fgfm.io._tables import Table

_LISTS, _EXPECTED = "labels", "expected_f"  # columns that `decide` writes


class Validation(NamedTuple):
    """Probabilities and true labels of the same rows and labels.

    Attributes
    ----------
    proba : ndarray of shape (n, m)
        The probabilities or logits, in single precision if the file has it.
    Y : ndarray of shape (n, m)
        The true labels, 0 or 1, or NaN if not observed.
    label_names : list of str
        The names of the labels, or their numbers.
    label_form : str
        How the true labels are written in a table, such as "labels split at '|'".
    """

    proba: Any
    Y: Any
    label_names: list[str]
    label_form: str = ""


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
    columns: int | str | Sequence[str] | None = None,
    missing_labels: bool = False,
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
        that declares its labels (ARFF, svmlight). A column "expected_f" is ignored.
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
    columns : int, str or sequence of str, optional
        The label columns of `labels`, as in `load`; by default "labels", or all but `ids`.
    missing_labels : bool, default=False
        Whether a blank cell is a label that was not observed, NaN in Y; otherwise it is no label.

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
    with open_probabilities(
        probabilities,
        format=format,
        text=text,
        logits=logits,
        ids=ids,
        optional_ids=True,
        strict=strict,
    ) as table:
        names, source = table.label_names, table.source
        known = names if table.has_names else None
        proba, proba_ids = table.read()
    path = Path(labels)
    of_labels: dict[str, Any] = {"separator": separator, "known": known, "missing": missing_labels}
    true_ids: Any = None
    with open_file(path, labels_format, text) as truth:
        if truth.names is None:
            found = Labels(*truth.indicator(names))
        else:
            kept, chosen = _split_columns(truth, known or (), ids, columns)
            found = read_labels(truth.columns(chosen), truth.source, **of_labels)
            true_ids = truth.rows.select(kept) if kept else None
    Y = found.Y
    if Y.shape[1] != len(names):
        reason = f"the number of labels is {Y.shape[1]}: it must be {len(names)}, that of the"
        raise DataError(f"{reason} probabilities", source=path)
    shared = _shared_ids(proba_ids, true_ids, ids, names, source)
    if shared:
        Y = Y[_matching_rows(proba_ids.select(shared), true_ids.select(shared), source, path)]
    elif Y.shape[0] != proba.shape[0]:
        one, other = counted(Y.shape[0], "row"), counted(proba.shape[0], "row")
        raise DataError(
            f"there are {one}, and {source} has {other}: they must be the same rows, or have an "
            "id column",
            source=path,
            arguments=["ids"],
        )
    return Validation(proba, Y, list(known or found.names), found.form)


def _split_columns(
    truth: Table | SparseRows,
    known: Sequence[str],
    ids: Sequence[str],
    columns: int | str | Sequence[str] | None,
) -> tuple[list[str], list[str]]:
    """Return the id columns of a file with columns, and those that are labels."""
    names = truth.names or []
    kept = [name for name in names if name in ids or (not ids and ID_NAME.search(name))]
    kept = kept if isinstance(truth, Table) else []
    if columns is not None or truth.declared is not None:
        wanted = truth.declared if columns is None else columns
        chosen = select_columns(names, wanted or [], truth.source)
    elif _LISTS in names and _LISTS not in known:
        chosen = [_LISTS]
    else:
        apart = {*kept, *({_EXPECTED} - {*known})}
        chosen = [name for name in names if name not in apart]
    if not set(known).isdisjoint(chosen):  # columns of 0 and 1
        label_order(chosen, known, "the probabilities", truth.source, ["ids"])
    return kept, chosen


def _shared_ids(
    ids: Any, true_ids: Any, given: Sequence[str], labels: Sequence[str], source: str
) -> list[str]:
    """Return the id columns that both files have; raise if a given one is in neither."""
    mine, theirs = ([] if table is None else table.column_names for table in (ids, true_ids))
    absent = [name for name in given if name not in {*mine, *theirs}]
    if absent:
        raise DataError(missing_columns(absent, labels), source=source, arguments=["ids"])
    return [name for name in mine if name in theirs]


def _matching_rows(ids: Any, true_ids: Any, source: str, labels: Path) -> Any:
    """Return the row of the labels of each row of probabilities."""
    import pandas as pd

    def keys(table: Any) -> Any:
        texts = [as_texts(column.combine_chunks()).tolist() for column in table.columns]
        return pd.Index(list(zip(*texts, strict=True)), tupleize_cols=False)

    def check(wrong: Any, of: Any, file: Any, rule: str) -> None:
        if wrong.any():
            row = int(np.argmax(wrong))
            parts = zip(ids.column_names, of[row], strict=True)
            key = ", ".join(f"{name} {quoted(value)}" for name, value in parts)
            raise DataError(f"{key} is {rule}", source=file, row=row)

    mine, theirs = keys(ids), keys(true_ids)
    for of, file in ((theirs, labels), (mine, source)):
        check(of.duplicated(), of, file, "there twice: rows must have unique ids")
    for of, file, others, other in (
        (mine, source, theirs, labels),
        (theirs, labels, mine, source),
    ):
        check(~of.isin(others), of, file, f"not in {other}: both files must have all rows")
    return theirs.get_indexer(mine)
