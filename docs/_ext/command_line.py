"""The directives ``command-line``, the help of every command, and ``file-formats``, a table."""

from __future__ import annotations

import os
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def help_texts() -> dict[str, str]:
    """Return the help of the program and of each command, 80 columns wide."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from fgfm.cli._app import app

    os.environ["COLUMNS"] = "80"
    runner = CliRunner()
    names = list(get_command(app).commands)  # type: ignore[attr-defined]
    texts = {}
    for name in ["", *names]:
        arguments = [name, "--help"] if name else ["--help"]
        result = runner.invoke(app, arguments, prog_name="fgfm", terminal_width=80)
        if result.exit_code != 0:
            raise RuntimeError(f"fgfm {' '.join(arguments)} failed: {result.output}")
        texts[name] = result.stdout.rstrip()
    return texts


class CommandLine(SphinxDirective):
    """A section with the help of each command."""

    def run(self) -> list[nodes.Node]:
        """Return the parsed sections."""
        source = []
        for name, text in help_texts().items():
            title = f"`fgfm {name}`" if name else "`fgfm`"
            anchor = f"fgfm-{name}" if name else "fgfm-options"
            source += [f"({anchor})=", f"## {title}", "", "```text", text, "```", ""]
        return self.parse_text_to_nodes("\n".join(source), allow_section_headings=True)


class FileFormats(SphinxDirective):
    """A table of the formats that `fgfm.io.load` reads."""

    def run(self) -> list[nodes.Node]:
        """Return the parsed table."""
        from fgfm.io import FORMATS

        lines = ["| format | file | labels |", "|---|---|---|"]
        for format in FORMATS.values():
            files = ", ".join(f"`{suffix}`" for suffix in format.suffixes)
            lines.append(f"| {format.name} | {files} | {format.labels} |")
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Any) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command-line", CommandLine)
    app.add_directive("file-formats", FileFormats)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
