"""The data set that `load` returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.text import counted

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features and labels of a file.

    Parameters
    ----------
    X : pandas.DataFrame, ndarray or CSR array of shape (n, p)
        The features: a data frame of a table, else numbers.
    Y : ndarray of shape (n, m), optional
        The labels: 0 or 1, or NaN if not observed; None if the file has none.
    label_names : tuple of str, default=()
        A name for each label; its number in formats without names.
    label_columns : tuple of str, default=()
        The columns of a table that hold the labels.
    ids : pyarrow.Table, optional
        The columns of `load`'s argument ``ids``, with n rows.
    train, test : ndarray of int, optional
        The training rows and the test rows, if the file has a split.
    zero_based : tuple of two bool, optional
        Whether svmlight rows number features, and labels, from 0.
    source : str
        The file.
    label_form : str
        How the labels are written in a table, such as "labels split at '|'".

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.io import Dataset
    >>> Dataset(np.zeros((3, 2)), np.eye(3, dtype=np.uint8), ("a", "b", "c"))
    <Dataset: 3 rows, 2 features, 3 labels (1.00 per row)>
    """

    X: Any
    Y: npt.NDArray[Any] | None = None
    label_names: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()
    ids: Any = None
    train: npt.NDArray[np.int64] | None = None
    test: npt.NDArray[np.int64] | None = None
    zero_based: tuple[bool, bool] | None = None
    source: str = ""
    label_form: str = ""

    def __repr__(self) -> str:
        n, p = self.X.shape
        kind = " (sparse)" if sparse.issparse(self.X) else ""
        parts = [counted(n, "row"), counted(p, "feature") + kind]
        if self.Y is None:
            parts.append("no labels")
        else:
            mean = float(np.nansum(self.Y)) / max(1, n)
            parts.append(f"{counted(self.Y.shape[1], 'label')} ({mean:.2f} per row)")
        if self.train is not None and self.test is not None:
            parts.append(f"split {len(self.train)}/{len(self.test)}")
        name = f" {self.source}" if self.source else ""
        return f"<Dataset{name}: {', '.join(parts)}>"

    def rows(self, index: npt.NDArray[np.int64] | slice) -> Dataset:
        """Return some of the rows, without the split.

        Parameters
        ----------
        index : ndarray of int, or slice
            The rows.

        Returns
        -------
        Dataset
            The data set of these rows.
        """
        X = self.X.iloc[index] if hasattr(self.X, "iloc") else self.X[index]
        Y = None if self.Y is None else self.Y[index]
        ids = None if self.ids is None else self.ids.take(np.arange(self.X.shape[0])[index])
        return replace(self, X=X, Y=Y, ids=ids, train=None, test=None)
