"""Check that every file that repeats the version agrees with pyproject.toml.

``python scripts/check_version.py`` compares pyproject.toml, CITATION.cff and the conda recipe;
with a tag, such as v0.1.0, also the tag and the newest dated section of CHANGELOG.md, whose text
``--notes FILE`` writes to a file.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(tag: str | None, notes: Path | None) -> None:
    """Exit with a message unless all versions agree."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    recipe = "packaging/conda/recipe.yaml"
    found = {"CITATION.cff": _first(r"^version: (\S+)$", "CITATION.cff")}
    found[recipe] = _first(r'^  version: "(\S+)"$', recipe)
    if tag is not None:
        found["the tag"] = tag.removeprefix("v")
        found["CHANGELOG.md"] = _first(r"^## (\d\S*)", "CHANGELOG.md")
    for name, other in found.items():
        if other != version:
            sys.exit(f"{name} has version {other}, and pyproject.toml has {version}")
    if notes is not None:
        section = _first(r"^## \d[^\n]*\n((?:(?!^## ).*\n?)*)", "CHANGELOG.md")
        notes.write_text((section or "").strip() + "\n")
    print(f"version {version} in pyproject.toml, {', '.join(found)}")


def _first(pattern: str, name: str) -> str | None:
    """Return the first match of a pattern in a file of the repository, or None."""
    match = re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)
    return match[1] if match else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tag", nargs="?")
    parser.add_argument("--notes", type=Path)
    main(**vars(parser.parse_args()))
