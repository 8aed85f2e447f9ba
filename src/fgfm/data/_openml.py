"""Data sets of OpenML, through scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from fgfm.data._columns import table_of_columns
from fgfm.data._errors import bad
from fgfm.data._table import Options, Table, check_names, cut_labels

__all__ = ["PREFIX", "read_openml"]

PREFIX = "openml:"


def read_openml(name: str, options: Options) -> Table:
    """Read ``openml:name``, ``openml:name:version`` or ``openml:number``.

    The labels are the targets that OpenML names, unless labels= says others.
    """
    from sklearn.datasets import fetch_openml

    wanted, _, version = name.removeprefix(PREFIX).partition(":")
    if not wanted or (version and not version.isdecimal()):
        raise bad(name, "this must be openml:name, openml:name:version or openml:number")
    which: dict[str, Any] = {"name": wanted, "version": int(version) if version else "active"}
    if wanted.isdecimal() and not version:
        which = {"data_id": int(wanted)}
    try:
        bunch = fetch_openml(**which, as_frame="auto", parser="auto")
    except ImportError as error:
        raise ImportError(
            f"reading OpenML needs pandas: pip install 'fgfm[data]' ({error})"
        ) from error
    except Exception as error:  # no network, no such set, a damaged answer
        raise bad(name, f"OpenML did not give the data: {error}") from error
    targets = [str(target) for target in (bunch.get("target_names") or [])]
    if sparse.issparse(bunch.data):
        return _sparse_table(name, bunch, targets, options)
    frame = bunch.frame if bunch.get("frame") is not None else bunch.data
    if not hasattr(frame, "columns"):
        raise bad(name, "OpenML gave no table with named columns")
    names = [str(column) for column in frame.columns]
    if options.labels is None and options.encoder is None and targets:
        options = Options(**{**vars(options), "labels": targets})
    return table_of_columns(name, names, [frame[column] for column in frame.columns], options)


def _sparse_table(name: str, bunch: Any, targets: list[str], options: Options) -> Table:
    """Put the features, and the targets where there are any, side by side."""
    names = [str(column) for column in bunch.feature_names]
    matrix = sparse.csr_array(bunch.data, dtype=np.float64)
    target = bunch.get("target")
    if target is None or not targets or not options.with_labels:
        return Table(name, matrix, tuple(names))
    if options.labels is not None:
        raise ValueError("labels= is for dense data: sparse data of OpenML have their own targets")
    columns = np.asarray(target, dtype=object).reshape(matrix.shape[0], -1)
    labels = table_of_columns(name, targets, list(columns.T), Options())
    check_names([*names, *targets], name)
    p = len(names)
    both = Table(
        name,
        sparse.csr_array(sparse.hstack([matrix, sparse.csr_array(labels.matrix)])),
        (*names, *targets),
        {p + j: texts for j, texts in labels.categories.items()},
    )
    return cut_labels(both, list(range(p, p + len(targets))))
