"""A benchmark as files: figures, tables, errors, and a summary for machines."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from benchmarks.real.figures import draw_ranks, draw_standings_differences
from benchmarks.real.run import BenchmarkResults
from benchmarks.real.tables import error_list, markdown
from fgfm._utils.atomic import atomic_file
from fgfm.experiments._figure import save_figure

__all__ = ["write_benchmark_report"]


def write_benchmark_report(results: BenchmarkResults, command: str) -> list[Path]:
    """Write figures, tables, errors and the summary into the folder of the results.

    Parameters
    ----------
    results : BenchmarkResults
        The results.
    command : str
        The command that made them.

    Returns
    -------
    list of Path
        The files.
    """
    folder, summary = results.folder, results.summary
    document = summary.as_dict() | {"command": command, "fgfm": version("fgfm")}
    texts = {
        "table.md": markdown(summary, command),
        "errors.md": error_list(summary),
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
        paths += save_figure(draw_standings_differences(summary), folder, "differences")
    return paths
