"""Every data set in every format and back: the same numbers, labels and names?

``python -m benchmarks.round_trip [NAME ...]`` takes the data sets of the folder that FGFM_DATA
names, writes each in every format, reads it back and compares. Tables are dense: sparse data with
more cells than `CELLS` are left out of CSV, TSV and Parquet.
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

__all__ = ["main", "same", "there_and_back"]

FOLDER = Path(os.environ.get("FGFM_DATA", Path(__file__).parents[2] / "shared" / "data"))
FORMATS = ("csv", "tsv", "parquet", "arff", "meka", "svmlight", "xmc", "npz")
NAMELESS = ("svmlight", "xmc")  # formats without names
TABLES = ("csv", "tsv", "parquet")
CELLS = 3_000_000


def same(one: Dataset, other: Dataset, format: str) -> bool:
    """Tell whether what came back is what went out."""
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
    kept = other.feature_names in (names, one.feature_names)
    return equal and kept and one.label_names == other.label_names


def there_and_back(one: Dataset, format: str, folder: Path) -> str:
    """Write a data set, read it and compare; say how long it took, or what is wrong."""
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
    return f"{seconds:.1f}" if same(one, other, format) else "DIFFERS"


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.round_trip")
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets; all by default")
    options = parser.parse_args(arguments)
    if not FOLDER.is_dir():
        raise SystemExit(f"{FOLDER} is not there: FGFM_DATA must name the folder of the data sets")
    names = options.names or sorted(path.stem for path in FOLDER.glob("*.npz"))
    table = Table(
        "Seconds to write and read a data set, where it came back the same",
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
            cells = [there_and_back(one, format, Path(folder)) for format in FORMATS]
        table.rows.append((name[:11], *one.X.shape, *cells))
    table.notes.append(
        f"wide: a dense table of more than {CELLS} cells is not written. DIFFERS: it did not come "
        "back the same."
    )
    print("\n".join(table.lines()))


if __name__ == "__main__":
    main()
