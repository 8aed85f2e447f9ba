"""``fgfm fit``: fit a model to a data file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fgfm._utils.optional import import_optional
from fgfm._utils.text import clipped, counted
from fgfm.cli._console import STAGES, echo, plain_errors, progress_bar, say
from fgfm.cli._inputs import check_target, column_lines, load_encoded, split_rows
from fgfm.cli._models import label_frame, make_model
from fgfm.cli._options import (
    Average,
    Data,
    TrainSplit,
    column_options,
    label_options,
    model_options,
    run_options,
    text_options,
    with_options,
)
from fgfm.cli._sanity import label_notes, unsure_note

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

MissingLabels = Annotated[
    bool,
    typer.Option(
        "--missing-labels",
        help="A blank cell is a label that was not observed; otherwise it is no label.",
    ),
]


@plain_errors
@with_options(label_options, model_options, column_options, text_options, run_options)
def fit(
    context: typer.Context,
    data: Data,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="MODEL", help="File to save the model to.")
    ],
    split: TrainSplit = None,
    average: Average = "samples",
    missing_labels: MissingLabels = False,
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

    import_optional("skops.io", "saving and loading models", "cli")  # before the long fit
    check_target(out, "-o", [path])
    start = time.perf_counter()
    data, encoder, X = load_encoded(path, params)
    model = make_model(data, encoder, X, params)
    rows = split_rows(data, split)
    assert data.Y is not None  # `load_encoded` requires labels
    X, Y = X[rows], data.Y[rows]
    notes = label_notes(Y, data.label_names)
    read_seconds = time.perf_counter() - start
    with (
        progress_bar(STAGES["label factors" if params["factors"] == "ilf" else "models"]) as show,
        report_progress(lambda stage, done, total: show(done, total, STAGES.get(stage, stage))),
    ):
        model.fit(X, label_frame(Y, data.label_names))
    save(Pipeline([("encoder", encoder), *model.steps]), out)
    seconds = time.perf_counter() - start
    few = X[:_SAMPLE]
    few = model[:-1].transform(few) if len(model) > 1 else few
    found = model[-1].decide(few, average="samples")
    per_row = float(np.nansum(Y)) / len(Y)
    size = float(found.labels.sum() / len(found.labels))
    unsure = unsure_note(float(found.expected_f.mean()), size, per_row, params["beta"])
    for note in [*notes, *([unsure] if unsure else [])]:
        say(f"fgfm: note: {note}")
    sizes = [len(factor) for factor in model[-1].factors_]
    columns = column_lines(encoder, data.label_names)
    lines = [
        *columns,
        *([""] if columns else []),
        f"data     {clipped(str(path), 60)}",
        f"rows     {X.shape[0]}",
        f"features {X.shape[1]}",
        f"labels   {Y.shape[1]}, {per_row:.2f} per row",
        f"factors  {len(sizes)} (largest: {counted(max(sizes), 'label')})",
        f"learner  {clipped(params['learner'], 50)}, {params['method']}",
        f"model    {clipped(str(out), 50)}, {out.stat().st_size / 1e6:.2f} MB",
        f"time     {seconds:.1f} s (reading: {read_seconds:.1f} s)",
    ]
    return "\n".join(lines)
