"""Summarise the records of the benchmark: scores, ranks, differences with intervals, errors."""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.real.problem import LEARNERS
from benchmarks.real.records import ALL_RULES, Record
from benchmarks.real.rules import DEFAULT
from benchmarks.real.statistics import (
    bootstrap_means,
    critical_difference,
    friedman,
    interval,
    ranks,
)
from benchmarks.real.subprocesses import OK

__all__ = [
    "ALL_LEARNERS",
    "MEASURES",
    "PEERS",
    "BenchmarkSummary",
    "Difference",
    "Ranking",
    "Shortfall",
    "System",
    "summarise",
]

Floats = npt.NDArray[np.float64]
System = tuple[str, str]  # learner and rule

ALL_LEARNERS = "all learners"  # title of the ranking of all base learners together
PEERS = "peers"  # title of the ranking of other packages
MEASURES = (
    "f1",
    "f2",
    "f2_own",
    "f05",
    "f05_own",
    "micro_f1",
    "macro_f1",
    "jaccard",
    "subset_accuracy",
    "hamming_loss",
    "labels_per_row",
    "expected_f",
    "calibration_gap",
    "fit_s",
    "predict_s",
    "peak_mib",
)
_BOOTSTRAP_SAMPLES = 2000


class Ranking(NamedTuple):
    """Mean ranks over the data sets on which all ranked systems have a score."""

    learner: str
    systems: list[System]
    mean_ranks: list[float]
    missing: list[int]
    n_datasets: int
    friedman_statistic: float
    friedman_p: float
    critical_difference: float


class Difference(NamedTuple):
    """F1 of the rule "default" minus that of another system, with a 95 % interval."""

    reference: str
    learner: str
    rule: str
    dataset: str
    mean: float
    low: float
    high: float
    n: int


class Shortfall(NamedTuple):
    """The data set on which "default" is furthest below the best rule of its learner."""

    learner: str
    dataset: str
    best_rule: str
    f1: float


class BenchmarkSummary(NamedTuple):
    """Summary of a benchmark."""

    datasets: list[str]
    systems: list[System]
    scores: dict[System, dict[str, float]]
    rankings: list[Ranking]
    differences: list[Difference]
    shortfalls: list[Shortfall]
    measures: dict[System, dict[str, dict[str, float]]]
    errors: list[Record]

    def as_dict(self) -> dict[str, Any]:
        """Convert to dictionaries, lists and numbers for JSON; NaN becomes None."""
        values = self._asdict() | {
            "scores": [
                {"learner": learner, "rule": rule, "f1": scores}
                for (learner, rule), scores in self.scores.items()
            ],
            "measures": [
                {"learner": learner, "rule": rule, "dataset": name, **measures}
                for (learner, rule), by_name in self.measures.items()
                for name, measures in by_name.items()
            ],
            "errors": [e._asdict() for e in self.errors],
        }
        converted: dict[str, Any] = _to_json(values)
        return converted


def _to_json(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: _to_json(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def summarise(records: Sequence[Record], rows: Path, seed: int) -> BenchmarkSummary:
    """Summarise records."""
    datasets = sorted({r.dataset for r in records})
    systems = list(dict.fromkeys((r.learner, r.rule) for r in records if r.rule != ALL_RULES))
    folds: dict[str, set[int]] = defaultdict(set)
    cells: dict[tuple[System, str], list[Record]] = defaultdict(list)
    for record in records:
        folds[record.dataset].add(record.fold)
        if record.status == OK:
            cells[(record.learner, record.rule), record.dataset].append(record)
    complete = {key: part for key, part in cells.items() if len(part) == len(folds[key[1]])}
    scores = {
        system: {name: _mean(complete.get((system, name), [])) for name in datasets}
        for system in systems
    }
    learners = list(dict.fromkeys(learner for learner, _ in systems))
    return BenchmarkSummary(
        datasets,
        systems,
        scores,
        _rankings(systems, datasets, scores),
        _differences(systems, datasets, complete, rows, seed),
        _shortfalls(learners, datasets, scores),
        {
            system: {
                name: {measure: _mean(complete[system, name], measure) for measure in MEASURES}
                for name in datasets
                if (system, name) in complete
            }
            for system in systems
        },
        [r for r in records if r.status != OK],
    )


def _rankings(
    systems: list[System], datasets: list[str], scores: dict[System, dict[str, float]]
) -> list[Ranking]:
    """Rank the rules of each learner, of all learners together, and the other packages.

    Each ranking is over the data sets on which all its systems have a score. If these are not
    all data sets, a second ranking follows, of the systems with a score on every data set; that
    of other packages includes all rules of the first learner.
    """

    def has_score(system: System, name: str) -> bool:
        return not math.isnan(scores[system][name])

    own = [s for s in systems if s[0] in LEARNERS]
    others = [s for s in systems if s[0] not in LEARNERS]
    learners = list(dict.fromkeys(learner for learner, _ in own))
    groups = [(k, [s for s in own if s[0] == k]) for k in learners]
    pools = dict(groups)
    if len(learners) > 1:
        groups.append((ALL_LEARNERS, own))
    if others:
        groups.append((PEERS, [s for s in own if s[1] == DEFAULT][:1] + others))
        pools[PEERS] = [s for s in own if s[0] == learners[0]] + others if own else others
    found: list[Ranking] = []
    for name, members in groups:
        run = others if name == PEERS else members
        used = [d for d in datasets if any(has_score(s, d) for s in run)]
        found.append(_ranking(name, members, used, scores))
        if name == ALL_LEARNERS:  # only one learner has a score on every data set, most often
            continue
        always = [s for s in pools[name] if all(has_score(s, d) for d in used)]
        if len(always) > 1 and (found[-1].n_datasets < len(used) or len(always) > len(members)):
            found.append(_ranking(name, always, used, scores))
    return found


def _mean(records: Sequence[Record], measure: str = "f1") -> float:
    """Return the mean of a measure over folds, weighted by test rows."""
    if not records:
        return float("nan")
    values = [getattr(r, measure) for r in records]
    mean = np.average(values, weights=[r.n_test for r in records])
    return round(float(mean), 10)  # rounding errors must not break ties of ranks


def _ranking(
    name: str,
    systems: list[System],
    datasets: list[str],
    scores: dict[System, dict[str, float]],
) -> Ranking:
    table = np.array([[scores[s][d] for s in systems] for d in datasets])
    table = table.reshape(len(datasets), len(systems))  # also if there are no data sets
    missing = np.isnan(table)
    ranked = ranks(table[~missing.any(axis=1)])
    n, k = ranked.shape
    mean = ranked.mean(axis=0) if n else np.full(k, np.nan)
    order = np.argsort(mean, kind="stable").tolist()
    test, critical = (float("nan"),) * 2, float("nan")
    if n > 1 and k > 1:
        test, critical = friedman(ranked), critical_difference(k, n)
    return Ranking(
        name,
        [systems[j] for j in order],
        mean[order].tolist(),
        missing.sum(axis=0)[order].tolist(),
        n,
        *test,
        critical,
    )


def _differences(
    systems: list[System],
    datasets: list[str],
    complete: dict[tuple[System, str], list[Record]],
    rows: Path,
    seed: int,
) -> list[Difference]:
    """Compare each system with "default" of its learner, or of the first learner."""
    references = [learner for learner, rule in systems if rule == DEFAULT]
    found: list[Difference] = []
    for system in systems:
        if not references or system[1] == DEFAULT:
            continue
        reference = system[0] if system[0] in references else references[0]
        samples, means = [], []
        for name in datasets:
            pair = [complete.get((s, name)) for s in ((reference, DEFAULT), system)]
            if None in pair:
                continue
            first, second = (_load_rows(part or [], rows) for part in pair)
            d = first - second
            # the same interval whatever else is compared
            text = "/".join([reference, *system, name])
            random = np.random.default_rng([seed, zlib.crc32(text.encode())])
            samples.append(bootstrap_means(d, _BOOTSTRAP_SAMPLES, random))
            means.append(float(d.mean()))
            ends = interval(samples[-1])
            found.append(Difference(reference, *system, name, means[-1], *ends, len(d)))
        if means:
            ends = interval(np.mean(samples, axis=0))
            mean = float(np.mean(means))
            found.append(Difference(reference, *system, "", mean, *ends, len(means)))
    return found


def _load_rows(records: Sequence[Record], folder: Path) -> Floats:
    """Read the F-measures of all test rows, fold by fold."""
    names = [f"{r.dataset}.{r.fold}.{r.learner}.{r.rule}.npy" for r in records]
    return np.concatenate([np.load(folder / name).astype(np.float64) for name in names])


def _shortfalls(
    learners: list[str], datasets: list[str], scores: dict[System, dict[str, float]]
) -> list[Shortfall]:
    found = []
    for learner in learners:
        by_rule = {rule: part for (k, rule), part in scores.items() if k == learner}
        if DEFAULT not in by_rule:
            continue
        shortfalls = [
            Shortfall(learner, name, rule, part[name] - by_rule[DEFAULT][name])
            for name in datasets
            for rule, part in by_rule.items()
            if not math.isnan(part[name] - by_rule[DEFAULT][name])
        ]
        found += [max(shortfalls, key=lambda shortfall: shortfall.f1)] if shortfalls else []
    return found
