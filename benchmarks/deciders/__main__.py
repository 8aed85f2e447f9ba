"""The command ``python -m benchmarks.deciders``."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Collection
from pathlib import Path

from benchmarks.deciders.compare import Pair, compare
from benchmarks.deciders.learners import LEARNERS
from benchmarks.deciders.peers import PEERS
from benchmarks.deciders.probabilities import cache_probabilities, path_of, read_failures
from benchmarks.deciders.report import GROUPS, Scores, format_terminal, in_group, write_report
from benchmarks.deciders.rules import RULES
from benchmarks.real.splits import find_sources

EXAMPLES = """\
examples:
  python -m benchmarks.deciders data --out outputs/deciders
      all learners, rules and packages on a folder of data sets
  python -m benchmarks.deciders data --out outputs/deciders --group development --stored
      the rules only, on stored probabilities of the development sets
  python -m benchmarks.deciders data --out outputs/deciders --again fdecider,guarantee
      FDecider again, after it has changed
"""
REPORT = Path(__file__).parents[2] / "docs" / "benchmark" / "deciders"


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.deciders",
        description="Compare rules that decide from the probabilities of any model, tuned on "
        "validation rows: thresholds, F-optimal decisions, FDecider and other packages.",
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
        default=Path("outputs") / "deciders",
        metavar="FOLDER",
        help="probabilities and scores; a stopped run continues from it (default: %(default)s)",
    )
    parser.add_argument(
        "--report",
        type=Path,
        default=REPORT,
        metavar="FOLDER",
        help="tables and figure (default: docs/benchmark/deciders)",
    )
    for name, default, choices, text in (
        ("datasets", None, None, "data sets (default: all)"),
        ("learners", list(LEARNERS), LEARNERS, "learners (default: all)"),
        ("rules", list(RULES), RULES, "rules (default: all)"),
        ("peers", list(PEERS), PEERS, "other packages (default: all; '' for none)"),
        ("again", [], [*RULES, *PEERS], "rules and packages to compute again (default: none)"),
    ):
        parser.add_argument(
            f"--{name}",
            type=_names(choices),
            default=default,
            metavar="NAMES",
            help=f"comma-separated {text}" + (f": {', '.join(choices)}" if choices else ""),
        )
    parser.add_argument(
        "--group", choices=GROUPS, default="all", help="data sets (default: %(default)s)"
    )
    parser.add_argument(
        "--stored", action="store_true", help="use stored probabilities only; fit no learner"
    )
    parser.add_argument("--retry", action="store_true", help="fit learners again that failed")
    parser.add_argument(
        "--limit",
        type=float,
        default=900.0,
        metavar="SECONDS",
        help="time limit of a learner or of a rule on one data set (default: %(default)g)",
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    parser.add_argument(
        "-j", "--jobs", type=int, default=1, metavar="N", help="processes (default: %(default)s)"
    )
    return parser


def _names(choices: Collection[str] | None) -> Callable[[str], list[str]]:
    """Return a function that parses comma-separated names."""

    def parse(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        for name in names:
            if choices is not None and name not in choices:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(choices)}")
        return names

    return parse


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark, print its summary, and write its report."""
    parser = make_parser()
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(arguments)
    data = options.data[0] if len(options.data) == 1 else options.data or None
    try:
        sources = find_sources(data, options.datasets)
        sources = [source for source in sources if in_group(source.name, options.group)]
        if not options.stored:
            cache_probabilities(
                options.out,
                sources,
                options.learners,
                limit=options.limit,
                seed=options.seed,
                n_jobs=options.jobs,
                retry=options.retry,
                progress=_show,
            )
        pairs = [
            Pair(source.name, learner, path_of(options.out, source.name, learner))
            for source in sources
            for learner in options.learners
        ]
        records = compare(
            options.out,
            [pair for pair in pairs if pair.path.exists()],
            options.rules,
            options.peers,
            limit=options.limit,
            seed=options.seed,
            n_jobs=options.jobs,
            again=options.again,
            progress=_show,
        )
    except (OSError, ValueError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    scores = Scores(records, options.seed)
    failures = read_failures(options.out)
    missing = {
        name: failures.get(name, "not computed")
        for name in (pair.path.stem for pair in pairs if not pair.path.exists())
    }
    command = shlex.join([*parser.prog.split(), *arguments])
    paths = write_report(options.report, scores, missing, command)
    print(format_terminal(scores))
    _show(f"{options.report}: {', '.join(path.name for path in paths)}")


def _show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
