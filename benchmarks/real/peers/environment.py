"""Install other packages into environments of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.real.peers.registry import Peer

__all__ = ["PeerError", "environment_variables", "install", "read_log"]

_MARKER = "installed.txt"  # written last: without it an environment is incomplete
_MAX_LINE = 300  # characters of a message
_THREAD_VARIABLES = (
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


class PeerError(RuntimeError):
    """Another package cannot be installed, failed, or returned an invalid result."""


def install(peer: Peer, folder: str | os.PathLike[str]) -> Path:
    """Install a package into an environment of its own, unless it is installed."""
    folder = Path(folder).absolute()
    home = folder / peer.environment
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    marker = home / _MARKER
    wanted = "\n".join(peer.requirements)
    if python.exists() and marker.exists() and marker.read_text(encoding="utf-8") == wanted:
        return python
    folder.mkdir(parents=True, exist_ok=True)
    marker.unlink(missing_ok=True)
    steps = [[sys.executable, "-m", "venv", "--clear", str(home)]]
    if not peer.requirements:
        steps[0].append("--without-pip")
    else:
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        steps.append([*pip, "--progress-bar", "off", *peer.requirements])
    log = folder / f"{peer.environment}.log"
    with log.open("w", encoding="utf-8") as file:
        for step in steps:
            done = subprocess.run(
                step,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment_variables(),
                check=False,
            )
            if done.returncode != 0:
                file.flush()
                raise PeerError(f"{peer.name} cannot be installed: {_last_error(log)} (see {log})")
    marker.write_text(wanted, encoding="utf-8")
    return python


def environment_variables() -> dict[str, str]:
    """Return the variables for another package: one core, and none of our modules."""
    ours = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    # the folder of the scripts may be read-only
    own = {"PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return kept | dict.fromkeys(_THREAD_VARIABLES, "1") | own


def read_log(log: Path) -> list[str]:
    """Return the lines of a log, stripped and cut to a readable length."""
    text = log.read_text(encoding="utf-8", errors="replace")
    return [line.strip()[:_MAX_LINE] for line in text.splitlines() if line.strip()]


def _last_error(log: Path) -> str:
    """Return the last error of pip, which hints and notices may follow."""
    lines = read_log(log)
    errors = [line for line in lines if re.match(r"error:", line, re.IGNORECASE)]
    return (errors or lines or ["no output"])[-1]
