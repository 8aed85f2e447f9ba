"""``fgfm predict``: label sets for the rows of a file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
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
    start = time.perf_counter()
    if params["out"] is None and params["proba"] is None:
        params["out"] = "-"
    check_targets(params, "out", "proba")
    loaded = load_model(params["model"])
    if params["average"] is None:
        params["average"] = loaded.classifier.average
    check_choice(params["average"], "average", tuple(opt.EXPECTED))
    loaded.set_decision({name: params[name] for name in _DECISION})
    loaded.classifier.set_params(n_jobs=opt.n_jobs(params))
    written = _Writer(loaded, params)
    with progress("rows predicted") as show, written:
        for rows in _blocks(loaded, params):
            written.predict(rows)
            show(written.rows)
    beta, n = float(loaded.classifier.beta), written.rows
    summary = f"{counted(n, 'row')} in {time.perf_counter() - start:.1f} s"
    if written.label_sets is not None and n:
        expected_f = written.expected_f / written.problems
        summary += f", {opt.EXPECTED[params['average']].format(f'F{beta:g}')} {expected_f:.3f}"
        if params["average"] == "samples":
            note(unsure_note(expected_f, written.sizes / n, written.labels, beta))
    files = [params[name] for name in ("out", "proba") if params[name] not in (None, "-")]
    say(": ".join([summary, *filter(None, [", ".join(clipped(name, 40) for name in files)])]))


def _blocks(loaded: LoadedModel, params: Mapping[str, Any]) -> Iterator[Dataset]:
    """Read a file in small blocks of rows; in one if its rows are decided together."""
    from fgfm._utils.blocks import row_blocks

    arguments = opt.file_arguments(params)
    if params["average"] != "samples":
        yield loaded.load(Path(params["data"]), arguments)
        return
    row_bytes = max(8 * len(loaded.label_names), _ROW_BYTES)
    for block in loaded.load_blocks(Path(params["data"]), arguments):
        yield from map(block.rows, row_blocks(block.X.shape[0], row_bytes))


class _Writer(ExitStack):
    """The files of the label sets and of the probabilities, and sums over their rows."""

    def __init__(self, loaded: LoadedModel, params: Mapping[str, Any]) -> None:
        from fgfm.io import LabelSetWriter, ProbabilityWriter

        super().__init__()
        self.loaded, self.average = loaded, params["average"]
        self.label_sets = self.probabilities = None
        names, format = loaded.label_names, params["output_format"]
        if params["out"] is not None:
            style = {"separator": params["output_separator"], "wide": params["wide"]}
            self.label_sets = LabelSetWriter(params["out"], names, format=format, **style)
            format = None  # if both are written, it is that of -o
        if params["proba"] is not None:
            self.probabilities = ProbabilityWriter(params["proba"], names, format=format)
        self.rows = 0
        self.problems = 0  # with an expected F-measure: rows, labels, or all entries
        self.expected_f = self.sizes = 0.0  # sums; sizes of the predicted sets
        self.labels = 0.0  # expected labels of a row, in the first block

    def __enter__(self) -> _Writer:
        super().__enter__()
        for writer in (self.label_sets, self.probabilities):
            if writer is not None:
                self.enter_context(writer)
        return self

    def predict(self, rows: Dataset) -> None:
        """Predict and write some rows."""
        import numpy as np

        X, n, by_row = rows.X, rows.X.shape[0], self.average == "samples"
        if self.label_sets is not None:
            found = self.loaded.classifier.decide(X, average=self.average)
            labels, expected_f = map(np.asarray, found)
            self.label_sets.write(labels, expected_f if by_row else None, rows.ids)
            self.expected_f += float(np.sum(expected_f))
            self.problems += np.size(expected_f)
            self.sizes += float(labels.sum())
        if self.probabilities is not None or (by_row and not self.rows):
            proba = np.asarray(self.loaded.classifier.predict_proba(X))
            if not self.rows:
                self.labels = float(proba.sum()) / max(1, n)
            if self.probabilities is not None:
                self.probabilities.write(proba, rows.ids)
        self.rows += n
