"""Dates in texts: their notation, and the features of a day."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["DATE_PARTS", "date_features", "find_date_format", "parse_date"]

DATE_PARTS = ("year", "month", "weekday", "days")  # the last: days since the first of training
# ISO 8601, then other notations in the order in which they are tried: where both 3/4/1999 and
# 4/3/1999 are dates, the day comes first.
_FORMATS = (
    "iso",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%d %B %Y",
    "%d %b %Y",
    "%B %d, %Y",
    "%b %d, %Y",
)
_EPOCH = datetime.date(1970, 1, 1).toordinal()


def parse_date(text: str, format: str) -> int | None:
    """Return the days from 1970 to a date, None if the text has another notation.

    Examples
    --------
    >>> parse_date("1970-01-03", "iso"), parse_date("03.01.1970", "iso")
    (2, None)
    """
    try:
        if format == "iso":
            return datetime.datetime.fromisoformat(text).toordinal() - _EPOCH
        return datetime.datetime.strptime(text, format).toordinal() - _EPOCH
    except ValueError:
        return None


def find_date_format(texts: Sequence[str]) -> str | None:
    """Return the notation that all texts have, None if there is none.

    Examples
    --------
    >>> find_date_format(["24/12/1999", "1/2/2000"]), find_date_format(["red", "blue"])
    ('%d/%m/%Y', None)
    """
    for format in _FORMATS:
        if all(parse_date(text, format) is not None for text in texts):
            return format
    return None


def date_features(
    days: npt.NDArray[np.float64], first: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the `DATE_PARTS` (n, 4 k) of days from 1970 (n, k), NaN where a day is missing.

    The first day of each column in training is `first` (k,).

    Examples
    --------
    >>> date_features(np.array([[2.0]]), np.array([0.0])).tolist()
    [[1970.0, 1.0, 5.0, 2.0]]
    """
    missing = np.isnan(days)
    dates = np.where(missing, 0.0, days).astype(np.int64).astype("datetime64[D]")
    months = dates.astype("datetime64[M]").astype(np.int64)
    # 1970-01-01 was a Thursday; Monday is 0.
    parts = (1970 + months // 12, months % 12 + 1, (dates.astype(np.int64) + 3) % 7, days - first)
    out = np.stack([np.where(missing, np.nan, part) for part in parts], axis=2)  # (n, k, 4)
    return out.reshape(len(days), -1)
