"""``fgfm evaluate``: compare the F-optimal rule with thresholds."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fgfm._utils.atomic import atomic_file
from fgfm._utils.text import clipped, counted, listed
from fgfm.cli import _options as opt
from fgfm.cli._console import STAGES, echo, note, progress, say
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
    from fgfm.io import Dataset, FeatureEncoder

EPILOG = """\b
Examples:
  fgfm evaluate films.csv --labels 'genre*'              cross-validation
  fgfm evaluate films.csv -l genres --report films.html  a page with charts
  fgfm evaluate train.csv --test test.csv --labels -6    two files
  fgfm evaluate test.csv --model films.fgfm              a fitted model
"""
# Options on fitting, which cannot be combined with --model.
_FITTING = {"learner", "folds"}


@opt.command(
    f"model test folds report json {opt.LABELS} learner beta {opt.COLUMNS} {opt.READING} jobs "
    "seed",
    data=opt.DATA,
    model=opt.Option(Path | None, None, "MODEL", "Evaluate this fitted model on DATA."),
    test=opt.Option(Path | None, None, "FILE", "Fit to DATA and evaluate on this file."),
    folds=opt.Option(int, 5, "N", "Folds of the cross-validation on DATA."),
    report=opt.Option(
        Path | None,
        None,
        "FILE",
        "Write a page with charts, each label, and the hardest rows: .html, for any browser.",
    ),
)
def evaluate(context: typer.Context, params: dict[str, Any]) -> None:
    """Compare the F-optimal rule with thresholds.

    The same fitted models are evaluated with three decision rules: F-optimal, the label set of
    largest expected F-measure; all labels with a probability above 0.5; and all labels with a
    probability above t, one threshold or one for each label, whichever is better. Models are
    evaluated on rows that they were not fitted to. Categories, words and medians of features are
    those of all rows of DATA; everything that uses labels is computed from training rows only.
    """
    start = time.perf_counter()
    given, report = opt.given_options(context), params["report"]
    if params["test"] is not None and params["model"] is not None:
        raise ValueError("--model and --test exclude each other: give one of them")
    if params["model"] is not None and given & _FITTING:
        raise ValueError(
            f"--{min(given & _FITTING)} is an option for fitting, and --model is fitted already: "
            "leave one out"
        )
    check_targets(params, "report")
    with progress(f"reading {clipped(params['data'].name, 50)}", steps=True) as show:
        if params["model"] is not None:
            result = _evaluate_model(params, given, show)
        else:
            result = _evaluate_options(params, show)
    if report is not None:
        from fgfm.cli._report import format_report

        with atomic_file(report) as file:
            file.write(format_report(result, shlex.join(["fgfm", *sys.argv[1:]])).encode())
    echo(as_json_text(result) if params["json"] else as_table(result))
    found = result.evaluation
    size = found.measures["labels_per_row"]["f_optimal"]
    note(unsure_note(found.expected_f, size, found.true_labels_per_row, result.beta))
    written = "" if report is None else f": {clipped(str(report), 60)}"
    say(f"{time.perf_counter() - start:.1f} s{written}")


def _evaluate_model(params: Mapping[str, Any], given: set[str], show: Any) -> Result:
    """Evaluate a fitted model."""
    from fgfm.evaluation import evaluate_fitted
    from fgfm.io import DataError

    loaded, data = load_model(params["model"]), params["data"]
    loaded.set_decision({name: params[name] for name in ("beta",) if name in given})
    arguments = opt.dataset_arguments(params) | {"require_labels": True}
    if loaded.encoder is not None and arguments["labels"] is None:
        arguments["labels"] = list(loaded.encoder.labels) or None
    if hasattr(loaded.classifier, "label_names_in_"):
        arguments["label_names"] = loaded.label_names
    whole = loaded.load(data, arguments)
    rows = observed_rows(whole.Y)
    chosen = whole.rows(rows)
    names = list(chosen.label_names)
    if len(names) != len(loaded.label_names):
        raise DataError(
            f"the labels are {listed(names, 4)}; those of the model are "
            f"{listed(loaded.label_names, 4)}",
            source=data,
        )
    description = _describe(data, chosen.X, chosen.Y, "the rows of this file")
    description["model"] = str(params["model"])
    show(0, 0, f"deciding {counted(chosen.X.shape[0], 'row')}")
    evaluation = evaluate_fitted(
        loaded.classifier, chosen.X, chosen.Y, random_state=params["seed"]
    )
    beta = float(loaded.classifier.beta)
    return Result(description, beta, evaluation, names, _row_names(whole)[rows].tolist())


def _evaluate_options(params: Mapping[str, Any], show: Any) -> Result:
    """Fit models, and evaluate them on rows that they were not fitted to."""
    from fgfm import evaluation

    data, encoder = load_table(params["data"], params)
    model = make_model(data, encoder, params)
    X, Y, names = encoder.fit_transform(data.X), data.Y, data.label_names
    model.set_params(estimator=model.estimator[1:])  # for all folds, X is encoded once
    assert Y is not None  # `load_table` requires labels
    rows, row_names = observed_rows(Y), _row_names(_with_ids(data, encoder, params))
    X_test = Y_test = None
    protocol = f"{min(params['folds'], len(rows))}-fold cross-validation"
    if params["test"] is not None:
        other = _load_test(data, encoder, params)
        X_test, Y_test, row_names = other.X, other.Y, _row_names(other)
        count = counted(other.X.shape[0], "row")
        protocol = f"evaluated on {count} of {clipped(str(params['test']), 40)}"
    for text in label_notes(Y[rows], names):
        note(text)
    columns = column_lines(encoder, names) + labels_line(data.label_form, names)

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

    show(0, 0, STAGES["models"])
    found = evaluation.evaluate(
        model,
        X[rows],
        label_frame(Y[rows], names),
        X_test,
        Y_test,
        folds=params["folds"],
        random_state=params["seed"],
        progress=report,
        partial=first,
    )
    description = _describe(params["data"], X[rows], Y[rows], protocol)
    description |= {name: params[name] for name in ("learner", "seed")}
    if params["test"] is None:
        row_names = row_names[rows]
    return Result(description, params["beta"], found, list(names), row_names.tolist())


def _with_ids(data: Dataset, encoder: FeatureEncoder, params: Mapping[str, Any]) -> Dataset:
    """Return the data set with columns of identifiers, which name the rows of the report."""
    from fgfm.io import load

    found = [n for n, kind in encoder.kinds_.items() if kind == "identifier" and n in data.X]
    if not found or data.ids is not None or params["report"] is None:
        return data
    arguments = opt.dataset_arguments(params) | {"ids": found}  # the texts of the file
    return replace(data, ids=load(params["data"], **arguments).ids)


def _load_test(data: Dataset, encoder: FeatureEncoder, params: Mapping[str, Any]) -> Dataset:
    """Read the rows to evaluate on."""
    from fgfm.io import load

    other = load(
        params["test"],
        labels=list(data.label_columns) or None,
        label_names=data.label_names,
        require_labels=True,
        encoder=encoder,
        separator=params["separator"],
        missing_labels=params["missing_labels"],
        **opt.file_arguments(params),
    )
    return other.rows(observed_rows(other.Y))


def _describe(path: Path, X: Any, Y: Any, protocol: str) -> dict[str, Any]:
    (n, p), m = X.shape, Y.shape[1]
    return {"data": str(path), "rows": n, "features": p, "labels": m, "protocol": protocol}


def _row_names(data: Dataset) -> Any:
    """Return the identifiers of the rows, or their numbers in the file."""
    import numpy as np

    if data.ids is None:
        names = [f"row {k + 1}" for k in range(data.X.shape[0])]
    else:
        names = [", ".join(map(str, row.values())) for row in data.ids.to_pylist()]
    return np.array(names, dtype=object)
