"""Options that several commands share, and the values of their texts.

A group of options is the signature of a function; `with_options` appends it to that of a command.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from fgfm.cli._learners import LEARNERS
from fgfm.io import FORMATS

__all__ = [
    "EXPECTED",
    "column_options",
    "dataset_arguments",
    "file_arguments",
    "given_options",
    "label_columns",
    "label_options",
    "model_options",
    "read_flag",
    "split_names",
    "text_options",
    "with_options",
]

C = TypeVar("C", bound=Callable[..., Any])

# The file and its columns.
Data = Annotated[Path, typer.Argument(metavar="DATA", help="File of features and labels.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        "-l",
        metavar="LABELS",
        help="Label columns: names separated by commas, a pattern such as 'genre*', or a number: "
        "the first N columns, or the last N if it is negative. May be repeated. They hold lists, "
        "0 and 1, or names of labels.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Separator of label lists; by default ; | or , is found."),
]
MissingLabels = Annotated[
    bool,
    typer.Option(
        "--missing-labels",
        help="A blank cell is a label that was not observed, otherwise no label. fgfm fit learns "
        "from the other labels of such rows; other commands leave the rows out.",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help=f"Format of DATA: {', '.join(FORMATS)}; by default it follows from the file name.",
    ),
]
ProbsFormat = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", help="Format of PROBS: csv, tsv, parquet, jsonl, npy or npz."
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns that identify rows: names separated by commas; as all options on columns, "
        "it may be repeated. They are neither features nor labels, are copied to the output, and "
        "match the rows of two files.",
    ),
]
Drop = Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns to leave out.")]
Text = Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns of free text.")]
Category = Annotated[
    list[str] | None, typer.Option(metavar="COLUMNS", help="Columns that are categories.")
]
Number = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Columns of numbers, even if they look like ids."),
]
Date = Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns of dates.")]
Delimiter = Annotated[
    str | None, typer.Option(metavar="CHAR", help="Delimiter of CSV; by default it is detected.")
]
Decimal = Annotated[str, typer.Option(metavar="CHAR", help="Decimal mark of numbers in CSV.")]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Encoding of text files.")]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        show_default=False,
        help="Whether the first row of CSV has the names of the columns; if it has only numbers, "
        "one of the two is needed.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="A cell that is not a number, in a column of numbers, is an error; otherwise it is "
        "taken as missing, with a warning.",
    ),
]

# What is written.
Wide = Annotated[bool, typer.Option("--wide", help="Write a column of 0 and 1 for each label.")]
OutputSeparator = Annotated[
    str,
    typer.Option(
        "--separator", metavar="TEXT", help="Separator of the labels of a row in the output."
    ),
]
OutputFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="Format of the output: csv, tsv, jsonl or parquet; by default it follows from the "
        "file name.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print all numbers as JSON.")]

# The model, and the decision.
Learner = Annotated[
    str, typer.Option("--learner", "-e", metavar="NAME", help=f"Learner: {', '.join(LEARNERS)}.")
]
Calibration = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Calibration of probabilities: auto, sigmoid, isotonic or none."
    ),
]
Average = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="F-measure to maximise: samples (of each row), macro (the mean over labels), "
        "weighted (by the number of positives) or micro (of all rows and labels together).",
    ),
]
EXPECTED = {  # the expected measure of a file, by average
    "samples": "mean expected {}",
    "macro": "mean expected {} of labels",
    "weighted": "mean expected {} of labels",
    "micro": "expected {} of all labels",
}
Logits = Annotated[
    bool, typer.Option("--logits", help="The table has logits instead of probabilities.")
]
Beta = Annotated[float, typer.Option(metavar="B", help="Weight of recall relative to precision.")]
ZeroDivision = Annotated[
    float,
    typer.Option(
        metavar="V", help="F-measure of an empty prediction for an empty true set, from 0 to 1."
    ),
]
Nonempty = Annotated[
    str,
    typer.Option(
        metavar="WHEN",
        help="Assume that no true label set is empty: yes, no, or auto (if none of the training "
        "rows is empty).",
    ),
]
MinLabels = Annotated[
    int | None, typer.Option(metavar="N", help="Least number of labels of a row.")
]
MaxLabels = Annotated[
    int | None, typer.Option(metavar="N", help="Largest number of labels of a row.")
]
Constraints = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="JSON object of constraints on the label set of a row: required, forbidden, groups "
        "(at most one label of each), parents, costs; labels by name or number.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option("--jobs", "-j", metavar="N", help="Number of parallel jobs; -1 uses all cores."),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Random seed.")]


def label_options(
    labels: Labels = None, separator: Separator = None, missing_labels: MissingLabels = False
) -> None:
    """Define the options on the labels of a table."""


def text_options(
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    header: Header = None,
    strict: Strict = False,
) -> None:
    """Define the options on CSV, and on cells that are not valid."""


def column_options(
    drop: Drop = None,
    ids: Ids = None,
    text: Text = None,
    category: Category = None,
    number: Number = None,
    date: Date = None,
    format: Format = None,
    jobs: Jobs = -1,
    seed: Seed = 0,
) -> None:
    """Define the options on the features of a data set, and on the computation."""


def model_options(learner: Learner = "auto", beta: Beta = 1.0) -> None:
    """Define the options on the model to fit."""


def with_options(*groups: Callable[..., None], **defaults: Any) -> Callable[[C], C]:
    """Decorate a command with ``**options``: these are the options of some groups.

    The defaults replace those of the groups.
    """

    def decorate(command: C) -> C:
        own = inspect.signature(command, eval_str=True)
        parameters = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for group in groups:
            parameters += [
                p.replace(default=defaults.get(p.name, p.default))
                for p in inspect.signature(group, eval_str=True).parameters.values()
            ]
        command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return decorate


def given_options(context: typer.Context) -> set[str]:
    """Return the names of the options that were given on the command line."""
    return {
        name
        for name in context.params
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }


def split_names(values: Sequence[str] | None) -> list[str]:
    """Return the names of an option that is repeated or separated by commas."""
    parts = [part.strip() for value in values or () for part in value.split(",")]
    return [part for part in parts if part]


def label_columns(values: Sequence[str] | None) -> int | str | list[str] | None:
    """Return `labels` as `fgfm.io.load` accepts it."""
    names = split_names(values)
    if not names:
        return None
    if len(names) == 1:
        return int(names[0]) if re.fullmatch(r"-?[0-9]+", names[0]) else names[0]
    return names


def read_flag(text: str) -> bool | str:
    """Return the value of the option --nonempty."""
    values: dict[str, bool | str] = {"auto": "auto", "yes": True, "no": False}
    if text not in values:
        raise ValueError(f"--nonempty is {text!r}: it must be auto, yes or no")
    return values[text]


def file_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `fgfm.io.load` on the format of a file, from the options."""
    names = ("format", "decimal", "encoding", "header", "strict")
    delimiter = params["delimiter"]
    return {name: params[name] for name in names} | {
        "delimiter": "\t" if delimiter in ("\\t", "tab") else delimiter,
        "ids": split_names(params["ids"]),
    }


def dataset_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `fgfm.io.load` for features and labels, from the options."""
    return file_arguments(params) | {
        "labels": label_columns(params["labels"]),
        "separator": params["separator"],
        "missing_labels": params["missing_labels"],
        "drop": split_names(params["drop"]),
    }
