"""The arguments of `load`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from fgfm._utils.validation import check_count, check_flag
from fgfm.data._formats import FORMATS
from fgfm.data._schema import Schema

if TYPE_CHECKING:
    from fgfm.data._encoder import FeatureEncoder

__all__ = ["ReadOptions", "TextFormat"]

_NAMED = ("csv", "tsv", "parquet", "arff", "meka", "npz")  # formats with column names
_APPLIES_TO = {  # the formats that each argument applies to; the others apply to all
    "labels": tuple(format for format in FORMATS if format != "npz"),
    "separator": ("csv", "tsv", "parquet"),
    "categorical": _NAMED,
    "drop": _NAMED,
    "ids": ("csv", "tsv", "parquet"),
    "n_features": ("svmlight",),
    "zero_based": ("svmlight",),
    "zero_based_labels": ("svmlight",),
    "delimiter": ("csv", "tsv"),
    "decimal": ("csv", "tsv"),
    "header": ("csv", "tsv"),
}


@dataclass(frozen=True)
class TextFormat:
    """How CSV and TSV are written, validated; see `load`."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool | None = None

    def __post_init__(self) -> None:
        _check_text(self.delimiter, "delimiter")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '\r\n"'):
            raise ValueError(f"delimiter is {self.delimiter!r}: it must be one character")
        if self.decimal not in (".", ","):
            raise ValueError(f"decimal is {self.decimal!r}: it must be '.' or ','")
        _check_optional_flag(self.header, "header")


@dataclass(frozen=True)
class ReadOptions(TextFormat):
    """The arguments of `load`, validated, and what a fitted encoder saw in training."""

    labels: Any = None  # int, str, list of str or None
    separator: str | None = None
    categorical: Sequence[str] = ()
    drop: Sequence[str] = ()
    ids: Sequence[str] = ()
    n_features: int | None = None
    zero_based: bool | None = None
    zero_based_labels: bool | None = None
    encoder: FeatureEncoder | None = None  # fitted
    with_labels: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", _checked_labels(self.labels))
        for name in ("categorical", "drop", "ids"):
            object.__setattr__(self, name, _checked_names(getattr(self, name), name))
        _check_text(self.separator, "separator")
        if self.n_features is not None:
            check_count(self.n_features, "n_features", least=1)
        _check_optional_flag(self.zero_based, "zero_based")
        _check_optional_flag(self.zero_based_labels, "zero_based_labels")
        check_flag(self.with_labels, "with_labels")

    def check_format(self, format: str, source: str) -> None:
        """Raise if an argument was passed that does not apply to the format."""
        for default in fields(self):
            name, value = default.name, getattr(self, default.name)
            if value != default.default and format not in _APPLIES_TO.get(name, FORMATS):
                raise ValueError(
                    f"{name} is {value!r}, and {source} is read as {format!r}: {name} applies to "
                    f"{', '.join(_APPLIES_TO[name])}"
                )

    @property
    def schema(self) -> Schema:
        """Facts about the file of training; those of no file if there is no encoder."""
        return Schema() if self.encoder is None else self.encoder.schema_

    @property
    def training_features(self) -> tuple[str, ...]:
        """Names of the features in training; empty if unknown."""
        return tuple(getattr(self.encoder, "feature_names_in_", ()))

    @property
    def text_columns(self) -> frozenset[str]:
        """Columns of texts in training: their numbers are read as texts."""
        return frozenset(() if self.encoder is None else self.encoder.text_names_)

    @property
    def dropped_in_training(self) -> tuple[str, ...]:
        """Columns left out in training."""
        left_out = () if self.encoder is None else self.encoder.left_out_
        return (*self.schema.dropped, *left_out)

    @property
    def dropped_ids(self) -> tuple[str, ...]:
        """Columns of `ids` that were neither features nor labels in training."""
        schema = self.schema
        used = {*self.training_features, *(schema.label_names or ()), schema.tag_column}
        return tuple(name for name in self.ids if name not in used)


def _check_text(value: Any, name: str) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise ValueError(f"{name} is {value!r}: it must be a non-empty string")


def _check_optional_flag(value: Any, name: str) -> None:
    if value is not None and not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}: it must be True, False or None")


def _checked_labels(labels: Any) -> Any:
    rule = "a number other than 0, a name or pattern, or a list of names and patterns"
    if labels is None or isinstance(labels, str):
        return labels
    if isinstance(labels, os.PathLike):
        return os.fspath(labels)
    if isinstance(labels, (int, np.integer)) and not isinstance(labels, bool):
        if labels == 0:
            raise ValueError(f"labels is 0: it must be {rule}")
        return int(labels)
    try:
        names = [*labels]
    except TypeError:
        raise TypeError(f"labels is {labels!r}: it must be {rule}") from None
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"labels is {labels!r}: it must be {rule}")
    return names


def _checked_names(names: Any, argument: str) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{argument} is {names!r}: it must be a list of column names")
    return tuple(names)
