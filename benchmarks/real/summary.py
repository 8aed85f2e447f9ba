"""From the rows of the benchmark to scores, ranks, differences with intervals, and errors."""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.real.ranks import (
    bootstrap_means,
    critical_difference,
    friedman,
    interval,
    ranks,
)
from benchmarks.real.records import ANY, OK, Record
from benchmarks.real.rules import DEFAULT, LEARNERS

__all__ = [
    "EVERYTHING",
    "MEASURES",
    "PEERS",
    "Difference",
    "Ranking",
    "Shortfall",
    "Standings",
    "standings",
]

Floats = npt.NDArray[np.float64]
System = tuple[str, str]  # learner and rule

EVERYTHING = "everything"  # the ranking of all base learners together
PEERS = "peers"  # the ranking of other packages
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
_SAMPLES = 2000


class Ranking(NamedTuple):
    """Mean ranks over the data sets on which all that is ranked has a score.

    Attributes
    ----------
    learner : str
        Whose rules are ranked; "everything" for all base learners together, "peers" for other
        packages and the default.
    systems : list of tuple of str
        Learner and rule, the best first.
    mean_ranks : list of float
        Their mean ranks.
    missing : list of int
        On how many data sets each has no score; these do not count.
    n_datasets : int
        Number of data sets that count.
    friedman_statistic, friedman_p : float
        Friedman's test that all are equal; NaN with fewer than two data sets.
    critical_difference : float
        Nemenyi's critical difference at level 0.05; NaN with fewer than two data sets.
    """

    learner: str
    systems: list[System]
    mean_ranks: list[float]
    missing: list[int]
    n_datasets: int
    friedman_statistic: float
    friedman_p: float
    critical_difference: float


class Difference(NamedTuple):
    """F1 of a rule "default" minus that of another system, with a 95 % interval.

    Attributes
    ----------
    reference : str
        The learner of "default".
    learner, rule : str
        The other system.
    dataset : str
        The data set; empty for the mean over those that both have.
    mean, low, high : float
        The difference, and the ends of its interval.
    n : int
        Number of test rows, or of data sets.
    """

    reference: str
    learner: str
    rule: str
    dataset: str
    mean: float
    low: float
    high: float
    n: int


class Shortfall(NamedTuple):
    """How much the rule "default" is below the best one of its learner, where that is most."""

    learner: str
    dataset: str
    best_rule: str
    f1: float


class Standings(NamedTuple):
    """What a benchmark came to.

    Attributes
    ----------
    datasets : list of str
        The data sets.
    systems : list of tuple of str
        Learner and rule of all that was run.
    scores : dict
        ``scores[learner, rule][dataset]`` is the F1, the mean over folds weighted by test rows;
        NaN unless all folds are there.
    rankings : list of Ranking
        For each learner, for everything, and for other packages.
    differences : list of Difference
        Of "default" and each other rule.
    shortfalls : list of Shortfall
        For each learner.
    measures : dict
        ``measures[learner, rule][dataset][measure]``, for the data sets on which it has a score.
    errors : list of Record
        Records that are not ok.
    """

    datasets: list[str]
    systems: list[System]
    scores: dict[System, dict[str, float]]
    rankings: list[Ranking]
    differences: list[Difference]
    shortfalls: list[Shortfall]
    measures: dict[System, dict[str, dict[str, float]]]
    errors: list[Record]

    def as_dict(self) -> dict[str, Any]:
        """Give plain dictionaries, lists and numbers, for JSON; NaN becomes None.

        Returns
        -------
        dict
            One entry for each attribute.
        """
        plain = self._asdict() | {
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
        found: dict[str, Any] = _plain(plain)
        return found


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def standings(records: Sequence[Record], rows: Path, seed: int) -> Standings:
    """Summarise records.

    Parameters
    ----------
    records : sequence of Record
        The records.
    rows : Path
        The folder with the F-measures of test rows.
    seed : int
        Seeds the bootstrap.

    Returns
    -------
    Standings
        The summary.
    """
    datasets = sorted({r.dataset for r in records})
    systems = list(dict.fromkeys((r.learner, r.rule) for r in records if r.rule != ANY))
    folds: dict[str, set[int]] = defaultdict(set)
    cells: dict[tuple[System, str], list[Record]] = defaultdict(list)
    for record in records:
        folds[record.dataset].add(record.fold)
        if record.status == OK:
            cells[(record.learner, record.rule), record.dataset].append(record)
    whole = {key: mine for key, mine in cells.items() if len(mine) == len(folds[key[1]])}
    scores = {
        system: {name: _mean(whole.get((system, name), [])) for name in datasets}
        for system in systems
    }
    learners = list(dict.fromkeys(learner for learner, _ in systems))
    return Standings(
        datasets,
        systems,
        scores,
        _rankings(systems, datasets, scores),
        _differences(systems, datasets, whole, rows, seed),
        _shortfalls(learners, datasets, scores),
        {
            system: {
                name: {measure: _mean(whole[system, name], measure) for measure in MEASURES}
                for name in datasets
                if (system, name) in whole
            }
            for system in systems
        },
        [r for r in records if r.status != OK],
    )


def _rankings(
    systems: list[System], datasets: list[str], scores: dict[System, dict[str, float]]
) -> list[Ranking]:
    """Rank the rules of each learner, of all learners together, and the other packages.

    Each ranking is over the data sets on which all have a score. Where these are not all, there is
    a second one, of what has a score on every data set; other packages then stand beside all rules
    of the first learner.
    """

    def known(system: System, name: str) -> bool:  # numpydoc ignore=GL08
        return not math.isnan(scores[system][name])

    own = [s for s in systems if s[0] in LEARNERS]
    others = [s for s in systems if s[0] not in LEARNERS]
    learners = list(dict.fromkeys(learner for learner, _ in own))
    groups = [(k, [s for s in own if s[0] == k]) for k in learners]
    pools = dict(groups)
    if len(learners) > 1:
        groups.append((EVERYTHING, own))
    if others:
        groups.append((PEERS, [s for s in own if s[1] == DEFAULT][:1] + others))
        pools[PEERS] = [s for s in own if s[0] == learners[0]] + others if own else others
    found: list[Ranking] = []
    for name, mine in groups:
        run = others if name == PEERS else mine
        here = [d for d in datasets if any(known(s, d) for s in run)]
        found.append(_ranking(name, mine, here, scores))
        if name == EVERYTHING:  # what is everywhere is one learner's, most often
            continue
        always = [s for s in pools[name] if all(known(s, d) for d in here)]
        if len(always) > 1 and (found[-1].n_datasets < len(here) or len(always) > len(mine)):
            found.append(_ranking(name, always, here, scores))
    return found


def _mean(records: Sequence[Record], measure: str = "f1") -> float:
    """Give a measure of all test rows of the folds."""
    if not records:
        return float("nan")
    values = [getattr(r, measure) for r in records]
    mean = np.average(values, weights=[r.n_test for r in records])
    return round(float(mean), 10)  # the order of summation makes no ranks


def _ranking(
    name: str,
    systems: list[System],
    datasets: list[str],
    scores: dict[System, dict[str, float]],
) -> Ranking:
    table = np.array([[scores[s][d] for s in systems] for d in datasets])
    table = table.reshape(len(datasets), len(systems))  # there may be none
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
    whole: dict[tuple[System, str], list[Record]],
    rows: Path,
    seed: int,
) -> list[Difference]:
    """Compare each system with "default" of its learner; where it has none, with the first."""
    references = [learner for learner, rule in systems if rule == DEFAULT]
    found: list[Difference] = []
    for system in systems:
        if not references or system[1] == DEFAULT:
            continue
        reference = system[0] if system[0] in references else references[0]
        samples, means = [], []
        for name in datasets:
            pair = [whole.get((s, name)) for s in ((reference, DEFAULT), system)]
            if None in pair:
                continue
            first, second = (_rows(part or [], rows) for part in pair)
            d = first - second
            text = "/".join([reference, *system, name])
            random = np.random.default_rng([seed, zlib.crc32(text.encode())])
            samples.append(bootstrap_means(d, _SAMPLES, random))
            means.append(float(d.mean()))
            ends = interval(samples[-1])
            found.append(Difference(reference, *system, name, means[-1], *ends, len(d)))
        if means:
            ends = interval(np.mean(samples, axis=0))
            mean = float(np.mean(means))
            found.append(Difference(reference, *system, "", mean, *ends, len(means)))
    return found


def _rows(records: Sequence[Record], folder: Path) -> Floats:
    """Give the F-measures of all test rows, fold by fold."""
    names = [f"{r.dataset}.{r.fold}.{r.learner}.{r.rule}.npy" for r in records]
    return np.concatenate([np.load(folder / name).astype(np.float64) for name in names])


def _shortfalls(
    learners: list[str], datasets: list[str], scores: dict[System, dict[str, float]]
) -> list[Shortfall]:
    found = []
    for learner in learners:
        mine = {rule: part for (k, rule), part in scores.items() if k == learner}
        if DEFAULT not in mine:
            continue
        each = [
            Shortfall(learner, name, rule, part[name] - mine[DEFAULT][name])
            for name in datasets
            for rule, part in mine.items()
            if not math.isnan(part[name] - mine[DEFAULT][name])
        ]
        found += [max(each, key=lambda shortfall: shortfall.f1)] if each else []
    return found
