"""What a benchmark came to, as text of 80 columns and as Markdown."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.real.rules import DEFAULT, THRESHOLD
from benchmarks.real.summary import (
    EVERYTHING,
    MEASURES,
    PEERS,
    Difference,
    Ranking,
    Standings,
    System,
)
from fgfm.experiments._table import grid

__all__ = ["MISSING", "error_list", "markdown", "system_name", "terminal"]

MISSING = "-"
_HEADS = {
    "f1": "F1",
    "f2": "F2",
    "f2_own": "F2, decided for it",
    "f05": "F0.5",
    "f05_own": "F0.5, decided for it",
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "jaccard": "Jaccard",
    "subset_accuracy": "exact",
    "hamming_loss": "Hamming loss",
    "labels_per_row": "labels a row",
    "expected_f": "F1 it expects",
    "calibration_gap": "gap of bins",
    "fit_s": "fit, s",
    "predict_s": "predict, s",
    "peak_mib": "peak, MiB",
}
_WIDTH = 80
_LEVEL = 0.05


def system_name(system: System, learner: str) -> str:
    """Name a system in the ranking of a learner, or of everything.

    Examples
    --------
    >>> system_name(("ridge", "half"), "ridge"), system_name(("ridge", "half"), EVERYTHING)
    ('half', 'ridge half')
    """
    return system[1] if system[0] == learner else " ".join(system)


def _f1(value: float) -> str:
    return MISSING if math.isnan(value) else f"{value:.4f}".lstrip("0")


def _best(values: Sequence[float]) -> float:
    return max((v for v in values if not math.isnan(v)), default=float("nan"))


def _interval(d: Difference | None) -> list[str]:
    """Write a difference in units of 1e-4, and the ends of its interval."""
    if d is None:
        return [MISSING] * 3
    return [f"{round(1e4 * v):+d}" for v in (d.mean, d.low, d.high)]


def _means(summary: Standings, ranking: Ranking) -> dict[System, Difference]:
    """Give the differences over data sets, by system."""
    every = {(d.learner, d.rule): d for d in summary.differences if not d.dataset}
    return {s: every[s] for s in ranking.systems if s in every}


def _tests(ranking: Ranking) -> Iterator[str]:
    """Say what the tests of a ranking found."""
    if math.isnan(ranking.critical_difference):
        return
    text = f"Friedman's test that all are equal: p = {ranking.friedman_p:.2g}."
    if ranking.friedman_p < _LEVEL:
        text += (
            f" Mean ranks that differ by more than {ranking.critical_difference:.2f} differ "
            f"significantly (Nemenyi, {_LEVEL})."
        )
    yield text


def _shortfall(summary: Standings, learner: str) -> Iterator[str]:
    """Say where "default" is most below the best rule."""
    for s in summary.shortfalls:
        if s.learner == learner and s.f1 <= 0.0:
            yield "default is the best wherever it and others have a score."
        elif s.learner == learner:
            yield f"default is most below the best on {s.dataset}: {s.f1:.4f} ({s.best_rule})."


def terminal(summary: Standings) -> str:
    """Write all that a terminal shows of a benchmark.

    Parameters
    ----------
    summary : Standings
        The summary.

    Returns
    -------
    str
        Lines of at most 80 characters.
    """
    lines: list[str] = []
    for ranking in summary.rankings:
        lines += _terminal_part(summary, ranking)
        lines.append("")
    if summary.errors:
        lines.append(f"{len(summary.errors)} result(s) are missing: see errors.md")
    return "\n".join(lines).rstrip()


def _first_rankings(summary: Standings) -> list[Ranking]:
    """Give the ranking of all that each learner has, without those of what has every score."""
    return list({ranking.learner: ranking for ranking in reversed(summary.rankings)}.values())


def _known(summary: Standings, ranking: Ranking) -> list[str]:
    """Give the data sets on which anything in a ranking has a score."""
    return [
        name
        for name in summary.datasets
        if not all(math.isnan(summary.scores[s][name]) for s in ranking.systems)
    ]


def _shared(summary: Standings, ranking: Ranking) -> list[str]:
    """Give the data sets on which everything in a ranking has a score."""
    return [
        name
        for name in summary.datasets
        if not any(math.isnan(summary.scores[s][name]) for s in ranking.systems)
    ]


def _extent(ranking: Ranking, whole: bool) -> str:
    """Say what a ranking is over."""
    if whole:
        return f"ranks of those that have a score on all {ranking.n_datasets} data sets"
    if any(ranking.missing):
        return f"ranks on {ranking.n_datasets} data set(s), where all have a score"
    return f"{ranking.n_datasets} data set(s)"


def _terminal_part(summary: Standings, ranking: Ranking) -> Iterator[str]:
    learner, scores = ranking.learner, summary.scores
    partial = any(ranking.missing)
    whole = ranking not in _first_rankings(summary)
    yield f"{learner}: {_extent(ranking, whole)}"
    means = _means(summary, ranking)
    shared = _shared(summary, ranking)
    rows = []
    for system, rank, missing in zip(
        ranking.systems, ranking.mean_ranks, ranking.missing, strict=True
    ):
        values = [scores[system][name] for name in shared]
        mean = sum(values) / len(values) if values else float("nan")
        gain = _interval(means.get(system))
        rows.append([system_name(system, learner), f"{rank:.2f}", str(missing), _f1(mean), *gain])
    yield from grid(["rule", "rank", "missing", "F1", "gain", "low", "high"], rows)
    told = [*_tests(ranking), *_shortfall(summary, learner)]
    told.append("rank and F1: means over the data sets on which all have a score.")
    if partial:
        told.append("missing: data sets without a score.")
    if means:
        told.append(
            "gain: F1 of the learner's default less that of the rule if both have it, in 1e-4; "
            "95 % intervals of a bootstrap over test rows: data sets and training rows are fixed."
        )
    for text in told:
        yield from textwrap.wrap(text, _WIDTH)
    if learner == EVERYTHING or whole:
        return
    yield ""
    rules = [system_name(s, learner) for s in ranking.systems]
    cells = [
        [name, *(_starred([scores[s][name] for s in ranking.systems]))]
        for name in _known(summary, ranking)
    ]
    yield from grid(["F1", *(rule + " " for rule in rules)], cells)


def _starred(values: Sequence[float]) -> list[str]:
    """Write values, the best with a star."""
    best = _best(values)
    return [_f1(v) + ("*" if v == best else " ") for v in values]


def _rows(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Write rows of a Markdown table, the first being its heads."""
    for k, row in enumerate(rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        if k == 0:
            yield "|---|" + "--:|" * (len(row) - 1)


def markdown(summary: Standings, command: str) -> str:
    """Write the tables of a benchmark as Markdown.

    Parameters
    ----------
    summary : Standings
        The summary.
    command : str
        The command that made it.

    Returns
    -------
    str
        For each learner F1 by data set and rule, the best in bold, mean ranks, differences, and
        the other measures.
    """
    parts = [f"Made by `{command}`.", ""]
    first = _first_rankings(summary)
    for ranking in summary.rankings:
        learner, systems = ranking.learner, ranking.systems
        heads = ["", *(system_name(s, learner) for s in systems)]
        rows = [heads]
        for name in _known(summary, ranking) if ranking in first else []:
            values = [summary.scores[s][name] for s in systems]
            best = _best(values)
            rows.append([name, *(f"**{_f1(v)}**" if v == best else _f1(v) for v in values)])
        rows.append(["mean rank", *(f"{rank:.2f}" for rank in ranking.mean_ranks)])
        rows.append(["missing", *map(str, ranking.missing)])
        means = _means(summary, ranking)
        gains = [" ".join(_interval(means[s])) if s in means else MISSING for s in systems]
        rows.append(["default less it, 1e-4", *gains])
        title = "mean F1 of test rows" if ranking in first else _extent(ranking, True)
        parts += [f"## {learner}: {title}", "", *_rows(rows), ""]
        for text in (*_tests(ranking), *_shortfall(summary, learner)):
            parts += [text, ""]
        if learner not in (EVERYTHING, PEERS):
            parts += _measures(summary, ranking)
    return "\n".join(parts)


def _measures(summary: Standings, ranking: Ranking) -> Iterator[str]:
    """Write all measures of the rules of a learner as a Markdown table."""
    shared = _shared(summary, ranking)
    yield f"### {ranking.learner}: all measures, means over {len(shared)} data set(s)"
    yield ""
    rows = [["rule", *(_HEADS[measure] for measure in MEASURES)]]
    for system in ranking.systems:
        parts = [summary.measures[system][name] for name in shared]
        means = {m: sum(part[m] for part in parts) / max(1, len(parts)) for m in MEASURES}
        rows.append([system[1], *(_number(means[measure], measure) for measure in MEASURES)])
    yield from _rows(rows)
    yield ""
    rules = [rule for _, rule in ranking.systems]
    if DEFAULT not in rules:
        return
    mine = summary.measures[ranking.systems[rules.index(DEFAULT)]]
    for beta, own in (("F2", "f2_own"), ("F0.5", "f05_own")):
        raised = sum(mine[name][own] > mine[name][own.removesuffix("_own")] for name in shared)
        text = f"{beta}: default, deciding for it, is better than deciding for F1 on {raised}"
        if THRESHOLD in rules:
            rival = summary.measures[ranking.systems[rules.index(THRESHOLD)]]
            ahead = sum(mine[name][own] > rival[name][own] for name in shared)
            text += f", and than the best single threshold for it on {ahead}"
        yield f"{text} of {len(shared)} data set(s)."
        yield ""


def _number(value: float, measure: str) -> str:
    """Write a measure: seconds and memory as they are, shares with four digits."""
    if math.isnan(value):
        return MISSING
    if measure == "peak_mib":
        return f"{value:.0f}"
    return f"{value:.2f}" if measure.endswith("_s") or "labels" in measure else _f1(value)


def error_list(summary: Standings) -> str:
    """List what is missing, as Markdown.

    Parameters
    ----------
    summary : Standings
        The summary.

    Returns
    -------
    str
        A table, or a sentence where nothing is missing.
    """
    if not summary.errors:
        return "Nothing is missing.\n"
    rows = [["data set", "fold", "learner", "rule", "status"]]
    rows += [[e.dataset, str(e.fold), e.learner, e.rule, e.status] for e in summary.errors]
    return "\n".join(_rows(rows)) + "\n"
