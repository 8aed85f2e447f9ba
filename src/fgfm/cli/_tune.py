"""``fgfm tune``: a decider from validation probabilities and true labels."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from fgfm._utils.text import clipped, counted, wrapped
from fgfm.cli import _options as opt
from fgfm.cli._console import echo, format_table, json_text, progress, say
from fgfm.cli._data import check_targets, labels_line, observed_rows
from fgfm.cli._fit import OUT
from fgfm.cli._models import label_frame, read_constraints, require_skops

if TYPE_CHECKING:
    from fgfm import FDecider
    from fgfm.evaluation import Comparison
    from fgfm.io import Validation

EPILOG = """\b
Examples:
  fgfm tune valid.csv truth.csv -o decider.fgfm
  fgfm tune valid.parquet truth.jsonl --ids doc --average macro -o d.fgfm
  fgfm tune valid.csv truth.csv --average macro --min-precision .8 -o d.fgfm
  fgfm decide new.csv --with decider.fgfm -o sets.csv

PROBS is a table of probabilities as fgfm decide reads it, of rows that the
model was not trained on. LABELS has the true labels of the same rows, as

\b
- a table (.csv, .tsv, .parquet, .jsonl) with a column of 0 and 1 per label,
  or label lists in a column 'labels', as fgfm decide writes them, or in the
  columns of --labels, in every form that fgfm fit reads;
- a data set that declares its labels: .arff, .svm, .xmc.

Label columns are matched by name, and rows by the --ids that both files have,
else by their order. Both files are read into memory.
"""
_MOST_ROWS = 20_000  # of the cross-validation
_FOLDS = "cross-validation: folds"
RULES = {"f_optimal": "decider", "half": "p > 0.5", "threshold": "p > t"}
_SAME = ("average", "beta", "zero_division", "max_labels", "scores")  # as in FDecider
_FLOORS = ("min_precision", "min_recall", "confidence")


@opt.command(
    f"out {opt.DECISION} nonempty calibration {' '.join(_FLOORS)} scores ids folds {opt.LABELS} "
    f"{opt.READING} labels_format jobs seed json",
    probs=opt.PROBS._replace(help="Table of probabilities of validation rows; as for decide."),
    truth=opt.Argument("LABELS", "True labels of the validation rows."),
    out=OUT._replace(metavar="DECIDER", help="File to save the decider to."),
    nonempty=opt.Option(
        str,
        "auto",
        "WHEN",
        "Assume that no true label set is empty: yes, no, or auto (if none of the rows is empty).",
    ),
    calibration=opt.Option(
        str, "auto", "NAME", "Calibration of probabilities: auto, sigmoid, isotonic or none."
    ),
    min_precision=opt.Option(
        float | None,
        None,
        "V",
        "Least precision: of each row, of each label (macro), or of all (micro).",
    ),
    min_recall=opt.Option(float | None, None, "V", "Least recall, in the same way."),
    confidence=opt.Option(
        float | None, None, "C", "Certify the least precision or recall at this confidence."
    ),
    folds=opt.Option(int, 5, "N", "Folds of the cross-validation; 0 for none."),
    labels_format=opt.Option(
        str | None, None, "FORMAT", "Format of LABELS; by default it follows from the file name."
    ),
)
def tune(context: typer.Context, params: dict[str, Any]) -> None:
    """Fit a decider to probabilities and true labels.

    The decider learns from validation rows to calibrate the probabilities, and how many labels a
    row has; for macro and micro it keeps thresholds. fgfm decide --with applies it to further
    rows. Its F-measure by cross-validation on the validation rows is printed beside that of
    thresholds on the probabilities.
    """
    import numpy as np

    from fgfm import save
    from fgfm.io import load_validation

    require_skops()
    check_targets(params, "out")
    probs, truth, out, start = params["probs"], params["truth"], params["out"], time.perf_counter()
    with progress(f"reading {clipped(probs.name, 50)}", steps=True) as show:
        rows = load_validation(
            probs,
            truth,
            logits=params["scores"],
            labels_format=params["labels_format"],
            columns=opt.label_columns(params["labels"]),
            separator=params["separator"],
            missing_labels=params["missing_labels"],
            **opt.file_arguments(params),
        )
        if params["missing_labels"]:
            seen = observed_rows(rows.Y)
            rows = rows._replace(proba=rows.proba[seen], Y=rows.Y[seen].astype("uint8"))
        decider = _make_decider(rows, params)
        n, Y = len(rows.Y), label_frame(rows.Y, rows.label_names)
        show(0, 0, f"fitting the decider to {counted(n, 'row')}")
        decider.fit(rows.proba, Y)
        values: dict[str, Any] = {
            "probabilities": str(probs),
            "labels_file": str(truth),
            "decider": str(out),
            "rows": n,
            "labels": len(rows.label_names),
            "labels_per_row": float(rows.Y.sum()) / n,
            "average": decider.average,
            "beta": float(decider.beta),
            "expected_f": float(np.mean(decider.expected_f(rows.proba))),
        }
        show(0, 0, _FOLDS)
        found = _cross_validate(decider, rows.proba, Y, params, lambda k, m: show(k, m, _FOLDS))
        values["cross_validation"] = None if found is None else found._asdict()
    save(decider, out)
    values["seconds"] = time.perf_counter() - start
    for line in labels_line(rows.label_form, rows.label_names):
        say(line)
    size = out.stat().st_size
    echo(json_text(values, indent=1) if params["json"] else _as_table(values, size))


def _make_decider(rows: Validation, params: Mapping[str, Any]) -> FDecider:
    """Return the unfitted decider; a table of one label is that of a binary classifier."""
    from fgfm import FDecider

    given = {name: params[name] for name in (*_SAME, *_FLOORS)}
    if len(rows.label_names) == 1:
        given["average"] = "macro"
    return FDecider(
        **given,
        calibration=None if params["calibration"] == "none" else params["calibration"],
        nonempty=opt.read_flag(params["nonempty"]),
        min_labels=params["min_labels"] or 0,
        constraints=read_constraints(params["constraints"]),
        n_jobs=opt.n_jobs(params),
    )


def _cross_validate(
    decider: FDecider, proba: Any, Y: Any, params: Mapping[str, Any], show: Any
) -> Comparison | None:
    """Cross-validate on all rows, or on a sample of many; None if there are too few."""
    import numpy as np

    from fgfm.evaluation import evaluate_decider

    n, folds, seed = len(Y), params["folds"], params["seed"]
    if folds == 0 or n < 3 or np.count_nonzero(Y.sum(axis=1)) < 2:
        return None
    if n > _MOST_ROWS:
        chosen = np.sort(np.random.default_rng(seed).choice(n, _MOST_ROWS, replace=False))
        proba, Y = proba[chosen], Y.iloc[chosen]
    return evaluate_decider(decider, proba, Y, folds=folds, random_state=seed, progress=show)


def _as_table(values: Mapping[str, Any], size: int) -> str:
    f = f"F{values['beta']:g}"
    name = {"samples": f"{f} of rows"}.get(values["average"], f"{values['average']} {f}")
    lines = {
        "probabilities": clipped(values["probabilities"], 60),
        "true labels": clipped(values["labels_file"], 60),
        "rows": str(values["rows"]),
        "labels": f"{values['labels']}, {values['labels_per_row']:.2f} per row",
        "measure": name,
        "expected": f"{values['expected_f']:.4f}",
    }
    found, rules, notes = values["cross_validation"], [], ""
    if found is not None:
        of_rows = "" if found["n_rows"] == values["rows"] else f" of {found['n_rows']} random rows"
        lines["obtained"] = f"by {found['folds']}-fold cross-validation{of_rows}:"
        rules = [
            (f"  {RULES[rule]}", f"{f:.4f} ({low:.3f} to {high:.3f})")
            for rule, (f, low, high) in found["f"].items()
        ]
        each = "" if len(found["thresholds"]) == found["folds"] else " for each label"
        verdict = found["differences"]["threshold"].verdict
        level = ": the rules do not differ by more than chance" if verdict == "level" else ""
        notes = (
            f"t: one threshold{each}. In brackets 95 % intervals. Against t the decider is "
            f"{verdict}{level}."
        )
    last = {
        "decider": f"{clipped(values['decider'], 50)}, {size / 1e3:.0f} kB",
        "time": f"{values['seconds']:.1f} s",
    }
    width = len("probabilities")
    head, tail = (format_table(list(part.items()), width=width) for part in (lines, last))
    return "\n".join([*head, *format_table(rules), *tail, *wrapped(notes).splitlines()])
