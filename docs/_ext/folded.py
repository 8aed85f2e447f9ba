"""The directive ``folded``: the sections of a Markdown file as dropdowns.

    ```{folded} benchmark/table.md
    ```

shows the text before the first ``##`` heading, then each such section folded under its heading.
Deeper headings become bold lines.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def fold_sections(text: str) -> str:
    """Return the Markdown source with each second-level section as a dropdown."""
    opening, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    parts = [opening]
    for section in sections:
        title, _, body = section.partition("\n")
        body = re.sub(r"^#{3,} (.*)$", r"**\1**", body, flags=re.MULTILINE)
        parts.append(f"::::{{dropdown}} {title[:1].upper()}{title[1:]}\n{body.strip()}\n::::\n")
    return "\n".join(parts)


class Folded(SphinxDirective):
    """Sections of a file as dropdowns."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the parsed opening and dropdowns."""
        path = Path(self.env.srcdir) / self.arguments[0]
        self.env.note_dependency(str(path))
        return self.parse_text_to_nodes(fold_sections(path.read_text(encoding="utf-8")))


def setup(app: Any) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("folded", Folded)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
