"""``fgfm decide``: label sets from a table of probabilities."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import typer

from fgfm._utils.text import counted
from fgfm.cli import _options as opt
from fgfm.cli._console import json_text, progress, say
from fgfm.cli._data import check_targets
from fgfm.cli._models import load_decider, read_constraints

EPILOG = """\b
Examples:
  fgfm decide probabilities.csv -o sets.csv
  fgfm decide probabilities.parquet --ids doc_id -o sets.jsonl --beta 2
  zcat big.csv.gz | fgfm decide - > sets.csv
  fgfm decide parts/ -o sets/
  fgfm decide probabilities.csv --average macro --stats -o sets.csv
  fgfm decide probabilities.csv --max-labels 3 --constraints rules.json
  fgfm decide new.csv --with decider.fgfm -o sets.csv

The table has a header with the names of the labels, and in each row a
probability for each label. Rows are read, decided and written in blocks, so
that tables of any size can be processed. A folder of Parquet files becomes a
folder of Parquet files; run the same command again to resume after an
interruption.

The averages macro and micro decide all rows together: the whole table is
read into memory, and no expected F-measure is written beside a row (--stats
prints it). A table of one label is that of a binary classifier, and is
decided so too. With a decider of fgfm tune, rows are read in blocks
whatever the average.
"""
# Options that a decider has itself.
_OBJECTIVE = [*opt.DECISION.split(), "nonempty", "measure", "logits"]


@opt.command(
    f"out {opt.DECISION} nonempty measure logits decider ids {opt.READING} {opt.OUTPUT} jobs",
    probs=opt.PROBS,
    out=opt.Option(
        Path,
        "-",
        "FILE",
        "Label sets: .csv, .tsv, .jsonl or .parquet; - is standard output. A folder if PROBS is "
        "one.",
        ("--out", "-o"),
    ),
    nonempty=opt.Option(
        bool, False, None, "Assume that no true label set is empty.", ("--nonempty",)
    ),
    measure=opt.Option(str, "f", "NAME", "Measure to maximise: f, or jaccard."),
    decider=opt.Option(
        Path | None,
        None,
        "DECIDER",
        "Decider saved by fgfm tune, in the place of the options above.",
        ("--with",),
    ),
    stats=opt.Option(
        bool,
        False,
        None,
        "Print the rows, the mean expected F-measure, the time.",
        ("--stats",),
    ),
    json=opt.Option(bool, False, None, "Print them as JSON, to standard error.", ("--json",)),
)
def decide(context: typer.Context, params: dict[str, Any]) -> None:
    """Decide label sets from a table of probabilities of any model."""
    from fgfm import io

    probs, out = Path(params["probs"]), Path(params["out"])
    if not probs.is_dir():
        check_targets(params, "out")
    given = [name for name in _OBJECTIVE if name in opt.given_options(context)]
    if params["decider"] is not None and given:
        raise ValueError(
            f"--{given[0].replace('_', '-')} is an option on the decision, and --with is fitted "
            "for its own: leave one out"
        )
    with progress("rows decided") as show:
        decision: dict[str, Any] = {name: params[name] for name in _OBJECTIVE}
        decision["min_labels"] = params["min_labels"] or 0
        decision["constraints"] = read_constraints(params["constraints"])
        if params["decider"] is not None:
            decision = {"decider": load_decider(params["decider"])}
        report = io.decide(
            probs,
            out,
            **decision,
            **opt.file_arguments(params),
            output_format=params["output_format"],
            separator=params["output_separator"],
            wide=params["wide"],
            n_jobs=params["jobs"],
            progress=show,
        )
    memory = _peak_bytes() / 2**20
    if params["json"]:
        say(json_text(report._asdict() | {"peak_mebibytes": memory}))
    elif params["stats"]:
        first = counted(report.rows, "row")
        if not math.isnan(report.mean_expected_f):
            measure = "F" if params["measure"] == "f" else "Jaccard index"
            name = opt.EXPECTED[report.average].format(measure)
            first += f", {name} {report.mean_expected_f:.4f}"
        kept = [f"{counted(report.kept, 'file')} already up to date"] if report.kept else []
        say("\n".join([first, *kept, f"{report.seconds:.2f} s, peak memory {memory:.0f} MiB"]))


def _peak_bytes() -> float:
    """Return the peak resident memory of this process in bytes; NaN if it is unknown."""
    status = Path("/proc/self/status")  # on Linux, getrusage includes the peak before exec
    if status.exists():
        lines = status.read_text(encoding="ascii", errors="replace").splitlines()
        return sum(1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else 1024 * peak)
