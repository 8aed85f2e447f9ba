"""Check every figure in the README and the documentation: ``python -m benchmarks.verify``.

A figure is a number that was measured: one with a unit of time or memory, a percentage, "2.1
times", "3 of 4", a number with two or more decimals or an exponent, and every number in a
right-aligned column of a table. Blocks of code, whose output tests compare, have none. A figure
passes if

- the section that has it, one around that, or a page that it links to, names a command of
  `COMMANDS`, and a number in the stored output of the command rounds to it; or
- its phrase is in ``docs/benchmark/given.txt``: what is set or defined, not measured.

Files that pages include are verified by the ``--check`` of their commands. ``--list`` prints the
command of each figure, and ``--store NAME`` runs a command and stores what it prints.
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
    "make bench-fit": "fit.txt",
    "make demo": "demo.txt",
    "python -m benchmarks.bounds": "bounds.txt",
    "python -m benchmarks.classes": "classes/summary.md",
    "python -m benchmarks.cluster": "cluster.txt",
    "python -m benchmarks.costs": "costs/tables.txt",
    "python -m benchmarks.decider": "decider/summary.md",
    "python -m benchmarks.extreme": "extreme.txt",
    "python -m benchmarks.gpu": "gpu.txt",
    "python -m benchmarks.masks": "masks.txt",
    "python -m benchmarks.reference_f": "reference_f.txt",
    "python -m benchmarks.reference_factors": "reference_factors.txt",
    "python -m benchmarks.stream": "stream.txt",
    "python -m benchmarks.study": "study/summary.md",
    "fgfm reproduce": "../paper/table.txt",
}
CHECKED = ("classes", "decider", "study")  # commands that verify the files that pages include

SIZES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
TIMES |= {"seconds": 1.0, "minute": 60.0, "minutes": 60.0, "hours": 3600.0}
RATIOS = {"x": 1.0, "times": 1.0, "%": 0.01}
UNITS = {**SIZES, **TIMES, **RATIOS}

NUMBER = r"[-+]?(?:\d{1,3}(?:[ ,]\d{3})+(?!\d)|\d+)?(?:\.\d+|(?<=\d))(?:e[-+]?\d+)?"
UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
FIGURE = re.compile(
    rf"(?<![\w.^-])(?P<first>{NUMBER})(?:(?:\s+(?P<word>to|of)\s+|-)(?P<last>{NUMBER}))?"
    rf"(?:\s?(?P<unit>{UNIT})(?![\w/]))?(?![\w^])"
)
VERSION = re.compile(
    r"\b(?:JAX|MONAI|NumPy|Python|PyTorch|SciPy|Triton|nnU-Net|polars|pytest|rankseg|scikit-learn)"
    r"\s+\d+(?:\.\d+)*"
)


class Value(NamedTuple):
    """A number in seconds, bytes or without a dimension, the step of its last digit, and both."""

    value: float
    step: float
    kind: str
    signed: bool


class Figure(NamedTuple):
    """A figure in a text."""

    line: int
    text: str
    values: list[Value]


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
            line = text.count("\n", 0, match.start()) + 1
            yield Figure(line, " ".join(match[0].split()), values)


def blank(pattern: str, text: str) -> str:
    """Remove what matches from a text, except for its line breaks."""
    return re.sub(
        pattern, lambda match: "~" + "\n" * match[0].count("\n"), text, flags=re.M | re.S
    )


def figures_of_page(text: str, given: list[str]) -> Iterator[Figure]:
    """Yield the figures of a Markdown text."""
    text = blank(r"^(```+)[^\n]*\n.*?^\1$|^ {4}\S[^\n]*$|<!--.*?-->", text)
    text = blank(r"`[^`]+`|\$\$.*?\$\$|\$[^$]+\$|\]\([^)]*\)|<a [^>]*>", text)
    for phrase in given:
        text = blank(rf"(?<!\w){flexible(phrase)}(?!\w)", text)
    lines = VERSION.sub("~", text).split("\n")
    right: list[bool] = []  # the columns of the current table that are right-aligned
    for at, line in enumerate(lines):
        if not line.startswith("|"):
            right = []
        elif re.fullmatch(r"[|: -]+", line):
            right = [cell.endswith(":") for cell in line.strip("|").split("|")]
        elif right:
            cells = line.strip("|").split("|")
            numbers = " | ".join(c for c, is_right in zip(cells, right, strict=False) if is_right)
            for figure in find_figures(numbers, everything=True):
                yield figure._replace(line=at + 1)
            lines[at] = " | ".join(
                c for c, is_right in zip(cells, right, strict=False) if not is_right
            )
    yield from find_figures("\n".join(lines))


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
    return [name for name in COMMANDS if re.search(rf"(?<![\w-]){flexible(name)}(?![\w-])", text)]


def linked_pages(text: str) -> str:
    """Return the text of the pages of the documentation that a text links to."""
    names = set(re.findall(r"\]\((?:docs/)?(\w+\.md)", text))
    return "\n".join((DOCS / name).read_text() for name in sorted(names) if (DOCS / name).exists())


@cache
def stored_values(command: str) -> list[Value]:
    """Return the numbers in the stored output of a command."""
    path = STORED / COMMANDS[command]
    if not path.exists():
        return []
    values = []
    for block in path.read_text().split("\n\n"):
        found = [v for f in find_figures(block, everything=True) for v in f.values]
        values += found
        if unit := re.search(r"in units of (1e-\d+)", block):
            values += [v._replace(value=v.value * float(unit[1])) for v in found]
    return values


def agrees(figure: Figure, command: str) -> bool:
    """Return whether numbers in the stored output round to all numbers of a figure."""

    def is_stored(wanted: Value) -> bool:
        for other in stored_values(command):
            value = other.value if wanted.signed else abs(other.value)
            # Rounded to the nearest, or, as ratios are, down.
            near = -0.501 <= (value - wanted.value) / wanted.step < 0.999
            if near and other.kind in (wanted.kind, ""):
                return True
        return False

    return all(map(is_stored, figure.values))


def verify(page: Path, given: list[str]) -> Iterator[tuple[Figure, str | None]]:
    """Yield each figure of a page with the command that makes it, None if there is none."""
    text = page.read_text()
    around: list[tuple[int, str]] = []  # the sections around the current one
    figures = sorted(figures_of_page(text, given), key=lambda figure: figure.line)
    for start, level, section in sections(text):
        around = [(at, outer) for at, outer in around if at < level]
        around.append((level, section))
        end = start + section.count("\n")
        named = [c for _, outer in reversed(around) for c in commands_in(outer)]
        named += commands_in(linked_pages(section))
        for figure in (f for f in figures if start <= f.line <= end):
            yield figure, next((c for c in named if agrees(figure, c)), None)


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
    wrong, count = [], 0
    for page in pages:
        for figure, command in verify(page, given):
            count += 1
            place = f"{page.relative_to(ROOT)}:{figure.line}: {figure.text}"
            if command is None:
                wrong.append(f"{place}: no stored output of a command that is named there has it")
            elif options.list:
                print(f"{place}: {command}")
    texts = "\n".join(page.read_text() for page in pages)
    wrong += [
        f"given.txt: '{p}' is on no page" for p in given if not re.search(flexible(p), texts)
    ]
    included = set(re.findall(r"include\} benchmark/(\w+)/", texts)) - {*CHECKED, "costs"}
    wrong += [f"benchmark/{name} is included, and no command checks it" for name in included]
    for name in CHECKED:
        check = [sys.executable, "-m", f"benchmarks.{name}", "--check"]
        done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
        wrong += [f"benchmarks.{name}: {done.stdout}{done.stderr}"] if done.returncode else []
    print("\n".join(wrong) or f"all {count} figures agree with stored results")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
