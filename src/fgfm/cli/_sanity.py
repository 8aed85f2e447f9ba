"""Sentences on data and models from which little can be expected."""

from __future__ import annotations

from typing import Any

from fgfm._utils.text import listed

__all__ = ["label_notes", "unsure_note"]

_LARGE = 1.5  # labels that are predicted for each that is expected: more is large
_UNSURE = 0.5  # expected F-measure


def label_notes(Y: Any, names: Any) -> list[str]:
    """Return sentences on training rows that teach little about the labels.

    Parameters
    ----------
    Y : ndarray of shape (n, m)
        The labels.
    names : sequence of str
        Their names.

    Returns
    -------
    list of str
        The sentences; none is the rule.
    """
    n, m = Y.shape
    counts = Y.sum(axis=0)
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

    Parameters
    ----------
    expected_f : float
        The mean expected F-measure.
    size : float
        The mean size of the predicted sets.
    labels : float
        The mean size of the true sets, or the expected one.
    beta : float
        The beta of the F-measure.

    Returns
    -------
    str or None
        The sentence.
    """
    is_large, is_small = size > _LARGE * labels, _LARGE * size < labels
    if not (expected_f < _UNSURE and (is_large or is_small)):
        return None
    return (
        f"the label sets are {'large' if is_large else 'small'} because the model is unsure: "
        f"expected F{beta:g} {expected_f:.2f}, {size:.1f} labels per row instead of {labels:.1f}"
    )
