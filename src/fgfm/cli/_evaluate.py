"""``fgfm evaluate``: compare the F-optimal rule with thresholds."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from fgfm._utils.atomic import atomic_file
from fgfm._utils.text import clipped, counted, listed
from fgfm.cli import _options as opt
from fgfm.cli._console import STAGES, echo, note, plain_errors, progress, say
from fgfm.cli._data import (
    check_targets,
    column_lines,
    label_notes,
    labels_line,
    load_table,
    observed_rows,
    unsure_note,
)
from fgfm.cli._evaluation_text import Result, as_json_text, as_table
from fgfm.cli._models import label_frame, load_model, make_model

if TYPE_CHECKING:
    from fgfm import FClassifier
    from fgfm.io import Dataset, FeatureEncoder

__all__ = ["EPILOG", "evaluate"]

EPILOG = """\b
Examples:
  fgfm evaluate films.csv --labels 'genre*'              cross-validation
  fgfm evaluate films.csv -l genres --report films.html  a page with charts
  fgfm evaluate train.csv --test test.csv --labels -6    two files
  fgfm evaluate test.csv --model films.fgfm              a fitted model
"""
# Options on fitting, which cannot be combined with --model.
_FITTING = {"learner", "folds"}

Model = Annotated[
    Path | None,
    typer.Option(metavar="MODEL", help="Evaluate this fitted model on DATA."),
]
Test = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Fit to DATA and evaluate on this file.")
]
Report = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a page with charts, each label, and the hardest rows: .html, for any browser.",
    ),
]
Folds = Annotated[int, typer.Option(metavar="N", help="Folds of the cross-validation on DATA.")]


@plain_errors
@opt.with_options(opt.label_options, opt.model_options, opt.column_options, opt.text_options)
def evaluate(
    context: typer.Context,
    data: opt.Data,
    model: Model = None,
    test: Test = None,
    folds: Folds = 5,
    report: Report = None,
    as_json: opt.Json = False,
    **options: Any,
) -> None:
    """Compare the F-optimal rule with thresholds.

    The same fitted models are evaluated with three decision rules: F-optimal, the label set of
    largest expected F-measure; all labels with a probability above 0.5; and all labels with a
    probability above t, the single threshold that is best for the F-measure. Models are evaluated
    on rows that they were not fitted to. Categories, words and medians of features are those of
    all rows of DATA; everything that uses labels is computed from training rows only.
    """
    start = time.perf_counter()
    given = opt.given_options(context)
    _check_combination(model, test, given)
    if report is not None:
        check_targets(context.params, "report")
    if model is not None:
        result = _evaluate_model(model, data, context.params, given)
    else:
        result = _evaluate_options(data, test, context.params)
    if report is not None:
        from fgfm.cli._report import format_report

        command = shlex.join(["fgfm", *sys.argv[1:]])
        with atomic_file(report) as file:
            file.write(format_report(result, command).encode())
    echo(as_json_text(result) if as_json else as_table(result))
    found = result.evaluation
    size = found.measures["labels_per_row"]["f_optimal"].value
    note(unsure_note(found.expected_f.value, size, found.true_labels_per_row, result.beta))
    written = "" if report is None else f": {clipped(str(report), 60)}"
    say(f"{time.perf_counter() - start:.1f} s{written}")


def _check_combination(model: Path | None, test: Path | None, given: set[str]) -> None:
    """Raise if options exclude each other."""
    if test is not None and model is not None:
        raise ValueError("--model and --test exclude each other: give one of them")
    if model is not None and given & _FITTING:
        option = min(given & _FITTING).replace("_", "-")
        raise ValueError(
            f"--{option} is an option for fitting, and --model is fitted already: leave one out"
        )


def _evaluate_model(path: Path, data: Path, params: Mapping[str, Any], given: set[str]) -> Result:
    """Evaluate a fitted model."""
    from fgfm.evaluation import evaluate_fitted
    from fgfm.io import DataError

    loaded = load_model(path)
    loaded.set_decision({name: params[name] for name in ("beta",) if name in given})
    arguments = opt.dataset_arguments(params) | {"require_labels": True}
    if loaded.encoder is not None and arguments["labels"] is None:
        arguments["labels"] = list(loaded.encoder.labels) or None
    if loaded.has_named_labels:
        arguments["label_names"] = loaded.label_names
    with progress(f"reading {clipped(data.name, 50)}"):
        whole = loaded.load(data, arguments)
    rows = observed_rows(whole.Y)
    chosen = whole.rows(rows)
    names = list(chosen.label_names)
    if len(names) != len(loaded.label_names) or (
        loaded.has_named_labels and names != loaded.label_names
    ):
        raise DataError(
            f"the labels are {listed(names, 4)}; those of the model are "
            f"{listed(loaded.label_names, 4)}",
            source=data,
        )
    description = _describe(data, chosen.X, chosen.Y)
    description |= {"model": str(path), "protocol": "the rows of this file"}
    with progress(f"deciding {counted(chosen.X.shape[0], 'row')}"):
        evaluation = evaluate_fitted(
            loaded.classifier, chosen.X, chosen.Y, random_state=params["seed"]
        )
    beta = float(loaded.classifier.beta)
    return Result(description, beta, evaluation, names, _row_names(whole)[rows].tolist())


class _Rows(NamedTuple):
    """A model, and what it is fitted to and evaluated on."""

    model: FClassifier
    data: Dataset
    encoder: FeatureEncoder
    X: Any
    Y: Any
    X_test: Any  # None for cross-validation
    Y_test: Any
    names: list[str]  # of the rows to decide
    protocol: str


def _evaluate_options(data: Path, test: Path | None, params: Mapping[str, Any]) -> Result:
    """Fit models, and evaluate them on rows that they were not fitted to."""
    from fgfm import evaluation

    rows = _read_rows(data, test, params)
    names = rows.data.label_names
    for text in label_notes(rows.Y, names):
        note(text)
    model = rows.model
    columns = column_lines(rows.encoder, names) + labels_line(rows.data.label_form, names)
    with progress(STAGES["models"], steps=True) as show:

        def report(fits: int, total: int, stage: str, done: int, of: int) -> None:
            if columns:  # the options are valid
                say("\n".join([*columns, ""]))
                columns.clear()
            text = f"fit {fits + 1} of {total}: {STAGES.get(stage, stage)}"
            show(fits * of + done, total * of, text)

        def first(fold: int, best: float, half: float) -> None:
            if fold == 1:  # something to read while the other folds are fitted
                f = f"F{params['beta']:g}"
                say(f"first fold: instance {f} {best:.4f}, with p > 0.5 {half:.4f}")

        found = evaluation.evaluate(
            model,
            rows.X,
            label_frame(rows.Y, names),
            rows.X_test,
            rows.Y_test,
            folds=params["folds"],
            random_state=params["seed"],
            progress=report,
            partial=first,
        )
    description = _describe(data, rows.X, rows.Y) | {"protocol": rows.protocol}
    for name in ("learner", "seed"):
        description[name] = params[name]
    return Result(description, params["beta"], found, list(names), rows.names)


def _read_rows(path: Path, test: Path | None, params: Mapping[str, Any]) -> _Rows:
    """Read the file, and that of the test rows if there is one."""
    from fgfm.io import load

    with progress(f"reading {clipped(path.name, 50)}"):
        data, encoder = load_table(path, params)
        model = make_model(data, encoder, {**params, "average": "samples"})
        X = encoder.fit_transform(data.X)
        model.set_params(estimator=model.estimator[1:])  # for all folds, X is encoded once
    found = [n for n, kind in encoder.kinds_.items() if kind == "identifier" and n in data.X]
    if found and data.ids is None and params["report"] is not None:  # the texts of the file
        ids = load(path, **opt.dataset_arguments(params) | {"ids": found}).ids
        data = replace(data, ids=ids)
    names, Y = _row_names(data), data.Y
    assert Y is not None  # `load_table` requires labels
    a = observed_rows(Y)
    if test is None:
        protocol = f"{params['folds']}-fold cross-validation"
        return _Rows(model, data, encoder, X[a], Y[a], None, None, names[a].tolist(), protocol)
    with progress(f"reading {clipped(test.name, 50)}"):
        other = load(
            test,
            labels=list(data.label_columns) or None,
            label_names=data.label_names,
            require_labels=True,
            encoder=encoder,
            separator=params["separator"],
            missing_labels=params["missing_labels"],
            **opt.file_arguments(params),
        )
    other = other.rows(observed_rows(other.Y))
    count = counted(other.X.shape[0], "row")
    protocol = f"evaluated on {count} of {clipped(str(test), 40)}"
    rows = (X[a], Y[a], other.X, other.Y)
    return _Rows(model, data, encoder, *rows, _row_names(other).tolist(), protocol)


def _describe(path: Path, X: Any, Y: Any) -> dict[str, Any]:
    return {
        "data": str(path),
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "labels": int(Y.shape[1]),
    }


def _row_names(data: Dataset) -> Any:
    """Return the identifiers of the rows, or their numbers in the file."""
    import numpy as np

    if data.ids is None:
        names = [f"row {k + 1}" for k in range(data.X.shape[0])]
    else:
        names = [", ".join(map(str, row.values())) for row in data.ids.to_pylist()]
    return np.array(names, dtype=object)
