"""Decisions for a folder of Parquet files of probabilities.

The files are independent: joblib distributes them to threads, or to the workers of a cluster that
see the same files. The metadata of each file of label sets record how it was made, so that an
interrupted run is resumed with the files that are missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.utils.parallel import delayed

from fgfm._utils.blocks import n_workers
from fgfm._utils.optional import import_optional
from fgfm._utils.parallel import run_jobs
from fgfm.data._decide_file import CONTRADICTION, Totals, decide_file
from fgfm.data._decide_rules import DecideSettings
from fgfm.data._errors import DataError
from fgfm.data._formats import LABEL_SET_SUFFIXES, PARQUET_SUFFIXES
from fgfm.data._parquet import open_parquet

__all__ = ["decide_folder"]

_STAMP_KEY = b"fgfm.decide"  # of the metadata


def decide_folder(
    source: Path,
    target: Path,
    settings: DecideSettings,
    n_jobs: int | None,
    progress: Callable[[int], object] | None,
) -> tuple[list[Totals], int]:
    """Decide for all files of a folder; return their totals and how many were up to date."""
    import_optional("pyarrow.parquet", "reading Parquet", "data")
    n_workers(n_jobs)  # raises if it is invalid
    _check_folders(source, target, settings)
    source, target = source.absolute(), target.absolute()  # workers may run in other folders
    files = _parquet_files(source)
    if not files:
        raise DataError("the folder has no Parquet file: there must be one", source=source)
    n_labels = _check_columns(source, files) - len(settings.ids)
    average = settings.average_for(n_labels)
    if settings.decider is None and average != "samples":
        raise DataError(
            f"it is a folder, and average {average!r} decides all rows together: pass one file, "
            "or a decider, which decides row by row",
            source=source,
            arguments=["decider"],
        )
    _check_targets(source, target, files)
    for file in files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
    inner_jobs = n_jobs if len(files) == 1 else 1
    jobs = (
        delayed(_decide_unless_done)(source / f, target / f, settings, inner_jobs) for f in files
    )
    totals, kept, rows = [], 0, 0
    failure: Exception | None = None
    for result in run_jobs(jobs, n_jobs, "threads"):
        if isinstance(result, Exception):  # raised after the other files are done
            failure = failure or result
            continue
        of_file, was_kept = result
        totals.append(of_file)
        kept += was_kept
        rows += of_file.rows
        if progress is not None:
            progress(rows)
    if failure is not None:
        raise failure
    return totals, kept


def _check_folders(source: Path, target: Path, settings: DecideSettings) -> None:
    """Raise unless `target` can be a folder of Parquet files, apart from `source`."""
    for name, value in (("format", settings.format), ("output_format", settings.output_format)):
        if value not in (None, "parquet"):
            raise ValueError(
                f"{name} is {value!r}, and source is a folder, {source}: it must be 'parquet'"
            )
    is_text_name = LABEL_SET_SUFFIXES.get(target.suffix.lower(), "parquet") != "parquet"
    if os.fspath(target) == "-" or is_text_name or target.is_file():
        raise ValueError(
            f"target is {target}, and source is a folder, {source}: target must be a folder too"
        )
    inner, outer = Path(os.path.realpath(target)), Path(os.path.realpath(source))
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise ValueError(
            f"target is {target}, and source is {source}: neither folder may be within the other"
        )


def _parquet_files(folder: Path) -> list[Path]:
    """Return the sorted relative paths of the Parquet files below a folder."""
    found, seen = [], set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # a circle of links
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in files:
            path = Path(place, name)
            if name.startswith((".", "_")) or path.suffix.lower() not in PARQUET_SUFFIXES:
                continue
            if not path.exists():
                raise DataError("it is a link to a file that does not exist", source=path)
            found.append(path.relative_to(folder))
    return sorted(found)


def _check_columns(source: Path, files: list[Path]) -> int:
    """Raise unless all files have the same columns; return their number."""
    first: list[str] = []
    for file in files:
        with open_parquet(source / file) as table:
            names = table.names
        first = first or names
        if names != first:
            other = next((name for name in names if name not in first), None)
            found = f"column {other!r}" if other else f"{len(names)} columns, or another order"
            raise DataError(
                f"there is {found}, unlike in {files[0]}, which has {len(first)} columns: all "
                "files must have the same columns in the same order",
                source=source / file,
            )
    return len(first)


def _check_targets(source: Path, target: Path, files: list[Path]) -> None:
    """Raise if `target` has other files, or if a link in it leads to a file of `source`."""
    other = sorted(set(_parquet_files(target)) - set(files))
    if other:
        raise DataError(
            f"it has {other[0]}, which source does not: remove it, or choose another folder",
            source=target,
        )
    sources = {os.path.realpath(source / file) for file in files}
    folder = Path(os.path.realpath(source))
    for file in files:
        written = Path(os.path.realpath(target / file))
        if os.fspath(written) in sources or written.is_relative_to(folder):
            raise ValueError(
                f"target has {file}, a link to {written}, a file of source: it must be a file of "
                "its own"
            )


def _decide_unless_done(
    source: Path, target: Path, settings: DecideSettings, n_jobs: int | None
) -> tuple[Totals, bool] | Exception:
    """Decide for one file unless it is up to date; return its totals, and whether it was.

    An error is returned instead of being raised.
    """
    try:
        stamp = _stamp(source, settings)
        totals = _totals_of_written(target, stamp, settings)
        if totals is None:
            as_parquet = settings._replace(format="parquet", output_format="parquet")
            metadata = {_STAMP_KEY: stamp}
            return decide_file(source, target, as_parquet, n_jobs, metadata=metadata), False
    except Exception as error:
        return error
    if totals.contradictions:
        row = totals.first_contradiction
        totals.contradiction = DataError(CONTRADICTION, source=source, row=row)
    return totals, True


def _stamp(source: Path, settings: DecideSettings) -> bytes:
    """Return a description of how a file is made; a file with the same stamp is up to date."""
    status = source.stat()
    description: dict[str, Any] = {
        "fgfm": version("fgfm"),
        **settings._asdict(),
        "constraints": repr(settings.constraints),
        "decider": None if settings.decider is None else joblib.hash(settings.decider),
        "bytes": status.st_size,
        "modified": status.st_mtime_ns,
    }
    for name in ("format", "text", "output_format", "separator"):
        del description[name]  # of text
    return json.dumps(description, sort_keys=True, default=str).encode()


def _totals_of_written(target: Path, stamp: bytes, settings: DecideSettings) -> Totals | None:
    """Return the totals of a written file, None if it is missing, damaged or out of date."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not target.exists():
        return None
    totals = Totals()
    try:
        with pq.ParquetFile(target) as file:
            if (file.schema_arrow.metadata or {}).get(_STAMP_KEY) != stamp:
                return None
            if "expected_f" not in file.schema_arrow.names:
                totals.average = settings.average_for(0)
                totals.add(file.metadata.num_rows, None)
                return totals
            for group in range(file.num_row_groups):  # one per written block
                column = file.read_row_group(group, columns=["expected_f"]).column(0)
                totals.add(len(column), np.asarray(column.to_numpy(), dtype=np.float64))
    except (pa.ArrowException, OSError):
        return None
    return totals
