"""``fgfm fit``: fit a model to a data file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fgfm._utils.text import clipped, counted
from fgfm.cli import _options as opt
from fgfm.cli._console import STAGES, echo, format_table, note, plain_errors, progress, say
from fgfm.cli._data import (
    check_targets,
    column_lines,
    label_notes,
    labels_line,
    load_encoded,
    split_rows,
    unsure_note,
)
from fgfm.cli._models import label_frame, make_model, require_skops

__all__ = ["EPILOG", "fit"]

_SAMPLE = 1000  # training rows for which label sets are decided after the fit
EPILOG = """\b
Examples:
  fgfm fit films.csv --labels 'genre*' -o films.fgfm
  fgfm fit films.csv --labels genres -o films.fgfm         lists: a;b
  fgfm fit films.csv --labels genres --average macro -o films.fgfm
  fgfm fit films.csv --labels genres --text title --drop url -o films.fgfm
  fgfm fit scene.npz --split train --factors ilf -o scene.fgfm
  fgfm fit birds.arff -e forest --set n_estimators=300 -o birds.fgfm
  fgfm fit text.svm -e sklearn.linear_model:RidgeClassifier -o text.fgfm

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
    split: opt.TrainSplit = None,
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
    from fgfm import store

    require_skops()
    check_targets(context.params, "out")
    echo(_fit_file(data, out, split, context.params))
    refused = store.foreign_classes(out)
    if refused:
        names = " ".join(f"--trust {name}" for name in refused)
        say(f"fgfm: to load the model, trust the classes that it holds: {names}")


def _fit_file(path: Path, out: Path, split: str | None, params: Mapping[str, Any]) -> str:
    """Fit and save a model; return a summary."""
    import numpy as np
    from sklearn.pipeline import Pipeline

    from fgfm import save
    from fgfm._utils.progress import report_progress

    start = time.perf_counter()
    data, encoder, X = load_encoded(path, params)
    model = make_model(data, encoder, X, params)
    rows = split_rows(data, split)
    assert data.Y is not None  # `load_encoded` requires labels
    X, Y = X[rows], data.Y[rows]
    read_seconds = time.perf_counter() - start
    stage = STAGES["label factors" if params["factors"] == "ilf" else "models"]
    with (
        progress(stage, steps=True) as show,
        report_progress(lambda stage, done, total: show(done, total, STAGES.get(stage, stage))),
    ):
        model.fit(X, label_frame(Y, data.label_names))
    save(Pipeline([("encoder", encoder), *model.steps]), out)
    seconds = time.perf_counter() - start
    few = X[:_SAMPLE]
    few = model[:-1].transform(few) if len(model) > 1 else few
    found = model[-1].decide(few, average="samples")
    per_row = float(np.nansum(Y)) / len(Y)
    for text in label_notes(Y, data.label_names):
        note(text)
    size = float(found.labels.sum() / len(found.labels))
    note(unsure_note(float(found.expected_f.mean()), size, per_row, params["beta"]))
    sizes = [len(factor) for factor in model[-1].factors_]
    columns = column_lines(encoder, data.label_names)
    columns += labels_line(data.label_form, data.label_names)
    summary = {
        "data": clipped(str(path), 60),
        "rows": str(X.shape[0]),
        "features": str(X.shape[1]),
        "labels": f"{Y.shape[1]}, {per_row:.2f} per row",
        "factors": f"{len(sizes)} (largest: {counted(max(sizes), 'label')})",
        "learner": f"{clipped(params['learner'], 50)}, {params['method']}",
        "model": f"{clipped(str(out), 50)}, {out.stat().st_size / 1e6:.2f} MB",
        "time": f"{seconds:.1f} s (reading: {read_seconds:.1f} s)",
    }
    lines = format_table(list(summary.items()), gap=" ")
    return "\n".join([*columns, "", *lines] if columns else lines)
