"""Files of probabilities in, files of label sets out: any size, in blocks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fgfm._utils.validation import check_beta, check_flag, check_zero_division
from fgfm.data._decide_file import DecideSettings, decide_file
from fgfm.data._decide_parts import decide_parts

__all__ = ["DecideReport", "decide"]


class DecideReport(NamedTuple):
    """What `decide` did, and how long it took.

    Attributes
    ----------
    rows : int
        Number of rows.
    mean_expected_f : float
        Mean of what is expected; NaN where nothing is.
    read : float
        Processor seconds of reading and parsing, which goes on while blocks are decided.
    waited : float
        Seconds of waiting for what is read.
    decided : float
        Seconds of deciding.
    written : float
        Seconds of writing.
    kept : int
        How many files of a folder were there already, made as they would be now.

    Notes
    -----
    Of files that are worked on at the same time, the seconds are added up.
    """

    rows: int
    mean_expected_f: float
    read: float
    waited: float
    decided: float
    written: float
    kept: int = 0


def decide(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    ids: Sequence[str] = (),
    format: str | None = None,
    delimiter: str | None = None,
    output_format: str | None = None,
    separator: str = ";",
    wide: bool = False,
    n_jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> DecideReport:
    """Decide for the F-optimal label sets of a table of marginal probabilities.

    Rows are read, decided and written in blocks, so that memory does not grow with their number.
    A folder of Parquet files becomes a folder of Parquet files, part by part. A part that is there
    already, made of the same file with the same settings by the same version, is kept: an
    interrupted run goes on.

    Parameters
    ----------
    source : str or path-like
        The table, with a column per label; "-" is standard input. Or a folder of such tables in
        Parquet, at any depth; names that begin with "." or "_" are left out.
    target : str or path-like
        The file of label sets, which appears when it is complete; "-" is standard output. Or a
        folder, made where it is missing, for as many files under the same names.
    beta : float, default=1.0
        How many times as important recall is as precision.
    zero_division : float, default=1.0
        What an empty decision is worth where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Decide under the condition that the true set is not empty.
    ids : sequence of str, default=()
        Columns that are no labels, kept in the output.
    format : {"csv", "tsv", "parquet", "npy", "npz"}, optional
        Of the table; by default its name tells.
    delimiter : str, optional
        What stands between the values of CSV.
    output_format : {"csv", "tsv", "jsonl", "parquet"}, optional
        Of the label sets; by default the name of the file tells.
    separator : str, default=";"
        What stands between the labels of a row in CSV and TSV.
    wide : bool, default=False
        Write one column of 0 and 1 for each label.
    n_jobs : int, optional
        How many threads decide, in joblib's meaning; of a folder, how many files at a time, which
        may be on the workers of a cluster (``joblib.parallel_config``) that see the same files.
        It does not change the result.
    progress : callable, optional
        Called with the number of rows that are done, after every block, or file of a folder.

    Returns
    -------
    DecideReport
        Rows, mean expectation and seconds.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fgfm.data import decide
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     probabilities, label_sets = Path(folder) / "p.csv", Path(folder) / "sets.csv"
    ...     _ = probabilities.write_text("name,cat,dog\\nrex,0.1,0.9\\nfelix,0.6,0.4\\n")
    ...     report = decide(probabilities, label_sets, ids=["name"])
    ...     print(label_sets.read_text())
    name,labels,expected_f
    rex,dog,0.87
    felix,cat;dog,0.586667
    <BLANKLINE>
    """
    settings = DecideSettings(
        check_beta(beta),
        check_zero_division(zero_division),
        check_flag(nonempty, "nonempty"),
        tuple(ids),
        format,
        delimiter,
        output_format,
        separator,
        wide,
    )
    if "-" not in (os.fspath(source), os.fspath(target)) and os.path.realpath(
        source
    ) == os.path.realpath(target):
        raise ValueError(f"target is {target}, which source is too: they must be two files")
    kept = 0
    if os.path.isdir(source):
        tallies, kept = decide_parts(Path(source), Path(target), settings, n_jobs, progress)
    else:
        tallies = [decide_file(source, target, settings, n_jobs, progress)]
    rows = sum(tally.rows for tally in tallies)
    wrong = [tally for tally in tallies if tally.contradictions]
    contradictions = sum(tally.contradictions for tally in wrong)
    if wrong:
        warnings.warn(
            f"{wrong[0].place} gives every label the probability 0, which contradicts "
            f"nonempty: it gets the empty set, and no expectation ({contradictions} such rows)",
            UserWarning,
            stacklevel=2,
        )
    told = rows - contradictions
    mean = sum(tally.total for tally in tallies) / told if told else float("nan")
    read, waited, decided, written = (
        sum(getattr(tally, name) for tally in tallies)
        for name in ("read", "waited", "decided", "written")
    )
    return DecideReport(rows, mean, read, waited, decided, written, kept)
