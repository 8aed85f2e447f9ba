"""Facts about the file of training that are not features."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Schema"]


@dataclass(frozen=True)
class Schema:
    """Labels, omitted columns and numbering of a file, by which further files are read.

    Parameters
    ----------
    label_names : tuple of str, optional
        The labels. Columns of these names are not features.
    tag_column : str, optional
        The column of label lists.
    separator : str, optional
        The separator of these lists.
    dropped : tuple of str
        The columns that were left out on request.
    zero_based, zero_based_labels : bool, optional
        Whether an svmlight file numbers its features, and its labels, from 0.
    """

    label_names: tuple[str, ...] | None = None
    tag_column: str | None = None
    separator: str | None = None
    dropped: tuple[str, ...] = ()
    zero_based: bool | None = None
    zero_based_labels: bool | None = None

    @property
    def no_features(self) -> frozenset[str]:
        """Names of columns that are not features."""
        tags = () if self.tag_column is None else (self.tag_column,)
        return frozenset((*self.dropped, *(self.label_names or ()), *tags))
