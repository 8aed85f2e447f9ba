"""Facts about the file of training that are not features."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Schema"]


@dataclass(frozen=True)
class Schema:
    """Labels, omitted columns and numbering of a file, by which further files are read."""

    label_names: tuple[str, ...] | None = None  # columns of these names are not features
    tag_column: str | None = None  # the column of label lists
    separator: str | None = None  # of these lists
    dropped: tuple[str, ...] = ()  # columns that were left out on request
    zero_based: bool | None = None  # whether svmlight numbers features from 0
    zero_based_labels: bool | None = None

    @property
    def no_features(self) -> frozenset[str]:
        """Names of columns that are not features."""
        tags = () if self.tag_column is None else (self.tag_column,)
        return frozenset((*self.dropped, *(self.label_names or ()), *tags))
