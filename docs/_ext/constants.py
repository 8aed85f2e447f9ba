"""Descriptions of public objects that cannot have a docstring: tuples, dictionaries and scorers.

Without them the reference would show the docstring of their type.
"""

from __future__ import annotations

from typing import Any

DESCRIPTIONS = {
    "fgfm.f_scorer": "Scikit-learn scorer of the mean F1 over rows: `f_measure` with beta = 1. "
    '``f_scorer(beta=2, average="macro")`` returns a scorer with these parameters.',
    "fgfm.paper.STRUCTURES": "Sizes of the label factors in the four structures of the paper.",
}


def _describe(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if name in DESCRIPTIONS:
        lines[:] = [DESCRIPTIONS[name]]


def setup(app: Any) -> dict[str, Any]:
    """Replace docstrings before numpydoc formats them."""
    app.connect("autodoc-process-docstring", _describe, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
