"""Check every figure in the README and the documentation: ``python -m benchmarks.verify``.

A figure is a number that was measured: one with a unit of time or memory, a percentage, "2.1
times", "3 of 4", a number with two or more decimals or an exponent, and every number in a
right-aligned column of a table. Blocks of code, whose output tests compare, are not searched. The
figures of a statement (a sentence, or a row of a table) pass if

- the section that has it, or one around that, names a command of `COMMANDS`, and as many numbers
  in a few consecutive lines of its stored output round to them (the README may link to the page
  instead);
- numbers in an example of the page do; or
- they are in ``docs/benchmark/given.txt``: phrases with what is set or defined, not measured.

Some coincidences pass: of figures changed in their last digit about one in seven. Files that pages
include are verified by the ``--check`` of their commands. ``--list`` prints the command of each
statement, and ``--store NAME`` runs a command and stores its output.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from benchmarks.environment import processor_name
from fgfm._utils.atomic import atomic_file

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
STORED = DOCS / "benchmark"

# The commands that print figures, and the files that have their output; "FILE.txt" is written by
# --store, the others by the command.
COMMANDS = {
    "make bench": "speed.txt",
    "python -m benchmarks": "speed.txt",
    "python -m benchmarks.bounds": "bounds.txt",
    "python -m benchmarks.classes": "classes/summary.md",
    "python -m benchmarks.cluster": "cluster.txt",
    "python -m benchmarks.costs": "costs/tables.txt",
    "python -m benchmarks.decider": "decider/summary.md",
    "python -m benchmarks.extreme": "extreme.txt",
    "python -m benchmarks.fit": "fit.txt",
    "python -m benchmarks.gpu": "gpu.txt",
    "python -m benchmarks.large": "large.txt",
    "python -m benchmarks.masks": "masks.txt",
    "python -m benchmarks.reference_f": "reference_f.txt",
    "python -m benchmarks.reference_factors": "reference_factors.txt",
    "python -m benchmarks.stream": "stream.txt",
    "python -m benchmarks.study": "study/summary.md",
    "fgfm reproduce": "../paper/table.txt",
}
FRONT = ("README.md", "index.md")  # they link to the pages with the commands
EXAMPLE = "an example of the page"
WINDOW = 4  # lines of a stored output that may have the figures of one statement

SIZES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
TIMES |= {"seconds": 1.0, "minute": 60.0, "minutes": 60.0, "hours": 3600.0}
RATIOS = {"x": 1.0, "times": 1.0, "%": 0.01}
UNITS = {**SIZES, **TIMES, **RATIOS}

NUMBER = r"[-+]?(?:\d{1,3}(?:[ ,]\d{3})+(?!\d)|\d+)?(?:\.\d+|(?<=\d))(?:e[-+]?\d+)?"
UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
FIGURE = re.compile(
    rf"(?<![\w.^-])(?P<first>{NUMBER})(?:(?:\s+(?P<word>to|of)\s+|-)(?P<last>{NUMBER}))?"
    rf"(?:\s?(?P<unit>{UNIT})(?![\w/]| \d))?(?![\w^])"
)
VERSION = re.compile(
    r"\b(?:JAX|MONAI|NumPy|Python|PyTorch|SciPy|Triton|nnU-Net|polars|pytest|rankseg|scikit-learn)"
    r"\s+\d+(?:\.\d+)*"
)


class Value(NamedTuple):
    """A number (in seconds, bytes or without a dimension) and the step of its last digit."""

    value: float
    step: float
    kind: str
    signed: bool

    def is_near(self, other: Value) -> bool:
        """Return whether another number rounds to this."""
        return other.kind == self.kind and self.distance(other) <= 0.501 * self.step

    def distance(self, other: Value) -> float:
        """Return the distance from another number."""
        return abs((other.value if self.signed else abs(other.value)) - self.value)


class Figure(NamedTuple):
    """A figure, or a range of two, and its place in a text."""

    at: int
    text: str
    values: list[Value]


class Statement(NamedTuple):
    """The figures of a sentence or of a row of a table."""

    line: int
    figures: list[Figure]


def read_number(number: str, unit: str | None) -> Value:
    """Return the value of a number in a text."""
    digits, _, exponent = number.replace(" ", "").replace(",", "").partition("e")
    scale = 10.0 ** int(exponent or 0) * UNITS.get(unit or "x", 1.0)
    kind = "size" if unit in SIZES else "time" if unit in TIMES else ""
    step = 10.0 ** -len(digits.partition(".")[2])
    return Value(float(digits) * scale, step * scale, kind, digits[0] in "+-")


def find_figures(text: str, *, everything: bool = False) -> Iterator[Figure]:
    """Yield the figures of a text: those that are measured, or every number."""
    for match in FIGURE.finditer(text):
        first, last, unit = match["first"], match["last"], match["unit"]
        precise = any(re.search(r"\.\d\d|e", number) for number in (first, last) if number)
        if everything or unit or precise or match["word"] == "of":
            values = [read_number(number, unit) for number in (first, last) if number]
            yield Figure(match.start(), " ".join(match[0].split()), values)


def blank(pattern: str, text: str) -> str:
    """Remove what matches from a text, except for its line breaks."""
    return re.sub(
        pattern, lambda match: "~" + "\n" * match[0].count("\n"), text, flags=re.M | re.S
    )


def statements(text: str, given: list[str]) -> Iterator[Statement]:
    """Yield the statements of a Markdown text that have figures."""
    text = blank(r"^(```+)[^\n]*\n.*?^\1$|^ {4}\S[^\n]*$|<!--.*?-->", text)
    text = blank(r"`[^`]+`|\$\$.*?\$\$|\$[^$]+\$|\]\([^)]*\)|<a [^>]*>", text)
    for phrase in given:
        text = blank(rf"(?<!\w){flexible(phrase)}(?!\w)", text)
    lines = VERSION.sub("~", text).split("\n")
    found = []
    right: list[bool] = []  # which columns of the current table are right-aligned
    for at, line in enumerate(lines):
        if not line.startswith("|"):
            right = []
        elif re.fullmatch(r"[|: -]+", line):
            right = [cell.endswith(":") for cell in line.strip("|").split("|")]
        elif right:
            cells = zip(line.strip("|").split("|"), right, strict=False)
            figures = [list(find_figures(cell, everything=numbers)) for cell, numbers in cells]
            # A row of numbers is one statement, in a table of texts each cell is.
            rows = [[f for cell in figures for f in cell]] if any(right) else figures
            found += [Statement(at + 1, row) for row in rows]
        lines[at] = "" if line.startswith("|") else line
    text, start = "\n".join(lines), 0
    for end in re.finditer(r"[.!?](?=\s)|\n\s*\n|\n\s*[-*] |\Z", text):
        first = text.count("\n", 0, start) + 1
        part = text[start : end.end()]
        figures = list(find_figures(part))
        line = first + part.count("\n", 0, figures[0].at) if figures else first
        found.append(Statement(line, figures))
        start = end.end()
    yield from (statement for statement in found if statement.figures)


def flexible(phrase: str) -> str:
    """Return a pattern of a phrase that may be broken over lines."""
    return r"\s+".join(map(re.escape, phrase.split()))


def sections(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the first line, the level and the text of each section, up to the next heading."""
    fenced, starts = False, [(1, 0)]
    for at, line in enumerate(text.split("\n"), 1):
        fenced ^= line.startswith("```")
        if not fenced and (heading := re.match(r"#+(?= )", line)):
            starts.append((at, len(heading[0])))
    lines = text.split("\n")
    for (at, level), (end, _) in zip(starts, [*starts[1:], (len(lines) + 1, 0)], strict=True):
        yield at, level, "\n".join(lines[at - 1 : end - 1])


def commands_in(text: str) -> list[str]:
    """Return the commands that a text names."""
    return [
        name for name in COMMANDS if re.search(rf"(?<![\w-]){flexible(name)}(?![\w-]|\.\w)", text)
    ]


def linked_pages(text: str) -> str:
    """Return the text of the pages of the documentation that a text links to."""
    names = set(re.findall(r"\]\((?:docs/)?(\w+\.md)", text))
    return "\n".join((DOCS / name).read_text() for name in sorted(names) if (DOCS / name).exists())


@cache
def stored_values(command: str) -> list[list[Value]]:
    """Return the numbers in each line of the stored output of a command."""
    path = STORED / COMMANDS[command]
    return read_values(path.read_text()) if path.exists() else []


def read_values(text: str) -> list[list[Value]]:
    """Return all numbers in each line of a text."""
    lines = []
    for block in text.split("\n\n"):
        scaled = re.search(r"in units of (1e-\d+)", block)
        for line in block.split("\n"):
            values = [v for f in find_figures(line, everything=True) for v in f.values]
            if scaled:
                values += [v._replace(value=v.value * float(scaled[1])) for v in values]
            lines.append(values)
    return lines


def agrees(figures: list[Figure], lines: list[list[Value]]) -> bool:
    """Return whether as many numbers in some consecutive lines round to the figures."""
    wanted = [value for figure in figures for value in figure.values]
    windows = (list(chain(*lines[at : at + WINDOW])) for at in range(len(lines)))
    return any(match(wanted, window) for window in windows)


def match(wanted: list[Value], numbers: list[Value]) -> bool:
    """Return whether a different one of the numbers, which are used up, rounds to each value."""
    for value in wanted:
        near = filter(value.is_near, numbers)
        if (nearest := min(near, key=value.distance, default=None)) is None:
            return False
        numbers.remove(nearest)
    return True


def sources(
    page: Path, given: list[str]
) -> Iterator[tuple[Statement, dict[str, list[list[Value]]]]]:
    """Yield each statement of a page, with the numbers of the commands that may have made it."""
    text = page.read_text()
    examples = read_values("\n".join(re.findall(r"^```\w+\n(.*?)^```$", text, re.M | re.S)))
    around: list[tuple[int, str]] = []  # the sections around the current one
    found = list(statements(text, given))
    for start, level, section in sections(text):
        around = [(at, outer) for at, outer in around if at < level]
        around.append((level, section))
        end = start + section.count("\n")
        named = [c for _, outer in reversed(around) for c in commands_in(outer)]
        named += commands_in(linked_pages(section)) if page.name in FRONT else []
        numbers = {command: stored_values(command) for command in named} | {EXAMPLE: examples}
        yield from ((s, numbers) for s in found if start <= s.line <= end)


def check_included(name: str) -> list[str]:
    """Return what is wrong with the files of a command that pages include."""
    # The costs are computed from stored rates: there is nothing else to compare.
    options = [] if name == "costs" else ["--check"]
    command = [sys.executable, "-m", f"benchmarks.{name}", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    same = name != "costs" or done.stdout == (STORED / "costs" / "tables.txt").read_text()
    ended = done.stdout + done.stderr if done.returncode else "tables.txt is out of date"
    return [] if same and done.returncode == 0 else [f"benchmarks.{name}: {ended}"]


def read_given() -> list[str]:
    """Return the phrases whose numbers are not measured."""
    lines = (STORED / "given.txt").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def store(name: str) -> None:
    """Run a command and store what it prints."""
    command = next((c for c, file in COMMANDS.items() if file == f"{name}.txt"), None)
    if command is None:
        names = sorted(file[:-4] for file in COMMANDS.values() if "/" not in file)
        sys.exit(f"no command is stored as {name}: choose one of {', '.join(names)}")
    words = shlex.split(command)
    words[0] = {"python": sys.executable}.get(words[0], words[0])
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    head = f"$ {command}\n{time.strftime('%Y-%m-%d')}, {processor_name()}, {os.cpu_count()} cores"
    with atomic_file(STORED / f"{name}.txt") as file:
        file.write(f"{head}\n\n{done.stdout.rstrip()}\n".encode())


def main(arguments: list[str] | None = None) -> None:
    """Verify all pages, and exit with a message unless every figure passes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verify", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the command of each figure")
    parser.add_argument("--store", metavar="NAME", help="run a command and store its output")
    options = parser.parse_args(arguments)
    if options.store:
        return store(options.store)
    pages = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
    given = read_given()
    wrong, verified = [], 0
    for page in pages:
        for (line, figures), numbers in sources(page, given):
            place = f"{page.relative_to(ROOT)}:{line}: {', '.join(f.text for f in figures)}"
            makers = [name for name, lines in numbers.items() if agrees(figures, lines)]
            verified += len(figures)
            if not makers:
                wrong.append(f"{place}: not in the stored output of a command that is named there")
            elif options.list:
                print(f"{place}: {makers[0]}")
    texts = "\n".join(page.read_text() for page in pages)
    for phrase in given:
        wrong += [] if re.search(flexible(phrase), texts) else [f"given.txt: no page has {phrase}"]
    for name in sorted(set(re.findall(r"include\} benchmark/(\w+)/", texts))):
        wrong += check_included(name)
    print("\n".join(wrong) or f"{verified} figures agree with stored results")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
