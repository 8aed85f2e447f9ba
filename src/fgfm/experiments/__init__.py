"""The synthetic experiment of Gasse and Aussem (2016): run it, summarise it, draw it."""

from __future__ import annotations

from fgfm.experiments._report import write_report
from fgfm.experiments.paper import PaperResults, reproduce

__all__ = ["PaperResults", "reproduce", "write_report"]
