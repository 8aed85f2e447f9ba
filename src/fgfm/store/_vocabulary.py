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

    skops saves an object by the arguments of its constructor. When the file is loaded, this
    constructor is called with the text, and returns the dict from words to columns.

    Parameters
    ----------
    text : str
        The list.
    """

    text: str

    def __new__(cls, text: str) -> Any:
        words = json.loads(text)
        if not isinstance(words, list) or not all(type(word) is str for word in words):
            raise ValueError("a vocabulary must be a list of words")
        return {word: column for column, word in enumerate(words)}

    def __reduce__(self) -> Any:
        return Vocabulary, (self.text,)


def pack_vocabularies(model: Any, seen: dict[int, Any] | None = None) -> Any:
    """Return a model with a `Vocabulary` in place of each large vocabulary.

    Parameters
    ----------
    model : object
        An estimator, or a part of one. It is not changed.
    seen : dict, optional
        Results by the id of their part, so that shared parts stay shared.

    Returns
    -------
    object
        The same object if there is nothing to replace, otherwise a shallow copy.
    """
    seen = {} if seen is None else seen
    if id(model) not in seen:
        seen[id(model)] = _packed(model, seen)
    return seen[id(model)]


def _packed(model: Any, seen: dict[int, Any]) -> Any:
    if isinstance(model, BaseEstimator):
        attributes = pack_vocabularies(vars(model), seen)
        if attributes is vars(model):
            return model
        copy = object.__new__(type(model))
        vars(copy).update(attributes)
        return copy
    if type(model) is dict and len(model) >= _LEAST and _is_vocabulary(model):
        vocabulary = object.__new__(Vocabulary)
        vocabulary.text = json.dumps(sorted(model, key=model.__getitem__))
        return vocabulary
    if type(model) not in (dict, list, tuple):
        return model
    before = list(model.values() if type(model) is dict else model)
    after = [pack_vocabularies(value, seen) for value in before]
    if all(one is other for one, other in zip(before, after, strict=True)):
        return model
    return dict(zip(model, after, strict=True)) if type(model) is dict else type(model)(after)


def _is_vocabulary(values: dict[Any, Any]) -> bool:
    """Return True for a dict from words to the integers 0, 1, ..."""
    return all(
        type(word) is str and isinstance(column, int | np.integer)
        for word, column in values.items()
    ) and set(values.values()) == set(range(len(values)))
