"""Data sets from OpenML, fetched with scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from fgfm.data._errors import DataError
from fgfm.data._frames import table_from_columns
from fgfm.data._label_columns import split_labels
from fgfm.data._options import ReadOptions
from fgfm.data._table import Table, check_names

__all__ = ["PREFIX", "read_openml"]

PREFIX = "openml:"


def read_openml(name: str, options: ReadOptions) -> Table:
    """Read ``openml:name``, ``openml:name:version`` or ``openml:number``.

    The labels are the targets of the data set, unless `labels` names others.
    """
    from sklearn.datasets import fetch_openml

    wanted, _, version = name.removeprefix(PREFIX).partition(":")
    if not wanted or (version and not version.isdecimal()):
        reason = "the name must be openml:name, openml:name:version or openml:number"
        raise DataError(reason, source=name)
    query: dict[str, Any] = {"name": wanted, "version": int(version) if version else "active"}
    if wanted.isdecimal() and not version:
        query = {"data_id": int(wanted)}
    try:
        bunch = fetch_openml(**query, as_frame="auto", parser="auto")
    except ImportError as error:
        raise ImportError(
            f"reading OpenML needs pandas: pip install 'fgfm[data]' ({error})"
        ) from error
    except Exception as error:  # no network, no such data set, a damaged response
        raise DataError(f"the data cannot be fetched: {error}", source=name) from error
    targets = [str(target) for target in (bunch.get("target_names") or [])]
    if sparse.issparse(bunch.data):
        return _sparse_table(name, bunch, targets, options)
    frame = bunch.frame if bunch.get("frame") is not None else bunch.data
    if not hasattr(frame, "columns"):
        raise DataError("the data have no named columns", source=name)
    names = [str(column) for column in frame.columns]
    if options.labels is None and options.encoder is None and targets:
        options = replace(options, labels=targets)
    return table_from_columns(name, names, [frame[column] for column in frame.columns], options)


def _sparse_table(name: str, bunch: Any, targets: list[str], options: ReadOptions) -> Table:
    """Return sparse features, with the targets as labels if there are any."""
    names = [str(column) for column in bunch.feature_names]
    matrix = sparse.csr_array(bunch.data, dtype=np.float64)  # (n, p)
    target = bunch.get("target")
    if target is None or not targets or not options.with_labels:
        return Table(name, matrix, tuple(names))
    if options.labels is not None:
        raise ValueError(
            f"labels is {options.labels!r}: it must be None for sparse data of OpenML, whose "
            "labels are their targets"
        )
    columns = np.asarray(target, dtype=object).reshape(matrix.shape[0], -1)  # (n, m)
    labels = table_from_columns(name, targets, list(columns.T), ReadOptions())
    check_names([*names, *targets], name)
    p = len(names)
    both = Table(
        name,
        sparse.csr_array(sparse.hstack([matrix, sparse.csr_array(labels.matrix)])),  # (n, p + m)
        (*names, *targets),
        {p + j: texts for j, texts in labels.categories.items()},
    )
    return split_labels(both, list(range(p, p + len(targets))))
