"""``fgfm predict``: label sets for the rows of a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from fgfm._utils.text import clipped, counted
from fgfm._utils.validation import check_choice
from fgfm.cli._console import plain_errors, rows_counter, say
from fgfm.cli._inputs import check_target, split_rows
from fgfm.cli._limits import ConstraintsFile, MaxLabels, MinLabels
from fgfm.cli._models import LoadedModel, load_model
from fgfm.cli._options import (
    EXPECTED,
    Format,
    OutputSeparator,
    Trust,
    Wide,
    file_arguments,
    split_names,
    text_options,
    with_options,
)
from fgfm.cli._sanity import unsure_note

if TYPE_CHECKING:
    from fgfm.io import Dataset, LabelSetWriter, ProbabilityWriter

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
_DECISION = ("beta", "zero_division", "nonempty", "min_labels", "max_labels", "constraints")
_MOST_ROWS = 8192  # of a block
_BLOCK_BYTES = 1 << 22

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
        help="Probability of each label: .csv, .tsv or .parquet; - is standard output.",
    ),
]
OutputFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT", help="Format of the output; by default it follows from the file name."
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS", help="Columns of DATA to copy to the output: names separated by commas."
    ),
]
NewBeta = Annotated[
    float | None, typer.Option(metavar="B", help="Replaces the beta of the model.")
]
NewZeroDivision = Annotated[
    float | None, typer.Option(metavar="V", help="Replaces zero_division of the model.")
]
NewAverage = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="F-measure to maximise, if not that of the model: samples, macro, weighted or micro.",
    ),
]
NewNonempty = Annotated[
    str | None,
    typer.Option(metavar="WHEN", help="Replaces nonempty of the model: auto, yes or no."),
]
Split = Annotated[
    str | None,
    typer.Option(metavar="PART", help="test: use only the test rows of a file with a split."),
]


@plain_errors
@with_options(text_options)
def predict(
    context: typer.Context,
    model: Model,
    data: Features,
    out: Out = None,
    proba: Proba = None,
    output_format: OutputFormat = None,
    ids: Ids = None,
    wide: Wide = False,
    separator: OutputSeparator = ";",
    average: NewAverage = None,
    beta: NewBeta = None,
    zero_division: NewZeroDivision = None,
    nonempty: NewNonempty = None,
    min_labels: MinLabels = None,
    max_labels: MaxLabels = None,
    constraints: ConstraintsFile = None,
    split: Split = None,
    trust: Trust = None,
    format: Format = None,
    **options: Any,
) -> None:
    """Predict the label sets of the rows of a file.

    Each row gets its labels and their expected F-measure. Labels in DATA, and columns that
    training did not have, are ignored. CSV, TSV and Parquet are read in blocks of rows, so that
    DATA may be larger than the memory.
    """
    start = time.perf_counter()
    if out is None and proba is None:
        out = "-"
    _check_targets(out, proba, [model, data])
    loaded = load_model(model, trust or [])
    average = loaded.classifier.average if average is None else average
    check_choice(average, "average", tuple(EXPECTED))
    loaded.set_decision({name: context.params[name] for name in _DECISION})
    totals = _predict_file(loaded, data, out, proba, context.params | {"average": average})
    n, beta = totals.rows, float(loaded.classifier.beta)
    summary = f"{counted(n, 'row')} in {time.perf_counter() - start:.1f} s"
    if out is not None and n:
        expected_f = totals.expected_f / totals.problems
        summary += f", {EXPECTED[average].format(f'F{beta:g}')} {expected_f:.3f}"
        if average == "samples":
            unsure = unsure_note(expected_f, totals.sizes / n, totals.labels / totals.first, beta)
            if unsure:
                say(f"fgfm: note: {unsure}")
    files = [clipped(name, 40) for name in (out, proba) if name not in (None, "-")]
    say(summary + (f": {', '.join(files)}" if files else ""))


def _check_targets(out: str | None, proba: str | None, inputs: list[Path]) -> None:
    """Raise if a target cannot be written or is another file of the command."""
    if out == proba == "-":
        raise ValueError("-o and --proba are both -: they must be two files")
    others = list(inputs)
    for target, option in ((out, "-o"), (proba, "--proba")):
        if target is not None and target != "-":
            check_target(Path(target), option, others)
            others.append(Path(target))


def _predict_file(
    loaded: LoadedModel,
    data: Path,
    out: str | None,
    proba: str | None,
    params: Mapping[str, Any],
) -> _Totals:
    """Write label sets and probabilities; return sums over the rows."""
    from fgfm.io import LabelSetWriter, ProbabilityWriter

    names = loaded.label_names
    label_sets, probabilities = None, None
    if out is not None:
        label_sets = LabelSetWriter(
            out,
            names,
            format=params["output_format"],
            separator=params["separator"],
            wide=params["wide"],
        )
    if proba is not None:
        format = params["output_format"] if out is None else None  # else it is that of -o
        probabilities = ProbabilityWriter(proba, names, format=format)
    arguments = file_arguments(params) | {"ids": split_names(params["ids"])}
    totals = _Totals()
    with ExitStack() as stack:
        show = stack.enter_context(rows_counter("rows predicted"))
        for writer in (label_sets, probabilities):
            if writer is not None:
                stack.enter_context(writer)
        blocks: Iterable[Dataset] = loaded.load_blocks(data, arguments)
        if params["average"] != "samples" or params["split"] is not None:
            whole = loaded.load(data, arguments)
            blocks = [whole.rows(split_rows(whole, params["split"]))]
        for rows in blocks:
            _write_predictions(
                loaded, rows, params["average"], label_sets, probabilities, totals, show
            )
    return totals


class _Totals:
    """Sums over the rows."""

    def __init__(self) -> None:
        self.rows = 0
        self.expected_f = 0.0
        self.problems = 0  # with an expected F-measure: rows, labels, or all entries
        self.sizes = 0.0  # of the predicted sets
        self.labels = 0.0  # expected in the first block
        self.first = 0  # rows of the first block


def _write_predictions(
    loaded: LoadedModel,
    rows: Dataset,
    average: str,
    label_sets: LabelSetWriter | None,
    probabilities: ProbabilityWriter | None,
    totals: _Totals,
    show: Callable[[int], None],
) -> None:
    """Predict and write rows in smaller blocks, unless they are decided together."""
    from fgfm._utils.blocks import row_blocks

    n, m = rows.X.shape[0], len(loaded.label_names)
    by_row = average == "samples"
    preprocessing = None if loaded.model is loaded.classifier else loaded.model[:-1]
    blocks = row_blocks(n, max(8 * m, _BLOCK_BYTES // _MOST_ROWS)) if by_row else [slice(0, n)]
    for block in blocks:
        X = rows.X.iloc[block] if hasattr(rows.X, "iloc") else rows.X[block]
        if preprocessing:  # a pipeline without steps is false
            X = preprocessing.transform(X)
        ids = None if rows.ids is None else rows.ids.slice(block.start, X.shape[0])
        if label_sets is not None:
            labels, expected_f = map(np.asarray, loaded.classifier.decide(X, average=average))
            label_sets.write(labels.reshape(X.shape[0], m), expected_f if by_row else None, ids)
            totals.expected_f += float(np.sum(expected_f))
            totals.problems += np.size(expected_f)
            totals.sizes += float(labels.sum())
        if probabilities is not None or (by_row and not totals.rows):
            # Fitted to one 1-D label, the classifier has a column for each of two classes.
            proba = np.asarray(loaded.classifier.predict_proba(X))[:, -m:]
            if not totals.rows:
                totals.first, totals.labels = X.shape[0], float(proba.sum())
            if probabilities is not None:
                probabilities.write(proba, ids)
        totals.rows += X.shape[0]
        show(totals.rows)
