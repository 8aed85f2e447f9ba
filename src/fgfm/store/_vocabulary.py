"""Compact form of vocabularies in a file.

skops writes two nodes for each word of a dict: a text vectorizer of 50 000 words would take 21 MB
and five seconds to save and load. A vocabulary is saved as one text instead.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

_LEAST = 100  # words, below which skops is quick


class Vocabulary:
    """Serialisable stand-in for a vocabulary: the JSON list of its words in the order of columns.

    skops saves an object by the arguments of its constructor, which is called with this list when
    the file is loaded, and returns the dict from words to columns.
    """

    text: str

    def __new__(cls, text: str) -> Any:
        words = json.loads(text)
        if not isinstance(words, list) or not all(type(word) is str for word in words):
            raise ValueError("a vocabulary must be a list of words")
        return {word: column for column, word in enumerate(words)}

    def __reduce__(self) -> Any:
        return Vocabulary, (self.text,)


def pack_vocabularies(value: Any, packed: dict[int, Any]) -> Any:
    """Return a copy of a part of a model with a `Vocabulary` in place of each large vocabulary.

    Parts without one are not copied. `packed` has the results by the id of their part, so that
    shared parts stay shared.
    """
    if id(value) in packed:
        return packed[id(value)]
    kind, result = type(value), value
    if kind is dict and len(value) >= _LEAST and _is_vocabulary(value):
        result = object.__new__(Vocabulary)
        result.text = json.dumps(sorted(value, key=value.__getitem__))
    elif kind in (dict, list, tuple):
        before = list(value.values() if kind is dict else value)
        after = [pack_vocabularies(part, packed) for part in before]
        if any(one is not other for one, other in zip(before, after, strict=True)):
            result = dict(zip(value, after, strict=True)) if kind is dict else kind(after)
    elif isinstance(value, BaseEstimator):
        attributes = pack_vocabularies(vars(value), packed)
        if attributes is not vars(value):
            result = object.__new__(kind)
            vars(result).update(attributes)
    packed[id(value)] = result
    return result


def _is_vocabulary(values: dict[Any, Any]) -> bool:
    """Return True for a dict from words to the integers 0, 1, ..."""
    return all(
        type(word) is str and isinstance(column, int | np.integer)
        for word, column in values.items()
    ) and set(values.values()) == set(range(len(values)))
