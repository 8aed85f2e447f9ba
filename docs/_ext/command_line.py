"""The directive ``command-line``: what ``fgfm COMMAND --help`` says, for every command."""

from __future__ import annotations

import os
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def help_texts() -> dict[str, str]:
    """Give the help of the program and of each command, at 80 columns."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from fgfm.cli._app import app

    os.environ["COLUMNS"] = "80"
    runner = CliRunner()
    names = list(get_command(app).commands)  # type: ignore[attr-defined]
    texts = {}
    for name in ["", *names]:
        asked = [name, "--help"] if name else ["--help"]
        answer = runner.invoke(app, asked, prog_name="fgfm", terminal_width=80)
        if answer.exit_code != 0:
            raise RuntimeError(f"fgfm {' '.join(asked)} failed: {answer.output}")
        texts[name] = answer.stdout.rstrip()
    return texts


class CommandLine(SphinxDirective):
    """A section for each command, with its help."""

    def run(self) -> list[nodes.Node]:
        """Give the sections."""
        source = []
        for name, text in help_texts().items():
            title = f"`fgfm {name}`" if name else "`fgfm`"
            anchor = f"fgfm-{name}" if name else "fgfm-options"
            source += [f"({anchor})=", f"### {title}", "", "```text", text, "```", ""]
        return self.parse_text_to_nodes("\n".join(source), allow_section_headings=True)


def setup(app: Any) -> dict[str, Any]:
    """Tell Sphinx of the directive."""
    app.add_directive("command-line", CommandLine)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
