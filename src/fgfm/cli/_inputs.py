"""Files that commands read and write."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgfm._utils.text import WIDTH, clipped, counted, escaped
from fgfm.cli._console import spinner
from fgfm.cli._options import dataset_arguments, split_names

if TYPE_CHECKING:
    from fgfm.io import Dataset, FeatureEncoder

__all__ = ["check_target", "column_lines", "load_encoded", "split_rows"]

_MOST_NUMBERS = 8  # columns of numbers that are printed one by one
_MOST = 40  # lines
_KIND = 12  # width of the kind


def load_encoded(path: Path, params: Mapping[str, Any]) -> tuple[Dataset, FeatureEncoder, Any]:
    """Read a data set that must have labels; return it, its encoder and its encoded features."""
    from fgfm.io import DataError, FeatureEncoder, load

    arguments = dataset_arguments(params)
    kinds = {kind: split_names(params[kind]) for kind in ("text", "category", "number", "date")}
    with spinner(f"reading {clipped(path.name, 50)}"):
        data = load(path, require_labels=True, **arguments)
        number = arguments["labels"]
        if isinstance(number, int) and str(number) in {*data.label_columns, *_columns(data)}:
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
            max_categories=params["max_categories"],
            dense=params.get("dense", False),
        )
        X = encoder.fit_transform(data.X)
    encoder.zero_based_ = data.zero_based  # how further svmlight files are numbered
    return data, encoder, X


def _columns(data: Dataset) -> list[str]:
    return list(getattr(data.X, "columns", ()))


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
    longest = max(len(escaped(name)) for name, _, _ in rows)
    width = min(longest, WIDTH - _KIND - 4 - max(len(becomes) for _, _, becomes in rows))
    return [
        f"{clipped(name, width):<{width}}  {kind:<{_KIND}}{becomes}".rstrip()
        for name, kind, becomes in rows
    ]


def split_rows(data: Dataset, split: str | None) -> Any:
    """Return the numbers of the training or test rows of a file; a slice of all rows for None."""
    if split is None:
        return slice(None)
    if split not in ("train", "test"):
        raise ValueError(f"--split is {split!r}: it must be train or test")
    index = data.train if split == "train" else data.test
    if index is None:
        raise ValueError(f"--split is {split!r}: {data.source} has no split")
    return index


def check_target(path: Path, option: str, others: Sequence[Path]) -> None:
    """Raise if the file that an option names cannot be written, before the work begins.

    It must not be one of the `others` that the command reads or writes.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        return  # a pipe or a device
    for other in others:
        if os.path.realpath(other) == os.path.realpath(path):
            raise ValueError(f"{option} is {path}, as is {other}: they must be two files")
    if path.is_dir():
        raise ValueError(f"{option} is {path}, a folder: it must be a file")
    folder = path.parent
    if not folder.is_dir():
        raise ValueError(f"{option} is {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{option} is {path}: the folder {folder} is not writable")
