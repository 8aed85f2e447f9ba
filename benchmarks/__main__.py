"""Measure, and print one report: ``python -m benchmarks [--quick] [--json PATH]``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

_THREAD_VARIABLES = (
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure how fast fgfm is, and against what."
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, a few seconds: does it all run?"
    )
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="write the results to this file as well"
    )
    return parser.parse_args(arguments)


def _progress(message: str) -> None:
    """Show what is being measured, on a terminal only; an empty message clears the line."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{message}", end="", file=sys.stderr, flush=True)


def _processor() -> str:
    """Name the processor, as far as the system tells."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=path.name, suffix=".part", delete=False
    ) as file:
        try:
            json.dump(content, file, indent=2)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def main(arguments: list[str] | None = None) -> None:
    """Run all parts and print what they found."""
    options = _parse(arguments)
    # One core for everybody; the libraries read these when they are loaded.
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    from benchmarks.parts import PARTS, Settings
    from benchmarks.report import Results

    start = time.perf_counter()
    results = Results()
    settings = Settings(options.quick, _progress)
    try:
        for part in PARTS:
            results.add(part(settings))
    finally:
        _progress("")
    seconds = time.perf_counter() - start
    if options.quick:
        for target in results.targets:
            target.judged = False

    packages = {name: version(name) for name in ("fgfm", "numpy", "scipy", "numba")}
    environment = {
        "python": platform.python_version(),
        **packages,
        "processor": _processor(),
        "quick": options.quick,
        "seconds": seconds,
    }
    print("fgfm: benchmarks" + (" (quick: sizes too small to judge)" if options.quick else ""))
    print(
        f"Python {environment['python']}, "
        + ", ".join(f"{name} {number}" for name, number in packages.items())
    )
    print(f"{environment['processor']}; least of several times; took {seconds:.0f} s")
    for table in (results.target_table(), *results.tables):
        print()
        print("\n".join(table.lines()))
    if options.json is not None:
        _write_json(options.json, {"environment": environment, **results.record()})
        print(f"\nwritten: {options.json}")


if __name__ == "__main__":
    main()
