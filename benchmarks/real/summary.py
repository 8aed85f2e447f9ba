"""Summarise the records of the benchmark: scores, ranks, differences with intervals, errors."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.real.problem import LEARNERS
from benchmarks.real.records import ALL_RULES, Record
from benchmarks.real.rules import DEFAULT
from benchmarks.real.statistics import bootstrap_means, critical_difference, friedman, interval
from benchmarks.real.subprocesses import OK

__all__ = ["ALL_LEARNERS", "PEERS", "Ranking", "Summary", "System"]

Floats = npt.NDArray[np.float64]
System = tuple[str, str]  # learner and rule

ALL_LEARNERS = "all learners"  # title of the ranking of all base learners together
PEERS = "peers"  # title of the ranking of other packages
_MEASURES = list(Record._fields[5:-1])  # all numbers but that of test rows
_BOOTSTRAP_SAMPLES = 2000


class Ranking(NamedTuple):
    """F1 by data set (rows) and system (columns, the best mean rank first)."""

    learner: str
    first: bool  # with all systems; False: those with a score on every data set
    scores: pd.DataFrame
    mean_ranks: pd.Series[float]  # over the data sets on which all systems have a score
    friedman_p: float
    critical_difference: float

    @property
    def shared(self) -> list[str]:
        """The data sets on which all systems have a score."""
        return list(self.scores.dropna().index)

    @property
    def systems(self) -> list[System]:
        """The systems, the best mean rank first."""
        return list(self.scores.columns)


class Summary:
    """Scores of the data sets, rankings, differences from the rule "default", and errors."""

    def __init__(self, records: Sequence[Record], rows: Path, seed: int) -> None:
        self.errors = [r for r in records if r.status != OK]
        frame = pd.DataFrame(records, columns=Record._fields)
        self.datasets = sorted(frame.dataset.unique())
        found = dict.fromkeys((r.learner, r.rule) for r in records if r.rule != ALL_RULES)
        self.systems: list[System] = list(found)
        n_folds = frame.groupby("dataset").fold.nunique()
        self.folds: dict[Any, list[int]] = {}  # of (learner, rule, data set), if complete
        means = {}
        for key, part in frame[frame.status == OK].groupby(["learner", "rule", "dataset"]):
            if len(part) == n_folds[key[2]]:
                self.folds[key] = list(part.fold)
                values = np.average(part[_MEASURES], axis=0, weights=part.n_test)
                means[key] = values.round(10)  # rounding errors must not break ties of ranks
        index = pd.MultiIndex.from_tuples(list(means), names=["learner", "rule", "dataset"])
        self.measures = pd.DataFrame(list(means.values()), index=index, columns=_MEASURES)
        columns = pd.MultiIndex.from_tuples(self.systems)
        self.scores = (
            self.measures.f1.unstack(["learner", "rule"])
            .reindex(index=self.datasets, columns=columns)
        )  # fmt: skip
        self.rankings = self._rankings()
        self.differences = self._differences(rows, seed)

    def _rankings(self) -> list[Ranking]:
        """Rank the rules of each learner, of all learners together, and the other packages.

        Each ranking is over the data sets on which all its systems have a score. If these are not
        all data sets, a second ranking follows, of the systems with a score on every data set;
        that of other packages includes all rules of the first learner.
        """
        own = [s for s in self.systems if s[0] in LEARNERS]
        others = [s for s in self.systems if s[0] not in LEARNERS]
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
            used = self.scores[others if name == PEERS else members].dropna(how="all").index
            found.append(_rank(name, True, self.scores.loc[used, members]))
            if name == ALL_LEARNERS:  # only one learner has a score on every data set, most often
                continue
            pool = self.scores.loc[used, pools[name]].dropna(axis=1)
            few = len(found[-1].shared) < len(used) or pool.shape[1] > len(members)
            if pool.shape[1] > 1 and few:
                found.append(_rank(name, False, pool))
        return found

    def _differences(self, rows: Path, seed: int) -> pd.DataFrame:
        """Compare each system with "default" of its learner, or of the first learner.

        The data set "" is the mean over data sets. Intervals are 95 % bootstrap intervals.
        """
        references = [learner for learner, rule in self.systems if rule == DEFAULT]
        found: list[Any] = []
        for system in self.systems:
            if not references or system[1] == DEFAULT:
                continue
            reference = system[0] if system[0] in references else references[0]
            samples, means = [], []
            for name in self.datasets:
                keys = (reference, DEFAULT, name), (*system, name)
                if any(key not in self.folds for key in keys):
                    continue
                first, second = (self._load_rows(key, rows) for key in keys)
                d = first - second
                # the same interval whatever else is compared
                text = "/".join([reference, *system, name])
                random = np.random.default_rng([seed, zlib.crc32(text.encode())])
                samples.append(bootstrap_means(d, _BOOTSTRAP_SAMPLES, random))
                means.append(float(d.mean()))
                found.append((*system, name, means[-1], *interval(samples[-1])))
            if means:
                ends = interval(np.mean(samples, axis=0))
                found.append((*system, "", float(np.mean(means)), *ends))
        return pd.DataFrame(found, columns=["learner", "rule", "dataset", "mean", "low", "high"])

    def _load_rows(self, key: tuple[str, str, str], folder: Path) -> Floats:
        """Read the F-measures of all test rows, fold by fold."""
        learner, rule, dataset = key
        names = [f"{dataset}.{fold}.{learner}.{rule}.npy" for fold in self.folds[key]]
        return np.concatenate([np.load(folder / name).astype(np.float64) for name in names])


def _rank(name: str, first: bool, scores: pd.DataFrame) -> Ranking:
    ranked = scores.dropna().rank(axis=1, ascending=False)
    mean = ranked.mean().sort_values(kind="stable")
    p = critical = float("nan")
    n, k = ranked.shape
    if n > 1 and k > 1:
        p, critical = friedman(ranked.to_numpy()).p_value, critical_difference(k, n)
    return Ranking(name, first, scores[mean.index], mean, p, critical)
