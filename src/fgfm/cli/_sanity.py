"""Sentences on data and models from which little can be expected."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgfm._utils.text import listed

__all__ = ["label_notes", "unsure_note"]

_LARGE = 1.5  # labels that are predicted for each that is expected: more is large
_UNSURE = 0.5  # expected F-measure


def label_notes(Y: Any, names: Any) -> list[str]:
    """Return sentences on training rows (n, m) that teach little about the labels."""
    n, m = Y.shape
    counts = np.nansum(Y, axis=0)
    if n == 1:
        return ["there is one training row: every prediction will be its label set"]
    if not counts.any():
        return ["no training row has a label: every prediction will be the empty set"]
    notes = []
    for fixed, fault in ((0, "no training row has"), (n, "every training row has")):
        found = [str(names[k]) for k in range(m) if counts[k] == fixed]
        if found:
            noun = "label" if len(found) == 1 else "labels"
            notes.append(f"{fault} the {noun} {listed(found, 4)}: nothing can be learned there")
    return notes


def unsure_note(expected_f: float, size: float, labels: float, beta: float) -> str | None:
    """Return a sentence if label sets are large or small because features hardly predict them.

    The mean `size` of the predicted sets is compared with that of the true ones, or the expected
    one, `labels`.
    """
    is_large, is_small = size > _LARGE * labels, _LARGE * size < labels
    if not (expected_f < _UNSURE and (is_large or is_small)):
        return None
    return (
        f"the label sets are {'large' if is_large else 'small'} because the model is unsure: "
        f"expected F{beta:g} {expected_f:.2f}, {size:.1f} labels per row instead of {labels:.1f}"
    )
