"""Label sets for files of probabilities."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fgfm._utils.text import counted
from fgfm._utils.validation import check_average, check_beta, check_flag, check_zero_division
from fgfm.data._decide_file import Totals, decide_file
from fgfm.data._decide_folder import decide_folder
from fgfm.data._decide_rules import OBJECTIVE, DecideSettings
from fgfm.data._options import TextFormat

if TYPE_CHECKING:
    from fgfm.decider import FDecider
    from fgfm.decision import Constraints

__all__ = ["DecideReport", "decide"]


class DecideReport(NamedTuple):
    """Row count, mean expected F-measure and times of `decide`.

    Attributes
    ----------
    rows : int
        Number of rows.
    mean_expected_f : float
        Mean of the expected F-measures of rows; of labels if the average is "macro"; that of all
        entries if it is "micro". NaN if none is defined, as with a decider of "macro" or "micro".
    read : float
        Processor seconds of reading and parsing, which run while blocks are decided.
    waited : float
        Seconds of waiting for the reader.
    decided : float
        Seconds of deciding.
    written : float
        Seconds of writing.
    kept : int
        Number of files of a folder that were up to date.
    average : str
        The average that was decided for; "macro" for a table of one label.

    Notes
    -----
    The seconds of files that are processed at the same time are added up.
    """

    rows: int
    mean_expected_f: float
    read: float
    waited: float
    decided: float
    written: float
    kept: int = 0
    average: str = "samples"


def decide(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    average: str = "samples",
    measure: str = "f",
    logits: bool = False,
    min_labels: int = 0,
    max_labels: int | None = None,
    constraints: Constraints | None = None,
    decider: FDecider | None = None,
    ids: Sequence[str] = (),
    format: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool | None = None,
    output_format: str | None = None,
    separator: str = ";",
    wide: bool = False,
    n_jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> DecideReport:
    """Write the F-optimal label sets of a table of marginal probabilities.

    Rows are read, decided and written in blocks, so that memory does not grow with their number.
    Only "macro" and "micro", and a table of one label, are decided as a whole: the table is read
    into one array, and the output has no expected F-measure of a row.

    A folder of Parquet files becomes a folder of Parquet files. A file of the target folder is
    kept if it was made by the same version from the same file with the same settings, so that an
    interrupted run can be resumed.

    Parameters
    ----------
    source : str or path-like
        The table, with a column per label; "-" is standard input. Or a folder of such tables in
        Parquet, at any depth; names that begin with "." or "_" are skipped.
    target : str or path-like
        The file of label sets, which is replaced when the new one is complete; "-" is standard
        output. Or a folder, created if needed, for a file of the same name for each of `source`.
    beta : float, default=1.0
        Weight of recall relative to precision.
    zero_division : float, default=1.0
        Value of the F-measure of an empty decision if the true set is empty, in [0, 1].
    nonempty : bool, default=False
        Whether to condition on the true set not being empty.
    average : {"samples", "macro", "micro"}, default="samples"
        The F-measure to maximise: of each row, of each label over all rows, or of all entries
        together. A table of one label is that of a binary classifier, whose F-measure over all
        rows is maximised.
    measure : {"f", "jaccard"}, default="f"
        The F-measure, or the Jaccard index.
    logits : bool, default=False
        Whether the table has logits instead of probabilities.
    min_labels, max_labels : int, default=0 and None
        The least and the largest number of labels of a row.
    constraints : fgfm.decision.Constraints, optional
        Further constraints on the label sets of rows, by the names of the columns, or by numbers.
    decider : FDecider, optional
        A fitted decider in the place of all these arguments. It decides each row by itself, also
        with "macro" and "micro": then by its thresholds. The table must have its labels.
    ids : sequence of str, default=()
        Columns that are not labels, to be kept in the output.
    format : {"csv", "tsv", "parquet", "npy", "npz"}, optional
        The format of the table; by default it follows from the file name.
    delimiter, decimal, encoding, header : optional
        How CSV and TSV are written, as in `load`. Without a header, labels are numbered from 0.
    output_format : {"csv", "tsv", "jsonl", "parquet"}, optional
        The format of the label sets; by default it follows from the file name.
    separator : str, default=";"
        The separator of the labels of a row in CSV and TSV.
    wide : bool, default=False
        Whether to write one 0/1 column per label instead of one column of label lists.
    n_jobs : int, optional
        The number of threads, as in joblib; of a folder, the number of files at a time, which may
        be on the workers of a cluster (``joblib.parallel_config``) that see the same files. It
        does not change the result.
    progress : callable, optional
        Called with the number of rows done, after every block, or every file of a folder.

    Returns
    -------
    DecideReport
        Row count, mean expected F-measure and times.

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
        beta=check_beta(beta),
        zero_division=check_zero_division(zero_division),
        nonempty=check_flag(nonempty, "nonempty"),
        average=average,
        measure=measure,
        logits=check_flag(logits, "logits"),
        min_labels=min_labels,
        max_labels=max_labels,
        constraints=constraints,
        decider=decider,
        ids=tuple(ids),
        format=format,
        text=TextFormat(delimiter, decimal, encoding, header),
        output_format=output_format,
        separator=separator,
        wide=wide,
    )
    check_average(average)
    if decider is not None:
        _check_decider(decider, settings)
    names = (os.fspath(source), os.fspath(target))
    if "-" not in names and os.path.realpath(source) == os.path.realpath(target):
        raise ValueError(f"target is {target}, as source is: they must be two files")
    if os.path.isdir(source):
        totals, kept = decide_folder(Path(source), Path(target), settings, n_jobs, progress)
    else:
        totals, kept = [decide_file(source, target, settings, n_jobs, progress)], 0
    return _report(totals, kept)


def _check_decider(decider: Any, settings: DecideSettings) -> None:
    """Raise unless a decider is fitted, and no argument is given that it has itself."""
    from fgfm.decider import FDecider

    if not isinstance(decider, FDecider) or not hasattr(decider, "classes_"):
        raise TypeError(f"decider is {decider!r}: it must be a fitted fgfm.FDecider")
    for name, default in OBJECTIVE.items():
        value = getattr(settings, name)
        if value != default:
            raise ValueError(
                f"{name} is {value!r} and decider is given, which has its own: one of them must "
                "be left out"
            )


def _report(totals: Sequence[Totals], kept: int) -> DecideReport:
    """Add up the totals of all files, and warn about contradictory rows."""
    rows = sum(one.rows for one in totals)
    contradictions = sum(one.contradictions for one in totals)
    if contradictions:
        first = next(one.contradiction for one in totals if one.contradictions)
        warnings.warn(
            f"{first}: the row gets the empty set and no expected F-measure "
            f"({counted(contradictions, 'such row')})",
            UserWarning,
            stacklevel=3,
        )
    defined = sum(one.defined for one in totals)
    mean = sum(one.sum_expected_f for one in totals) / defined if defined else float("nan")
    read, waited, decided, written = (
        sum(getattr(one, name) for one in totals)
        for name in ("read", "waited", "decided", "written")
    )
    return DecideReport(rows, mean, read, waited, decided, written, kept, totals[0].average)
