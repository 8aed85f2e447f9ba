"""Summarise the scores: ranks, differences, expected against obtained F1, and guarantees.

`fgfm.FDecider` was designed on the data sets of `DEVELOPMENT`; all others confirm it. Both groups
are summarised separately, and together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.deciders.compare import Record
from benchmarks.deciders.rules import AVERAGES, FDECIDER, FDECIDER_ROWS, GUARANTEE, RULES
from benchmarks.real.statistics import (
    bootstrap_means,
    critical_difference,
    friedman,
    interval,
    ranks,
)
from benchmarks.real.subprocesses import OK

__all__ = [
    "DEVELOPMENT",
    "GROUPS",
    "Deviation",
    "Difference",
    "Guarantee",
    "Ranking",
    "Summary",
    "Time",
    "in_group",
    "summarise",
]

Floats = npt.NDArray[np.float64]

DEVELOPMENT = frozenset(
    (
        "cal500",
        "emotions",
        "enron",
        "flags",
        "foodtruck",
        "genbase",
        "image",
        "langlog",
        "medical",
        "reutersk500",
        "scene",
        "stackex_chess",
        "yeast",
    )
)
GROUPS = ("development", "confirmation", "all")
_RANKED = tuple(rule for rule in RULES if rule not in (FDECIDER_ROWS, GUARANTEE))
_BOOTSTRAP_SAMPLES = 2000
_NAN = float("nan")


class Ranking(NamedTuple):
    """Mean ranks of rules on the pairs of data set and learner where all of them have a score."""

    group: str
    average: str
    packages: bool
    rules: list[str]
    mean_ranks: list[float]
    mean_f1: list[float]
    n_pairs: int
    n_datasets: int
    n_incomplete: int
    friedman_p: float
    critical_difference: float
    dataset_ranks: list[float]


class Difference(NamedTuple):
    """F1 of FDecider minus that of a rule, over pairs of data set and learner."""

    group: str
    average: str
    decider: str
    rule: str
    mean: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int


class Deviation(NamedTuple):
    """Expected minus obtained F1 over pairs."""

    group: str
    average: str
    rule: str
    mean: float
    mean_absolute: float
    highest: float
    highest_at: str
    n_pairs: int


class Guarantee(NamedTuple):
    """Lower bounds against F1 of the test rows."""

    group: str
    n_pairs: int
    n_held: int
    mean_bound: float
    mean_f1: float


class Time(NamedTuple):
    """Median and largest seconds of a rule over pairs and averages."""

    rule: str
    tune_s: float
    largest_tune_s: float
    decide_s: float
    largest_decide_s: float


class Summary(NamedTuple):
    """The summary of all scores, by group of data sets."""

    rankings: list[Ranking]
    differences: list[Difference]
    deviations: list[Deviation]
    guarantees: list[Guarantee]
    times: list[Time]
    bounds: list[Record]  # of the pairs with a guarantee
    failures: list[Record]

    def as_dict(self) -> dict[str, Any]:
        """Return the summary for JSON, without the rows of ``results.csv``; NaN is None."""
        fields = self._asdict()
        return {
            name: [
                {k: _finite_or_none(v) for k, v in one._asdict().items()} for one in fields[name]
            ]
            for name in ("rankings", "differences", "deviations", "guarantees", "times")
        }


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def in_group(dataset: str, group: str) -> bool:
    """Return True if a data set belongs to a group of `GROUPS`."""
    return group == "all" or (group == "development") == (dataset in DEVELOPMENT)


def summarise(records: Sequence[Record], seed: int = 0) -> Summary:
    """Summarise scores."""
    ok = [r for r in records if r.status == OK]
    groups = [g for g in GROUPS if any(in_group(r.dataset, g) for r in ok)]
    if len(groups) == 2:  # one group, and the same data sets as "all"
        groups = groups[:1]
    summary = Summary(
        [],
        [],
        [],
        [],
        _times(ok),
        [r for r in ok if r.rule == GUARANTEE],
        [r for r in records if r.status != OK],
    )
    for group in groups:
        chosen = [r for r in ok if in_group(r.dataset, group)]
        for average in AVERAGES:
            scored = [r for r in chosen if r.average == average and r.rule != GUARANTEE]
            scores = _by_rule((r, r.f1) for r in scored)
            own = {rule: scores[rule] for rule in _RANKED if rule in scores}
            if own:
                summary.rankings.append(_rank(group, average, False, own))
            if len(scores) > len(own):
                summary.rankings.append(_rank(group, average, True, scores))
            summary.differences.extend(
                _difference((group, average, decider, rule), scores[decider], values, seed)
                for decider in (FDECIDER, FDECIDER_ROWS)
                for rule, values in scores.items()
                if decider in scores and rule not in (FDECIDER, FDECIDER_ROWS)
            )
            expected = _by_rule((r, r.expected_f - r.f1) for r in scored)
            summary.deviations.extend(
                _deviation(group, average, rule, values)
                for rule, values in expected.items()
                if np.isfinite(list(values.values())).all()
            )
        bounds = [r for r in summary.bounds if in_group(r.dataset, group)]
        if bounds:
            summary.guarantees.append(_guarantee(group, bounds))
    return summary


_Values = dict[tuple[str, str], float]  # by data set and learner


def _by_rule(values: Iterable[tuple[Record, float]]) -> dict[str, _Values]:
    found: dict[str, _Values] = {}
    for record, value in values:
        found.setdefault(record.rule, {})[record.dataset, record.learner] = value
    order = list(RULES)
    return dict(
        sorted(found.items(), key=lambda f: (order.index(f[0]) if f[0] in order else 99, f[0]))
    )


def _rank(group: str, average: str, packages: bool, scores: dict[str, _Values]) -> Ranking:
    pairs = sorted(set.intersection(*(set(values) for values in scores.values())))
    n_all = len(set.union(*(set(values) for values in scores.values())))
    rules = list(scores)
    f1 = np.array([[scores[rule][pair] for rule in rules] for pair in pairs])  # (pairs, rules)
    if not pairs:
        f1 = np.empty((0, len(rules)))
    datasets = [dataset for dataset, _ in pairs]
    names = sorted(set(datasets))
    means = np.array([f1[[d == name for d in datasets]].mean(axis=0) for name in names])
    tested = len(names) > 1 and len(rules) > 1
    by_dataset = ranks(means) if names else f1
    mean_ranks = ranks(f1).mean(axis=0) if pairs else np.full(len(rules), _NAN)
    order = np.argsort(mean_ranks, kind="stable")
    return Ranking(
        group,
        average,
        packages,
        [rules[k] for k in order],
        [float(mean_ranks[k]) for k in order],
        [float(f1[:, k].mean()) if pairs else _NAN for k in order],
        len(pairs),
        len(names),
        n_all - len(pairs),
        friedman(by_dataset).p_value if tested else _NAN,
        critical_difference(len(rules), len(names)) if tested else _NAN,
        [float(by_dataset[:, k].mean()) if names else _NAN for k in order],
    )


def _difference(
    key: tuple[str, str, str, str], own: _Values, other: _Values, seed: int
) -> Difference:
    pairs = sorted(own.keys() & other.keys())
    d = np.array([own[pair] - other[pair] for pair in pairs])
    names = sorted({dataset for dataset, _ in pairs})
    by_dataset = np.array([d[[dataset == name for dataset, _ in pairs]].mean() for name in names])
    low = high = _NAN
    if len(names) > 1:
        random = np.random.default_rng(seed)
        low, high = interval(bootstrap_means(by_dataset, _BOOTSTRAP_SAMPLES, random))
    mean = float(d.mean()) if pairs else _NAN
    counts = (int((d > 0.0).sum()), int((d == 0.0).sum()), int((d < 0.0).sum()))
    return Difference(*key, mean, low, high, *counts)


def _deviation(group: str, average: str, rule: str, values: _Values) -> Deviation:
    at = max(values, key=lambda pair: values[pair])
    d = np.array(list(values.values()))
    return Deviation(
        group,
        average,
        rule,
        float(d.mean()),
        float(np.abs(d).mean()),
        values[at],
        " ".join(at),
        len(d),
    )


def _guarantee(group: str, bounds: Sequence[Record]) -> Guarantee:
    bound, f1 = (np.array([getattr(r, name) for r in bounds]) for name in ("bound", "f1"))
    held = int((f1 >= bound).sum())
    return Guarantee(group, len(bounds), held, float(bound.mean()), float(f1.mean()))


def _times(records: Sequence[Record]) -> list[Time]:
    tune, decide = (_seconds(records, name) for name in ("tune_s", "decide_s"))
    return [
        Time(
            rule,
            float(np.median(tune[rule])),
            max(tune[rule]),
            float(np.median(decide[rule])),
            max(decide[rule]),
        )
        for rule in tune
    ]


def _seconds(records: Sequence[Record], name: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for record in sorted(
        records, key=lambda r: list(RULES).index(r.rule) if r.rule in RULES else 99
    ):
        found.setdefault(record.rule, []).append(getattr(record, name))
    return found
