"""Run all benchmarks and print a report: ``python -m benchmarks [--quick] [--part NAME]``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

from benchmarks.environment import THREAD_VARIABLES, processor_name, show_progress


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure the speed of fgfm against alternatives."
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, a few seconds, to check that everything runs",
    )
    parser.add_argument(
        "--part", action="append", metavar="NAME", help="run this part only; may be repeated"
    )
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="also write the results to this file"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Run all parts and print their results."""
    options = _parse(arguments)
    # One core for all sides of a comparison. Libraries read these variables when they are loaded.
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    from benchmarks.parts import PARTS, Settings
    from benchmarks.report import Results
    from fgfm._utils.atomic import atomic_file

    start = time.perf_counter()
    results = Results()
    settings = Settings(options.quick, show_progress)
    try:
        for part in PARTS:
            if options.part is None or part.__name__ in options.part:
                results.add(part(settings))
    finally:
        show_progress("")
    seconds = time.perf_counter() - start
    if options.quick:
        for target in results.targets:
            target.assessed = False

    packages = {name: version(name) for name in ("fgfm", "numpy", "scipy")}
    environment = {
        "python": platform.python_version(),
        **packages,
        "processor": processor_name(),
        "quick": options.quick,
        "seconds": seconds,
    }
    print("fgfm: benchmarks" + (" (quick: sizes too small to compare)" if options.quick else ""))
    print(
        f"Python {environment['python']}, "
        + ", ".join(f"{name} {number}" for name, number in packages.items())
    )
    print(f"{environment['processor']}; processor time, minimum of several runs: {seconds:.0f} s")
    for table in (results.target_table(), *results.tables):
        print()
        print("\n".join(table.lines()))
    if options.json is not None:
        content = json.dumps({"environment": environment, **results.record()}, indent=2)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(options.json) as file:
            file.write(content.encode())
        print(f"\nwritten: {options.json}")


if __name__ == "__main__":
    main()
