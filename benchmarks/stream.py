"""Time and memory of ``fgfm decide`` on a stream.

``python -m benchmarks.stream [--quick]`` pipes CSV with 20 labels and up to 10 million rows into
the program, and prints the processor time of reading, the times of deciding and writing, and the
peak memory. One thread decides, so that its time is processor time.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys

import numpy as np

from benchmarks.report import Column, Table, count

__all__ = ["main", "run"]

LABELS = 20
PIECE = 50_000  # rows that are written repeatedly


def _text(digits: str) -> bytes:
    """Return rows of CSV in which most probabilities are small."""
    proba = np.random.default_rng(0).beta(0.2, 1.2, (PIECE, LABELS))
    lines = io.StringIO()
    np.savetxt(lines, proba, fmt=digits, delimiter=",")
    return lines.getvalue().encode()


def _measure(piece: bytes, rows: int) -> dict[str, float]:
    """Pipe rows through the program; return its report."""
    head = ",".join(f"label{j}" for j in range(LABELS)) + "\n"
    command = [sys.executable, "-m", "fgfm.cli", "decide", "-", "--jobs", "1", "--json"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(head.encode())
        for _ in range(rows // PIECE):
            process.stdin.write(piece)
        process.stdin.close()
        printed = process.stderr.read()
        if process.wait() != 0:
            raise RuntimeError(printed.decode())
    report: dict[str, float] = json.loads(printed)
    return report


def run(sizes: tuple[int, ...]) -> Table:
    """Run the benchmark, print its table and return it."""

    def seconds(value: float) -> str:
        return f"{value:.1f} s"

    def share(value: float) -> str:
        return f"{100.0 * value:.0f} %"

    table = Table(
        f"fgfm decide, CSV of {LABELS} labels from standard input",
        [
            Column("values", left=True),
            Column("rows", count),
            Column("reading", seconds),
            Column("deciding", seconds),
            Column("writing", seconds),
            Column("reading", share),
            Column("deciding", share),
            Column("peak", lambda v: f"{v:.0f} MiB"),
        ],
    )
    for name, digits in (("4 decimals", "%.4f"), ("17 digits", "%.17g")):
        piece = _text(digits)
        for rows in sizes:
            r = _measure(piece, rows)
            total = r["read"] + r["decided"] + r["written"]
            table.rows.append(
                (
                    name,
                    r["rows"],
                    r["read"],
                    r["decided"],
                    r["written"],
                    r["read"] / total,
                    r["decided"] / total,
                    r["peak_mebibytes"],
                )
            )
    table.notes.append(
        "Processor time of reading, which runs in parallel; times of deciding and writing with "
        "one thread; shares of their sum. Peak: peak memory, libraries included."
    )
    print("\n".join(table.lines()))
    return table


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stream")
    parser.add_argument("--quick", action="store_true", help="up to 500 000 rows")
    options = parser.parse_args(arguments)
    run((100_000, 500_000) if options.quick else (100_000, 1_000_000, 10_000_000))


if __name__ == "__main__":
    main()
