"""The package as a whole: its names, what importing it costs, and the files around it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import pytest

import fgfm

ROOT = Path(__file__).resolve().parent.parent

PUBLIC = {
    "__version__",
    "Decision",
    "FGFMClassifier",
    "ILFCompo",
    "cardinality",
    "data",
    "decision",
    "estimation",
    "experiments",
    "f_measure",
    "f_scorer",
    "factors",
    "load",
    "metrics",
    "plotting",
    "save",
    "synthetic",
}
HEAVY = {"matplotlib", "networkx", "numba", "pandas", "polars", "pyarrow", "scipy", "sklearn"}
TARGETS = {"bench", "bench-fit", "bench-paper", "bench-real", "clean", "demo", "docs", "format"}
TARGETS |= {"help", "lint", "paper", "quadrature", "test", "test-old"}


def run_python(code: str) -> str:
    """Run `code` in a fresh interpreter and give what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_the_repository(name: str) -> Path:
    path = ROOT / name
    if not path.is_file():
        pytest.skip(f"{name} is in the repository only")
    return path


def test_all_and_dir_are_the_public_names():
    assert len(fgfm.__all__) == len(set(fgfm.__all__))
    assert set(fgfm.__all__) == PUBLIC
    assert set(dir(fgfm)) == PUBLIC


@pytest.mark.parametrize("backwards", [False, True])
def test_public_names_resolve_in_a_fresh_interpreter(backwards):
    names = sorted(PUBLIC, reverse=backwards)
    asked = " and ".join(f"fgfm.{name} is not None" for name in names)
    assert run_python(f"import fgfm; print({asked})") == "True\n"


def test_public_names_are_those_of_their_modules():
    assert fgfm.Decision is fgfm.decision.Decision
    assert fgfm.ILFCompo is fgfm.factors.ILFCompo
    assert fgfm.f_measure is fgfm.metrics.f_measure
    assert fgfm.f_scorer is fgfm.metrics.f_scorer


def test_star_import_gives_the_public_names():
    names = run_python("from fgfm import *\nprint(*dir())").split()
    assert set(names) >= PUBLIC


def test_import_loads_no_heavy_library():
    loaded = run_python("import sys, fgfm; print(*{name.split('.')[0] for name in sys.modules})")
    assert "fgfm" in loaded.split()
    assert not HEAVY & set(loaded.split())


def test_unknown_attribute_is_named():
    with pytest.raises(AttributeError, match=r"^fgfm has no attribute 'nonsense': .*f_measure"):
        _ = fgfm.nonsense
    with pytest.raises(ImportError, match="nonsense"):
        from fgfm import nonsense  # noqa: F401


def test_version_is_that_of_the_distribution():
    assert fgfm.__version__ == metadata.version("fgfm")


@pytest.mark.parametrize("name", ["py.typed", "decision/_quadrature_table.npz"])
def test_data_file_is_installed(name):
    assert (resources.files("fgfm") / name).is_file()


def test_citation_names_this_version_and_the_paper():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load(of_the_repository("CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"] == "fgfm"
    assert citation["version"] == fgfm.__version__
    assert [reference["doi"] for reference in citation["references"]] == [
        "10.1007/978-3-319-46128-1_39"
    ]


def test_make_lists_its_targets():
    of_the_repository("Makefile")
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    done = subprocess.run(
        [make, "--no-print-directory", "-C", str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    # A target's line is indented: its name, then what it does.
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith(" ")]
    assert {name for name, _ in lines} == TARGETS
