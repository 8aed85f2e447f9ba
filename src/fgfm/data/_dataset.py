"""Features and labels, as they come out of a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm.data._encoder import FeatureEncoder

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features, labels and their names, and what encoded the features.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, p)
        The features, as numbers.
    Y : ndarray of shape (n, m), optional
        The labels, 0 or 1, of dtype uint8; None where the file has none.
    feature_names : tuple of str, optional
        A name for each column of X; None where the format has no names.
    label_names : tuple of str, optional
        A name for each label: its number in formats that have no names.
    encoder : FeatureEncoder, optional
        Encodes further files in the same way: ``load(..., encoder=dataset.encoder)``.
    train, test : ndarray of int, optional
        Which rows are for training and which for testing, where the file says so.
    source : str
        Where the data come from.

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

    def __repr__(self) -> str:
        n, p = self.X.shape
        kind = "sparse" if sparse.issparse(self.X) else "dense"
        parts = [_count(n, "row"), f"{_count(p, 'feature')} ({kind} {self.X.dtype})"]
        if self.Y is None:
            parts.append("no labels")
        else:
            mean = float(self.Y.sum()) / max(1, n)
            parts.append(f"{_count(self.Y.shape[1], 'label')} ({mean:.2f} per row)")
        if self.train is not None and self.test is not None:
            parts.append(f"split {len(self.train)}/{len(self.test)}")
        name = f" {self.source}" if self.source else ""
        return f"<Dataset{name}: {', '.join(parts)}>"

    def rows(self, index: Any) -> Dataset:
        """Give some of the rows, without the split.

        Parameters
        ----------
        index : array of int or bool, or slice
            Which rows.

        Returns
        -------
        Dataset
            These rows.
        """
        Y = None if self.Y is None else self.Y[index]
        return replace(self, X=self.X[index], Y=Y, train=None, test=None)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
