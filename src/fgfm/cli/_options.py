"""The options of all commands: a table, from which `command` makes the signature of a command."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from fgfm.cli._console import plain_errors
from fgfm.cli._learners import LEARNERS
from fgfm.io import FORMATS

Names = list[str] | None
EXPECTED = {  # the expected measure of a file, by average
    "samples": "mean expected {}",
    "macro": "mean expected {} of labels",
    "weighted": "mean expected {} of labels",
    "micro": "expected {} of all labels",
}


class Argument(NamedTuple):
    """A positional argument: a file."""

    metavar: str
    help: str


class Option(NamedTuple):
    """An option; its flag is its name unless there are `flags`."""

    type: Any
    default: Any
    metavar: str | None
    help: str
    flags: tuple[str, ...] = ()


def _flag(help: str, *flags: str) -> Option:
    return Option(bool, False, None, help, flags)


DATA = Argument("DATA", "File of features and labels.")
PROBS = Argument(
    "PROBS",
    "Table of marginal probabilities, with a column for each label, in any format of tables; - is "
    "standard input. Or a folder of .parquet files.",
)
OPTIONS = {
    # labels
    "labels": Option(
        Names,
        None,
        "LABELS",
        "Label columns: names separated by commas, a pattern such as 'genre*', or a number: the "
        "first N columns, or the last N if it is negative. May be repeated. They hold lists, 0 "
        "and 1, or names of labels.",
        ("--labels", "-l"),
    ),
    "separator": Option(
        str | None, None, "TEXT", "Separator of label lists; by default ; | or , is found."
    ),
    "missing_labels": _flag(
        "A blank cell is a label that was not observed, otherwise no label. fgfm fit learns from "
        "the other labels of such rows; other commands leave the rows out.",
        "--missing-labels",
    ),
    # columns
    "ids": Option(
        Names,
        None,
        "COLUMNS",
        "Columns that identify rows: names separated by commas; as all options on columns, it may "
        "be repeated. They are neither features nor labels, are copied to the output, and match "
        "the rows of two files.",
    ),
    "drop": Option(Names, None, "COLUMNS", "Columns to leave out."),
    "text": Option(Names, None, "COLUMNS", "Columns of free text."),
    "category": Option(Names, None, "COLUMNS", "Columns that are categories."),
    "number": Option(Names, None, "COLUMNS", "Columns of numbers, even if they look like ids."),
    "date": Option(Names, None, "COLUMNS", "Columns of dates."),
    # the file
    "format": Option(
        str | None,
        None,
        "FORMAT",
        f"Format of the file: {', '.join(FORMATS)}; by default it follows from the file name.",
    ),
    "delimiter": Option(str | None, None, "CHAR", "Delimiter of CSV; by default it is detected."),
    "decimal": Option(str, ".", "CHAR", "Decimal mark of numbers in CSV."),
    "encoding": Option(str, "utf-8", "NAME", "Encoding of text files."),
    "header": Option(
        bool | None,
        None,
        None,
        "Whether the first row of CSV has the names of the columns; if it has only numbers, one "
        "of the two is needed.",
        ("--header/--no-header",),
    ),
    "strict": _flag(
        "A cell that is not a number, in a column of numbers, is an error; otherwise it is taken "
        "as missing, with a warning.",
        "--strict",
    ),
    # the model
    "learner": Option(
        str, "auto", "NAME", f"Learner: {', '.join(LEARNERS)}.", ("--learner", "-e")
    ),
    "jobs": Option(int, -1, "N", "Number of parallel jobs; -1 uses all cores.", ("--jobs", "-j")),
    "seed": Option(int, 0, "N", "Random seed."),
    # the decision
    "average": Option(
        str,
        "samples",
        "NAME",
        "F-measure to maximise: samples (of each row), macro (the mean over labels), weighted (by "
        "the number of positives) or micro (of all rows and labels together).",
    ),
    "beta": Option(float, 1.0, "B", "Weight of recall relative to precision."),
    "zero_division": Option(
        float,
        1.0,
        "V",
        "F-measure of an empty prediction for an empty true set, from 0 to 1.",
    ),
    "min_labels": Option(int | None, None, "N", "Least number of labels of a row."),
    "max_labels": Option(int | None, None, "N", "Largest number of labels of a row."),
    "constraints": Option(
        Path | None,
        None,
        "FILE",
        "JSON object of constraints on the label set of a row: required, forbidden, groups (at "
        "most one label of each), parents, costs; labels by name or number.",
    ),
    "logits": _flag("The table has logits instead of probabilities.", "--logits"),
    "scores": _flag("The table has scores of any unit instead of probabilities.", "--scores"),
    # what is written
    "wide": _flag("Write a column of 0 and 1 for each label.", "--wide"),
    "output_separator": Option(
        str, ";", "TEXT", "Separator of the labels of a row in the output.", ("--separator",)
    ),
    "output_format": Option(
        str | None,
        None,
        "FORMAT",
        "Format of the output: csv, tsv, jsonl or parquet; by default it follows from the file "
        "name.",
    ),
    "json": _flag("Print all numbers as JSON.", "--json"),
}
LABELS = "labels separator missing_labels"
COLUMNS = "drop ids text category number date"
READING = "format delimiter decimal encoding header strict"
DECISION = "average beta zero_division min_labels max_labels constraints"
OUTPUT = "output_format output_separator wide"


def command(
    names: str, **own: Argument | Option
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command ``(context, params)`` with arguments and options.

    Its options are those that `names` names, of `own` or of `OPTIONS`, and the others of `own`.
    """
    files = [name for name, given in own.items() if isinstance(given, Argument)]
    table = {name: (OPTIONS | own)[name] for name in [*files, *names.split(), *own]}

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        def run(context: typer.Context, **params: Any) -> None:
            function(context, params)

        parameters = [_parameter("context", typer.Context)]
        for name, given in table.items():
            if isinstance(given, Argument):
                file = typer.Argument(metavar=given.metavar, help=given.help)
                parameters.append(_parameter(name, Annotated[Path, file]))
                continue
            option = typer.Option(*given.flags, metavar=given.metavar, help=given.help)
            kind: Any = Annotated[given.type, option]
            parameters.append(_parameter(name, kind, given.default))
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return plain_errors(run)

    return decorate


def _parameter(name: str, annotation: Any, default: Any = ...) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is ... else default
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def given_options(context: typer.Context) -> set[str]:
    """Return the names of the options that were given on the command line."""
    return {
        name
        for name in context.params
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }


def n_jobs(params: Mapping[str, Any]) -> int | None:
    """Return the number of jobs as scikit-learn takes it."""
    return None if params["jobs"] == 1 else params["jobs"]


def split_names(values: Sequence[str] | None) -> list[str]:
    """Return the names of an option that is repeated or separated by commas."""
    parts = [part.strip() for value in values or () for part in value.split(",")]
    return [part for part in parts if part]


def label_columns(values: Sequence[str] | None) -> int | str | list[str] | None:
    """Return `labels` as `fgfm.io.load` accepts it."""
    names = split_names(values)
    if len(names) == 1:
        return int(names[0]) if re.fullmatch(r"-?[0-9]+", names[0]) else names[0]
    return names or None


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
