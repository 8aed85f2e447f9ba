"""Round trips of real data sets through all formats.

``python -m benchmarks.round_trip [NAME ...]`` writes the data sets of the folder FGFM_DATA in
every format, reads them and compares numbers, labels and names. CSV, TSV and Parquet are dense:
data with more than `CELLS` cells are skipped there.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.report import Column, Table, count, text
from fgfm.data import Dataset, load, save

__all__ = ["are_equal", "main", "round_trip"]

FOLDER = Path(os.environ.get("FGFM_DATA", Path(__file__).parents[2] / "shared" / "data"))
FORMATS = ("csv", "tsv", "parquet", "arff", "meka", "svmlight", "xmc", "npz")
NAMELESS = ("svmlight", "xmc")  # formats without names
TABLES = ("csv", "tsv", "parquet")
CELLS = 3_000_000


def are_equal(one: Dataset, other: Dataset, format: str) -> bool:
    """Return True if a data set was not changed by a format."""
    X, Z = (
        d.X.toarray() if sparse.issparse(d.X) and d.X.size < CELLS else d.X for d in (one, other)
    )
    if sparse.issparse(X) or sparse.issparse(Z):
        equal = X.shape == Z.shape and (sparse.csr_array(X) != sparse.csr_array(Z)).nnz == 0
    else:
        equal = bool(np.array_equal(X, Z))
    equal = equal and bool(np.array_equal(one.Y, other.Y))
    if format in NAMELESS:
        return equal
    names = one.feature_names or tuple(f"x{j + 1}" for j in range(one.X.shape[1]))
    same_names = other.feature_names in (names, one.feature_names)
    return equal and same_names and one.label_names == other.label_names


def round_trip(one: Dataset, format: str, folder: Path) -> str:
    """Write, read and compare a data set; return the seconds, or the fault."""
    cells = one.X.shape[0] * one.X.shape[1]
    if format in TABLES and cells > CELLS:
        return "wide"
    suffix = {"meka": "arff", "svmlight": "svm"}.get(format, format)
    path = folder / f"data.{suffix}"
    options: dict[str, Any] = {"format": format, "dtype": "float32"}
    if format in ("csv", "tsv"):
        options["labels"] = list(one.label_names or ())
    if format in NAMELESS:
        options["labels"] = len(one.label_names or ())
    if format == "svmlight":
        options |= {"n_features": one.X.shape[1], "zero_based": False, "zero_based_labels": False}
    start = time.perf_counter()
    save(one, path, format=format)
    other = load(path, **options)
    seconds = time.perf_counter() - start
    return f"{seconds:.1f}" if are_equal(one, other, format) else "DIFFERS"


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.round_trip")
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets; all by default")
    options = parser.parse_args(arguments)
    if not FOLDER.is_dir():
        raise SystemExit(f"{FOLDER} does not exist: FGFM_DATA must be the folder of the data sets")
    names = options.names or sorted(path.stem for path in FOLDER.glob("*.npz"))
    table = Table(
        "Seconds to write and read a data set, if it is unchanged",
        [
            Column("data", text, left=True),
            Column("n", count),
            Column("p", count),
            *(Column(format) for format in FORMATS),
        ],
    )
    for name in names:
        one = load(FOLDER / f"{name}.npz")
        with tempfile.TemporaryDirectory() as folder:
            cells = [round_trip(one, format, Path(folder)) for format in FORMATS]
        table.rows.append((name[:11], *one.X.shape, *cells))
    table.notes.append(
        f"wide: a dense table of more than {CELLS} cells, which is skipped. DIFFERS: the data set "
        "was changed."
    )
    print("\n".join(table.lines()))


if __name__ == "__main__":
    main()
