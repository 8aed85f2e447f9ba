"""The documentation: its commands run and print what it shows; the reference is complete.

The Python examples in the pages are doctests (`testpaths` in pyproject.toml); `make docs` runs the
gallery.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
import types
from operator import attrgetter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import fgfm

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="docs are in the repository only")

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shell_blocks(text: str) -> list[tuple[str, str | None]]:
    """Return each block of shell commands with its output: the text block below it, or None."""
    found = list(BLOCK.finditer(text))
    blocks = []
    for at, block in enumerate(found):
        if block[1] == "sh":
            below = found[at + 1] if at + 1 < len(found) else None
            follows = below is not None and not text[block.end() : below.start()].strip()
            shown = below[2] if below is not None and follows and below[1] == "text" else None
            blocks.append((block[2], shown))
    return blocks


def programs_in(folder: Path) -> dict[str, str]:
    """Return an environment in which "python" and "fgfm" run in this interpreter."""
    folder.mkdir()
    for name, arguments in (("python", ""), ("fgfm", "-m fgfm.cli ")):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        program.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "RETICULATE_PYTHON": sys.executable}


def split_decimals(text: str) -> tuple[str, list[float]]:
    """Return a text with its decimal numbers replaced, and the numbers."""
    pattern = r"[+-]?\d+\.\d+"
    return re.sub(pattern, "#", text), list(map(float, re.findall(pattern, text)))


def registered() -> set[str]:
    """Return the names of the commands of the program."""
    typer_main = pytest.importorskip("typer.main")
    from fgfm.cli._app import app

    return set(typer_main.get_command(app).commands)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "tolerance"),
    [("get_started.md", 0.02), ("command_line.md", 0.0)],  # models differ a little by machine
    ids=["get_started.md", "command_line.md"],
)
def test_shell_commands_run_and_print_the_shown_output(tmp_path, page, tolerance):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    commands = registered()
    here = programs_in(tmp_path / "bin")
    folder = tmp_path / "files"
    shutil.copytree(ROOT / "examples/files", folder)
    blocks = shell_blocks((DOCS / page).read_text(encoding="utf-8"))
    assert len(blocks) >= 3
    for source, shown in blocks:
        if source.startswith("pip install"):
            continue
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
            texts, numbers = zip(*map(split_decimals, (done.stdout, shown)), strict=True)
            assert texts[0] == texts[1], source
            assert numbers[0] == pytest.approx(numbers[1], rel=0.0, abs=tolerance), source
        if moved := re.search(r"^cd (\S+)$", source, re.MULTILINE):
            folder = folder / moved[1]


@pytest.mark.slow
@pytest.mark.parametrize("package", ["base", "reticulate"])
def test_r_code_runs_and_prints_the_shown_output(tmp_path, package):
    # One session runs the blocks in order. Those that need a package come last.
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("R is not installed")
    needs = f'stopifnot(packageVersion("{package}") >= "1.38")'
    if subprocess.run([program, "-e", needs], capture_output=True, check=False).returncode:
        pytest.skip(f"the R package {package} 1.38 or newer is not installed")
    text = (DOCS / "mistakes.md").read_text(encoding="utf-8")
    if package == "base":
        text = text.partition("library(reticulate)")[0].rpartition("```r")[0]
    found = [block.groups() for block in BLOCK.finditer(text)]
    code = [f'cat("=== block\\n")\n{source}' for kind, source in found if kind == "r"]
    shown = [
        after[1] if after[0] == "text" else ""
        for block, after in zip(found, [*found[1:], ("", "")], strict=True)
        if block[0] == "r"
    ]
    done = subprocess.run(
        [program, "-e", "\n".join(code)],
        cwd=tmp_path,
        env=programs_in(tmp_path / "bin"),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for printed, expected in zip(done.stdout.split("=== block\n")[1:], shown, strict=True):
        texts, numbers = zip(*map(split_decimals, (printed, expected)), strict=True)
        assert texts[0] == texts[1]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.0, abs=1e-3)


def relative_links(text: str) -> set[str]:
    """Return the targets of links and images that are not absolute."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"\]\(([^)#]+)", text) + re.findall(r'(?:href|src)="([^"#]+)', text)
    return {link for link in found if not urlsplit(link).scheme}


def test_build_makes_the_links_of_the_readme_absolute():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    hooks = project["tool"]["hatch"]["metadata"]["hooks"]
    for rule in hooks["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    assert not relative_links(text)
    sites = set(re.findall(r"https://[^/]+/[^/]+/[^/]+", text))
    assert sites == {project["project"]["urls"]["Repository"]}


def load_module(path: str) -> types.ModuleType:
    """Import a file of docs/."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, DOCS / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["gain.png", "gain.svg"])
def test_picture_is_up_to_date(name):
    module = load_module("figures/gain.py")
    written = (DOCS / "_static" / name).read_bytes()
    assert module.digest(module.read_scores()).encode() in written, "python docs/figures/gain.py"


def test_check_of_the_site_finds_what_is_wrong(tmp_path):
    page = '<!doctype html><article id="top">{}</article>'
    faults = {
        "anchor.html": ('<a href="good.html#none">', "no such anchor in the page"),
        "file.html": ('<img src="none.png">', "none.png: no such file"),
        "load.html": ('<script src="https://example.org/a.js"></script>', "from elsewhere"),
        "long.html": ('<div style="height: 13000px"></div>', "px long at 1280 px"),
        "wide.html": ('<div style="width: 500px">x</div>', "px wide at 390 px"),
        "code.html": (f'<pre style="overflow: auto">{"x" * 999}</pre>', "cut at 1280 px: xxx"),
    }
    (tmp_path / "good.html").write_text(page.format('<a href="good.html#top">'))
    for name, (body, _) in faults.items():
        (tmp_path / name).write_text(page.format(body))
    command = [sys.executable, ROOT / "scripts/check_site.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    lines = done.stderr.splitlines()
    measured = any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome")))
    expected = list(faults.items())[: None if measured else 3]
    assert done.returncode == 1
    assert len(lines) == len(expected) + 1, done.stderr
    for name, (_, message) in expected:
        assert any(line.startswith(name) and message in line for line in lines), name


def test_every_public_name_is_in_the_reference():
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("reference/*.rst"))
    listed = re.findall(r"^   ([A-Za-z_][\w.]*)$", text, re.MULTILINE)
    listed = [name for name in listed if not name.startswith("torch.")]  # they need PyTorch
    documented = {id(attrgetter(name)(fgfm)): name for name in listed}
    assert len(documented) == len(listed), "a name is listed twice"
    public = {name: getattr(fgfm, name) for name in fgfm.__all__ if name != "__version__"}
    modules = [value for value in public.values() if isinstance(value, types.ModuleType)]
    wanted = {id(value): name for name, value in public.items() if value not in modules}
    for module in modules:
        # Names that fgfm exports too, such as fgfm.ILFCompo, are listed under one of both.
        wanted |= {id(getattr(module, name)): name for name in module.__all__}
    assert sorted(wanted[key] for key in wanted.keys() - documented.keys()) == []
    assert sorted(documented[key] for key in documented.keys() - wanted.keys()) == []
