"""Write the results of the paper's experiment: figure, text and summary."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from fgfm._utils.atomic import atomic_file
from fgfm.experiments._figure import draw, save_figure
from fgfm.experiments._reproduce import PaperResults
from fgfm.experiments._table import format_tables


def write_report(results: PaperResults, command: str) -> list[Path]:
    """Write the figure, the tables and a summary into the output folder.

    Parameters
    ----------
    results : PaperResults
        The results.
    command : str
        The command that computed them, shown in the files.

    Returns
    -------
    list of Path
        The files: ``figure.png``, ``figure.pdf``, ``figure.svg``, ``table.txt`` and
        ``summary.json``.
    """
    folder = results.folder
    paths = save_figure(draw(results), folder, "figure")
    summary = {
        "command": command,
        "fgfm": version("fgfm"),
        "runs": {estimates: run.summary.as_dict() for estimates, run in results.runs.items()},
    }
    texts = {
        "table.txt": f"{command}\n\n{format_tables(results)}",
        "summary.json": json.dumps(summary, indent=1, allow_nan=False) + "\n",
    }
    for name, text in texts.items():
        with atomic_file(folder / name) as file:
            file.write(text.encode())
        paths.append(folder / name)
    return paths
