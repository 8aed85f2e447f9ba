"""``fgfm decide``: a table of probabilities in, label sets out."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Annotated

import typer

from fgfm.cli._console import plain_errors, rows_counter, say

__all__ = ["EPILOG", "decide"]

EPILOG = """\b
Examples:
  fgfm decide probabilities.csv -o sets.csv
  fgfm decide probabilities.parquet --ids doc_id -o sets.jsonl --beta 2
  zcat big.csv.gz | fgfm decide - > sets.csv
  fgfm decide parts/ -o sets/

The table has a header with the names of the labels, and a probability for each
label in each row. Rows are read, decided and written in blocks: any size fits.
A folder of Parquet files becomes a folder of Parquet files; run it again after
an interruption, and it goes on with the files that are missing.
"""


@plain_errors
def decide(
    probs: Annotated[
        Path,
        typer.Argument(
            metavar="PROBS",
            help="Table of marginal probabilities: .csv, .tsv (or .gz), .parquet, .npy, sparse "
            ".npz; - is standard input. Or a folder of .parquet files.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="Label sets: .csv, .tsv, .jsonl or .parquet; - is standard output. "
            "A folder for a folder.",
        ),
    ] = Path("-"),
    beta: Annotated[float, typer.Option(help="Recall counts beta times as much.")] = 1.0,
    zero_division: Annotated[
        float, typer.Option(help="Worth of an empty set where the true one is empty.")
    ] = 1.0,
    nonempty: Annotated[
        bool, typer.Option("--nonempty", help="Every true set has a label.")
    ] = False,
    ids: Annotated[
        list[str] | None,
        typer.Option(help="A column that is no label, to be kept; may be repeated."),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="Of PROBS: csv, tsv, parquet, npy or npz.")
    ] = None,
    output_format: Annotated[
        str | None, typer.Option(help="Of OUT: csv, tsv, jsonl or parquet.")
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Between values of PROBS, if no comma.")
    ] = None,
    separator: Annotated[str, typer.Option(help="Between labels of a row of OUT.")] = ";",
    wide: Annotated[
        bool, typer.Option("--wide", help="One column of 0 and 1 for each label.")
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", help="Threads that decide, or files at a time; -1 for one per core."
        ),
    ] = -1,
    stats: Annotated[
        bool, typer.Option("--stats", help="Tell how long reading, deciding and writing took.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Tell it as JSON, on standard error.")
    ] = False,
) -> None:
    """Decide for the F-optimal label sets of a table of probabilities from any model."""
    from fgfm import data

    with rows_counter("rows decided") as progress:
        report = data.decide(
            probs,
            out,
            beta=beta,
            zero_division=zero_division,
            nonempty=nonempty,
            ids=ids or [],
            format=format,
            delimiter=delimiter,
            output_format=output_format,
            separator=separator,
            wide=wide,
            n_jobs=jobs,
            progress=progress,
        )
    if as_json:
        values = report._asdict() | {"peak_mebibytes": _peak()}
        finite = {k: None if math.isnan(v) else v for k, v in values.items()}
        say(json.dumps(finite))
    elif stats:
        say(
            f"{report.rows} rows, mean expected F {report.mean_expected_f:.4f}\n"
            + (f"{report.kept} files were there already\n" if report.kept else "")
            + f"reading  {report.read:8.2f} s of processor time, beside the rest\n"
            f"waiting  {report.waited:8.2f} s for what is read\n"
            f"deciding {report.decided:8.2f} s\n"
            f"writing  {report.written:8.2f} s\n"
            f"peak memory {_peak():.0f} MiB"
        )


def _peak() -> float:
    """Give the most memory that the program has held, in MiB; NaN where it is not known."""
    try:
        import resource
    except ImportError:  # not on Windows
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
