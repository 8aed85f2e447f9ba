"""The summary of the benchmark as text of at most 80 columns, and as Markdown."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.real.rules import DEFAULT, THRESHOLD
from benchmarks.real.summary import ALL_LEARNERS, PEERS, Ranking, Summary, System
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


def _gains(summary: Summary, ranking: Ranking) -> dict[System, list[str]]:
    """Format the mean differences over data sets and their intervals, in units of 1e-4."""
    means = summary.differences.query("dataset == ''").set_index(["learner", "rule"])
    return {
        system: [f"{round(1e4 * v):+d}" for v in means.loc[system, ["mean", "low", "high"]]]
        for system in ranking.systems
        if system in means.index
    }


def _notes(summary: Summary, ranking: Ranking) -> Iterator[str]:
    """Yield the results of the tests, and where "default" is furthest below the best rule."""
    if not math.isnan(ranking.critical_difference):
        text = f"Friedman test that all are equal: p = {ranking.friedman_p:.2g}."
        if ranking.friedman_p < _LEVEL:
            text += (
                f" Mean ranks that differ by more than {ranking.critical_difference:.2f} differ "
                f"significantly (Nemenyi, level {_LEVEL})."
            )
        yield text
    if (ranking.learner, DEFAULT) not in summary.systems:
        return
    scores = summary.scores[ranking.learner]
    behind = scores.sub(scores[DEFAULT], axis=0).stack().dropna()
    if behind.empty:
        return
    dataset, rule = behind.idxmax()
    if behind.max() <= 0.0:
        yield "The default is the best rule on every data set."
    else:
        yield (
            f"The default is furthest below the best rule on {dataset}: by {behind.max():.4f} "
            f"({rule})."
        )


def _extent(ranking: Ranking) -> str:
    """Describe the systems and data sets of a ranking."""
    datasets = count(len(ranking.shared), "data set")
    if not ranking.first:
        return f"ranks of the rules with a score on all {datasets}"
    with_gaps = " with a score of every rule" if ranking.scores.isna().any(axis=None) else ""
    return f"ranks on {datasets}{with_gaps}"


def _scored(summary: Summary, ranking: Ranking, best: str) -> Iterator[list[str]]:
    """Yield the scores on each data set, the best one formatted by a template."""
    for name, values in summary.scores[ranking.systems].dropna(how="all").iterrows():
        top = values.max()
        cells = (best.format(_format_f1(v)) if v == top else _format_f1(v) for v in values)
        yield [str(name), *cells]


def format_terminal(summary: Summary) -> str:
    """Format the summary for a terminal."""
    lines: list[str] = []
    for ranking in summary.rankings:
        lines += [*_format_ranking(summary, ranking), ""]
    if summary.errors:
        lines.append(f"{count(len(summary.errors), 'result')} missing: see errors.md")
    return "\n".join(lines).rstrip()


def _format_ranking(summary: Summary, ranking: Ranking) -> Iterator[str]:
    learner = ranking.learner
    yield f"{learner}: {_extent(ranking)}"
    gains = _gains(summary, ranking)
    missing = ranking.scores.isna().sum()
    means = ranking.scores.dropna().mean()
    rows = [
        [
            system_name(system, learner),
            f"{ranking.mean_ranks[system]:.2f}",
            str(missing[system]),
            _format_f1(means[system]),
            *gains.get(system, [_MISSING] * 3),
        ]
        for system in ranking.systems
    ]
    yield from grid(["rule", "rank", "missing", "F1", "gain", "low", "high"], rows)
    notes = [*_notes(summary, ranking)]
    notes.append("rank, F1: means over the data sets with a score of every rule.")
    if missing.any():
        notes.append("missing: number of data sets without a score.")
    if gains:
        notes.append(
            "gain, low, high: F1 of the learner's default minus that of the rule, in units of "
            "1e-4, with a 95 % bootstrap interval over test rows (data sets and training rows are "
            "fixed)."
        )
    for text in notes:
        yield from textwrap.wrap(text, _WIDTH)
    if learner == ALL_LEARNERS or not ranking.first:
        return
    yield ""
    rows = [
        [name, *(cell if cell.endswith("*") else f"{cell} " for cell in cells)]
        for name, *cells in _scored(summary, ranking, "{}*")
    ]
    yield from grid(["F1", *(f"{system_name(s, learner)} " for s in ranking.systems)], rows)


def _markdown_table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Format rows as a Markdown table; the first row is its head."""
    for k, row in enumerate(rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        if k == 0:
            yield "|---|" + "--:|" * (len(row) - 1)


def format_markdown(summary: Summary, command: str) -> str:
    """Format the tables of the benchmark as Markdown."""
    parts = [f"Computed by `{command}`.", ""]
    for ranking in summary.rankings:
        learner, systems = ranking.learner, ranking.systems
        rows = [["", *(system_name(s, learner) for s in systems)]]
        rows += _scored(summary, ranking, "**{}**") if ranking.first else []
        rows.append(["mean rank", *(f"{rank:.2f}" for rank in ranking.mean_ranks)])
        rows.append(["missing", *map(str, ranking.scores.isna().sum())])
        gains = _gains(summary, ranking)
        rows.append(
            ["default minus rule, 1e-4", *(" ".join(gains.get(s, [_MISSING])) for s in systems)]
        )
        title = "mean F1 of test rows" if ranking.first else _extent(ranking)
        parts += [f"## {learner}: {title}", "", *_markdown_table(rows), ""]
        for text in _notes(summary, ranking):
            parts += [text, ""]
        if learner not in (ALL_LEARNERS, PEERS) and ranking.shared:
            parts += _markdown_measures(summary, ranking)
    return "\n".join(parts)


def _markdown_measures(summary: Summary, ranking: Ranking) -> Iterator[str]:
    """Format all measures of the rules of a learner."""
    shared = ranking.shared
    datasets = count(len(shared), "data set")
    yield f"### {ranking.learner}: all measures, means over {datasets}"
    yield ""
    rows = [["rule", *_HEADS.values()]]
    by_rule = {
        rule: summary.measures.loc[(k, rule)].reindex(shared) for k, rule in ranking.systems
    }
    for rule, measures in by_rule.items():
        means = measures.mean(skipna=False)
        rows.append([rule, *(_format_measure(means[m], m) for m in _HEADS)])
    yield from _markdown_table(rows)
    yield ""
    if DEFAULT not in by_rule:
        return
    default = by_rule[DEFAULT]
    for f, own in (("F2", "f2_own"), ("F0.5", "f05_own")):
        better = (default[own] > default[own.removesuffix("_own")]).sum()
        text = f"{f} of the default is higher if it decides for {f} than for F1 on {better}"
        if THRESHOLD in by_rule:
            ahead = (default[own] > by_rule[THRESHOLD][own]).sum()
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


def format_errors(summary: Summary) -> str:
    """List the missing results as Markdown."""
    if not summary.errors:
        return "No result is missing.\n"
    rows = [["data set", "fold", "learner", "rule", "status"]]
    rows += [[e.dataset, str(e.fold), e.learner, e.rule, e.status] for e in summary.errors]
    return "\n".join(_markdown_table(rows)) + "\n"
