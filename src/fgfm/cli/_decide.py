"""``fgfm decide``: label sets from a table of probabilities."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fgfm._utils.text import counted
from fgfm.cli._console import json_text, plain_errors, rows_counter, say
from fgfm.cli._limits import ConstraintsFile, MaxLabels, MinLabels, read_constraints
from fgfm.cli._models import load_decider
from fgfm.cli._options import (
    EXPECTED,
    Average,
    Beta,
    Logits,
    OutputSeparator,
    ProbsFormat,
    Wide,
    ZeroDivision,
    file_arguments,
    given_options,
    split_names,
    text_options,
    with_options,
)

if TYPE_CHECKING:
    from fgfm.io import DecideReport

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
Ids = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns that are not labels, to copy to the output: names separated by commas; may "
        "be repeated.",
    ),
]
OutputFormat = Annotated[
    str | None,
    typer.Option(metavar="FORMAT", help="Format of the output: csv, tsv, jsonl or parquet."),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        help="Number of threads, or of files at a time; -1 uses all cores.",
    ),
]
Stats = Annotated[
    bool,
    typer.Option("--stats", help="Print the rows, the mean expected F-measure and the time."),
]
Json = Annotated[bool, typer.Option("--json", help="Print them as JSON, to standard error.")]


@plain_errors
@with_options(text_options)
def decide(
    context: typer.Context,
    probs: Probabilities,
    out: Out = Path("-"),
    beta: Beta = 1.0,
    zero_division: ZeroDivision = 1.0,
    nonempty: Nonempty = False,
    average: Average = "samples",
    measure: Measure = "f",
    logits: Logits = False,
    min_labels: MinLabels = None,
    max_labels: MaxLabels = None,
    constraints: ConstraintsFile = None,
    decider: With = None,
    ids: Ids = None,
    format: ProbsFormat = None,
    output_format: OutputFormat = None,
    separator: OutputSeparator = ";",
    wide: Wide = False,
    jobs: Jobs = -1,
    stats: Stats = False,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Decide label sets from a table of probabilities of any model."""
    from fgfm import io

    given = [name for name in _OBJECTIVE if name in given_options(context)]
    if decider is not None and given:
        raise ValueError(
            f"--{given[0].replace('_', '-')} is an option on the decision, and --with is fitted "
            "for its own: leave one out"
        )
    with rows_counter("rows decided") as progress:
        decision: dict[str, Any] = {}  # with a decider, its own
        if decider is None:
            decision = {name: context.params[name] for name in _OBJECTIVE}
            decision["min_labels"] = min_labels or 0
            decision["constraints"] = (
                None if constraints is None else read_constraints(constraints)
            )
        report = io.decide(
            probs,
            out,
            decider=None if decider is None else load_decider(decider),
            **decision,
            ids=split_names(ids),
            **file_arguments(context.params),
            output_format=output_format,
            separator=separator,
            wide=wide,
            n_jobs=jobs,
            progress=progress,
        )
    if as_json:
        say(json_text(report._asdict() | {"peak_mebibytes": _peak_bytes() / 2**20}))
    elif stats:
        say(_statistics(report, "F" if measure == "f" else "Jaccard index"))


def _statistics(report: DecideReport, measure: str) -> str:
    lines = [counted(report.rows, "row")]
    if not math.isnan(report.mean_expected_f):
        expected = EXPECTED[report.average].format(measure)
        lines[0] += f", {expected} {report.mean_expected_f:.4f}"
    if report.kept:
        lines.append(f"{counted(report.kept, 'file')} already up to date")
    lines.append(f"{report.seconds:.2f} s, peak memory {_peak_bytes() / 2**20:.0f} MiB")
    return "\n".join(lines)


def _peak_bytes() -> float:
    """Return the peak resident memory of this process in bytes; NaN if it is unknown."""
    try:  # getrusage reports the peak of the parent process on Linux if that is higher
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return 1024.0 * int(line.split()[1])
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else 1024 * peak)
