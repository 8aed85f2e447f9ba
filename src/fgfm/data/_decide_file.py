"""One file of probabilities to one of label sets, in blocks."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.data._label_sets import LabelSetWriter
from fgfm.data._probabilities import ProbabilityReader
from fgfm.decision._marginals import decide_marginals
from fgfm.decision._objective import Objective

__all__ = ["DecideSettings", "Tally", "decide_file"]


class DecideSettings(NamedTuple):
    """How files are read, decided and written; the fields are those of `decide`."""

    beta: float
    zero_division: float
    nonempty: bool
    ids: tuple[str, ...]
    format: str | None
    delimiter: str | None
    output_format: str | None
    separator: str
    wide: bool


class Tally:
    """What is counted while rows are decided, or found decided.

    Attributes
    ----------
    rows : int
        Number of rows.
    total : float
        Sum of what is expected, where something is.
    contradictions : int
        Number of rows of which nothing is expected.
    first : int
        The first of them.
    place : str
        Where that row is found.
    read, waited, decided, written : float
        Seconds, as in `DecideReport`.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.total = 0.0
        self.contradictions = 0
        self.first = 0
        self.place = ""
        self.read = self.waited = self.decided = self.written = 0.0

    def add(self, expected_f: npt.NDArray[np.float64]) -> None:
        """Count a block of rows.

        Parameters
        ----------
        expected_f : ndarray of shape (n,)
            What is expected of each row; NaN where nothing is.
        """
        impossible = np.flatnonzero(np.isnan(expected_f))
        if len(impossible) and not self.contradictions:
            self.first = self.rows + int(impossible[0])
        self.contradictions += len(impossible)
        self.rows += len(expected_f)
        self.total += float(np.nansum(expected_f))


def decide_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    settings: DecideSettings,
    n_jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
    metadata: dict[bytes, bytes] | None = None,
) -> Tally:
    """Decide for the rows of one file.

    Parameters
    ----------
    source : str or path-like
        The table; "-" is standard input.
    target : str or path-like
        The file of label sets; "-" is standard output.
    settings : DecideSettings
        How.
    n_jobs : int, optional
        How many threads decide.
    progress : callable, optional
        Called with the number of rows that are done, after every block.
    metadata : dict of bytes to bytes, optional
        What a Parquet file tells beside its table.

    Returns
    -------
    Tally
        What was counted.
    """
    objective = Objective.checked(settings.beta, settings.zero_division, settings.nonempty, n_jobs)
    tally = Tally()
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
        for proba, kept in reader:
            read = time.perf_counter()
            labels, expected_f = decide_marginals(proba, objective)
            tally.add(expected_f)
            decided = time.perf_counter()
            writer.write(labels, expected_f, kept)
            tally.waited += read - clock
            tally.decided += decided - read
            clock = time.perf_counter()
            tally.written += clock - decided
            if progress is not None:
                progress(tally.rows)
        if tally.rows == 0:
            writer.write_nothing(reader.no_ids)
    tally.read = reader.seconds
    tally.place = reader.place(tally.first)
    return tally
