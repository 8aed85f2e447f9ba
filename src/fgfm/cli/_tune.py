"""``fgfm tune``: a decider from validation probabilities and true labels."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fgfm._utils.optional import import_optional
from fgfm._utils.text import clipped, counted
from fgfm.cli._console import echo, json_text, plain_errors, progress_bar, rows_counter, spinner
from fgfm.cli._inputs import check_target
from fgfm.cli._limits import ConstraintsFile, MaxLabels, MinLabels, read_constraints
from fgfm.cli._options import (
    Average,
    Beta,
    Calibration,
    Jobs,
    Json,
    Logits,
    Nonempty,
    ProbsFormat,
    Seed,
    ZeroDivision,
    file_arguments,
    read_flag,
    split_names,
    text_options,
    with_options,
)

if TYPE_CHECKING:
    from fgfm import FDecider
    from fgfm.data import Validation
    from fgfm.evaluation import DeciderEvaluation

__all__ = ["EPILOG", "tune"]

EPILOG = """\b
Examples:
  fgfm tune valid.csv truth.csv -o decider.fgfm
  fgfm tune valid.parquet truth.jsonl --ids doc --average macro -o d.fgfm
  fgfm decide new.csv --with decider.fgfm -o sets.csv

PROBS is a table of probabilities as fgfm decide reads it, of rows that the
model was not trained on. LABELS has the true labels of the same rows, as

\b
- a table of 0 and 1 with the same columns: .csv, .tsv (or .gz), .parquet,
  .jsonl, .npy or sparse .npz;
- label sets as fgfm decide writes them, in a column 'labels': .csv, .tsv,
  .jsonl or .parquet;
- a data set that declares its labels: .arff, .svm, .xmc or .npz.

Label columns are matched by name, and rows by the --ids that both files have,
else by their order. Both files are read into memory.
"""
_MOST_ROWS = 20_000  # of the cross-validation
_RULES = {"decider": "decider", "half": "p > 0.5", "threshold": "p > t, one threshold"}

Probabilities = Annotated[
    Path,
    typer.Argument(
        metavar="PROBS", help="Table of probabilities of validation rows; - is standard input."
    ),
]
TrueLabels = Annotated[
    Path, typer.Argument(metavar="LABELS", help="True labels of the validation rows.")
]
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="DECIDER", help="File to save the decider to.")
]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns of either file that are not labels; those of both match the rows.",
    ),
]
Folds = Annotated[
    int, typer.Option(metavar="N", help="Folds of the cross-validation; 0 for none.")
]
LabelsFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT", help="Format of LABELS; by default it follows from the file name."
    ),
]
Separator = Annotated[str, typer.Option(metavar="TEXT", help="Separator of label sets in LABELS.")]


@plain_errors
@with_options(text_options)
def tune(
    context: typer.Context,
    probs: Probabilities,
    labels: TrueLabels,
    out: Out,
    average: Average = "samples",
    beta: Beta = 1.0,
    calibration: Calibration = "auto",
    nonempty: Nonempty = "auto",
    zero_division: ZeroDivision = 1.0,
    min_labels: MinLabels = None,
    max_labels: MaxLabels = None,
    constraints: ConstraintsFile = None,
    logits: Logits = False,
    ids: Ids = None,
    folds: Folds = 5,
    format: ProbsFormat = None,
    labels_format: LabelsFormat = None,
    separator: Separator = ";",
    jobs: Jobs = -1,
    seed: Seed = 0,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Fit a decider to probabilities and true labels.

    The decider learns from validation rows to calibrate the probabilities, and how many labels a
    row has; for macro and micro it keeps thresholds. fgfm decide --with applies it to further
    rows. Its F-measure by cross-validation on the validation rows is printed beside that of
    thresholds on the probabilities.
    """
    from fgfm import save

    import_optional("skops.io", "saving and loading models", "store")  # before the long fit
    check_target(out, "-o", [probs, labels])
    start = time.perf_counter()
    rows = _read(probs, labels, context.params)
    _check_rows(rows, probs, labels)
    decider = _make_decider(rows, context.params)
    values = _fit(decider, rows, context.params)
    save(decider, out)
    values |= {"seconds": time.perf_counter() - start}
    description = {"probabilities": str(probs), "labels_file": str(labels), "decider": str(out)}
    if as_json:
        echo(json_text(description | values, indent=1))
    else:
        echo(_as_table(description | values, out.stat().st_size))


def _read(probs: Path, labels: Path, params: Mapping[str, Any]) -> Validation:
    from fgfm.data import load_validation

    with rows_counter("rows read") as progress:
        return load_validation(
            probs,
            labels,
            ids=split_names(params["ids"]),
            logits=params["logits"],
            **file_arguments(params),
            labels_format=params["labels_format"],
            separator=params["separator"],
            progress=progress,
        )


def _check_rows(rows: Validation, probs: Path, labels: Path) -> None:
    """Raise if there is nothing to learn from."""
    from fgfm.data import DataError

    if rows.proba.shape[0] < 2:
        raise DataError(
            "there is 1 row: at least 2 are needed, and some hundreds to learn from", source=probs
        )
    if not rows.Y.sum():
        raise DataError(
            "there is no positive label: rows without labels cannot show how probable labels are",
            source=labels,
        )


def _make_decider(rows: Validation, params: Mapping[str, Any]) -> FDecider:
    """Return the unfitted decider; a table of one label is that of a binary classifier."""
    from fgfm import FDecider

    constraints = params["constraints"]
    return FDecider(
        beta=params["beta"],
        average="macro" if len(rows.label_names) == 1 else params["average"],
        calibration=None if params["calibration"] == "none" else params["calibration"],
        nonempty=read_flag(params["nonempty"], "--nonempty"),
        zero_division=params["zero_division"],
        min_labels=params["min_labels"] or 0,
        max_labels=params["max_labels"],
        constraints=None if constraints is None else read_constraints(constraints),
        logits=params["logits"],
        n_jobs=None if params["jobs"] == 1 else params["jobs"],
    )


def _fit(decider: FDecider, rows: Validation, params: Mapping[str, Any]) -> dict[str, Any]:
    """Fit the decider; return the numbers of the report."""
    import numpy as np
    from scipy import sparse

    proba, Y = rows.proba, rows.Y
    n, m = proba.shape
    if not sparse.issparse(Y):
        pandas = import_optional("pandas", "fitting with the names of labels", "data")
        Y = pandas.DataFrame(Y, columns=rows.label_names)
    with spinner(f"fitting the decider to {counted(n, 'row')}"):
        decider.fit(proba, Y)
        expected = float(np.mean(decider.expected_f(proba)))
    evaluation = _cross_validate(decider, proba, Y, params)
    return {
        "rows": n,
        "labels": m,
        "labels_per_row": float(rows.Y.sum()) / n,
        "average": decider.average,
        "beta": float(decider.beta),
        "expected_f": expected,
        "cross_validation": None if evaluation is None else evaluation._asdict(),
    }


def _cross_validate(
    decider: FDecider, proba: Any, Y: Any, params: Mapping[str, Any]
) -> DeciderEvaluation | None:
    """Cross-validate on all rows, or on a sample of many; None if there are too few."""
    import numpy as np

    from fgfm._utils.rows import take_rows
    from fgfm.evaluation import evaluate_decider

    folds = params["folds"]
    with_labels = np.count_nonzero(np.asarray(Y.sum(axis=1)))
    if folds == 0 or proba.shape[0] < 3 or with_labels < 2:
        return None
    if proba.shape[0] > _MOST_ROWS:
        rng = np.random.default_rng(params["seed"])
        chosen = np.sort(rng.choice(proba.shape[0], _MOST_ROWS, replace=False))
        proba, Y = proba[chosen], take_rows(Y, chosen)
    with progress_bar("cross-validation: folds") as show:
        return evaluate_decider(
            decider, proba, Y, folds=folds, random_state=params["seed"], progress=show
        )


def _as_table(values: Mapping[str, Any], size: int) -> str:
    f = f"F{values['beta']:g}"
    name = {"samples": f"{f} of rows"}.get(values["average"], f"{values['average']} {f}")
    lines = [
        f"probabilities  {clipped(values['probabilities'], 60)}",
        f"true labels    {clipped(values['labels_file'], 60)}",
        f"rows           {values['rows']}",
        f"labels         {values['labels']}, {values['labels_per_row']:.2f} per row",
        f"measure        {name}",
        f"expected       {values['expected_f']:.4f}",
    ]
    found = values["cross_validation"]
    if found is not None:
        of_rows = "" if found["n_rows"] == values["rows"] else f" of {found['n_rows']} random rows"
        lines.append(f"obtained       by {found['folds']}-fold cross-validation{of_rows}:")
        lines += [f"  {_RULES[rule]:<22}{f:.4f}" for rule, f in found["f"].items()]
    lines += [
        f"decider        {clipped(values['decider'], 50)}, {size / 1e3:.0f} kB",
        f"time           {values['seconds']:.1f} s",
    ]
    return "\n".join(lines)
