"""``fgfm predict``: label sets for the rows of a file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from fgfm._utils.text import clipped, counted
from fgfm._utils.validation import check_choice
from fgfm.cli import _options as opt
from fgfm.cli._console import note, plain_errors, progress, say
from fgfm.cli._data import check_targets, unsure_note
from fgfm.cli._models import LoadedModel, load_model

if TYPE_CHECKING:
    from fgfm.io import Dataset

__all__ = ["EPILOG", "predict"]

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

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="File saved by fgfm fit.")]
Features = Annotated[Path, typer.Argument(metavar="DATA", help="File of features.")]
Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Label sets: .csv, .tsv, .jsonl or .parquet; - is standard output, the default "
        "without --proba.",
    ),
]
Proba = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Probability of each label: .csv, .tsv, .jsonl or .parquet; - is standard output.",
    ),
]
NewBeta = Annotated[
    float | None, typer.Option(metavar="B", help="Replaces the beta of the model.")
]
NewAverage = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="F-measure to maximise, if not that of the model: samples, macro, weighted or micro.",
    ),
]


@plain_errors
@opt.with_options(opt.text_options)
def predict(
    context: typer.Context,
    model: Model,
    data: Features,
    out: Out = None,
    proba: Proba = None,
    output_format: opt.OutputFormat = None,
    ids: opt.Ids = None,
    wide: opt.Wide = False,
    separator: opt.OutputSeparator = ";",
    average: NewAverage = None,
    beta: NewBeta = None,
    min_labels: opt.MinLabels = None,
    max_labels: opt.MaxLabels = None,
    constraints: opt.Constraints = None,
    format: opt.Format = None,
    **options: Any,
) -> None:
    """Predict the label sets of the rows of a file.

    Each row gets its labels and their expected F-measure. Labels in DATA, and columns that
    training did not have, are ignored. CSV, TSV and Parquet are read in blocks of rows, so that
    DATA may be larger than the memory.
    """
    start = time.perf_counter()
    out = "-" if out is None and proba is None else out
    check_targets(context.params | {"out": out}, "out", "proba")
    loaded = load_model(model)
    average = loaded.classifier.average if average is None else average
    check_choice(average, "average", tuple(opt.EXPECTED))
    loaded.set_decision({name: context.params[name] for name in _DECISION})
    params = context.params | {"average": average}
    written = _Writer(loaded, out, proba, params)
    with progress("rows predicted") as show, written:
        for rows in _blocks(loaded, data, params):
            written.predict(rows)
            show(written.rows)
    beta, n = float(loaded.classifier.beta), written.rows
    summary = f"{counted(n, 'row')} in {time.perf_counter() - start:.1f} s"
    if out is not None and n:
        expected_f = written.expected_f / written.problems
        summary += f", {opt.EXPECTED[average].format(f'F{beta:g}')} {expected_f:.3f}"
        if average == "samples":
            note(unsure_note(expected_f, written.sizes / n, written.labels, beta))
    files = [clipped(name, 40) for name in (out, proba) if name not in (None, "-")]
    say(summary + (f": {', '.join(files)}" if files else ""))


def _blocks(loaded: LoadedModel, path: Path, params: Mapping[str, Any]) -> Iterator[Dataset]:
    """Read a file in small blocks of rows; in one if its rows are decided together."""
    from fgfm._utils.blocks import row_blocks

    arguments = opt.file_arguments(params)
    read: Iterable[Dataset]
    if params["average"] != "samples":
        read = [loaded.load(path, arguments)]
    else:
        read = loaded.load_blocks(path, arguments)
    for block in read:
        if params["average"] != "samples":
            yield block
        else:
            row_bytes = max(8 * len(loaded.label_names), _ROW_BYTES)
            yield from map(block.rows, row_blocks(block.X.shape[0], row_bytes))


class _Writer(ExitStack):
    """The files of the label sets and of the probabilities, and sums over their rows."""

    def __init__(
        self, loaded: LoadedModel, out: str | None, proba: str | None, params: Mapping[str, Any]
    ) -> None:
        from fgfm.io import LabelSetWriter, ProbabilityWriter

        super().__init__()
        self.loaded, self.average = loaded, params["average"]
        self.label_sets = self.probabilities = None
        names, format = loaded.label_names, params["output_format"]
        if out is not None:
            style = {"separator": params["separator"], "wide": params["wide"]}
            self.label_sets = LabelSetWriter(out, names, format=format, **style)
        if proba is not None:  # the format is that of -o, if both are given
            format = format if out is None else None
            self.probabilities = ProbabilityWriter(proba, names, format=format)
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
