"""``fgfm fit``: fit a model to a data file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fgfm._utils.text import clipped
from fgfm.cli import _options as opt
from fgfm.cli._console import STAGES, echo, format_table, note, plain_errors, progress
from fgfm.cli._data import (
    check_targets,
    column_lines,
    label_notes,
    labels_line,
    load_table,
)
from fgfm.cli._models import label_frame, make_model, require_skops

__all__ = ["EPILOG", "fit"]

EPILOG = """\b
Examples:
  fgfm fit films.csv --labels 'genre*' -o films.fgfm
  fgfm fit films.csv --labels genres -o films.fgfm         lists: a;b
  fgfm fit films.csv --labels genres --average macro -o films.fgfm
  fgfm fit films.csv --labels genres --text title --drop url -o films.fgfm
  fgfm fit birds.arff --learner forest -o birds.fgfm

In Python, fgfm.load("films.fgfm").predict(frame) returns the same label sets.
"""
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="MODEL", help="File to save the model to.")
]


@plain_errors
@opt.with_options(opt.label_options, opt.model_options, opt.column_options, opt.text_options)
def fit(
    context: typer.Context,
    data: opt.Data,
    out: Out,
    average: opt.Average = "samples",
    **options: Any,
) -> None:
    """Fit a model to a data file.

    The model predicts the label sets of largest expected F-measure. It is saved together with the
    encoding of the columns (numbers, categories, dates, texts, missing values), so that fgfm
    predict reads further files in the same way. The kind of each column is found from its values
    and printed; --text, --category, --number and --date declare it, --drop and --ids leave columns
    out.
    """
    require_skops()
    check_targets(context.params, "out")
    echo(_fit_file(data, out, context.params))


def _fit_file(path: Path, out: Path, params: Mapping[str, Any]) -> str:
    """Fit and save a model; return a summary."""
    import numpy as np

    from fgfm import save
    from fgfm._utils.progress import report_progress

    start = time.perf_counter()
    with progress(f"reading {clipped(path.name, 50)}", steps=True):
        data, encoder = load_table(path, params)
        assert data.Y is not None  # `load_table` requires labels
        model = make_model(data, encoder, params)
    read_seconds = time.perf_counter() - start
    with (
        progress(STAGES["models"], steps=True) as show,
        report_progress(lambda stage, done, total: show(done, total, STAGES.get(stage, stage))),
    ):
        model.fit(data.X, label_frame(data.Y, data.label_names))
    encoder = model.estimator_.steps[0][1]
    encoder.zero_based_ = data.zero_based  # how further svmlight files are numbered
    save(model, out)
    for text in label_notes(data.Y, data.label_names):
        note(text)
    columns = column_lines(encoder, data.label_names)
    columns += labels_line(data.label_form, data.label_names)
    (n, p), m = data.X.shape, len(data.label_names)
    summary = {
        "data": clipped(str(path), 60),
        "rows": str(n),
        "features": str(p if encoder.columns_ is None else len(encoder.get_feature_names_out())),
        "labels": f"{m}, {float(np.nansum(data.Y)) / n:.2f} per row",
        "learner": params["learner"],
        "model": f"{clipped(str(out), 50)}, {out.stat().st_size / 1e6:.2f} MB",
        "time": f"{time.perf_counter() - start:.1f} s (reading: {read_seconds:.1f} s)",
    }
    lines = format_table(list(summary.items()), gap=" ")
    return "\n".join([*columns, "", *lines] if columns else lines)
