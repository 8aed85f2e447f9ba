"""``fgfm decide``: label sets from a table of probabilities."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fgfm._utils.text import counted
from fgfm.cli import _options as opt
from fgfm.cli._console import json_text, plain_errors, progress, say
from fgfm.cli._data import check_targets
from fgfm.cli._models import load_decider, read_constraints

__all__ = ["EPILOG", "decide"]

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
_OBJECTIVE = [
    *("beta", "zero_division", "nonempty", "average", "measure", "logits"),
    *("min_labels", "max_labels", "constraints"),
]

Probabilities = Annotated[
    Path,
    typer.Argument(
        metavar="PROBS",
        help="Table of marginal probabilities: .csv, .tsv (or .gz), .parquet, .jsonl, .npy or "
        "sparse .npz; - is standard input. Or a folder of .parquet files.",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Label sets: .csv, .tsv, .jsonl or .parquet; - is standard output. A folder if "
        "PROBS is one.",
    ),
]
Nonempty = Annotated[
    bool, typer.Option("--nonempty", help="Assume that no true label set is empty.")
]
Measure = Annotated[str, typer.Option(metavar="NAME", help="Measure to maximise: f, or jaccard.")]
With = Annotated[
    Path | None,
    typer.Option(
        "--with",
        metavar="DECIDER",
        help="Decider saved by fgfm tune, in the place of the options above.",
    ),
]
Stats = Annotated[
    bool,
    typer.Option("--stats", help="Print the rows, the mean expected F-measure and the time."),
]
Json = Annotated[bool, typer.Option("--json", help="Print them as JSON, to standard error.")]


@plain_errors
@opt.with_options(opt.text_options)
def decide(
    context: typer.Context,
    probs: Probabilities,
    out: Out = Path("-"),
    beta: opt.Beta = 1.0,
    zero_division: opt.ZeroDivision = 1.0,
    nonempty: Nonempty = False,
    average: opt.Average = "samples",
    measure: Measure = "f",
    logits: opt.Logits = False,
    min_labels: opt.MinLabels = None,
    max_labels: opt.MaxLabels = None,
    constraints: opt.Constraints = None,
    decider: With = None,
    ids: opt.Ids = None,
    format: opt.ProbsFormat = None,
    output_format: opt.OutputFormat = None,
    separator: opt.OutputSeparator = ";",
    wide: opt.Wide = False,
    jobs: opt.Jobs = -1,
    stats: Stats = False,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Decide label sets from a table of probabilities of any model."""
    from fgfm import io

    params = context.params
    if not probs.is_dir():
        check_targets(params, "out")
    given = [name for name in _OBJECTIVE if name in opt.given_options(context)]
    if decider is not None and given:
        raise ValueError(
            f"--{given[0].replace('_', '-')} is an option on the decision, and --with is fitted "
            "for its own: leave one out"
        )
    with progress("rows decided") as show:
        decision: dict[str, Any] = {"decider": decider and load_decider(decider)}
        if decider is None:
            decision |= {name: params[name] for name in _OBJECTIVE}
            decision["min_labels"] = min_labels or 0
            decision["constraints"] = read_constraints(constraints)
        written = {name: params[name] for name in ("output_format", "separator", "wide")}
        source = opt.file_arguments(params)
        report = io.decide(probs, out, **decision, **source, **written, n_jobs=jobs, progress=show)
    memory = _peak_bytes() / 2**20
    if as_json:
        say(json_text(report._asdict() | {"peak_mebibytes": memory}))
    elif stats:
        first = counted(report.rows, "row")
        if not math.isnan(report.mean_expected_f):
            name = opt.EXPECTED[report.average].format("F" if measure == "f" else "Jaccard index")
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
