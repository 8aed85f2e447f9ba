"""The package as a whole: public names, imports, and the files around it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module, metadata, resources
from pathlib import Path
from pkgutil import iter_modules

import pytest

import fgfm

ROOT = Path(__file__).resolve().parent.parent

PUBLIC = set(fgfm.__all__)


def run_python(code: str) -> str:
    """Run `code` in a fresh interpreter, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository_file(name: str) -> Path:
    """Return the path of a file of the repository; skip the test in an installed package."""
    path = ROOT / name
    if not path.is_file():
        pytest.skip(f"{name} is in the repository only")
    return path


# Names -------------------------------------------------------------------------------------------


def test_all_and_dir_are_the_public_names():
    assert len(fgfm.__all__) == len(PUBLIC)
    assert set(dir(fgfm)) == PUBLIC
    assert set(run_python("from fgfm import *\nprint(*dir())").split()) >= PUBLIC


def public_modules() -> list[str]:
    """Return the modules of the package whose names have no underscore."""
    names = (module.name for module in iter_modules(fgfm.__path__))
    return [f"fgfm.{name}" for name in names if not name.startswith("_")]


@pytest.mark.parametrize("name", public_modules())
def test_dir_of_a_module_is_its_all(name):
    if name == "fgfm.torch":
        pytest.importorskip("torch")
    module = import_module(name)
    assert module.__doc__
    assert dir(module) == sorted(set(module.__all__))
    assert len(module.__all__) == len(dir(module))
    assert all(hasattr(module, public) for public in module.__all__)


@pytest.mark.parametrize("backwards", [False, True])
def test_public_names_resolve_in_a_fresh_interpreter(backwards):
    names = sorted(PUBLIC, reverse=backwards)
    condition = " and ".join(f"fgfm.{name} is not None" for name in names)
    assert run_python(f"import fgfm; print({condition})") == "True\n"


def test_public_names_are_those_of_their_modules():
    assert fgfm.Decision is fgfm.decision.Decision
    assert fgfm.ILFCompo is fgfm.factors.ILFCompo
    assert fgfm.f_measure is fgfm.metrics.f_measure
    assert fgfm.f_scorer is fgfm.metrics.f_scorer


def test_docstring_lists_the_public_names():
    for name in PUBLIC - {"__version__"}:
        assert f"`fgfm.{name}`" in fgfm.__doc__


def test_unknown_attribute_raises():
    with pytest.raises(AttributeError, match=r"^fgfm has no attribute 'nonsense': .*f_measure"):
        _ = fgfm.nonsense
    with pytest.raises(ImportError, match="nonsense"):
        from fgfm import nonsense  # noqa: F401


def test_public_names_and_signatures_are_the_stored_ones():
    script, stored = map(repository_file, ("scripts/list_api.py", "tests/api.txt"))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines() == stored.read_text(encoding="utf-8").splitlines(), (
        "if the change is meant: python scripts/list_api.py > tests/api.txt"
    )


# Imports -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        ("import fgfm", {"numpy", "scipy", "sklearn"}),
        ("import fgfm.decision", {"joblib", "sklearn"}),
        ("import fgfm.metrics", {"joblib", "sklearn"}),
        ("import fgfm; fgfm.decision.from_marginals([[0.5]])", {"sklearn"}),
    ],
)
def test_import_loads_no_heavy_library(code, forbidden):
    """Nor any of the optional libraries."""
    optional = {"dask", "matplotlib", "networkx", "pandas", "polars"}
    optional |= {"onnx", "pyarrow", "skops", "torch", "triton", "typer"}
    loaded = run_python(f"import sys; {code}; print(*{{n.split('.')[0] for n in sys.modules}})")
    assert "fgfm" in loaded.split()
    assert not (forbidden | optional) & set(loaded.split())


def test_missing_torch_raises_with_the_install_command():
    code = "import sys; sys.modules['torch'] = None\ntry:\n import fgfm.torch\n"
    printed = run_python(code + "except ImportError as error:\n print(error)")
    assert printed == "fgfm.torch needs PyTorch: pip install 'fgfm[torch]'\n"


# Files -------------------------------------------------------------------------------------------


def test_version_is_that_of_the_distribution():
    assert fgfm.__version__ == metadata.version("fgfm")


@pytest.mark.parametrize("name", ["py.typed", "decision/_quadrature_table.npz"])
def test_data_file_is_installed(name):
    assert (resources.files("fgfm") / name).is_file()


def test_citation_names_this_version_and_the_paper():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load(repository_file("CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"] == "fgfm"
    assert citation["version"] == fgfm.__version__
    assert [reference["doi"] for reference in citation["references"]] == [
        "10.1007/978-3-319-46128-1_39"
    ]
