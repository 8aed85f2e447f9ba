"""A folder of Parquet files of probabilities to one of label sets, part by part.

Parts are independent of each other: joblib shares them out, to threads or to the workers of a
cluster that see the same files. A part appears when it is complete, and tells how it was made, so
that a run which was interrupted goes on with what is missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.parallel import delayed

from fgfm._utils.atomic import remove_leftovers
from fgfm._utils.blocks import n_workers
from fgfm._utils.parallel import run_jobs
from fgfm.data._decide_file import DecideSettings, Tally, decide_file
from fgfm.data._errors import bad
from fgfm.data._extras import need

__all__ = ["decide_parts"]

_SUFFIXES = (".parquet", ".pq")
_TEXT_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson")
_KEY = b"fgfm.decide"  # under which a part tells how it was made


def decide_parts(
    source: Path,
    target: Path,
    settings: DecideSettings,
    n_jobs: int | None,
    progress: Callable[[int], object] | None,
) -> tuple[list[Tally], int]:
    """Decide for the rows of all Parquet files of a folder.

    Parameters
    ----------
    source : Path
        The folder; files are found at any depth. Names that begin with "." or "_" are left out.
    target : Path
        The folder of label sets, made where it is missing: a file for each of `source`, under the
        same name.
    settings : DecideSettings
        How.
    n_jobs : int or None
        How many parts at a time, in joblib's meaning.
    progress : callable or None
        Called with the number of rows that are done, after every part.

    Returns
    -------
    tallies : list of Tally
        What was counted, part by part.
    kept : int
        How many parts were there already.
    """
    need("pyarrow.parquet", "reading Parquet")
    n_workers(n_jobs)  # raises if it is wrong
    _check_folders(source, target, settings)
    source, target = source.absolute(), target.absolute()  # workers may be elsewhere
    parts = list(_parts(source))
    if not parts:
        raise bad(source, "there is no Parquet file in this folder: it must have one at least")
    _check_columns(source, parts)
    strange = sorted(set(_parts(target)) - set(parts))
    if strange:
        raise bad(
            target,
            f"it holds {strange[0]}, which source does not: remove it, or choose another folder",
        )
    _check_targets(source, target, parts)
    names: dict[Path, set[str]] = {}
    for part in parts:
        names.setdefault((target / part).parent, set()).add(part.name)
    for folder, here in names.items():
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder, here)
    inner = n_jobs if len(parts) == 1 else 1
    jobs = (delayed(_try_part)(source / p, target / p, settings, inner) for p in parts)
    tallies, kept, rows = [], 0, 0
    failed: Exception | None = None
    for answer in run_jobs(jobs, n_jobs, "threads"):
        if isinstance(answer, Exception):  # the others are finished first
            failed = failed or answer
            continue
        tally, was_there = answer
        tallies.append(tally)
        kept += was_there
        rows += tally.rows
        if progress is not None:
            progress(rows)
    if failed is not None:
        raise failed
    return tallies, kept


def _check_targets(source: Path, target: Path, parts: list[Path]) -> None:
    """Raise if a part would be written, through links, over what it is made of."""
    sources = {os.path.realpath(source / part) for part in parts}
    folder = Path(os.path.realpath(source))
    for part in parts:
        written = Path(os.path.realpath(target / part))
        if os.fspath(written) in sources or written.is_relative_to(folder):
            raise ValueError(
                f"target has {part}, which leads to {written}, a file of source: it must be a "
                "file of its own"
            )


def _check_folders(source: Path, target: Path, settings: DecideSettings) -> None:
    """Raise unless label sets can go from one folder to another."""
    for name, value in (("format", settings.format), ("output_format", settings.output_format)):
        if value not in (None, "parquet"):
            raise ValueError(
                f"{name} is {value!r}, and source is a folder, {source}: it must be 'parquet'"
            )
    if os.fspath(target) == "-" or target.suffix.lower() in _TEXT_SUFFIXES or target.is_file():
        raise ValueError(
            f"target is {target}, and source is a folder, {source}: target must be a folder too, "
            "for as many Parquet files"
        )
    inner, outer = Path(os.path.realpath(target)), Path(os.path.realpath(source))
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise ValueError(
            f"target is {target}, and source is {source}: they must be two folders, neither "
            "within the other"
        )


def _parts(folder: Path) -> Iterator[Path]:
    """Give the Parquet files below a folder, by their paths from there, in order."""
    found, seen = [], set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # links in a circle
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in files:
            path = Path(place, name)
            if name.startswith((".", "_")) or path.suffix.lower() not in _SUFFIXES:
                continue
            if not path.exists():
                raise bad(path, "it is a link that leads nowhere")
            found.append(path.relative_to(folder))
    yield from sorted(found)


def _check_columns(source: Path, parts: list[Path]) -> None:
    """Raise unless all parts have the same columns."""
    first: list[str] = []
    for part in parts:
        names = _columns(source / part)
        first = first or names
        if names != first:
            other = next((n for n in names if n not in first), None)
            found = f"column {other!r}" if other else f"{len(names)} columns, or another order"
            raise bad(
                source / part,
                f"there is {found}, unlike in {parts[0]}, which has {len(first)} columns: all "
                "parts must have the same columns in the same order",
            )


def _columns(path: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return [str(name) for name in pq.read_schema(path).names]
    except (pa.ArrowException, OSError) as error:
        raise bad(path, f"it is no Parquet file: {error}") from None


def _try_part(
    source: Path, target: Path, settings: DecideSettings, n_jobs: int | None
) -> tuple[Tally, bool] | Exception:
    """Decide for one part, or give its error."""
    try:
        return _decide_part(source, target, settings, n_jobs)
    except Exception as error:
        return error


def _decide_part(
    source: Path, target: Path, settings: DecideSettings, n_jobs: int | None
) -> tuple[Tally, bool]:
    """Decide for one part, unless that was done; tell what is counted, and whether it was."""
    stamp = _stamp(source, settings)
    done = _recount(target, stamp)
    if done is not None:
        done.place = f"{source}, row {done.first},"
        return done, True
    told = settings._replace(format="parquet", output_format="parquet")
    return decide_file(source, target, told, n_jobs, metadata={_KEY: stamp}), False


def _stamp(source: Path, settings: DecideSettings) -> bytes:
    """Write down how a part is made: one that would be made alike is kept."""
    about = source.stat()
    made_of: dict[str, Any] = {
        "fgfm": version("fgfm"),
        "beta": float(settings.beta),
        "zero_division": float(settings.zero_division),
        "nonempty": bool(settings.nonempty),
        "ids": list(settings.ids),
        "wide": bool(settings.wide),
        "bytes": about.st_size,
        "modified": about.st_mtime_ns,
    }
    return json.dumps(made_of, sort_keys=True).encode()


def _recount(target: Path, stamp: bytes) -> Tally | None:
    """Count the rows of a part that is there, or give None if it is not, or is another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not target.exists():
        return None
    tally = Tally()
    try:
        with pq.ParquetFile(target) as file:
            if (file.schema_arrow.metadata or {}).get(_KEY) != stamp:
                return None
            for group in range(file.num_row_groups):  # one for each block that was written
                column = file.read_row_group(group, columns=["expected_f"]).column(0)
                tally.add(np.asarray(column.to_numpy(), dtype=np.float64))
    except (pa.ArrowException, OSError):  # damaged: it is made again
        return None
    return tally
