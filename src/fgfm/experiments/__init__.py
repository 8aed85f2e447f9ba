"""The synthetic experiment of Gasse and Aussem (2016).

`reproduce` runs it, with the estimates of the authors' scripts, with those of this package, or
with both; `format_tables` and `write_report` show the results.
"""

from __future__ import annotations

from fgfm.experiments._report import write_report
from fgfm.experiments._reproduce import PaperResults, reproduce
from fgfm.experiments._table import format_tables

__all__ = [
    "PaperResults",
    "format_tables",
    "reproduce",
    "write_report",
]


def __dir__() -> list[str]:
    return __all__
