"""Categories that training did not have."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.text import quoted
from fgfm.data._errors import DataError

__all__ = ["UnseenCategories"]


class UnseenCategories:
    """Categories that training did not have, counted over blocks of rows."""

    def __init__(self) -> None:
        self.counts: dict[str, tuple[str, int, int]] = {}  # an example, its rows, all rows

    def add(
        self, column: str, texts: Sequence[str], codes: npt.NDArray[Any], known: set[Any]
    ) -> None:
        """Count the rows whose text is not a known category."""
        wrong = np.array([text not in known for text in texts], dtype=bool)
        present = codes[~np.isnan(codes)].astype(np.intp)
        at = present[wrong[present]] if len(texts) else present
        example, found, rows = self.counts.get(column, ("", 0, 0))
        if len(at) and not found:
            example = texts[int(at[0])]
        self.counts[column] = (example, found + len(at), rows + len(codes))

    def warn(self, source: str) -> None:
        """Issue a warning for each column with such categories."""
        for column, (example, found, rows) in self.counts.items():
            if found:
                reason = (
                    f"{found} of {rows} rows have a category that training did not have, such as "
                    f"{quoted(example)}"
                )
                error = DataError(reason, source=source, column=column)
                warnings.warn(str(error), UserWarning, stacklevel=3)
