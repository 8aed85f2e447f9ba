"""Results that are stored as they are computed, and the texts that pages include of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from fgfm._utils.atomic import atomic_file

__all__ = ["AVERAGES", "DOCS", "compute", "markdown", "publish", "store", "write"]

DOCS = Path(__file__).parents[1] / "docs"
AVERAGES = ("samples", "macro", "micro")

Task = tuple[Any, ...]


def write(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(text.encode())


def store(path: Path, results: pd.DataFrame) -> None:
    """Write results as CSV."""
    write(path, results.to_csv(index=False, float_format="%.6g"))


def compute(
    path: Path,
    keys: Sequence[str],
    tasks: Sequence[Task],
    run: Callable[..., list[dict[str, Any]]],
    *,
    n_jobs: int = 1,
    again: bool = False,
) -> None:
    """Run the tasks whose values of `keys` are not stored yet, or all of them `again`."""
    results = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=list(keys))
    stored = pd.MultiIndex.from_frame(results[list(keys)])
    if again:
        results = results[~stored.isin(tasks)]
    else:
        tasks = [task for task in tasks if task not in set(stored)]
    jobs = (delayed(run)(*task) for task in tasks)
    for k, rows in enumerate(Parallel(n_jobs=n_jobs, return_as="generator")(jobs), 1):
        new = pd.DataFrame(rows)
        results = pd.concat([results, new]) if len(results) else new
        results = results.sort_values([*keys, "average", "rule"])
        store(path, results)
        print(f"{k} of {len(tasks)}: {rows[0]['data']}", file=sys.stderr, flush=True)


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Return the lines of a table in Markdown, of which the first columns are aligned left."""
    head, *body = ("| " + " | ".join(cells) + " |" for cells in (heads, *rows))
    return [head, "|" + "---|" * left + "--:|" * (len(heads) - left), *body]


def publish(
    folder: Path, texts: Mapping[str, str], *, check: bool, wrong: Sequence[str] = ()
) -> None:
    """Write and print the texts that pages include; `check` compares them and exits instead."""
    if check:
        differ = [name for name, text in texts.items() if (folder / name).read_text() != text]
        lines = [*(f"{name} does not agree with results.csv" for name in differ), *wrong]
        print("\n".join(lines or ["ok"]))
        sys.exit(bool(lines))
    for name, text in texts.items():
        write(folder / name, text)
        print(text)
