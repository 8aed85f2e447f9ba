"""``fgfm evaluate``: compare the F-optimal rule with thresholds."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from fgfm._utils.text import clipped, counted, listed, wrapped
from fgfm.cli._console import plain_errors, progress_bar, say
from fgfm.cli._inputs import load_labelled, rows_of_split
from fgfm.cli._models import ModelOptions, label_frame, load_model, make_model
from fgfm.cli._options import (
    Beta,
    Calibration,
    Categorical,
    Data,
    Date,
    Decimal,
    Delimiter,
    Dense,
    Drop,
    Encoding,
    Estimator,
    Factors,
    FitIds,
    Format,
    Header,
    Jobs,
    Json,
    Labels,
    MaxCategories,
    Method,
    NFeatures,
    Nonempty,
    Number,
    Scale,
    Seed,
    Separator,
    Setting,
    Text,
    Trust,
    ZeroDivision,
    dataset_arguments,
    file_arguments,
    given_options,
)
from fgfm.cli._sanity import label_notes, unsure_note

if TYPE_CHECKING:
    from fgfm.data import Dataset
    from fgfm.evaluation import Evaluation

__all__ = ["EPILOG", "evaluate"]

EPILOG = """\b
Examples:
  fgfm evaluate films.csv --labels 'genre_*'             cross-validation
  fgfm evaluate scene.npz --split test                   the file's own split
  fgfm evaluate train.csv --test test.csv --labels -6    two files
  fgfm evaluate test.csv --model films.fgfm              a fitted model
  fgfm evaluate scene.npz -e forest --factors ilf --folds 10 --json
"""
# Options on fitting, which cannot be combined with --model.
_FITTING = {"estimator", "settings", "factors", "method", "calibration", "scale", "dense"}
_FITTING |= {"folds", "inner_folds"}
_RULES = {"f_optimal": "F-optimal", "half": "p > 0.5", "threshold": "p > t"}
_MEASURES = {
    "instance_f": "instance F{beta:g}",
    "micro_f": "micro F{beta:g}",
    "macro_f": "macro F{beta:g}",
    "jaccard": "Jaccard",
    "hamming_loss": "Hamming loss",
    "subset_accuracy": "subset accuracy",
    "labels_per_row": "labels per row",
}

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
def evaluate(
    context: typer.Context,
    data: Data,
    model: Model = None,
    test: Test = None,
    split: Split = None,
    folds: Folds = 5,
    inner_folds: InnerFolds = 3,
    as_json: Json = False,
    estimator: Estimator = "auto",
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
    trust: Trust = None,
    format: Format = None,
    drop: Drop = None,
    ids: FitIds = None,
    text: Text = None,
    categorical: Categorical = None,
    number: Number = None,
    date: Date = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    header: Header = None,
    n_features: NFeatures = None,
    max_categories: MaxCategories = 255,
    dense: Dense = False,
    jobs: Jobs = 1,
    seed: Seed = 0,
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
    if model is not None:
        result = _evaluate_model(model, data, context.params, given)
    else:
        result = _evaluate_options(data, test, context.params)
    typer.echo(_as_json(result) if as_json else _as_table(result))
    found = result.evaluation
    size = found.measures["labels_per_row"]["f_optimal"].value
    unsure = unsure_note(found.expected_f.value, size, found.true_labels_per_row, result.beta)
    if unsure:
        say(f"fgfm: note: {unsure}")
    say(f"{time.perf_counter() - start:.1f} s")


class _Result(NamedTuple):
    """An evaluation with the description of its data and of its model."""

    description: dict[str, Any]
    beta: float
    evaluation: Evaluation


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


def _evaluate_model(path: Path, data: Path, params: Mapping[str, Any], given: set[str]) -> _Result:
    """Evaluate a fitted model."""
    from fgfm.data import DataError
    from fgfm.evaluation import evaluate_fitted

    loaded = load_model(path, params["trust"] or [])
    objective = ("beta", "zero_division", "nonempty")
    loaded.set_objective(*(params[name] if name in given else None for name in objective))
    rows = loaded.load(data, params["split"], dataset_arguments(params))
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
    evaluation = evaluate_fitted(loaded.model, rows.X, rows.Y, random_state=params["seed"])
    return _Result(description, float(loaded.classifier.beta), evaluation)


def _evaluate_options(data: Path, test: Path | None, params: Mapping[str, Any]) -> _Result:
    """Fit models, and evaluate them on rows that they were not fitted to."""
    from fgfm import evaluation

    options = ModelOptions.from_params(params)
    train, test_rows, protocol = _train_and_test(data, test, params)
    for note in label_notes(train.Y, train.label_names):
        say(f"fgfm: note: {note}")
    model = make_model(train, options)
    with progress_bar("fits") as show:

        def progress(fits: int, total: int, stage: str, done: int, of: int) -> None:
            show(done, of, f"fit {fits + 1} of {total}, {stage}")

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
    return _Result(description, options.beta, found)


def _train_and_test(
    data: Path, test: Path | None, params: Mapping[str, Any]
) -> tuple[Dataset, Dataset | None, str]:
    """Return training rows, test rows unless cross-validation is used, and the protocol."""
    from fgfm.data import DataError, load

    whole, split = load_labelled(data, params), params["split"]
    if split is not None:
        if split != "test":
            raise ValueError(f"--split is {split!r}: it must be test, the rows to evaluate on")
        train, test_rows = rows_of_split(whole, "train"), rows_of_split(whole, "test")
        n_train, n_test = train.X.shape[0], test_rows.X.shape[0]
        return train, test_rows, f"fitted to {n_train} training rows, evaluated on {n_test}"
    if test is None:
        return whole, None, f"{params['folds']}-fold cross-validation"
    test_rows = load(test, encoder=whole.encoder, **file_arguments(params))
    if test_rows.Y is None:
        raise DataError("there are no labels to compare with", source=test)
    count = counted(test_rows.X.shape[0], "row")
    return whole, test_rows, f"evaluated on {count} of {clipped(str(test), 40)}"


def _describe(path: Path, rows: Dataset) -> dict[str, Any]:
    assert rows.Y is not None
    return {
        "data": str(path),
        "rows": int(rows.X.shape[0]),
        "features": int(rows.X.shape[1]),
        "labels": int(rows.Y.shape[1]),
    }


def _as_json(result: _Result) -> str:
    measured = result.evaluation.as_dict()
    measured["n_factors"] = measured.pop("factors", None)  # "factors" is the option
    return json.dumps(result.description | {"beta": result.beta} | measured, indent=1)


def _as_table(result: _Result) -> str:
    """Return the measures of each rule with their standard errors, and notes on them."""
    found, beta = result.evaluation, result.beta
    lines = [*_heading(result), ""]
    lines.append(f"{'':<20}" + "".join(f"{name:>20}" for name in _RULES.values()))
    gains = [f"{gain.value:+.4f} ({gain.standard_error:.4f})" for gain in found.gains.values()]
    for measure, by_rule in found.measures.items():
        digits = 2 if measure == "labels_per_row" else 4
        cells = [
            f"{value.value:.{digits}f} ({value.standard_error:.{digits}f})"
            for value in by_rule.values()
        ]
        name = _MEASURES[measure].format(beta=beta)
        lines.append(f"{name:<20}" + "".join(f"{cell:>20}" for cell in cells))
        if measure == "instance_f":
            lines.append(f"{'  gain of F-optimal':<40}" + "".join(f"{g:>20}" for g in gains))
    return "\n".join([*lines, "", *_notes(result)])


def _heading(result: _Result) -> list[str]:
    """Return the lines on the data and the model."""
    about = result.description
    data = (
        f"{clipped(about['data'], 40)}: {counted(about['rows'], 'row')}, "
        f"{counted(about['features'], 'feature')}, {counted(about['labels'], 'label')}"
    )
    if "model" in about:
        return [wrapped(data), wrapped(f"model {clipped(about['model'], 60)}")]
    low, high = min(result.evaluation.factors), max(result.evaluation.factors)
    factors = counted(high, "factor") if low == high else f"{low} to {high} factors"
    model = (
        f"{clipped(about['estimator'], 30)}, {about['method']}, "
        f"{clipped(about['factors'], 20)}: {factors}; {about['protocol']}"
    )
    return [wrapped(data), wrapped(model)]


def _notes(result: _Result) -> list[str]:
    """Return the notes below the table."""
    found, beta = result.evaluation, result.beta
    over = f"{found.folds} folds" if found.folds else counted(found.n_rows, "row")
    low, high = min(found.thresholds), max(found.thresholds)
    t = f"{low:.3f}" if high - low < 5e-4 else f"{low:.3f} to {high:.3f}"
    excess = found.excess
    direction = "above" if excess.value >= 0.0 else "below"
    return [
        wrapped(
            f"Standard errors over {over} in brackets. True labels per row: "
            f"{found.true_labels_per_row:.2f}."
        ),
        wrapped(
            f"Expected F{beta:g} {found.expected_f.value:.4f}, {abs(excess.value):.4f} "
            f"({excess.standard_error:.4f}) {direction} the observed one; mean absolute "
            f"difference over bins {found.bin_difference:.4f}."
        ),
        wrapped(f"t = {t}, chosen on {found.threshold_from}."),
    ]
