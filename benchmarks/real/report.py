"""Write the results of the benchmark: figures, tables, errors and a JSON summary."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from benchmarks.real.figures import draw_differences, draw_ranks
from benchmarks.real.run import BenchmarkResults
from benchmarks.real.tables import format_errors, format_markdown
from fgfm._utils.atomic import atomic_file
from fgfm.experiments._figure import save_figure

__all__ = ["write_report"]


def write_report(results: BenchmarkResults, command: str) -> list[Path]:
    """Write figures, tables, errors and the summary into the output folder."""
    folder, summary = results.folder, results.summary
    document = summary.as_dict() | {"command": command, "fgfm": version("fgfm")}
    texts = {
        "table.md": format_markdown(summary, command),
        "errors.md": format_errors(summary),
        "summary.json": json.dumps(document, indent=1, allow_nan=False) + "\n",
    }
    paths = []
    for name, text in texts.items():
        with atomic_file(folder / name) as file:
            file.write(text.encode())
        paths.append(folder / name)
    if summary.rankings:
        paths += save_figure(draw_ranks(summary), folder, "ranks")
    if summary.differences:
        paths += save_figure(draw_differences(summary), folder, "differences")
    return paths
