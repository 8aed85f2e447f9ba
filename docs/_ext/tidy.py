"""Remove the blank line that ends a doctest from code blocks."""

from __future__ import annotations

from typing import Any

from docutils import nodes


def _strip_blocks(app: Any, doctree: nodes.document) -> None:
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if text != text.rstrip() and block.rawsource == text:
            block.rawsource = text.rstrip()
            block[:] = [nodes.Text(block.rawsource)]


def setup(app: Any) -> dict[str, Any]:
    """Connect the removal."""
    app.connect("doctree-read", _strip_blocks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
