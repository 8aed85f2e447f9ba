"""``fgfm predict``: label sets for the rows of a file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fgfm._utils.text import clipped, counted
from fgfm._utils.validation import check_choice
from fgfm.cli import _options as opt
from fgfm.cli._console import note, progress, say
from fgfm.cli._data import check_targets, unsure_note
from fgfm.cli._models import LoadedModel, load_model

if TYPE_CHECKING:
    from fgfm.io import Dataset

EPILOG = """\b
Examples:
  fgfm predict films.fgfm new.csv -o sets.csv --ids title
  fgfm predict films.fgfm new.csv | head
  fgfm predict films.fgfm new.parquet -o sets.jsonl --beta 2
  fgfm predict films.fgfm new.csv --proba p.csv --ids title
  fgfm predict films.fgfm new.csv --max-labels 3 --constraints rules.json
  fgfm predict films.fgfm new.csv --average macro -o sets.csv

The averages macro and micro decide all rows together: DATA is read into
memory, and no expected F-measure is written beside a row.
"""
_DECISION = ("beta", "min_labels", "max_labels", "constraints")
_ROW_BYTES = 512  # least memory of a row: it limits the rows of a block


def _of_model(name: str) -> opt.Option:
    """Return an option that replaces what the model has."""
    option = opt.OPTIONS[name]
    help = f"{option.help[:-1]}; by default that of the model."
    return option._replace(type=option.type | None, default=None, help=help)


@opt.command(
    f"out proba {opt.OUTPUT} average beta min_labels max_labels constraints ids {opt.READING} "
    "jobs",
    model=opt.Argument("MODEL", "File saved by fgfm fit."),
    data=opt.Argument("DATA", "File of features."),
    out=opt.Option(
        str | None,
        None,
        "FILE",
        "Label sets: .csv, .tsv, .jsonl or .parquet; - is standard output, the default without "
        "--proba.",
        ("--out", "-o"),
    ),
    proba=opt.Option(
        str | None,
        None,
        "FILE",
        "Probability of each label: .csv, .tsv, .jsonl or .parquet; - is standard output.",
    ),
    average=_of_model("average"),
    beta=_of_model("beta"),
)
def predict(context: typer.Context, params: dict[str, Any]) -> None:
    """Predict the label sets of the rows of a file.

    Each row gets its labels and their expected F-measure. Labels in DATA, and columns that
    training did not have, are ignored. CSV, TSV and Parquet are read in blocks of rows, so that
    DATA may be larger than the memory.
    """
    import numpy as np

    start = time.perf_counter()
    if params["out"] is None and params["proba"] is None:
        params["out"] = "-"
    check_targets(params, "out", "proba")
    loaded = load_model(params["model"])
    classifier = loaded.classifier
    average = classifier.average if params["average"] is None else params["average"]
    check_choice(average, "average", tuple(opt.EXPECTED))
    loaded.set_decision({name: params[name] for name in _DECISION})
    classifier.set_params(n_jobs=opt.n_jobs(params))
    n = problems = 0  # rows; those with an expected F-measure: rows, labels, or all entries
    sum_f = size = expected_size = 0.0  # the last is that of a row of the first block
    with progress("rows predicted") as show, ExitStack() as files:
        label_sets, probabilities = _writers(loaded.label_names, params, files)
        for block in _blocks(loaded, params, average):
            rows = classifier._read(block.X)  # the model predicts once
            if label_sets is not None:
                labels, expected_f = map(np.asarray, classifier._decide_rows(rows, average))
                label_sets.write(labels, expected_f if average == "samples" else None, block.ids)
                sum_f += float(np.sum(expected_f))
                problems += np.size(expected_f)
                size += float(labels.sum())
            if probabilities is not None or (average == "samples" and not n):
                proba = np.asarray(classifier._proba_of_rows(rows))
                expected_size = expected_size if n else float(proba.sum()) / max(1, len(proba))
                if probabilities is not None:
                    probabilities.write(proba, block.ids)
            n += block.X.shape[0]
            show(n)
    summary, beta = f"{counted(n, 'row')} in {time.perf_counter() - start:.1f} s", classifier.beta
    if label_sets is not None and n:
        summary += f", {opt.EXPECTED[average].format(f'F{beta:g}')} {sum_f / problems:.3f}"
        if average == "samples":
            note(unsure_note(sum_f / n, size / n, expected_size, beta))
    written = [params[name] for name in ("out", "proba") if params[name] not in (None, "-")]
    say(": ".join([summary, *filter(None, [", ".join(clipped(name, 40) for name in written)])]))


def _blocks(loaded: LoadedModel, params: Mapping[str, Any], average: str) -> Iterator[Dataset]:
    """Read a file in small blocks of rows; in one if its rows are decided together."""
    from fgfm._utils.blocks import row_blocks

    arguments = opt.file_arguments(params)
    if average != "samples":
        yield loaded.load(Path(params["data"]), arguments)
        return
    row_bytes = max(8 * len(loaded.label_names), _ROW_BYTES)
    for block in loaded.load_blocks(Path(params["data"]), arguments):
        yield from map(block.rows, row_blocks(block.X.shape[0], row_bytes))


def _writers(names: Sequence[str], params: Mapping[str, Any], files: ExitStack) -> tuple[Any, Any]:
    """Open the files of label sets and of probabilities, None for one that is not wanted."""
    from fgfm.io import LabelSetWriter, ProbabilityWriter

    label_sets = probabilities = None
    format = params["output_format"]
    if params["out"] is not None:
        style = {"separator": params["output_separator"], "wide": params["wide"]}
        label_sets = LabelSetWriter(params["out"], names, format=format, **style)
        format = None  # if both are written, it is that of -o
    if params["proba"] is not None:
        probabilities = ProbabilityWriter(params["proba"], names, format=format)
    for writer in filter(None, (label_sets, probabilities)):
        files.enter_context(writer)
    return label_sets, probabilities
