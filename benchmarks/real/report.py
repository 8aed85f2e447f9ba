"""Write the results of the benchmark: figures, tables and errors."""

from __future__ import annotations

from pathlib import Path

from benchmarks.real.figures import draw_differences, draw_ranks
from benchmarks.real.run import BenchmarkResults
from benchmarks.real.tables import format_errors, format_markdown
from fgfm._utils.atomic import atomic_file
from fgfm.experiments._report import save_figure

__all__ = ["write_report"]


def write_report(results: BenchmarkResults, command: str) -> list[Path]:
    """Write figures, tables and errors into the output folder."""
    folder, summary = results.folder, results.summary
    texts = {
        "table.md": format_markdown(summary, command),
        "errors.md": format_errors(summary),
    }
    paths = []
    for name, text in texts.items():
        with atomic_file(folder / name) as file:
            file.write(text.encode())
        paths.append(folder / name)
    if summary.rankings:
        paths += save_figure(draw_ranks(summary), folder, "ranks")
    if len(summary.differences):
        paths += save_figure(draw_differences(summary), folder, "differences")
    return paths
