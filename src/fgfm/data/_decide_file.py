"""Decisions for one file of probabilities, in blocks of rows."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm.data._decide_rules import DecideSettings, make_rule
from fgfm.data._errors import DataError
from fgfm.data._probability_reader import ProbabilityReader
from fgfm.data._probability_tables import Columns
from fgfm.data._row_buffer import RowBuffer
from fgfm.data._writers import LabelSetWriter

__all__ = ["CONTRADICTION", "Totals", "decide_file"]

CONTRADICTION = "all probabilities are 0, which contradicts nonempty"


@dataclass
class Totals:
    """Totals over the rows of a file."""

    average: str = "samples"  # that was decided for
    rows: int = 0
    defined: int = 0  # problems (rows, labels, or all entries) with an expected F-measure
    sum_expected_f: float = 0.0
    contradictions: int = 0  # rows without one, although they are decided one by one
    first_contradiction: int = 0  # the first of these rows
    contradiction: DataError | None = None  # names its place
    read: float = 0.0  # seconds, as in `DecideReport`
    waited: float = 0.0
    decided: float = 0.0
    written: float = 0.0

    def add(self, rows: int, expected_f: npt.NDArray[np.float64] | None) -> None:
        """Add rows, and the expected F-measures of their problems; NaN if one is not defined."""
        if expected_f is not None:
            undefined = np.isnan(expected_f)
            if self.average == "samples" and undefined.any():
                if not self.contradictions:
                    self.first_contradiction = self.rows + int(np.argmax(undefined))
                self.contradictions += int(np.count_nonzero(undefined))
            self.defined += int(np.count_nonzero(~undefined))
            self.sum_expected_f += float(np.nansum(expected_f))
        self.rows += rows


def decide_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    settings: DecideSettings,
    n_jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
    metadata: dict[bytes, bytes] | None = None,
) -> Totals:
    """Decide for the rows of one file; `metadata` are those of a Parquet file of label sets."""
    totals = Totals()
    show = progress or (lambda rows: None)
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(
            ProbabilityReader(
                source,
                format=settings.format,
                columns=Columns(settings.ids),
                text=settings.text,
                content=settings.content,
            )
        )
        rule = make_rule(settings, reader, n_jobs)
        totals.average = rule.average
        by_row = rule.average == "samples"
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
        clock = time.perf_counter()
        for proba, ids in _joined(reader, show) if rule.together else reader:
            read = time.perf_counter()
            labels, expected_f = rule.decide(proba)
            totals.add(labels.shape[0], expected_f)
            decided = time.perf_counter()
            writer.write(labels, expected_f if by_row else None, ids)
            totals.waited += read - clock
            totals.decided += decided - read
            clock = time.perf_counter()
            totals.written += clock - decided
            show(totals.rows)
        if totals.rows == 0 and not rule.together:
            writer.write_header(reader.empty_ids, expected_f=by_row)
    totals.read = reader.cpu_seconds
    if totals.contradictions:
        totals.contradiction = reader.error(CONTRADICTION, totals.first_contradiction)
    return totals


def _joined(reader: ProbabilityReader, show: Callable[[int], object]) -> Iterator[tuple[Any, Any]]:
    """Yield all rows as one block."""
    buffer = RowBuffer(len(reader.label_names))
    for proba, ids in reader:
        buffer.append(proba, ids)
        show(buffer.rows)
    yield buffer.array(), buffer.ids() if buffer.rows else reader.empty_ids
