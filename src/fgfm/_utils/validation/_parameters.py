"""Scalar parameters: numbers, flags, counts and choices."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

__all__ = [
    "check_average",
    "check_beta",
    "check_choice",
    "check_count",
    "check_flag",
    "check_fraction",
    "check_zero_division",
    "resolve_nonempty",
]


def _number(value: Any, name: str, rule: str) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {value!r}: it must be {rule}")
    return float(value)


def check_beta(beta: Any) -> float:
    """Return beta as a float in the range in which beta^4 neither overflows nor underflows."""
    rule = "a number greater than 0 (from 1e-50 to 1e50)"
    number = _number(beta, "beta", rule)
    if not 1e-50 <= number <= 1e50:
        raise ValueError(f"beta is {number!r}: it must be {rule}")
    return number


def check_zero_division(value: Any, name: str = "zero_division") -> float:
    """Return a number in [0, 1], such as the value of 0/0, as a float."""
    rule = "a number in [0, 1]"
    number = _number(value, name, rule)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} is {number!r}: it must be {rule}")
    return number


def check_fraction(value: Any, name: str) -> float:
    """Return a number strictly between 0 and 1 as a float."""
    rule = "a number greater than 0 and less than 1"
    number = _number(value, name, rule)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} is {number!r}: it must be {rule}")
    return number


def check_flag(value: Any, name: str) -> bool:
    """Return a flag as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}: it must be True or False")
    return bool(value)


def resolve_nonempty(nonempty: Any, auto: bool) -> bool:
    """Return the flag `nonempty` of an estimator, with "auto" replaced by what `fit` found."""
    if isinstance(nonempty, str) and nonempty == "auto":
        return auto
    if not isinstance(nonempty, (bool, np.bool_)):
        raise TypeError(f"nonempty is {nonempty!r}: it must be 'auto', True or False")
    return bool(nonempty)


def check_count(value: Any, name: str, least: int = 0) -> int:
    """Return a count as an int that is not smaller than `least`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} is {value!r}: it must be an integer, {least} or more")
    return int(value)


def check_average(average: Any) -> None:
    """Raise unless `average` is one of the averages of the F-measure."""
    check_choice(average, "average", ("samples", "macro", "micro"))


def check_choice(value: Any, name: str, choices: tuple[Any, ...]) -> None:
    """Raise unless a parameter is one of some strings, or None where that is among them."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise ValueError(f"{name} is {value!r}: it must be one of {', '.join(map(repr, choices))}")
