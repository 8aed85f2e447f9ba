"""Files that commands read and write."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgfm._utils.text import clipped
from fgfm.cli._console import spinner
from fgfm.cli._options import dataset_arguments

if TYPE_CHECKING:
    from fgfm.data import Dataset

__all__ = ["check_target", "load_labelled", "rows_of_split"]


def load_labelled(
    path: Path, params: Mapping[str, Any], *, keep_identifiers: bool = False
) -> Dataset:
    """Read a data set that must have labels, with the options of the command.

    With `keep_identifiers`, columns that are found to be identifiers are returned as ``ids``,
    unless the options name other ones.
    """
    from fgfm.data import DataError, FeatureEncoder, load

    arguments = dataset_arguments(params)
    encoder = FeatureEncoder(
        max_categories=params["max_categories"],
        sparse_output=False if params.get("dense") else None,
        scale=params.get("scale", True),
    )
    with spinner(f"reading {clipped(path.name, 50)}"):
        data = load(path, encoder=encoder, require_labels=True, **arguments)
        found = [name for name, kind, _ in _summary(data.encoder) if kind == "identifier"]
        if keep_identifiers and found and not arguments["ids"]:
            again = load(path, require_labels=True, **arguments | {"ids": found})
            data = replace(data, ids=again.ids)
    number = arguments["labels"]
    names = {*(data.label_names or ()), *(data.feature_names or ())}
    if isinstance(number, int) and str(number) in names:
        raise DataError(
            f"{number} is both a number of columns and the name of a column: write "
            f"'[{str(number)[0]}]{str(number)[1:]}' for the column",
            source=path,
            arguments=["labels"],
        )
    return data


def _summary(encoder: Any) -> list[tuple[str, str, str]]:
    return encoder.summary() if hasattr(encoder, "feature_names_in_") else []


def rows_of_split(data: Dataset, split: str | None) -> Dataset:
    """Return the training rows or the test rows of a file with a split; all rows for None."""
    if split is None:
        return data
    if split not in ("train", "test"):
        raise ValueError(f"--split is {split!r}: it must be train or test")
    rows = data.train if split == "train" else data.test
    if rows is None:
        raise ValueError(f"--split is {split!r}: {data.source} has no split")
    return data.rows(rows)


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
