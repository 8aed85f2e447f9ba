"""Reading of features in blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.validation import check_count
from fgfm.data._dataset import Dataset
from fgfm.data._encoder import FeatureEncoder
from fgfm.data._errors import DataError
from fgfm.data._load import read_tables
from fgfm.data._options import ReadOptions
from fgfm.data._table import Table
from fgfm.data._unseen import UnseenCategories

__all__ = ["load_blocks"]

_VALUES = 1 << 18  # of a block


def load_blocks(
    path: str | os.PathLike[str],
    encoder: FeatureEncoder,
    *,
    rows: int | None = None,
    format: str | None = None,
    drop: Sequence[str] = (),
    ids: Sequence[str] = (),
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool | None = None,
) -> Iterator[Dataset]:
    """Read the features of a file in blocks of rows, encoded as in training.

    CSV, TSV and Parquet are read block by block, so that memory does not grow with the number of
    rows; files of other formats are read as a whole. Labels are ignored. The rows have the same
    features for any size of the blocks.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.
    encoder : FeatureEncoder
        The encoder of the training data.
    rows : int, optional
        The number of rows of a block; by default it depends on the number of columns.
    format, drop, ids, delimiter, decimal, encoding, header : optional
        As in `load`.

    Yields
    ------
    Dataset
        Consecutive rows: X, and ids if there are any.

    See Also
    --------
    load : Read a whole file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fgfm.data import FeatureEncoder, load_blocks
    >>> encoder = FeatureEncoder().fit({"size": [1.0, 2.0, 4.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "new.csv"
    ...     _ = path.write_text("size\\n5\\n\\n?\\n8\\n")
    ...     for block in load_blocks(path, encoder, rows=2):
    ...         print(block.X.tolist())
    [[5.0], [2.0]]
    [[8.0]]
    """
    if not isinstance(encoder, FeatureEncoder):
        raise TypeError(f"encoder is {type(encoder).__name__}: it must be a FeatureEncoder")
    check_is_fitted(encoder, "kinds_")
    if rows is None:
        rows = max(1, _VALUES // encoder.n_features_in_)
    check_count(rows, "rows", least=1)
    name = os.fspath(path)
    options = ReadOptions(
        drop=drop,
        ids=ids,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        header=header,
        encoder=encoder,
        with_labels=False,
    )
    unseen = UnseenCategories()
    encoded = _encoded_tables(read_tables(path, format, options, rows), encoder, unseen)
    for X, id_rows in _of_size(encoded, rows):
        yield Dataset(
            X, label_names=encoder.schema_.label_names, encoder=encoder, source=name, ids=id_rows
        )
    unseen.warn(name)


def _encoded_tables(
    tables: Iterable[Table], encoder: FeatureEncoder, unseen: UnseenCategories
) -> Iterator[tuple[Any, Any]]:
    """Yield the encoded features and the id columns of tables."""
    first = 0
    for table in tables:
        try:
            X = encoder._transform_table(table, unseen)
        except DataError as error:
            if error.row is not None:
                error.row += first
            raise
        first += X.shape[0]
        yield X, table.ids


def _of_size(parts: Iterable[tuple[Any, Any]], rows: int) -> Iterator[tuple[Any, Any]]:
    """Yield the same rows in blocks of a given number, the last of which may have fewer.

    The blocks are then the same for any block of the reader, and so are floating-point results of
    models whose matrix products depend on the number of rows.
    """
    X: Any = None
    ids: Any = None
    for more, more_ids in parts:
        X = more if X is None else _stacked([X, more])
        if more_ids is not None:
            import pyarrow

            ids = more_ids if ids is None else pyarrow.concat_tables([ids, more_ids])
        while X.shape[0] >= rows:
            yield X[:rows], None if ids is None else ids.slice(0, rows)
            X, ids = X[rows:], None if ids is None else ids.slice(rows)
    if X is not None and X.shape[0]:
        yield X, ids


def _stacked(parts: Sequence[Any]) -> Any:
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.vstack(parts)
