"""The command ``python -m benchmarks.real``."""

from __future__ import annotations

import argparse
import shlex
import sys
import textwrap
import time
from pathlib import Path

from benchmarks.real import BenchmarkResults, benchmark, write_report
from benchmarks.real.peers import PEERS
from benchmarks.real.problem import LEARNERS
from benchmarks.real.rules import RULES
from benchmarks.real.tables import count, format_terminal

EXAMPLES = """\
examples:
  python -m benchmarks.real data
      all rules on a folder of data sets
  python -m benchmarks.real data --datasets scene,yeast --rules default,threshold
  python -m benchmarks.real openml:yeast --learners ridge,forest
"""


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real",
        description="Compare decision rules, base learners and other packages on real data.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "data",
        nargs="*",
        metavar="DATA",
        help="a folder, files, or names such as openml:yeast (default: the folder FGFM_DATA)",
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path("fgfm-benchmark"),
        metavar="FOLDER",
        help="output folder; a stopped run continues from it (default: %(default)s)",
    )
    for name, text in (
        ("datasets", "data sets (default: all)"),
        ("learners", f"base learners: {', '.join(LEARNERS)} (default: ridge)"),
        ("rules", f"decision rules: {', '.join(RULES)} (default: all)"),
        ("peers", f"other packages: {', '.join(PEERS)} (default: none)"),
    ):
        parser.add_argument(
            f"--{name}",
            type=_split,
            action="extend",
            metavar="NAMES",
            help=f"comma-separated {text}",
        )
    parser.add_argument(
        "--limit",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="time limit of a task (default: %(default)g)",
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    parser.add_argument(
        "-j",
        "--jobs",
        type=int,
        default=-1,
        metavar="N",
        help="number of processes; -1 for one per core (default: %(default)s)",
    )
    parser.add_argument("--retry", action="store_true", help="compute failed results again")
    return parser


def _split(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


class _Progress:
    """Count finished tasks, and show the count if standard error is a terminal."""

    def __init__(self) -> None:
        self.done = 0

    def __call__(self, done: int, total: int) -> None:
        self.done = done
        if sys.stderr.isatty():
            end = "\n" if done == total else ""
            print(f"\r{done} of {total} tasks", end=end, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark, print its summary, and write its report."""
    parser = make_parser()
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    progress = _Progress()
    try:
        results = _run(options, progress)
    except (OSError, ValueError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    except KeyboardInterrupt:
        parser.exit(
            130,
            f"\n{count(progress.done, 'task')} stored in {options.out}; the same command "
            "continues from there\n",
        )
    seconds = time.perf_counter() - start
    paths = write_report(results, shlex.join([*parser.prog.split(), *arguments]))
    print(format_terminal(results.summary))
    if progress.done:
        _print_message(
            f"{count(progress.done, 'task')} computed in {seconds:.0f} s, including start-up"
        )
    else:
        _print_message(f"nothing to compute: {options.out} contains all results")
    names = [*(path.name for path in paths), "results.csv", "settings.json", "rows"]
    _print_message(f"{options.out}: {', '.join(names)}")


def _run(options: argparse.Namespace, progress: _Progress) -> BenchmarkResults:
    data = options.data
    return benchmark(
        options.out,
        data=data[0] if len(data) == 1 else data or None,
        datasets=options.datasets,
        learners=options.learners or ["ridge"],
        rules=options.rules or RULES,
        peers=options.peers or (),
        limit=options.limit,
        seed=options.seed,
        n_jobs=options.jobs,
        retry=options.retry,
        progress=progress,
    )


def _print_message(text: str) -> None:
    print(textwrap.fill(text, 80, subsequent_indent="  "), file=sys.stderr)


if __name__ == "__main__":
    main()
