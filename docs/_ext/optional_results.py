"""The directive ``optional-results``: the files of a run, if the folder has them.

    :::{optional-results} paper
    text above the results, with headings
    :::

shows the text, the command (the first line of ``table.txt``), ``figure.svg``, ``differences.svg``
and the rest of ``table.txt``, as far as the folder ``docs/paper`` has them. Without ``table.txt``
the output is empty.
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
    """The results of a run, if there are any."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the parsed text and files."""
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
    """Register the directive."""
    app.add_directive("optional-results", OptionalResults)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
