"""The data set that `load` returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.text import counted
from fgfm.data._encoder import FeatureEncoder

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features, labels, their names, and the encoder of the features.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, p)
        The features.
    Y : ndarray of shape (n, m), optional
        The labels, 0 or 1, of dtype uint8; None if there are no labels.
    feature_names : tuple of str, optional
        A name for each column of X; None if the format has no names.
    label_names : tuple of str, optional
        A name for each label; its number in formats without names.
    encoder : FeatureEncoder, optional
        Encodes further files in the same way: ``load(..., encoder=dataset.encoder)``.
    train, test : ndarray of int, optional
        The training rows and the test rows, if the file has a split.
    source : str
        The file.
    ids : pyarrow.Table, optional
        The columns of `load`'s argument ``ids``, with n rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.data import Dataset
    >>> Dataset(np.zeros((3, 2)), np.eye(3, dtype=np.uint8), label_names=("a", "b", "c"))
    <Dataset: 3 rows, 2 features (dense float64), 3 labels (1.00 per row)>
    """

    X: Any
    Y: npt.NDArray[np.uint8] | None = None
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    encoder: FeatureEncoder | None = None
    train: npt.NDArray[np.int64] | None = None
    test: npt.NDArray[np.int64] | None = None
    source: str = ""
    ids: Any = None

    def __repr__(self) -> str:
        n, p = self.X.shape
        kind = "sparse" if sparse.issparse(self.X) else "dense"
        parts = [counted(n, "row"), f"{counted(p, 'feature')} ({kind} {self.X.dtype})"]
        if self.Y is None:
            parts.append("no labels")
        else:
            mean = float(self.Y.sum()) / max(1, n)
            parts.append(f"{counted(self.Y.shape[1], 'label')} ({mean:.2f} per row)")
        if self.train is not None and self.test is not None:
            parts.append(f"split {len(self.train)}/{len(self.test)}")
        name = f" {self.source}" if self.source else ""
        return f"<Dataset{name}: {', '.join(parts)}>"

    def rows(self, index: Any) -> Dataset:
        """Return some of the rows, without the split.

        Parameters
        ----------
        index : array of int or bool, or slice
            The rows.

        Returns
        -------
        Dataset
            The data set of these rows.
        """
        Y = None if self.Y is None else self.Y[index]
        ids = None if self.ids is None else self.ids.take(np.arange(self.X.shape[0])[index])
        return replace(self, X=self.X[index], Y=Y, ids=ids, train=None, test=None)
