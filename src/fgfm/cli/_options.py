"""Options that several commands have, and how their texts become values."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from fgfm.data import Dataset

__all__ = [
    "Categorical",
    "Decimal",
    "Delimiter",
    "Dense",
    "Drop",
    "Encoding",
    "Features",
    "Format",
    "Jobs",
    "Labels",
    "MaxCategories",
    "Seed",
    "Separator",
    "Trust",
    "as_dense",
    "check_target",
    "data_options",
    "listed",
    "load_data",
    "load_labelled",
    "rows_of_split",
]

# an argument of fgfm.data.load, in a sentence: as labels=, drop=[...], labels=-4
_ARGUMENT = re.compile(
    r"\b(labels|drop|categorical|delimiter|decimal|separator|format|encoding|max_categories|n_features)"
    r"=(\[\.\.\.\]|\.\.\.)?(?=([^\s,:;]?))"
)
_FORMATS = "csv, tsv, parquet, arff, meka, svmlight, xmc or npz"

Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        "-l",
        metavar="LABELS",
        help="Label columns: names with commas, a pattern as 'genre_*', or a number, the first N "
        "or (-N) the last N. May be repeated.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="The column of --labels has lists of labels, with this between them.",
    ),
]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help=f"{_FORMATS}; by default the name tells."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Columns to leave out, such as identifiers."),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Columns whose numbers are names of categories."),
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="CHAR", help="What stands between the values of CSV.")
]
Decimal = Annotated[
    str, typer.Option(metavar="CHAR", help="What stands before the decimals of numbers in CSV.")
]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Encoding of text files.")]
Features = Annotated[
    int | None,
    typer.Option("--features", metavar="N", help="Number of features of svmlight rows."),
]
MaxCategories = Annotated[
    int, typer.Option(metavar="N", help="Most categories of a column of texts.")
]
Dense = Annotated[
    bool,
    typer.Option("--dense", help="Make sparse features dense, for learners that need it."),
]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", metavar="N", help="Processes; -1 for one per core.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seeds everything.")]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CLASS",
        help="Full name of a class that MODEL may hold, beyond those that are safe. May be "
        "repeated.",
    ),
]


def listed(values: list[str] | None) -> list[str]:
    """Give the names of an option: repeated, or with commas between them."""
    parts = [part.strip() for value in values or [] for part in value.split(",")]
    return [part for part in parts if part]


def _labels(values: list[str] | None) -> Any:
    """Give labels as `fgfm.data.load` takes them."""
    names = listed(values)
    if not names:
        return None
    if len(names) == 1:
        return int(names[0]) if re.fullmatch(r"-?[0-9]+", names[0]) else names[0]
    return names


def data_options(
    labels: list[str] | None,
    separator: str | None,
    format: str | None,
    drop: list[str] | None,
    categorical: list[str] | None,
    delimiter: str | None,
    encoding: str,
    features: int | None,
    max_categories: int | None = None,
    decimal: str = ".",
) -> dict[str, Any]:
    """Give the arguments of `fgfm.data.load`."""
    if delimiter in ("\\t", "tab"):
        delimiter = "\t"
    how = {}
    if max_categories is not None:
        from fgfm.data import FeatureEncoder

        how["encoder"] = FeatureEncoder(max_categories=max_categories)
    return how | {
        "labels": _labels(labels),
        "separator": separator,
        "format": format,
        "drop": listed(drop),
        "categorical": listed(categorical),
        "delimiter": delimiter,
        "decimal": decimal,
        "encoding": encoding,
        "n_features": features,
    }


def rows_of_split(data: Dataset, split: str | None) -> Dataset:
    """Give the rows of a part of the file's own split; all where none is asked for."""
    if split is None:
        return data
    if split not in ("train", "test"):
        raise ValueError(f"--split is {split!r}: it must be train or test")
    rows = data.train if split == "train" else data.test
    if rows is None:
        raise ValueError(f"{data.source} says nothing of rows to {split}: leave out --split")
    return data.rows(rows)


def load_data(path: Path, options: dict[str, Any]) -> Dataset:
    """Read a data set; where that fails, name options as the command line does."""
    from fgfm.data import DataError, load

    try:
        return load(path, **options)
    except ValueError as error:
        raise DataError(_ARGUMENT.sub(_option, str(error))) from error


def _option(found: re.Match[str]) -> str:
    name = {"n_features": "features"}.get(found[1], found[1]).replace("_", "-")
    return f"--{name}{' ' if found[2] is None and found[3] else ''}"


def load_labelled(path: Path, options: dict[str, Any], dense: bool = False) -> Dataset:
    """Read a data set that must have labels."""
    from fgfm.data import DataError

    data = load_data(path, options)
    if data.Y is None:
        raise DataError(f"{path}: nothing says which columns are labels: give --labels")
    number = options.get("labels")
    if isinstance(number, int) and str(number) in (data.label_names or ()) + (
        data.feature_names or ()
    ):
        raise DataError(
            f"{path}: --labels {number} is a number of columns, and the name of one: write "
            f"'[{str(number)[0]}]{str(number)[1:]}' for the column"
        )
    return as_dense(data) if dense else data


def as_dense(data: Dataset) -> Dataset:
    """Make features dense, now and whenever the encoder is used."""
    from scipy import sparse

    if not sparse.issparse(data.X):
        return data
    assert data.encoder is not None
    data.encoder.sparse_ = False
    return replace(data, X=data.X.toarray())


def check_target(path: Path, option: str = "-o", others: Sequence[Path] = ()) -> None:
    """Raise if a file cannot be written, before hours are spent on what it is to hold.

    Nor may it be one of the other files that a command reads or writes.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        return  # a pipe or a device
    for other in others:
        if os.path.realpath(other) == os.path.realpath(path):
            raise ValueError(f"{option} is {path}, which {other} is too: they must be two files")
    folder = path.parent
    if path.is_dir():
        raise ValueError(f"{option} is {path}, a folder: it must be a file")
    if not folder.is_dir():
        raise ValueError(f"{option} is {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{option} is {path}: the folder {folder} cannot be written to")
