"""Compare the compiled kernels with the last version whose kernels numba compiled.

``python -m benchmarks.numba_rival`` installs that version, a commit of this repository, into an
environment of its own (``.venv-numba``). Both versions run in processes of their own, on the same
input, in turns; the minimum of each counts.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.environment import THREAD_VARIABLES, show_progress
from benchmarks.numba_child import CASES
from benchmarks.report import Column, Table, duration, ratio

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-numba"
COMMIT = "98a8d0c17e564a4e33b28d06d0311f24747ee02c"  # before the layout changed
ROUNDS = 5


def install() -> Path:
    """Install the numba version once; return its Python."""
    python = ENVIRONMENT / "bin" / "python"
    marker = ENVIRONMENT / f"installed-{COMMIT}"
    if not marker.exists():
        show_progress("installing the numba version")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "old.tar"
            git = ["git", "archive", "-o", str(archive), COMMIT]
            files = ["src", "pyproject.toml", "README.md", "LICENSE"]
            subprocess.run([*git, *files], cwd=ROOT, check=True)
            source = Path(folder) / "old"
            source.mkdir()
            subprocess.run(["tar", "-xf", str(archive), "-C", str(source)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "-qq", str(source)], check=True)
        marker.touch()
    return python


@contextmanager
def version(python: Path) -> Iterator[Any]:
    """Run `benchmarks.numba_child` with a Python; yield a function from a case to its seconds."""
    child = subprocess.Popen(
        [str(python), str(Path(__file__).with_name("numba_child.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={
            **dict.fromkeys(THREAD_VARIABLES, "1"),
            "PATH": "/usr/bin:/bin",
            "HOME": tempfile.gettempdir(),
        },
    )
    assert child.stdin is not None
    assert child.stdout is not None

    def ask(case: str) -> Any:
        print(case, file=child.stdin, flush=True)
        line = child.stdout.readline()
        if not line:
            raise RuntimeError(f"{python} ended while it measured {case!r}")
        return json.loads(line)

    try:
        yield ask
    finally:
        child.stdin.close()
        child.wait()


def main() -> None:
    """Print one row for each case, and the geometric mean of the ratios."""
    table = Table(
        "Compiled kernels against the last numba version: time per call, one core",
        [
            Column("what", left=True),
            Column("ours", duration),
            Column("numba", duration),
            Column("ratio", ratio),
        ],
    )
    ratios = []
    with version(Path(sys.executable)) as ours, version(install()) as numba:
        for case in CASES:
            show_progress(case)
            least = [math.inf, math.inf]
            results = []
            for _ in range(ROUNDS):
                for side, ask in enumerate((ours, numba)):
                    found = ask(case)
                    least[side] = min(least[side], found["seconds"])
                    results.append(found["result"])
            if max(results) - min(results) > 1e-9 * abs(max(results)):
                raise RuntimeError(f"{case}: the versions disagree: {sorted(set(results))}")
            ratios.append(least[1] / least[0])
            table.rows.append((case, *least, ratios[-1]))
    show_progress("")
    print("\n".join(table.lines()))
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean of the ratios {mean:.2f}, smallest {min(ratios):.2f}")


if __name__ == "__main__":
    main()
