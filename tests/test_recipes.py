"""The recipes of the pages "Use it with" and "Masks" run, and print what the pages show.

`make recipes` runs them in an environment that has all their packages.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples/use_with"
PAGES = [ROOT / "docs/use_it_with.md", ROOT / "docs/large.md"]
SHOWN = re.compile(
    r"^```\{literalinclude\} \.\./examples/use_with/(\w+\.py)\n.*?^```$\s+^```text\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"\d+\.\d+")
TOLERANCE = 0.04  # of a printed F-measure, for other versions of the packages

pytestmark = pytest.mark.skipif(not PAGES[0].is_file(), reason="docs are in the repository only")


def recipes() -> list[Path]:
    """Return the scripts."""
    return sorted(path for path in FOLDER.glob("*.py") if path.name != "shared.py")


def packages(recipe: Path) -> list[str]:
    """Return the distributions that the header of a script names (PEP 723)."""
    lines = recipe.read_text(encoding="utf-8").splitlines()
    first, last = lines.index("# /// script"), lines.index("# ///")
    header = tomllib.loads("\n".join(line.removeprefix("# ") for line in lines[first + 1 : last]))
    return [re.match(r"[\w-]+", name)[0] for name in header["dependencies"]]


def is_missing(package: str) -> bool:
    """Return True if a distribution is not installed."""
    try:
        distribution(package)
    except PackageNotFoundError:
        return True
    return False


def shown() -> dict[str, str]:
    """Return the output that the pages show for each recipe."""
    return dict(SHOWN.findall("".join(page.read_text(encoding="utf-8") for page in PAGES)))


def test_pages_show_every_recipe():
    assert sorted(shown()) == [recipe.name for recipe in recipes()]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.stem)
def test_recipe_prints_what_a_page_shows(recipe, tmp_path):
    missing = [package for package in packages(recipe) if is_missing(package)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: make recipes")
    done = subprocess.run(
        [sys.executable, str(recipe)],
        cwd=tmp_path,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    expected = shown()[recipe.name]
    assert NUMBER.sub("#", done.stdout) == NUMBER.sub("#", expected)
    printed = [float(number) for number in NUMBER.findall(done.stdout)]
    assert printed == pytest.approx(list(map(float, NUMBER.findall(expected))), abs=TOLERANCE)
    for half, best in re.findall(r"(?:F1|Dice) (\S+) .*?(\S+) (?:F-opt|for D)", done.stdout):
        assert float(best) >= float(half)
