"""Data sets that commands read, files that they write, and what is said about both."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fgfm._utils.text import WIDTH, clipped, counted, listed, wrapped
from fgfm.cli._console import format_table, note
from fgfm.cli._options import dataset_arguments, split_names

if TYPE_CHECKING:
    from fgfm.io import Dataset, FeatureEncoder

_MOST_NUMBERS = 8  # columns of numbers that are printed one by one
_MOST = 40  # lines
_LARGE = 1.5  # labels that are predicted for each that is expected: more is large
_UNSURE = 0.5  # expected F-measure


def load_table(path: Path, params: Mapping[str, Any]) -> tuple[Dataset, FeatureEncoder]:
    """Read a data set that must have labels; return it and its unfitted encoder."""
    from fgfm.io import DataError, FeatureEncoder, load

    arguments = dataset_arguments(params)
    kinds: Any = {
        kind: split_names(params[kind]) for kind in ("text", "category", "number", "date")
    }
    data = load(path, require_labels=True, **arguments)
    number = arguments["labels"]
    columns = {*data.label_columns, *getattr(data.X, "columns", ())}
    if isinstance(number, int) and str(number) in columns:
        raise DataError(
            f"{number} is both a number of columns and the name of a column: write "
            f"'[{str(number)[0]}]{str(number)[1:]}' for the column",
            source=path,
            arguments=["labels"],
        )
    encoder = FeatureEncoder(
        **kinds,
        drop=[*arguments["ids"], *arguments["drop"]],
        labels=list(data.label_columns),
    )
    return data, encoder


def observed_rows(Y: Any) -> Any:
    """Return the numbers of the rows whose labels were all observed."""
    left_out = np.isnan(Y).any(axis=1)
    if left_out.all():
        raise ValueError("--missing-labels: no row has all its labels, which this command needs")
    if left_out.any():
        count = f"{left_out.sum()} of {counted(len(Y), 'row')}"
        note(f"{count} left out: some of their labels were not observed")
    return np.flatnonzero(~left_out)


def column_lines(encoder: FeatureEncoder, labels: Sequence[str]) -> list[str]:
    """Return a line for each column of a table: its name, its kind and what it becomes.

    Many columns of numbers, and more than 40 of others, are counted instead.
    """
    if not hasattr(encoder, "feature_names_in_"):
        return []
    columns: list[tuple[str, str, str]] = [(c.name, c.kind, c.becomes) for c in encoder.summary()]
    plain = [column for column in columns if column[2] == "1 number"]
    hidden = plain[_MOST_NUMBERS - 1 :] if len(plain) > _MOST_NUMBERS else []
    shown = [column for column in columns if column not in hidden]
    rows = [("column", "kind", "becomes"), *shown[:_MOST]]
    if hidden:
        rows.append((f"{len(hidden)} more", "", "1 number each"))
    if len(shown) > _MOST:
        rows.append((f"{len(shown) - _MOST} more", "", ""))
    if encoder.labels:
        names = ", ".join(encoder.labels[:3]) + ", ..." * (len(encoder.labels) > 3)
        rows.append((names, "labels", counted(len(labels), "label")))
    width = WIDTH - 4 - sum(max(len(row[k]) for row in rows) for k in (1, 2))
    return format_table([(clipped(name, width), *rest) for name, *rest in rows])


def check_targets(params: Mapping[str, Any], *outputs: str) -> None:
    """Raise if an output of a command cannot be written, before the work begins.

    `outputs` are the names of the parameters that hold outputs. None may be a file that another
    parameter names: everything that a command reads is named by one, and is safe.
    """
    targets = {name: os.fspath(params[name]) for name in outputs if params[name] is not None}
    options = {name: "-o" if name == "out" else f"--{name}" for name in targets}
    if list(targets.values()).count("-") > 1:
        raise ValueError(f"{' and '.join(options.values())} are both -: they must be two files")
    read = [f for key in params.keys() - targets.keys() for f in _files_of(params[key])]
    for name, target in targets.items():
        path, option = Path(target), options[name]
        if target == "-" or (path.exists() and not path.is_file() and not path.is_dir()):
            continue  # a pipe or a device
        others = [other for key, other in targets.items() if key != name]
        for other in [*filter(os.path.isfile, read), *others]:
            if os.path.realpath(other) == os.path.realpath(path):
                raise ValueError(f"{option} is {path}, as is {other}: they must be two files")
        if path.is_dir():
            raise ValueError(f"{option} is {path}, a folder: it must be a file")
        if not path.parent.is_dir():
            raise ValueError(f"{option} is {path}: there is no folder {path.parent}")
        if not os.access(path.parent, os.W_OK):
            raise ValueError(f"{option} is {path}: the folder {path.parent} is not writable")


def _files_of(value: Any) -> list[str]:
    """Return the files that the value of a parameter may name, and those that are read with it."""
    if isinstance(value, (list, tuple)):
        return [file for part in value for file in _files_of(part)]
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        return []
    name = os.fspath(value)
    if name.lower().endswith((".arff", ".arff.gz")):  # MULAN's file of labels lies beside it
        stem = name[:-3] if name.lower().endswith(".gz") else name
        return [name, str(Path(stem).with_suffix(".xml"))]
    return [name, *(split_names([name]) if "," in name else [])]


def labels_line(form: str, names: Sequence[str]) -> list[str]:
    """Return a line on how the labels of a table were found, none for other files."""
    if not form:
        return []
    shown = ", ".join(clipped(name, 20) for name in names[:3])
    more = ", ..." if len(names) > 3 else ""
    return wrapped(f"{form}: {shown}{more} ({len(names)})", "  ").splitlines()


def label_notes(Y: Any, names: Sequence[str]) -> list[str]:
    """Return sentences on training rows (n, m) that teach little about the labels."""
    counts = np.nansum(Y, axis=0)
    if len(Y) == 1:
        return ["there is one training row: every prediction will be its label set"]
    if not counts.any():
        return ["no training row has a label: every prediction will be the empty set"]
    notes = []
    for fixed, fault in ((0, "no training row has"), (len(Y), "every training row has")):
        found = [name for name, count in zip(names, counts, strict=True) if count == fixed]
        if found:
            noun = "label" if len(found) == 1 else "labels"
            notes.append(f"{fault} the {noun} {listed(found, 4)}: nothing can be learned there")
    return notes


def unsure_note(expected_f: float, size: float, labels: float, beta: float) -> str | None:
    """Return a sentence if label sets are large or small because features hardly predict them.

    The mean `size` of the predicted sets is compared with that of the true ones, or the expected
    one, `labels`.
    """
    is_large, is_small = size > _LARGE * labels, _LARGE * size < labels
    if not (expected_f < _UNSURE and (is_large or is_small)):
        return None
    return (
        f"the label sets are {'large' if is_large else 'small'} because the model is unsure: "
        f"expected F{beta:g} {expected_f:.2f}, {size:.1f} labels per row instead of {labels:.1f}"
    )
