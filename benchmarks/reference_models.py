"""Models of the authors' data sets, with the penalties of their scripts and with our own.

`reference_f` compares their F-measures with those that the scripts obtained.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.reference_factors import FOLDER, N_FEATURES, case_key, stored_table
from fgfm import FGFMClassifier
from fgfm.cardinality import merge_factors, of_conditionals
from fgfm.decision import from_factors
from fgfm.metrics import f_measure
from fgfm.paper._experiment import SIZES, find_factors
from fgfm.ridge import RidgeFit, RidgeLogistic, fit_ridge_logistic

__all__ = [
    "METHODS",
    "PUBLISHED",
    "Data",
    "Estimate",
    "GivenModels",
    "Penalties",
    "Rule",
    "Run",
    "by_our_splits",
    "by_their_penalties",
    "data_sets",
    "margins",
    "our_runs",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Factor = tuple[int, ...]
Name = tuple[Factor, str]  # of a model: its factor, and the target "s" or "y0" .. "y7"
Penalties = dict[Name, float]

# one factor, one factor per label, factors by ILF-Compo, true factors
METHODS = ("gfm", "i-gfm", "f-gfm", "t-gfm")
STRUCTURES = ("lp2", "lp4", "lp6", "lp8")
N_LABELS = 8
INPUTS = np.arange(1 << N_FEATURES)[:, None] >> np.arange(N_FEATURES) & 1  # (64, 6): all inputs


class Stored(NamedTuple):
    """Choices and losses of the authors' scripts for one data set and method."""

    losses: tuple[float, float, float]  # F1, Hamming loss, subset loss
    factors: list[Factor]
    penalties: Penalties


class Data(NamedTuple):
    """One data set, and the stored results of the authors' scripts."""

    dag: str
    n: int
    rep: int
    X: npt.NDArray[np.uint8]  # (n, 6)
    Y: npt.NDArray[np.uint8]  # (n, 8)
    at: Integers  # (5000,): the row of INPUTS of each test row
    Y_test: npt.NDArray[np.uint8]  # (5000, 8)
    stored: dict[str, Stored]

    def losses(self, labels: npt.NDArray[Any]) -> tuple[float, float, float]:
        """Return F1, Hamming loss and subset loss of label sets for the rows of INPUTS."""
        wrong = labels[self.at] != self.Y_test
        f = f_measure(self.Y_test, labels[self.at])
        return f, float(wrong.mean()), float(wrong.any(axis=1).mean())


class Rule(NamedTuple):
    """How probabilities are estimated; the defaults are those of the authors' scripts."""

    penalize_intercept: bool = True
    reference_class: bool = True
    scale: float = 1.0  # of the penalties
    second_model: bool = True  # of a factor of one label: the label given its own number
    coherent: bool = False


PUBLISHED = Rule()


class Estimate(NamedTuple):
    """P and d of each factor for the rows of INPUTS."""

    factors: Sequence[Factor]
    Ps: list[Floats]
    ds: list[Floats]

    def labels(self) -> npt.NDArray[Any]:
        """Return the F-optimal label sets."""
        labels: npt.NDArray[Any] = from_factors(
            self.Ps, self.factors, distributions=self.ds
        ).labels
        return labels


class Run(NamedTuple):
    """F-measures over several splits, and the penalties that each split chose."""

    factors: list[Factor]
    f: Floats  # (splits,)
    penalties: dict[Name, Floats]  # (splits,) each


def data_sets(
    sizes: Sequence[int] = SIZES, structures: Sequence[str] = STRUCTURES, reps: int = 3
) -> Iterator[Data]:
    """Read the stored data sets and results."""
    losses = {
        (*case_key(row), row["method"]): tuple(float(row[k]) for k in ("f1", "hloss", "sloss"))
        for row in stored_table("results.csv")
    }
    factors = {
        (*case_key(row), row["method"]): [_factor(part) for part in row["factors"].split("|")]
        for row in stored_table("factors.csv")
    }
    penalties: dict[Any, Penalties] = defaultdict(dict)
    for row in stored_table("decays.csv"):
        name = _factor(row["factor"]), row["target"]
        penalties[*case_key(row), row["method"]][name] = float(row["decay"])
    for n in sizes:
        for dag in structures:
            with np.load(FOLDER / "data" / f"{dag}_n{n:04d}.npz") as file:
                parts = [file[name][:reps] for name in ("train", "test", "reps")]
            for train, test, rep in zip(*parts, strict=True):
                key = dag, n, int(rep)
                stored = {
                    m: Stored(losses[*key, m], factors[*key, m], penalties[*key, m])  # type: ignore[arg-type]
                    for m in METHODS
                }
                at = test[:, :N_FEATURES].astype(np.int64) @ (1 << np.arange(N_FEATURES))
                X, Y = train[:, :N_FEATURES], train[:, N_FEATURES:]
                yield Data(*key, X, Y, at, test[:, N_FEATURES:], stored)


def _factor(labels: str) -> Factor:
    return tuple(map(int, labels.split()))


class GivenModels:
    """Models of one data set with given penalties; each is fitted once."""

    def __init__(self, data: Data, rule: Rule) -> None:
        self.data = data
        self.rule = rule
        self.fits: dict[tuple[Name, float], RidgeFit] = {}

    def fit(self, wanted: Iterable[tuple[Name, float]]) -> None:
        """Fit models; those with the same penalty are fitted together."""
        by_penalty: dict[float, list[Name]] = defaultdict(list)
        for name, penalty in dict.fromkeys(wanted):
            if (name, penalty) not in self.fits:
                by_penalty[penalty].append(name)
        labels = self.data.Y.astype(np.int64)
        sums = {
            factor: labels[:, factor].sum(axis=1)
            for names in by_penalty.values()
            for factor, _ in names
        }
        beside = {factor: s.astype(np.float64) for factor, s in sums.items()}
        for penalty, names in by_penalty.items():
            models = fit_ridge_logistic(
                self.data.X,
                [sums[f] if t == "s" else labels[:, int(t[1:])] for f, t in names],
                extra=[None if t == "s" else beside[f] for f, t in names],
                penalties=[self.rule.scale * penalty],
                cv=2,  # unused: there is one penalty to choose from
                penalize_intercept=self.rule.penalize_intercept,
                reference_class=self.rule.reference_class,
                random_state=0,
            )
            self.fits.update(zip(((name, penalty) for name in names), models, strict=True))

    def estimate(self, factors: Sequence[Factor], penalties: Penalties) -> Estimate:
        """Return P = d q of each factor: P(i, s) = P(y_i = 1 | s) d(s)."""
        self.fit(penalties.items())
        Ps, ds = [], []
        for factor in factors:
            m = len(factor)
            model = self.fits[(factor, "s"), penalties[factor, "s"]]
            d = np.zeros((len(INPUTS), m + 1))
            d[:, model.classes] = model.predict_proba(INPUTS)
            q = np.ones((len(INPUTS), m, m))  # (64, m, S)
            if m > 1 or self.rule.second_model:
                for j, label in enumerate(factor):
                    name = factor, f"y{label}"
                    model = self.fits[name, penalties[name]]
                    for s in range(1, m + 1):
                        q[:, j, s - 1] = model.predict_proba(INPUTS, extra=s) @ model.classes
            Ps.append(of_conditionals(q, d) if self.rule.coherent else q * d[:, None, 1:])
            ds.append(d)
        return Estimate(factors, Ps, ds)


def by_their_penalties(data: Data, rule: Rule = PUBLISHED) -> dict[str, Estimate]:
    """Return the estimates with the authors' penalties and factors, by method."""
    models = GivenModels(data, rule)
    models.fit(item for stored in data.stored.values() for item in stored.penalties.items())
    return {m: models.estimate(s.factors, s.penalties) for m, s in data.stored.items()}


def margins(data: Data, estimate: Estimate) -> Floats:
    """Return the margins of expected F between the best and the next best label set.

    Only inputs that occur among the test rows are returned.
    """
    P, d = merge_factors(estimate.Ps, estimate.factors, estimate.ds)
    sizes = np.arange(1, N_LABELS + 1)
    delta = 2.0 * P @ (1.0 / (sizes[:, None] + sizes))  # (64, m, K)
    delta = np.sort(delta, axis=1)[:, ::-1]
    best = np.stack([delta[:, :k, k - 1].sum(axis=1) for k in sizes], axis=1)  # (64, K)
    step = [delta[:, k - 1, k - 1] - delta[:, k, k - 1] for k in sizes[:-1]]  # exchange one label
    values = np.sort(np.concatenate([best, best[:, :-1] - np.stack(step, 1), d[:, :1]], 1), axis=1)
    return np.asarray((values[:, -1] - values[:, -2])[np.unique(data.at)])


def by_our_splits(data: Data, factors: list[Factor], splits: int) -> Run:
    """Choose penalties by cross-validation, as the authors do, for several splits."""
    f, chosen = [], []
    for seed in range(splits):
        model = FGFMClassifier(
            RidgeLogistic(penalize_intercept=True, reference_class=True),
            factors=factors,
            coherent=False,
            nonempty=False,
            random_state=seed,
        ).fit(data.X, data.Y)
        f.append(data.losses(model.predict(INPUTS))[0])
        chosen.append(model._factor_models.models.penalties)
    names = [(factor, target) for factor in factors for target in _targets(factor)]
    return Run(factors, np.array(f), dict(zip(names, np.array(chosen).T, strict=True)))


def _targets(factor: Factor) -> list[str]:
    """Return the targets of a factor whose penalty is chosen; one label is its own number."""
    return ["s"] if len(factor) == 1 else ["s", *(f"y{label}" for label in factor)]


def our_runs(data: Data, splits: int) -> dict[str, Run]:
    """Run every method on one data set; methods with the same factors share a run."""
    found = find_factors(data.X, data.Y, "published")
    runs: dict[Any, Run] = {}
    by_method = {}
    for method, stored in data.stored.items():
        factors = stored.factors
        if method == "f-gfm":
            factors = sorted(tuple(part.tolist()) for part in found)
        if tuple(factors) not in runs:
            runs[tuple(factors)] = by_our_splits(data, factors, splits)
        by_method[method] = runs[tuple(factors)]
    return by_method
