"""Links to the line of a definition: ``repo:blob/main/src/fgfm/gfm.py#FGFMClassifier``.

The build replaces the name by the line of its ``def``, ``class`` or C++ function.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"repo:blob/main/(src/[\w/.]+)#(\w+)")


def definition_line(path: str, name: str) -> int:
    """Return the line of the repository's file `path` in which `name` is defined."""
    pattern = rf" *(?:def|class) {name}\b" if path.endswith(".py") else rf"[\w:<> ,]* {name}\("
    for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
        if re.match(pattern, line):
            return number
    raise ValueError(f"{path} does not define {name}")


def _add_lines(app: Any, page: str, source: list[str]) -> None:
    source[0] = LINK.sub(
        lambda link: f"repo:blob/main/{link[1]}#L{definition_line(link[1], link[2])}", source[0]
    )


def setup(app: Any) -> dict[str, Any]:
    """Replace names when a page is read."""
    app.connect("source-read", _add_lines)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
