"""The directive ``optional-results``: files of a run, where the folder has them.

    :::{optional-results} paper
    text before them, with headings
    :::

shows the text, the command (the first line of ``table.txt``), ``figure.svg``, ``differences.svg``
and the rest of ``table.txt`` of the folder ``docs/paper``, as far as there are any. Without
``table.txt`` it shows nothing, its text included.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

PICTURES = {
    "figure.svg": "Mean F against the number of training rows, one panel for each structure",
    "differences.svg": "Paired differences between methods",
}


class OptionalResults(SphinxDirective):
    """The results of a run, if they are there."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Give the text and the files."""
        folder = Path(self.env.srcdir) / self.arguments[0]
        for name in ("table.txt", *PICTURES):
            self.env.note_dependency(str(folder / name))
        if not (folder / "table.txt").is_file():
            return []
        command, _, table = (folder / "table.txt").read_text(encoding="utf-8").partition("\n\n")
        source = [*self.content, "", "```sh", command, "```", ""]
        for name, text in PICTURES.items():
            if (folder / name).is_file():
                source += [f"![{text}]({self.arguments[0]}/{name})", ""]
        source += ["```text", table.rstrip(), "```", ""]
        return self.parse_text_to_nodes("\n".join(source), allow_section_headings=True)


def setup(app: Any) -> dict[str, Any]:
    """Tell Sphinx of the directive."""
    app.add_directive("optional-results", OptionalResults)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
