"""The documentation: its commands run, and what it quotes from elsewhere is there.

The Python in the pages is run by doctest (`testpaths` in pyproject.toml), the examples are run by
`make docs`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fgfm

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="docs are in the repository only")

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    return sorted(DOCS.glob("*.md"))


def shell_blocks(text: str) -> list[tuple[str, str | None]]:
    """Give each block of shell commands, and the block of text right below it, if any."""
    found = list(BLOCK.finditer(text))
    blocks = []
    for at, block in enumerate(found):
        if block[1] == "sh":
            below = found[at + 1] if at + 1 < len(found) else None
            follows = below is not None and not text[block.end() : below.start()].strip()
            shown = below[2] if below is not None and follows and below[1] == "text" else None
            blocks.append((block[2], shown))
    return blocks


def registered() -> set[str]:
    typer_main = pytest.importorskip("typer.main")
    from fgfm.cli._app import app

    return set(typer_main.get_command(app).commands)


def test_commands_of_the_page_run(tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    commands = registered()
    # "python" and "fgfm" are those of this interpreter, installed as programs or not
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, arguments in (("python", ""), ("fgfm", "-m fgfm.cli ")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        program.chmod(0o755)
    here = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    folder = tmp_path / "files"
    folder.mkdir()
    blocks = shell_blocks((DOCS / "command_line.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 3
    for source, shown in blocks:
        used = set(re.findall(r"(?:^|\| *)fgfm ([a-z]+)", source, re.MULTILINE))
        if not used <= commands:
            continue
        done = subprocess.run(
            [bash, "-euo", "pipefail", "-c", source],
            cwd=folder,
            env=here,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{source}\n{done.stderr}"
        if shown is not None:
            assert done.stdout == shown, source


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_quoted_parts_of_the_readme_exist(page):
    # Pages take parts of the README between two texts: an edit there must be made here too.
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    for edge in re.findall(r'^:(?:start-after|end-before): "(.*)"$', text, re.MULTILINE):
        assert readme.count(edge) == 1, f"{page.name} takes what is next to {edge!r} in the README"


def test_every_public_name_is_in_the_reference():
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("reference/*.rst"))
    listed = set(re.findall(r"^   ([A-Za-z_][\w.]*)$", text, re.MULTILINE))
    modules = ("cardinality", "data", "decision", "estimation", "experiments", "factors")
    wanted = {name for name in fgfm.__all__ if not hasattr(getattr(fgfm, name), "__path__")}
    wanted -= {"__version__", "Decision", *modules, "metrics", "plotting", "synthetic"}
    for module in (*modules, "plotting", "synthetic"):
        wanted |= {f"{module}.{name}" for name in getattr(fgfm, module).__all__}
    wanted.remove("factors.ILFCompo")  # it is listed as fgfm.ILFCompo
    assert listed == wanted


def test_examples_are_in_the_gallery_in_order():
    # Read, not imported: Sphinx need not be installed.
    order = set(re.findall(r'^    "(\w+\.py)",$', (DOCS / "_ext/gallery.py").read_text(), re.M))
    assert order == {path.name for path in (ROOT / "examples").glob("*.py")}
