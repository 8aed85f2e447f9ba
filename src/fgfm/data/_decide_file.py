"""Decisions for one file of probabilities, in blocks of rows."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.data._errors import DataError
from fgfm.data._probability_reader import ProbabilityReader
from fgfm.data._writers import LabelSetWriter
from fgfm.decision._marginals import decide_marginals
from fgfm.decision._objective import Objective

__all__ = ["CONTRADICTION", "DecideSettings", "Totals", "decide_file"]

CONTRADICTION = "all probabilities are 0, which contradicts nonempty"


class DecideSettings(NamedTuple):
    """The arguments of `decide` that apply to each file."""

    beta: float
    zero_division: float
    nonempty: bool
    ids: tuple[str, ...]
    format: str | None
    delimiter: str | None
    output_format: str | None
    separator: str
    wide: bool


class Totals:
    """Totals over the rows of a file.

    Attributes
    ----------
    rows : int
        Number of rows.
    sum_expected_f : float
        Sum of the expected F-measures that are defined.
    contradictions : int
        Number of rows without an expected F-measure.
    first_contradiction : int
        The first of these rows.
    contradiction : DataError or None
        The error that names the place of this row.
    read, waited, decided, written : float
        Seconds, as in `DecideReport`.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.sum_expected_f = 0.0
        self.contradictions = 0
        self.first_contradiction = 0
        self.contradiction: DataError | None = None
        self.read = self.waited = self.decided = self.written = 0.0

    def add(self, expected_f: npt.NDArray[np.float64]) -> None:
        """Add a block of rows.

        Parameters
        ----------
        expected_f : ndarray of shape (n,)
            The expected F-measure of each row; NaN if it is not defined.
        """
        undefined = np.flatnonzero(np.isnan(expected_f))
        if len(undefined) and not self.contradictions:
            self.first_contradiction = self.rows + int(undefined[0])
        self.contradictions += len(undefined)
        self.rows += len(expected_f)
        self.sum_expected_f += float(np.nansum(expected_f))


def decide_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    settings: DecideSettings,
    n_jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
    metadata: dict[bytes, bytes] | None = None,
) -> Totals:
    """Decide for the rows of one file.

    Parameters
    ----------
    source : str or path-like
        The table of probabilities; "-" is standard input.
    target : str or path-like
        The file of label sets; "-" is standard output.
    settings : DecideSettings
        The objective and the formats.
    n_jobs : int, optional
        The number of threads.
    progress : callable, optional
        Called with the number of rows done, after every block.
    metadata : dict of bytes to bytes, optional
        Metadata of a Parquet file of label sets.

    Returns
    -------
    Totals
        The totals over the rows.
    """
    objective = Objective.checked(settings.beta, settings.zero_division, settings.nonempty, n_jobs)
    totals = Totals()
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(
            ProbabilityReader(
                source, format=settings.format, ids=settings.ids, delimiter=settings.delimiter
            )
        )
        writer = stack.enter_context(
            LabelSetWriter(
                target,
                reader.label_names,
                format=settings.output_format,
                separator=settings.separator,
                wide=settings.wide,
                metadata=metadata,
            )
        )
        clock = time.perf_counter()
        for proba, ids in reader:
            read = time.perf_counter()
            labels, expected_f = decide_marginals(proba, objective)
            totals.add(expected_f)
            decided = time.perf_counter()
            writer.write(labels, expected_f, ids)
            totals.waited += read - clock
            totals.decided += decided - read
            clock = time.perf_counter()
            totals.written += clock - decided
            if progress is not None:
                progress(totals.rows)
        if totals.rows == 0:
            writer.write_header(reader.empty_ids)
    totals.read = reader.cpu_seconds
    if totals.contradictions:
        totals.contradiction = reader.error(CONTRADICTION, totals.first_contradiction)
    return totals
