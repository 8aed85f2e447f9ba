"""``fgfm fit``: a model from a file of data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from fgfm.cli._console import clipped, counted, plain_errors, progress_bar, say, wrapped
from fgfm.cli._models import LEARNERS, label_frame, make_model
from fgfm.cli._options import (
    Categorical,
    Decimal,
    Delimiter,
    Dense,
    Drop,
    Encoding,
    Features,
    Format,
    Jobs,
    Labels,
    MaxCategories,
    Seed,
    Separator,
    check_target,
    data_options,
    load_labelled,
    rows_of_split,
)

__all__ = [
    "EPILOG",
    "Beta",
    "Calibration",
    "Estimator",
    "Factors",
    "Method",
    "Nonempty",
    "Scale",
    "Setting",
    "ZeroDivision",
    "fit",
]

EPILOG = """\b
Examples:
  fgfm fit films.csv --labels 'genre_*' -o films.fgfm
  fgfm fit films.csv --labels genres --separator ';' -o films.fgfm
  fgfm fit scene.npz --split train --factors ilf -o scene.fgfm
  fgfm fit birds.arff -e forest --set n_estimators=300 -o birds.fgfm
  fgfm fit text.svm -e sklearn.linear_model:RidgeClassifier -o text.fgfm

In Python, fgfm.load("films.fgfm").predict(frame) gives the same label sets.
"""

Estimator = Annotated[
    str,
    typer.Option(
        "--estimator",
        "-e",
        metavar="NAME",
        help=f"Base learner: {', '.join(LEARNERS)}; or package.module:Class.",
    ),
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Parameter of the learner; repeatable."),
]
Factors = Annotated[
    str,
    typer.Option(
        metavar="FACTORS",
        help="Which labels are modelled together: single (all), independent (none), ilf (tests "
        "tell), 'a,b|c', or a file with such lines or JSON of fgfm factors.",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Estimate: reweighted, two-step, tilted, direct or powerset."
    ),
]
Calibration = Annotated[str, typer.Option(metavar="NAME", help="auto, sigmoid, isotonic or none.")]
Beta = Annotated[float, typer.Option(metavar="B", help="Recall counts beta times as much.")]
ZeroDivision = Annotated[
    float,
    typer.Option(metavar="W", help="Worth of no label where there is none, from 0 to 1."),
]
Nonempty = Annotated[
    str,
    typer.Option(
        metavar="WHEN",
        help="No true set is empty: yes, no, or auto, as the training rows are.",
    ),
]
Scale = Annotated[
    bool,
    typer.Option(
        "--scale/--no-scale", help="Scale features: to unit variance, or maximum if sparse."
    ),
]


@plain_errors
def fit(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="File with features and labels.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="File of the model.")],
    estimator: Estimator = "ridge",
    settings: Setting = None,
    factors: Factors = "single",
    method: Method = "reweighted",
    calibration: Calibration = "auto",
    beta: Beta = 1.0,
    zero_division: ZeroDivision = 1.0,
    nonempty: Nonempty = "auto",
    scale: Scale = True,
    labels: Labels = None,
    separator: Separator = None,
    split: Annotated[
        str | None,
        typer.Option(metavar="PART", help="train: only the training rows that DATA names."),
    ] = None,
    format: Format = None,
    drop: Drop = None,
    categorical: Categorical = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    features: Features = None,
    max_categories: MaxCategories = 255,
    dense: Dense = False,
    jobs: Jobs = 1,
    seed: Seed = 0,
) -> None:
    """Fit a model to a file of data.

    The model decides for the label sets of largest expected F-measure. Columns are encoded as
    `fgfm predict` will find them again: numbers, categories, missing values.
    """
    from sklearn.pipeline import Pipeline

    from fgfm import save, store
    from fgfm._utils.progress import report_progress

    store._skops()  # missed now, not after the fit
    check_target(out, "-o", [data])
    start = time.perf_counter()
    options = data_options(
        labels,
        separator,
        format,
        drop,
        categorical,
        delimiter,
        encoding,
        features,
        max_categories,
        decimal,
    )
    rows = rows_of_split(load_labelled(data, options, dense), split)
    model = make_model(
        rows,
        estimator=estimator,
        settings=settings or [],
        factors=factors,
        method=method,
        calibration=calibration,
        beta=beta,
        zero_division=zero_division,
        nonempty=nonempty,
        scale=scale,
        jobs=jobs,
        seed=seed,
    )
    Y = label_frame(rows)
    read = time.perf_counter() - start
    with (
        progress_bar("label factors" if factors == "ilf" else "models") as show,
        report_progress(lambda what, done, total: show(done, total, what)),
    ):
        model.fit(rows.X, Y)
    whole = Pipeline([("encoder", rows.encoder), *model.steps])
    save(whole, out)
    seconds = time.perf_counter() - start
    classifier = model.steps[-1][1]
    n, p = rows.X.shape
    m = Y.shape[1]
    sizes = sorted((len(factor) for factor in classifier.factors_), reverse=True)
    typer.echo(wrapped(f"data     {clipped(str(data), 60)}", " " * 9))
    typer.echo(f"rows     {n}")
    typer.echo(f"features {p}")
    typer.echo(f"labels   {m}, {Y.to_numpy().sum() / n:.2f} per row")
    typer.echo(f"factors  {len(sizes)}, the largest of {counted(sizes[0], 'label')}")
    typer.echo(f"learner  {clipped(estimator, 50)}, {method}")
    typer.echo(f"model    {clipped(str(out), 50)}, {out.stat().st_size / 1e6:.2f} MB")
    typer.echo(f"time     {seconds:.1f} s, of it {read:.1f} s of reading")
    foreign = store.foreign_classes(out)
    if foreign:
        names = " ".join(f"--trust {name}" for name in foreign)
        say(f"fgfm: to load the model, say that you trust what it holds: {names}")
