"""What a decider changes against thresholds, label by label."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.optional import import_optional
from fgfm.metrics import FDifference, f_difference, f_interval, f_measure
from fgfm.metrics._best_threshold import above_tuned

__all__ = ["add_threshold_intervals", "compare", "rivals", "warn_if_optimistic"]

Floats = npt.NDArray[np.float64]

# F tends to precision if beta tends to 0, and to recall if beta tends to infinity: here the
# difference is below rounding errors. Both are 0 where nothing is predicted, or nothing is true.
_FOLDS = 5  # of tuned thresholds
_FEWEST_ROWS = 20  # from which a difference is judged
_SURE, _SLACK = 0.999, 0.03  # that rows differ, and what a model may be wrong by
_PRECISION, _RECALL = 1e-9, 1e9


def rivals(p: Any, truth: Any, scores: bool, **given: Any) -> dict[str, tuple[Any, Any]]:
    """Return the decisions of p > 0.5, or scores > 0, and of thresholds tuned on these rows.

    Those of a fifth of the rows are tuned on the others, and the thresholds returned are their
    means. With "macro" and "weighted" each label is tuned by itself. `p` and `truth` are both
    dense, or both sparse; `given` is the F-measure.
    """
    n = p.shape[0]
    parts = np.array_split(np.random.default_rng(0).permutation(n), min(_FOLDS, n))
    each = given["average"] in ("macro", "weighted")
    tuned, thresholds = above_tuned(p, truth, parts, each=each, **given)
    half, name = (0.0, "score > 0") if scores else (0.5, "p > 0.5")
    return {name: (p > half, half), "tuned": (tuned, np.mean(thresholds, axis=0))}


def compare(rules: dict[str, tuple[Any, Any]], truth: Any, names: list[Any], **given: Any) -> Any:
    """Return the measures of some rules as a pandas data frame.

    Parameters
    ----------
    rules : dict
        The labels (n, m) and the thresholds of each rule; differences are those to the last one.
    truth : ndarray or CSR of shape (n, m)
        True labels.
    names : list
        Names of the labels.
    **given : object
        Arguments of `f_measure`: ``beta``, ``average`` and ``zero_division``.

    Returns
    -------
    DataFrame
        One row for each label and rule; if there are several labels, then one for all of them.
    """
    pd = import_optional("pandas", "report", "data")
    beta, average = given.pop("beta"), given.pop("average")

    def of_labels_and_all(function: Any, *labels: Any, beta: float) -> list[Floats]:
        """Return each value for all labels, followed by that of their average."""
        of_labels, of_all = (
            function(truth, *labels, beta=beta, average=a, **given) for a in (None, average)
        )
        return [np.append(one, other) for one, other in zip(of_labels, of_all, strict=True)]

    tables: list[Any] = []
    *_, (rival, _) = rules.values()
    for labels, thresholds in rules.values():
        with warnings.catch_warnings():
            if tables:  # the first rule warns if an average rests on few rows
                warnings.simplefilter("ignore")
            f, low, high = of_labels_and_all(f_interval, labels, beta=beta)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = FDifference(*of_labels_and_all(f_difference, labels, rival, beta=beta))
        measures: dict[str, Any] = {"f": f, "low": low, "high": high}
        measures |= {"difference": found.difference, "verdict": found.verdict}
        if labels is rival:
            measures |= {"difference": np.nan, "verdict": ""}
        for name, b in (("precision", _PRECISION), ("recall", _RECALL)):
            values = [f_measure(truth, labels, b, average=a, **given) for a in (None, average)]
            measures[name] = np.append(*values)
        share = np.asarray(labels.astype(np.float64).mean(axis=0)).ravel()
        measures["predicted"] = np.append(share, share.mean())
        one = thresholds if np.ndim(thresholds) == 0 else np.nan  # of all labels
        measures["threshold"] = np.append(np.broadcast_to(thresholds, (len(names),)), one)
        tables.append(pd.DataFrame(measures))
    # The rules of a label follow each other: rows are sorted by their numbers, names may repeat.
    table = pd.concat(tables).sort_index(kind="stable")
    table.index = pd.MultiIndex.from_product(
        [[*names, "overall"], list(rules)], names=["label", "decision"]
    )
    return table if len(names) > 1 else table[: len(rules)]


def add_threshold_intervals(table: Any, average: str, beta: float) -> None:
    """Add the intervals of the decider's thresholds to a report: those of F by 1 + beta^2."""
    ours = table.index.get_level_values("decision") == "decider"
    for end in ("low", "high"):
        values = table[end][ours] / (1.0 + beta**2)
        if average == "micro":  # one threshold, which the F-measure of all labels determines
            values[:] = values.iloc[-1]
        elif len(values) > 1:  # one for each label, and none for all of them
            values.iloc[-1] = np.nan
        table[f"threshold_{end}"] = np.nan
        table.loc[ours, f"threshold_{end}"] = values.to_numpy()


def warn_if_optimistic(
    expected: Any, truth: Any, labels: Any, n_fit: int, measure: dict[str, Any]
) -> None:
    """Warn if labels obtain less than is expected of them, by more than chance.

    Chance is that of independent rows, these and those of `fit`.

    Parameters
    ----------
    expected : ndarray or float
        F-measures to expect: of rows, of labels, or one.
    truth, labels : ndarray or CSR of shape (n, m)
        True and decided labels.
    n_fit : int
        Number of rows that the expectation was learned from.
    measure : dict
        Arguments of `f_measure`.
    """
    n = labels.shape[0]
    if n < _FEWEST_ROWS:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about averages that rest on few rows
        f, _, high = f_interval(truth, labels, confidence=_SURE, **measure)
    share = np.ones(np.size(expected))
    if measure["average"] == "weighted":
        share = np.asarray(truth.sum(axis=0), dtype=np.float64).ravel()
    mean = float(share @ np.atleast_1d(expected)) / max(float(share.sum()), 1.0)
    if mean - f > (high - f) * np.sqrt(1.0 + n / n_fit) + _SLACK:
        warnings.warn(
            f"the F-measure of these {n} rows is {f:.3f}, and {mean:.3f} is expected: they differ "
            "from the rows of fit by more than chance. Were those rows that the model was trained "
            "on?",
            UserWarning,
            stacklevel=4,
        )
