"""A file of probabilities in, a file of label sets out: any size, in blocks."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fgfm._validation import check_beta, check_flag, check_zero_division
from fgfm.data._label_sets import LabelSetWriter
from fgfm.data._probabilities import ProbabilityReader
from fgfm.decision import from_marginals

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
    """

    rows: int
    mean_expected_f: float
    read: float
    waited: float
    decided: float
    written: float


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

    Parameters
    ----------
    source : str or path-like
        The table, with a column per label; "-" is standard input.
    target : str or path-like
        The file of label sets, which appears when it is complete; "-" is standard output.
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
        How many threads decide, in joblib's meaning. It does not change the result.
    progress : callable, optional
        Called with the number of rows that are done, after every block.

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
    check_beta(beta)
    check_zero_division(zero_division)
    check_flag(nonempty, "nonempty")
    if "-" not in (os.fspath(source), os.fspath(target)) and os.path.realpath(
        source
    ) == os.path.realpath(target):
        raise ValueError(f"target is {target}, which source is too: they must be two files")
    rows, total, contradictions, first = 0, 0.0, 0, 0
    seconds = [0.0, 0.0, 0.0]
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(
            ProbabilityReader(source, format=format, ids=ids, delimiter=delimiter)
        )
        writer = stack.enter_context(
            LabelSetWriter(
                target, reader.label_names, format=output_format, separator=separator, wide=wide
            )
        )
        clock = time.perf_counter()
        for proba, kept in reader:
            clock = _lap(seconds, 0, clock)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # it counts rows of a block
                labels, expected_f = from_marginals(
                    proba,
                    beta=beta,
                    zero_division=zero_division,
                    nonempty=nonempty,
                    n_jobs=n_jobs,
                )
            impossible = np.flatnonzero(np.isnan(expected_f))
            if len(impossible) and not contradictions:
                first = rows + int(impossible[0])
            contradictions += len(impossible)
            clock = _lap(seconds, 1, clock)
            writer.write(labels, expected_f, kept)
            rows += len(expected_f)
            total += float(np.nansum(expected_f))
            clock = _lap(seconds, 2, clock)
            if progress is not None:
                progress(rows)
        if rows == 0:
            writer.write_nothing(reader.no_ids)
    if contradictions:
        warnings.warn(
            f"{reader.place(first)} gives every label the probability 0, which contradicts "
            f"nonempty: it gets the empty set, and no expectation ({contradictions} such rows)",
            UserWarning,
            stacklevel=2,
        )
    told = rows - contradictions
    mean = total / told if told else float("nan")
    return DecideReport(rows, mean, reader.seconds, *seconds)


def _lap(seconds: list[float], part: int, since: float) -> float:
    now = time.perf_counter()
    seconds[part] += now - since
    return now
