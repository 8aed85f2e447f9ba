"""Run other packages in environments of their own, on one core."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.environment import THREAD_VARIABLES

__all__ = ["FOLDER", "install", "run"]

FOLDER = Path(__file__).parents[1] / "outputs" / "environments"


def install(name: str, requirements: tuple[str, ...], folder: Path = FOLDER) -> Path:
    """Return the Python of an environment with these packages, made unless it exists."""
    home = folder / name
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    marker, wanted = home / "installed.txt", "\n".join(requirements)  # written last
    if not (marker.exists() and marker.read_text() == wanted):
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *requirements], check=True)
        marker.write_text(wanted)
    return python


def run(python: Path, script: Path, *arguments: object, limit: float | None = None) -> str:
    """Run a script, without our modules, and return what it prints."""
    ours = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV")
    variables = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [os.fspath(python), os.fspath(script), *map(str, arguments)],
        env=variables | dict.fromkeys(THREAD_VARIABLES, "1"),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=limit,
    )
    return done.stdout
