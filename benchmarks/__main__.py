"""Run all benchmarks and print a report: ``python -m benchmarks [--quick] [--part NAME]``."""

from __future__ import annotations

import argparse
import os
import platform
import time
from importlib.metadata import version

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
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Run all parts and print their results."""
    options = _parse(arguments)
    # One core for all sides of a comparison. Libraries read these variables when they are loaded.
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    from benchmarks.parts import PARTS, Settings
    from benchmarks.report import Results, print_tables

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
    packages = {name: version(name) for name in ("fgfm", "numpy", "scipy")}
    print("fgfm: benchmarks" + (" (quick: sizes too small to compare)" if options.quick else ""))
    print(
        f"Python {platform.python_version()}, "
        + ", ".join(f"{name} {number}" for name, number in packages.items())
    )
    print(f"{processor_name()}; processor time, minimum of several runs: {seconds:.0f} s")
    print()
    print_tables([results.target_table(assessed=not options.quick), *results.tables])


if __name__ == "__main__":
    main()
