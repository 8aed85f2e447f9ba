"""Label factors from the option ``--factors``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["read_factors"]


def read_factors(text: str, label_names: Sequence[str]) -> Any:
    """Return label factors as `FGFMClassifier` accepts them.

    The text is "ilf", "single" or "independent"; or factors as ``a,b|c``; or a file with such a
    text, one factor per line, or with the JSON of ``fgfm factors --json``. Labels that are not
    named are factors of their own.
    """
    if text in ("ilf", "single", "independent"):
        return text
    if os.path.isfile(text):
        named = _read_file(Path(text))
    elif "|" in text or "," in text or text.strip() in label_names:
        named = _split(text)
    else:
        raise ValueError(
            f"--factors is {text!r}: it must be ilf, single, independent, factors such as a,b|c, "
            "or a file of factors"
        )
    number = {name: k for k, name in enumerate(label_names)}
    factors: list[list[int]] = []
    seen: set[str] = set()
    for factor in named:
        for label in factor:
            if label not in number:
                raise ValueError(f"--factors: there is no label {label!r} in the data")
            if label in seen:
                raise ValueError(f"--factors: label {label!r} occurs twice")
            seen.add(label)
        if factor:
            factors.append([number[label] for label in factor])
    return factors + [[k] for name, k in number.items() if name not in seen]


def _split(text: str) -> list[list[str]]:
    return [
        [label for part in factor.split(",") if (label := part.strip())]
        for factor in re.split(r"[|\n]", text)
    ]


def _read_file(path: Path) -> list[list[str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"--factors: {path} is not a text file: {error}") from error
    if text.lstrip()[:1] not in ("{", "["):
        return _split(text)
    try:
        found = json.loads(text)
        if isinstance(found, dict):
            found = found["factors"]
        if not all(isinstance(label, str) for factor in found for label in factor):
            raise TypeError("labels must be strings")
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"--factors: {path} must hold factors as lists of labels, or an object with such "
            f"'factors': {error}"
        ) from error
    return [list(factor) for factor in found]
