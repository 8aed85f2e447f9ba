"""Vocabularies as one text each: skops has two nodes for every word, which takes seconds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["Vocabulary", "pack_vocabularies"]

_LEAST = 100  # words, below which skops is quick


class Vocabulary:
    """What stands for a dict from words to numbers in a file; to construct it returns the dict.

    Parameters
    ----------
    text : str
        The dict as JSON.
    """

    text: str

    def __new__(cls, text: str) -> Any:
        words = json.loads(text)
        if not isinstance(words, dict) or not all(type(at) is int for at in words.values()):
            raise ValueError("a vocabulary must be a dict from words to integers")
        return words

    def __reduce__(self) -> Any:
        return Vocabulary, (self.text,)


def pack_vocabularies(model: Any, seen: dict[int, Any] | None = None) -> Any:
    """Return a model with a `Vocabulary` in place of each large dict from words to numbers.

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
    if type(model) is dict:
        if len(model) >= _LEAST and _is_vocabulary(model):
            vocabulary = object.__new__(Vocabulary)
            vocabulary.text = json.dumps({word: int(at) for word, at in model.items()})
            return vocabulary
        values = [pack_vocabularies(value, seen) for value in model.values()]
        same = all(one is other for one, other in zip(values, model.values(), strict=True))
        return model if same else dict(zip(model, values, strict=True))
    if type(model) in (list, tuple):
        values = [pack_vocabularies(value, seen) for value in model]
        same = all(one is other for one, other in zip(values, model, strict=True))
        return model if same else type(model)(values)
    if not isinstance(model, BaseEstimator):
        return model
    attributes = pack_vocabularies(vars(model), seen)
    if attributes is vars(model):
        return model
    copy = object.__new__(type(model))
    vars(copy).update(attributes)
    return copy


def _is_vocabulary(values: dict[Any, Any]) -> bool:
    return all(
        type(word) is str and isinstance(at, (int, np.integer)) and not isinstance(at, bool)
        for word, at in values.items()
    )
