"""``fgfm evaluate``: what the F-optimal rule gains over thresholds."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fgfm.cli._console import clipped, counted, plain_errors, progress_bar, say, wrapped
from fgfm.cli._fit import (
    Beta,
    Calibration,
    Estimator,
    Factors,
    Method,
    Nonempty,
    Scale,
    Setting,
    ZeroDivision,
)
from fgfm.cli._models import LoadedModel, label_frame, load_model, make_model
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
    Trust,
    data_options,
    load_data,
    load_labelled,
    rows_of_split,
)
from fgfm.cli._predict import read_for_model, set_objective

if TYPE_CHECKING:
    from fgfm.evaluation import Evaluation

__all__ = ["EPILOG", "evaluate"]

EPILOG = """\b
Examples:
  fgfm evaluate films.csv --labels 'genre_*'             cross-validation
  fgfm evaluate scene.npz --split test                   the file's own split
  fgfm evaluate train.csv --test test.csv --labels -6    two files
  fgfm evaluate test.csv --model films.fgfm              a model that is there
  fgfm evaluate scene.npz -e forest --factors ilf --folds 10 --json
"""
# what a model that is fitted already cannot be told
_FITTING = {"estimator", "settings", "factors", "method", "calibration", "scale", "dense"}
_FITTING |= {"folds", "inner_folds"}
_RULES = {"f_optimal": "F-optimal", "half": "p > 0.5", "threshold": "p > t"}
_NAMES = {
    "instance_f": "instance F{beta}",
    "micro_f": "micro F{beta}",
    "macro_f": "macro F{beta}",
    "jaccard": "Jaccard",
    "hamming_loss": "Hamming loss",
    "subset_accuracy": "subset accuracy",
    "labels_per_row": "labels per row",
}


@plain_errors
def evaluate(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="File with features and labels.")],
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Score this fitted model on DATA; fit nothing."),
    ] = None,
    test: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Fit to DATA, score on this file.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="PART", help="test: fit to the training rows of DATA, score on its test rows."
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option(metavar="N", help="Folds of cross-validation, where all is DATA.")
    ] = 5,
    inner_folds: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Folds within training rows that choose the single threshold; 0 chooses it on "
            "the rows that the models were fitted to: quicker, less fair.",
        ),
    ] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="All numbers, as JSON.")] = False,
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
    trust: Trust = None,
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
    """Say what the F-optimal rule gains over thresholds, on rows that no model saw.

    The same models are asked by three rules: F-optimal, the label set of largest expected
    F-measure; labels of probability above 0.5; and labels above t, the one threshold that is best
    for the F-measure. Categories and medians of features are those of all rows of DATA; what
    looks at labels sees training rows only.
    """
    if sum(choice is not None for choice in (model, test, split)) > 1 and not (
        model is not None and test is None
    ):
        raise ValueError("--model, --test and --split are three ways to find rows: give one")
    given = {
        name
        for name in context.params
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }
    if model is not None and given & _FITTING:
        option = min(given & _FITTING).replace("_", "-").replace("settings", "set")
        raise ValueError(f"--{option} is for fitting, and --model is fitted: leave one out")
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
    if model is not None:
        options.pop("encoder")
        loaded = load_model(model, trust or [])
        set_objective(
            loaded,
            beta if "beta" in given else None,
            zero_division if "zero_division" in given else None,
            nonempty if "nonempty" in given else None,
        )
        beta = float(loaded.classifier.beta)
        about, found = _of_model(model, loaded, data, options, split, seed)
    else:
        about, found = _of_options(
            data,
            options,
            test,
            split,
            folds,
            inner_folds,
            dense,
            {
                "estimator": estimator,
                "settings": settings or [],
                "factors": factors,
                "method": method,
                "calibration": calibration,
                "beta": beta,
                "zero_division": zero_division,
                "nonempty": nonempty,
                "scale": scale,
                "jobs": jobs,
                "seed": seed,
            },
        )
    if as_json:
        measured = found.as_dict()
        measured["n_factors"] = measured.pop("factors", None)  # the option has that name
        typer.echo(json.dumps(about | {"beta": beta} | measured, indent=1))
    else:
        typer.echo(_table(about, found, beta))
    say(f"{time.perf_counter() - start:.1f} s")


def _of_model(
    path: Path,
    loaded: LoadedModel,
    data: Path,
    options: dict[str, Any],
    split: str | None,
    seed: int,
) -> tuple[dict[str, Any], Evaluation]:
    """Score a fitted model."""
    from fgfm.data import DataError
    from fgfm.evaluation import evaluate_fitted

    rows, _ = read_for_model(loaded, data, options, [], split)
    if rows.Y is None:
        raise DataError(f"{data}: there are no labels to compare with")
    names = list(rows.label_names or ())
    named = loaded.encoder is not None or hasattr(loaded.classifier, "label_names_in_")
    if len(names) != len(loaded.label_names) or (named and names != loaded.label_names):
        raise DataError(
            f"{data}: the labels are {_some(names)}; those of the model are "
            f"{_some(loaded.label_names)}"
        )
    about = _about(data, rows) | {"model": str(path), "how": "the rows of this file"}
    return about, evaluate_fitted(loaded.model, rows.X, rows.Y, random_state=seed)


def _some(names: list[str]) -> str:
    return ", ".join(map(repr, names[:4])) + (f" (of {len(names)})" if len(names) > 4 else "")


def _of_options(
    data: Path,
    options: dict[str, Any],
    test: Path | None,
    split: str | None,
    folds: int,
    inner_folds: int,
    dense: bool,
    settings: dict[str, Any],
) -> tuple[dict[str, Any], Evaluation]:
    """Fit models, and score them on rows that they did not see."""
    from fgfm import evaluation
    from fgfm.data import DataError

    train = load_labelled(data, options, dense)
    others = None
    how = f"{folds}-fold cross-validation"
    if split is not None:
        if split != "test":
            raise ValueError(f"--split is {split!r}: it must be test, the rows to score")
        train, others = rows_of_split(train, "train"), rows_of_split(train, "test")
        how = f"fitted to {train.X.shape[0]} training rows, scored on {others.X.shape[0]}"
    elif test is not None:
        known = {key: options[key] for key in ("format", "delimiter", "decimal", "encoding")}
        others = load_data(test, known | {"encoder": train.encoder})
        if others.Y is None:
            raise DataError(f"{test}: there are no labels to compare with")
        how = f"scored on {counted(others.X.shape[0], 'row')} of {clipped(str(test), 40)}"
    model = make_model(train, **settings)
    with progress_bar("fits") as show:

        def progress(fits: int, total: int, what: str, done: int, of: int) -> None:
            show(done, of, f"fit {fits + 1} of {total}, {what}")

        found = evaluation.evaluate(
            model,
            train.X,
            label_frame(train),
            None if others is None else others.X,
            None if others is None else others.Y,
            folds=folds,
            inner_folds=inner_folds,
            random_state=settings["seed"],
            progress=progress,
        )
    about = _about(data, train) | {"how": how}
    kept = ("estimator", "factors", "method", "calibration", "seed")
    return about | {key: settings[key] for key in kept}, found


def _about(path: Path, rows: Any) -> dict[str, Any]:
    return {
        "data": str(path),
        "rows": int(rows.X.shape[0]),
        "features": int(rows.X.shape[1]),
        "labels": int(rows.Y.shape[1]),
    }


def _table(about: dict[str, Any], found: Evaluation, beta: float) -> str:
    """Give the measures of each rule with their standard errors, and what explains them."""
    over = f"{found.folds} folds" if found.folds else f"{found.n_rows} rows"
    head = (
        f"{clipped(about['data'], 40)}: {counted(about['rows'], 'row')}, "
        f"{counted(about['features'], 'feature')}, {counted(about['labels'], 'label')}"
    )
    if "model" in about:
        what = f"model {clipped(about['model'], 60)}"
    else:
        low, high = min(found.factors), max(found.factors)
        count = counted(high, "factor") if low == high else f"{low} to {high} factors"
        what = (
            f"{clipped(about['estimator'], 30)}, {about['method']}, "
            f"{clipped(about['factors'], 20)}: {count}; {about['how']}"
        )
    lines = [wrapped(head), wrapped(what), ""]
    lines.append(f"{'':<20}" + "".join(f"{name:>20}" for name in _RULES.values()))
    gains = [f"{gain.value:+.4f} ({gain.standard_error:.4f})" for gain in found.gains.values()]
    for measure, rules in found.measures.items():
        name = _NAMES[measure].format(beta=f"{beta:g}")
        digits = 2 if measure == "labels_per_row" else 4
        cells = [
            f"{value.value:.{digits}f} ({value.standard_error:.{digits}f})"
            for value in rules.values()
        ]
        lines.append(f"{name:<20}" + "".join(f"{cell:>20}" for cell in cells))
        if measure == "instance_f":
            lines.append(f"{'  F-optimal gains':<40}" + "".join(f"{gain:>20}" for gain in gains))
    low_t, high_t = min(found.thresholds), max(found.thresholds)
    t = f"{low_t:.3f}" if high_t - low_t < 5e-4 else f"{low_t:.3f} to {high_t:.3f}"
    excess = found.excess
    sense = "more" if excess.value >= 0.0 else "less"
    lines += [
        "",
        wrapped(
            f"In brackets: standard errors over {over}. True labels per row: "
            f"{found.true_labels_per_row:.2f}."
        ),
        wrapped(
            f"Expected F{beta:g} {found.expected_f.value:.4f}, {abs(excess.value):.4f} "
            f"({excess.standard_error:.4f}) {sense} than obtained; mean absolute difference over "
            f"bins {found.bin_difference:.4f}."
        ),
        wrapped(f"t = {t}, chosen on {found.threshold_from}."),
    ]
    return "\n".join(lines)
