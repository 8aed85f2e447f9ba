"""The summary of the benchmark as text of at most 80 columns, and as Markdown."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.real.rules import DEFAULT, THRESHOLD
from benchmarks.real.summary import (
    ALL_LEARNERS,
    MEASURES,
    PEERS,
    BenchmarkSummary,
    Difference,
    Ranking,
    System,
)
from fgfm.experiments._table import grid

__all__ = ["count", "format_errors", "format_markdown", "format_terminal", "system_name"]

_MISSING = "-"
_HEADS = {
    "f1": "F1",
    "f2": "F2",
    "f2_own": "F2, decided for F2",
    "f05": "F0.5",
    "f05_own": "F0.5, decided for F0.5",
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "jaccard": "Jaccard",
    "subset_accuracy": "subset accuracy",
    "hamming_loss": "Hamming loss",
    "labels_per_row": "labels per row",
    "expected_f": "expected F1",
    "calibration_gap": "calibration gap",
    "fit_s": "fit, s",
    "predict_s": "predict, s",
    "peak_mib": "peak, MiB",
}
_WIDTH = 80
_LEVEL = 0.05


def system_name(system: System, learner: str) -> str:
    """Return the name of a system in the ranking of a learner, or of all learners."""
    return system[1] if system[0] == learner else " ".join(system)


def _format_f1(value: float) -> str:
    return _MISSING if math.isnan(value) else f"{value:.4f}".lstrip("0")


def count(n: int, noun: str) -> str:
    """Format a number of things."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _best(values: Sequence[float]) -> float:
    return max((v for v in values if not math.isnan(v)), default=float("nan"))


def _format_interval(d: Difference | None) -> list[str]:
    """Format a difference and the ends of its interval, in units of 1e-4."""
    if d is None:
        return [_MISSING] * 3
    return [f"{round(1e4 * v):+d}" for v in (d.mean, d.low, d.high)]


def _mean_differences(summary: BenchmarkSummary, ranking: Ranking) -> dict[System, Difference]:
    """Return the mean differences over data sets, by system."""
    means = {(d.learner, d.rule): d for d in summary.differences if not d.dataset}
    return {s: means[s] for s in ranking.systems if s in means}


def _test_results(ranking: Ranking) -> Iterator[str]:
    """Yield the results of the tests of a ranking."""
    if math.isnan(ranking.critical_difference):
        return
    text = f"Friedman test that all are equal: p = {ranking.friedman_p:.2g}."
    if ranking.friedman_p < _LEVEL:
        text += (
            f" Mean ranks that differ by more than {ranking.critical_difference:.2f} differ "
            f"significantly (Nemenyi, level {_LEVEL})."
        )
    yield text


def _shortfall(summary: BenchmarkSummary, learner: str) -> Iterator[str]:
    """Yield where "default" is furthest below the best rule."""
    for s in summary.shortfalls:
        if s.learner != learner:
            continue
        if s.f1 <= 0.0:
            yield "The default is the best rule on every data set."
        else:
            yield (
                f"The default is furthest below the best rule on {s.dataset}: by {s.f1:.4f} "
                f"({s.best_rule})."
            )


def _first_rankings(summary: BenchmarkSummary) -> list[Ranking]:
    """Return the first ranking of each learner, which has all its systems."""
    return list({ranking.learner: ranking for ranking in reversed(summary.rankings)}.values())


def _scored_datasets(summary: BenchmarkSummary, ranking: Ranking) -> list[str]:
    """Return the data sets on which any system of a ranking has a score."""
    return [
        name
        for name in summary.datasets
        if not all(math.isnan(summary.scores[s][name]) for s in ranking.systems)
    ]


def _shared_datasets(summary: BenchmarkSummary, ranking: Ranking) -> list[str]:
    """Return the data sets on which all systems of a ranking have a score."""
    return [
        name
        for name in summary.datasets
        if not any(math.isnan(summary.scores[s][name]) for s in ranking.systems)
    ]


def _extent(ranking: Ranking, complete: bool) -> str:
    """Describe the systems and data sets of a ranking."""
    datasets = count(ranking.n_datasets, "data set")
    if complete:
        return f"ranks of the rules with a score on all {datasets}"
    if any(ranking.missing):
        return f"ranks on {datasets} with a score of every rule"
    return f"ranks on {datasets}"


# --- terminal ---------------------------------------------------------------------------------


def format_terminal(summary: BenchmarkSummary) -> str:
    """Format the summary for a terminal."""
    lines: list[str] = []
    for ranking in summary.rankings:
        lines += _format_ranking(summary, ranking)
        lines.append("")
    if summary.errors:
        lines.append(f"{count(len(summary.errors), 'result')} missing: see errors.md")
    return "\n".join(lines).rstrip()


def _format_ranking(summary: BenchmarkSummary, ranking: Ranking) -> Iterator[str]:
    learner, scores = ranking.learner, summary.scores
    complete = ranking not in _first_rankings(summary)
    yield f"{learner}: {_extent(ranking, complete)}"
    means = _mean_differences(summary, ranking)
    shared = _shared_datasets(summary, ranking)
    rows = []
    for system, rank, missing in zip(
        ranking.systems, ranking.mean_ranks, ranking.missing, strict=True
    ):
        values = [scores[system][name] for name in shared]
        mean = _format_f1(sum(values) / len(values) if values else float("nan"))
        gain = _format_interval(means.get(system))
        rows.append([system_name(system, learner), f"{rank:.2f}", str(missing), mean, *gain])
    yield from grid(["rule", "rank", "missing", "F1", "gain", "low", "high"], rows)
    notes = [*_test_results(ranking), *_shortfall(summary, learner)]
    notes.append("rank, F1: means over the data sets with a score of every rule.")
    if any(ranking.missing):
        notes.append("missing: number of data sets without a score.")
    if means:
        notes.append(
            "gain, low, high: F1 of the learner's default minus that of the rule, in units of "
            "1e-4, with a 95 % bootstrap interval over test rows (data sets and training rows are "
            "fixed)."
        )
    for text in notes:
        yield from textwrap.wrap(text, _WIDTH)
    if learner == ALL_LEARNERS or complete:
        return
    yield ""
    rules = [system_name(s, learner) for s in ranking.systems]
    cells = [
        [name, *(_star_best([scores[s][name] for s in ranking.systems]))]
        for name in _scored_datasets(summary, ranking)
    ]
    yield from grid(["F1", *(rule + " " for rule in rules)], cells)


def _star_best(values: Sequence[float]) -> list[str]:
    """Format scores, the best with a star."""
    best = _best(values)
    return [_format_f1(v) + ("*" if v == best else " ") for v in values]


# --- Markdown ---------------------------------------------------------------------------------


def _markdown_table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Format rows as a Markdown table; the first row is its head."""
    for k, row in enumerate(rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        if k == 0:
            yield "|---|" + "--:|" * (len(row) - 1)


def format_markdown(summary: BenchmarkSummary, command: str) -> str:
    """Format the tables of the benchmark as Markdown."""
    parts = [f"Computed by `{command}`.", ""]
    first = _first_rankings(summary)
    for ranking in summary.rankings:
        learner, systems = ranking.learner, ranking.systems
        rows = [["", *(system_name(s, learner) for s in systems)]]
        for name in _scored_datasets(summary, ranking) if ranking in first else []:
            values = [summary.scores[s][name] for s in systems]
            best = _best(values)
            rows.append(
                [name, *(f"**{_format_f1(v)}**" if v == best else _format_f1(v) for v in values)]
            )
        rows.append(["mean rank", *(f"{rank:.2f}" for rank in ranking.mean_ranks)])
        rows.append(["missing", *map(str, ranking.missing)])
        means = _mean_differences(summary, ranking)
        gains = [" ".join(_format_interval(means[s])) if s in means else _MISSING for s in systems]
        rows.append(["default minus rule, 1e-4", *gains])
        title = "mean F1 of test rows" if ranking in first else _extent(ranking, True)
        parts += [f"## {learner}: {title}", "", *_markdown_table(rows), ""]
        for text in (*_test_results(ranking), *_shortfall(summary, learner)):
            parts += [text, ""]
        if learner not in (ALL_LEARNERS, PEERS):
            parts += _markdown_measures(summary, ranking)
    return "\n".join(parts)


def _markdown_measures(summary: BenchmarkSummary, ranking: Ranking) -> Iterator[str]:
    """Format all measures of the rules of a learner."""
    shared = _shared_datasets(summary, ranking)
    datasets = count(len(shared), "data set")
    yield f"### {ranking.learner}: all measures, means over {datasets}"
    yield ""
    rows = [["rule", *(_HEADS[measure] for measure in MEASURES)]]
    for system in ranking.systems:
        parts = [summary.measures[system][name] for name in shared]
        means = {m: sum(part[m] for part in parts) / max(1, len(parts)) for m in MEASURES}
        rows.append([system[1], *(_format_measure(means[m], m) for m in MEASURES)])
    yield from _markdown_table(rows)
    yield ""
    by_rule = {rule: summary.measures[learner, rule] for learner, rule in ranking.systems}
    if DEFAULT not in by_rule:
        return
    default = by_rule[DEFAULT]
    for f, own in (("F2", "f2_own"), ("F0.5", "f05_own")):
        better = sum(
            default[name][own] > default[name][own.removesuffix("_own")] for name in shared
        )
        text = f"{f} of the default is higher if it decides for {f} than for F1 on {better}"
        if THRESHOLD in by_rule:
            rival = by_rule[THRESHOLD]
            ahead = sum(default[name][own] > rival[name][own] for name in shared)
            text += f", and higher than that of the best single threshold for {f} on {ahead}"
        yield f"{text} of {datasets}."
        yield ""


def _format_measure(value: float, measure: str) -> str:
    """Format seconds and memory as they are, shares with four digits."""
    if math.isnan(value):
        return _MISSING
    if measure == "peak_mib":
        return f"{value:.0f}"
    return f"{value:.2f}" if measure.endswith("_s") or "labels" in measure else _format_f1(value)


def format_errors(summary: BenchmarkSummary) -> str:
    """List the missing results as Markdown."""
    if not summary.errors:
        return "No result is missing.\n"
    rows = [["data set", "fold", "learner", "rule", "status"]]
    rows += [[e.dataset, str(e.fold), e.learner, e.rule, e.status] for e in summary.errors]
    return "\n".join(_markdown_table(rows)) + "\n"
