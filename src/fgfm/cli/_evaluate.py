"""``fgfm evaluate``: compare the F-optimal rule with thresholds."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fgfm._utils.atomic import atomic_file
from fgfm._utils.text import clipped, counted, listed
from fgfm.cli._console import STAGES, echo, plain_errors, progress_bar, say, spinner
from fgfm.cli._evaluation_text import Result, as_json_text, as_table
from fgfm.cli._inputs import check_target, load_labelled, rows_of_split
from fgfm.cli._models import ModelOptions, label_frame, load_model, make_model
from fgfm.cli._options import (
    Data,
    Json,
    Trust,
    column_options,
    dataset_arguments,
    file_arguments,
    given_options,
    label_options,
    model_options,
    run_options,
    split_names,
    text_options,
    with_options,
)
from fgfm.cli._sanity import label_notes, unsure_note

if TYPE_CHECKING:
    from fgfm.data import Dataset

__all__ = ["EPILOG", "evaluate"]

EPILOG = """\b
Examples:
  fgfm evaluate films.csv --labels 'genre_*'             cross-validation
  fgfm evaluate films.csv -l genres --report films.html  a page with charts
  fgfm evaluate scene.npz --split test                   the file's own split
  fgfm evaluate train.csv --test test.csv --labels -6    two files
  fgfm evaluate test.csv --model films.fgfm              a fitted model
  fgfm evaluate scene.npz -e forest --factors ilf --folds 10 --json
"""
# Options on fitting, which cannot be combined with --model.
_FITTING = {"estimator", "settings", "factors", "method", "calibration", "scale", "dense"}
_FITTING |= {"folds", "inner_folds"}

Model = Annotated[
    Path | None,
    typer.Option(metavar="MODEL", help="Evaluate this fitted model on DATA."),
]
Test = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Fit to DATA and evaluate on this file.")
]
Split = Annotated[
    str | None,
    typer.Option(
        metavar="PART", help="test: fit to the training rows of DATA, evaluate on its test rows."
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a page with charts, each label, and the hardest rows: .html, for any browser.",
    ),
]
Folds = Annotated[int, typer.Option(metavar="N", help="Folds of the cross-validation on DATA.")]
InnerFolds = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Folds within the training rows that choose the threshold t; 0 chooses it on the "
        "rows that the models were fitted to, which is faster but biased.",
    ),
]


@plain_errors
@with_options(label_options, model_options, column_options, text_options, run_options)
def evaluate(
    context: typer.Context,
    data: Data,
    model: Model = None,
    trust: Trust = None,
    test: Test = None,
    split: Split = None,
    folds: Folds = 5,
    inner_folds: InnerFolds = 3,
    report: Report = None,
    as_json: Json = False,
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
    given = given_options(context)
    _check_combination(model, test, split, given)
    if report is not None:
        inputs = [path for path in (data, model, test) if path is not None]
        check_target(report, "--report", inputs)
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
    unsure = unsure_note(found.expected_f.value, size, found.true_labels_per_row, result.beta)
    if unsure:
        say(f"fgfm: note: {unsure}")
    written = "" if report is None else f": {clipped(str(report), 60)}"
    say(f"{time.perf_counter() - start:.1f} s{written}")


def _check_combination(
    model: Path | None, test: Path | None, split: str | None, given: set[str]
) -> None:
    """Raise if options exclude each other."""
    if test is not None and (model is not None or split is not None):
        raise ValueError("--model, --test and --split exclude each other: give one of them")
    if model is not None and given & _FITTING:
        option = {"settings": "set"}.get(name := min(given & _FITTING), name)
        raise ValueError(
            f"--{option.replace('_', '-')} is an option for fitting, and --model is fitted "
            "already: leave one out"
        )


def _evaluate_model(path: Path, data: Path, params: Mapping[str, Any], given: set[str]) -> Result:
    """Evaluate a fitted model."""
    from fgfm.data import DataError
    from fgfm.evaluation import evaluate_fitted

    loaded = load_model(path, params["trust"] or [])
    objective = ("beta", "zero_division", "nonempty")
    loaded.set_decision({name: params[name] for name in objective if name in given})
    with spinner(f"reading {clipped(data.name, 50)}"):
        whole = loaded.load(data, None, dataset_arguments(params))
    rows = rows_of_split(whole, params["split"])
    if rows.Y is None:
        raise DataError("there are no labels to compare with", source=data)
    names = list(rows.label_names or ())
    is_named = loaded.encoder is not None or hasattr(loaded.classifier, "label_names_in_")
    if len(names) != len(loaded.label_names) or (is_named and names != loaded.label_names):
        raise DataError(
            f"the labels are {listed(names, 4)}; those of the model are "
            f"{listed(loaded.label_names, 4)}",
            source=data,
        )
    description = _describe(data, rows) | {"model": str(path), "protocol": "the rows of this file"}
    with spinner(f"deciding {counted(rows.X.shape[0], 'row')}"):
        evaluation = evaluate_fitted(loaded.model, rows.X, rows.Y, random_state=params["seed"])
    beta = float(loaded.classifier.beta)
    return Result(description, beta, evaluation, names, _row_names(whole, params["split"]))


def _evaluate_options(data: Path, test: Path | None, params: Mapping[str, Any]) -> Result:
    """Fit models, and evaluate them on rows that they were not fitted to."""
    from fgfm import evaluation

    options = ModelOptions.from_params(params)
    train, test_rows, row_names, protocol = _train_and_test(data, test, params)
    for note in label_notes(train.Y, train.label_names):
        say(f"fgfm: note: {note}")
    model = make_model(train, options)
    with progress_bar(STAGES["models"]) as show:

        def progress(fits: int, total: int, stage: str, done: int, of: int) -> None:
            show(done, of, f"fit {fits + 1} of {total}: {STAGES.get(stage, stage)}")

        found = evaluation.evaluate(
            model,
            train.X,
            label_frame(train),
            None if test_rows is None else test_rows.X,
            None if test_rows is None else test_rows.Y,
            folds=params["folds"],
            inner_folds=params["inner_folds"],
            random_state=options.seed,
            progress=progress,
        )
    description = _describe(data, train) | {"protocol": protocol}
    for name in ("estimator", "factors", "method", "calibration", "seed"):
        description[name] = getattr(options, name)
    names = list(train.label_names or ())
    return Result(description, options.beta, found, names, row_names)


def _train_and_test(
    data: Path, test: Path | None, params: Mapping[str, Any]
) -> tuple[Dataset, Dataset | None, list[str], str]:
    """Return training rows, test rows or None, names of the rows to decide, and the protocol."""
    from fgfm.data import DataError, load

    named = params["report"] is not None
    whole, split = load_labelled(data, params, keep_identifiers=named), params["split"]
    if split is not None:
        if split != "test":
            raise ValueError(f"--split is {split!r}: it must be test, the rows to evaluate on")
        train, test_rows = rows_of_split(whole, "train"), rows_of_split(whole, "test")
        n_train, n_test = train.X.shape[0], test_rows.X.shape[0]
        protocol = f"fitted to {n_train} training rows, evaluated on {n_test}"
        return train, test_rows, _row_names(whole, split), protocol
    if test is None:
        return whole, None, _row_names(whole), f"{params['folds']}-fold cross-validation"
    with spinner(f"reading {clipped(test.name, 50)}"):
        ids = split_names(params["ids"])
        test_rows = load(test, encoder=whole.encoder, ids=ids, **file_arguments(params))
    if test_rows.Y is None:
        raise DataError("there are no labels to compare with", source=test)
    count = counted(test_rows.X.shape[0], "row")
    protocol = f"evaluated on {count} of {clipped(str(test), 40)}"
    return whole, test_rows, _row_names(test_rows), protocol


def _describe(path: Path, rows: Dataset) -> dict[str, Any]:
    assert rows.Y is not None
    return {
        "data": str(path),
        "rows": int(rows.X.shape[0]),
        "features": int(rows.X.shape[1]),
        "labels": int(rows.Y.shape[1]),
    }


def _row_names(data: Dataset, split: str | None = None) -> list[str]:
    """Return the identifiers of the rows of a split, or their numbers in the file."""
    if data.ids is None or not data.ids.num_columns:
        names = [f"row {k + 1}" for k in range(data.X.shape[0])]
    else:
        names = [", ".join(map(str, row.values())) for row in data.ids.to_pylist()]
    kept = {None: None, "train": data.train, "test": data.test}[split]
    return names if kept is None else [names[k] for k in kept]
