"""Experiments that anyone can run again: the paper's synthetic one."""

from __future__ import annotations

from fgfm.experiments._report import write_report
from fgfm.experiments.paper import PaperResults, reproduce

__all__ = ["PaperResults", "reproduce", "write_report"]
