"""Decisions for one file of probabilities, in blocks of rows."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.blocks import row_blocks
from fgfm.data._decide_rules import DecideSettings, Rule, make_rule
from fgfm.data._errors import DataError
from fgfm.data._probability_reader import ProbabilityReader
from fgfm.data._row_buffer import RowBuffer
from fgfm.data._writers import LabelSetWriter

__all__ = ["CONTRADICTION", "Totals", "decide_file"]

CONTRADICTION = "all probabilities are 0, which contradicts nonempty"


class Totals:
    """Totals over the rows of a file.

    Attributes
    ----------
    average : str
        The average that was decided for.
    rows : int
        Number of rows.
    defined : int
        Number of problems (rows, labels, or all entries) with an expected F-measure.
    sum_expected_f : float
        Sum of these expected F-measures.
    contradictions : int
        Number of rows without one, although they are decided one by one.
    first_contradiction : int
        The first of these rows.
    contradiction : DataError or None
        The error that names the place of this row.
    read, waited, decided, written : float
        Seconds, as in `DecideReport`.
    """

    def __init__(self) -> None:
        self.average = "samples"
        self.rows = 0
        self.defined = 0
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
        self.add_problems(len(expected_f), expected_f)

    def add_problems(self, rows: int, expected_f: npt.NDArray[np.float64] | None) -> None:
        """Add rows that are not problems themselves.

        Parameters
        ----------
        rows : int
            The number of rows.
        expected_f : ndarray or None
            The expected F-measure of each problem, NaN if it is not defined; None if none is.
        """
        self.rows += rows
        if expected_f is not None:
            self.defined += int(np.count_nonzero(~np.isnan(expected_f)))
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
    totals = Totals()
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(
            ProbabilityReader(
                source,
                format=settings.format,
                ids=settings.ids,
                text=settings.text,
                content=settings.content,
            )
        )
        rule = make_rule(settings, reader, n_jobs)
        totals.average = rule.average
        writer = stack.enter_context(
            LabelSetWriter(
                target,
                rule.names,
                format=settings.output_format,
                separator=settings.separator,
                wide=settings.wide,
                metadata=metadata,
            )
        )
        run = _decide_together if rule.together else _decide_blocks
        run(reader, rule, writer, totals, progress or (lambda rows: None))
    totals.read = reader.cpu_seconds
    if totals.contradictions:
        totals.contradiction = reader.error(CONTRADICTION, totals.first_contradiction)
    return totals


def _decide_blocks(
    reader: ProbabilityReader,
    rule: Rule,
    writer: LabelSetWriter,
    totals: Totals,
    progress: Callable[[int], object],
) -> None:
    """Read, decide and write the rows block by block."""
    clock = time.perf_counter()
    for proba, ids in reader:
        read = time.perf_counter()
        labels, expected_f = rule.decide(proba)
        if expected_f is None:
            totals.add_problems(labels.shape[0], None)
        else:
            totals.add(expected_f)
        decided = time.perf_counter()
        writer.write(labels, expected_f, ids)
        totals.waited += read - clock
        totals.decided += decided - read
        clock = time.perf_counter()
        totals.written += clock - decided
        progress(totals.rows)
    if totals.rows == 0:
        writer.write_header(reader.empty_ids, expected_f=rule.average == "samples")


def _decide_together(
    reader: ProbabilityReader,
    rule: Rule,
    writer: LabelSetWriter,
    totals: Totals,
    progress: Callable[[int], object],
) -> None:
    """Read all rows, decide them together, and write them block by block."""
    clock = time.perf_counter()
    buffer = RowBuffer(len(reader.label_names))
    for proba, ids in reader:
        buffer.append(proba, ids)
        progress(buffer.rows)
    all_ids: Any = buffer.ids() if buffer.rows else reader.empty_ids
    read = time.perf_counter()
    labels, expected_f = rule.decide(buffer.array())
    totals.add_problems(buffer.rows, expected_f)
    decided = time.perf_counter()
    for rows in row_blocks(buffer.rows, len(rule.names)) or [slice(0, 0)]:
        ids = None if all_ids is None else all_ids.slice(rows.start, rows.stop - rows.start)
        writer.write(labels[rows], None, ids)
    totals.waited, totals.decided = read - clock, decided - read
    totals.written = time.perf_counter() - decided
