"""Check that every file that repeats the version agrees with pyproject.toml.

``python scripts/check_version.py`` compares pyproject.toml and CITATION.cff; with a tag, such as
v0.1.0, also the tag and the newest dated section of CHANGELOG.md.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(tag: str | None) -> None:
    """Exit with a message unless all versions agree."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    found = {"CITATION.cff": _first(r"^version: (\S+)$", "CITATION.cff")}
    if tag is not None:
        found["the tag"] = tag.removeprefix("v")
        found["CHANGELOG.md"] = _first(r"^## (\d\S*)", "CHANGELOG.md")
    for name, other in found.items():
        if other != version:
            sys.exit(f"{name} has version {other}, and pyproject.toml has {version}")
    print(f"version {version} in pyproject.toml, {', '.join(found)}")


def _first(pattern: str, name: str) -> str | None:
    """Return the first match of a pattern in a file of the repository, or None."""
    match = re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)
    return match[1] if match else None


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
