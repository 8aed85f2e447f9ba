"""``fgfm fit``: fit a model to a data file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

from fgfm._utils.text import clipped
from fgfm.cli import _options as opt
from fgfm.cli._console import STAGES, echo, format_table, note, progress
from fgfm.cli._data import check_targets, column_lines, label_notes, labels_line, load_table
from fgfm.cli._models import label_frame, make_model, require_skops

EPILOG = """\b
Examples:
  fgfm fit films.csv --labels 'genre*' -o films.fgfm
  fgfm fit films.csv --labels genres -o films.fgfm         lists: a;b
  fgfm fit films.csv --labels genres --average macro -o films.fgfm
  fgfm fit films.csv --labels genres --text title --drop url -o films.fgfm
  fgfm fit birds.arff --learner forest -o birds.fgfm

In Python, fgfm.load("films.fgfm").predict(frame) returns the same label sets.
"""
OUT = opt.Option(Path, ..., "MODEL", "File to save the model to.", ("--out", "-o"))


@opt.command(
    f"out {opt.LABELS} average beta learner {opt.COLUMNS} {opt.READING} jobs seed",
    data=opt.DATA,
    out=OUT,
)
def fit(context: typer.Context, params: dict[str, Any]) -> None:
    """Fit a model to a data file.

    The model predicts the label sets of largest expected F-measure. It is saved together with the
    encoding of the columns (numbers, categories, dates, texts, missing values), so that fgfm
    predict reads further files in the same way. The kind of each column is found from its values
    and printed; --text, --category, --number and --date declare it, --drop and --ids leave columns
    out.
    """
    import numpy as np

    from fgfm import save
    from fgfm._utils.progress import report_progress

    require_skops()
    check_targets(params, "out")
    path, out, start = params["data"], params["out"], time.perf_counter()
    with progress(f"reading {clipped(path.name, 50)}", steps=True) as show:
        data, encoder = load_table(path, params)
        assert data.Y is not None  # `load_table` requires labels
        model = make_model(data, encoder, params)
        read_seconds = time.perf_counter() - start
        show(0, 0, STAGES["models"])
        with report_progress(lambda stage, done, of: show(done, of, STAGES.get(stage, stage))):
            model.fit(data.X, label_frame(data.Y, data.label_names))
        show(0, 0, "saving")
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
    echo("\n".join([*columns, "", *lines] if columns else lines))
