"""Time and memory of ``fgfm decide`` on a stream.

``python -m benchmarks.stream [--quick]`` pipes CSV into the program, with 20 labels and up to 10
million rows, and with up to 200 000 labels and few rows. It prints the time, the cells per second
and the peak memory.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import time

import numpy as np

from benchmarks.report import Column, Table, count

__all__ = ["main", "run"]

LABELS = 20
PIECE = 50_000  # rows that are written repeatedly
WIDE = ((20_000, 50), (200_000, 5))  # labels and rows


def _text(digits: str, rows: int, labels: int) -> bytes:
    """Return rows of CSV in which most probabilities are small."""
    proba = np.random.default_rng(0).beta(0.2, 1.2, (rows, labels))
    lines = io.StringIO()
    np.savetxt(lines, proba, fmt=digits, delimiter=",")
    return lines.getvalue().encode()


def _measure(piece: bytes, repeats: int, labels: int) -> dict[str, float]:
    """Pipe rows through the program; return its report and the seconds of the whole."""
    head = ",".join(f"label{j}" for j in range(labels)) + "\n"
    command = [sys.executable, "-m", "fgfm.cli", "decide", "-", "--jobs", "1", "--json"]
    start = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(head.encode())
        for _ in range(repeats):
            process.stdin.write(piece)
        process.stdin.close()
        printed = process.stderr.read()
        if process.wait() != 0:
            raise RuntimeError(printed.decode())
    report: dict[str, float] = json.loads(printed)
    return report | {"seconds": time.perf_counter() - start}


def run(sizes: tuple[int, ...]) -> Table:
    """Run the benchmark, print its table and return it."""
    table = Table(
        "fgfm decide, CSV from standard input",
        [
            Column("values", left=True),
            Column("labels", count),
            Column("rows", count),
            Column("time", lambda v: f"{v:.1f} s"),
            Column("cells per second", lambda v: f"{v / 1e6:.1f} M"),
            Column("peak", lambda v: f"{v:.0f} MiB"),
        ],
    )
    for name, digits in (("4 decimals", "%.4f"), ("17 digits", "%.17g")):
        piece = _text(digits, PIECE, LABELS)
        cases = [(LABELS, piece, rows // PIECE) for rows in sizes]
        if name == "4 decimals":
            cases += [(labels, _text(digits, rows, labels), 1) for labels, rows in WIDE]
        for labels, text, repeats in cases:
            r = _measure(text, repeats, labels)
            rate = r["rows"] * labels / r["seconds"]
            table.rows.append((name, labels, r["rows"], r["seconds"], rate, r["peak_mebibytes"]))
    table.notes.append(
        "From the start of the program to its end; one thread decides, another one reads. Peak: "
        "peak memory, libraries included."
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
