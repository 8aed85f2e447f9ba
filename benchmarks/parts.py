"""The parts of ``python -m benchmarks``: each returns tables, and targets of the design.

Expected F-measures are compared with those of the rival before times are: a wrong result raises.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fgfm
from benchmarks import inputs, rivals
from benchmarks.measure import growth_exponent, in_child, least_times
from benchmarks.report import Results, Table, Target
from fgfm import FDecider, cardinality, decision

__all__ = ["PARTS", "Settings"]

KINDS = ("sparse", "dense", "flat")
AVERAGES = ("macro", "micro")
_BATCH_SIZE = 2_000_000  # float64 numbers in a batch of rows: 16 MB

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """Sizes and durations of a run."""

    quick: bool
    progress: Callable[[str], None]

    @property
    def seconds(self) -> float:
        """Minimum seconds of one comparison."""
        return 0.02 if self.quick else 0.6

    @property
    def rounds(self) -> int:
        """Minimum number of rounds of one comparison."""
        return 1 if self.quick else 3

    def time(self, **tasks: Callable[[], object]) -> dict[str, float]:
        """Time tasks against each other."""
        return least_times(tasks, seconds=self.seconds, rounds=self.rounds)


def _n_rows(row_size: int, most: int = 5000) -> int:
    return min(most, max(2, _BATCH_SIZE // row_size))


def _cycle_rows(
    rival: Callable[..., object], rows: Sequence[Sequence[Any]]
) -> Callable[[], object]:
    """Return a task that calls the rival for one row after the other.

    The rows come from the same memory as ours: a single row would stay in the cache.
    """
    arguments = itertools.cycle(rows)
    return lambda: rival(*next(arguments))


def _require_agreement(what: str, ours: float, rival: float) -> None:
    if not abs(ours - rival) <= 1e-10:
        raise RuntimeError(f"{what}: expected F is {ours!r} with fgfm, {rival!r} with the rival")


def marginals(settings: Settings) -> Results:
    """Time from_marginals against the O(m^2) recursion and a pass of np.sum."""
    sizes = (10, 100, 1000) if settings.quick else (10, 20, 100, 10**3, 10**4, 10**5, 10**6)
    large = 1000 if settings.quick else 10**5  # size of the target in passes
    table = Table(
        "from_marginals: time per row, one core",
        "rows: left; m: count; labels: number; ours: duration; recursion: duration; "
        "ratio: ratio; np.sum: duration; passes: number",
        notes=[
            "labels: per decision. recursion: O(m^2), Ye et al. 2012, in NumPy. passes: our time "
            "in units of one np.sum over the same rows."
        ],
    )
    results = Results([table])
    speed, growth, passes = Results(), Results(), Results()
    for kind in KINDS:
        per_row = {}
        for m in sizes:
            settings.progress(f"from_marginals, {kind}, m = {m}")
            p = inputs.marginal_rows(kind, _n_rows(m), m)
            n = len(p)
            tasks: dict[str, Callable[[], object]] = {
                "ours": partial(decision.from_marginals, p),
                "sum": partial(np.sum, p, axis=1),
            }
            labels, expected_f = decision.from_marginals(p)
            if m <= 10**4:
                for row in range(2):
                    choice = rivals.ye_recursion(p[row])
                    _require_agreement(f"m = {m}, {kind}", expected_f[row], choice.expected_f)
                tasks["rival"] = _cycle_rows(rivals.ye_recursion, [(row,) for row in p])
            least = settings.time(**tasks)
            ours, one_pass = least["ours"] / n, least["sum"] / n
            rival = least.get("rival")
            faster = rival / ours if rival else None
            table.add(kind, m, labels.sum() / n, ours, rival, faster, one_pass, ours / one_pass)
            per_row[m] = ours
            if m == 1000:
                speed.at_least(f"from_marginals, 1000 {kind}", ours, rival, 500)
            if m == large:
                what = f"  passes of np.sum, {m:.0e} {kind}".replace("e+0", "e")
                passes.at_most(what, ours, one_pass, 15)
        fitted = [m for m in sizes if m >= 1000] if not settings.quick else [100, 1000]
        slope = growth_exponent(fitted, [per_row[m] for m in fitted])
        what = f"  growth, 1e3 to 1e6 {kind}" if not settings.quick else f"  growth, {kind}"
        growth.targets.append(Target(what, None, None, slope, 1.1, False, "number"))
    for part in (speed, growth, passes):
        results.add(part)
    return results


def averages(settings: Settings) -> Results:
    """Time columns and batches of from_marginals against a pass of np.sum over the array."""
    n, m = (2000, 20) if settings.quick else (10**6, 100)
    table = Table(
        f"from_marginals, {n:,} rows of {m} labels, one core",
        "rows: left; type: left; macro: duration; micro: duration; np.sum: duration; "
        "macro, passes: number; by columns: number; micro, passes: number",
        notes=[
            "passes: in units of one np.sum over the array. by columns: of np.sum(axis=0), one "
            "sum per problem of macro."
        ],
    )
    results = Results([table])
    for kind in KINDS:
        for dtype in (np.float64, np.float32):
            settings.progress(f"from_marginals, macro and micro, {kind}, {dtype.__name__}")
            p = inputs.marginal_rows(kind, n, m).astype(dtype, copy=False)
            macro, micro = (partial(decision.from_marginals, p, average=a) for a in AVERAGES)
            column = decision.from_marginals(p[:, :1].T.copy())
            _require_agreement(f"macro, {kind}", macro().expected_f[0], column.expected_f[0])
            by_columns = partial(np.sum, p, axis=0)
            least = settings.time(macro=macro, micro=micro, sum=p.sum, by_columns=by_columns)
            passes = least["macro"] / least["sum"]
            table.add(
                kind,
                dtype.__name__,
                least["macro"],
                least["micro"],
                least["sum"],
                passes,
                least["macro"] / least["by_columns"],
                least["micro"] / least["sum"],
            )
            if dtype is np.float64 and kind == "dense":
                what = f"macro, {n:.0e} x {m} {kind}, passes of np.sum".replace("e+0", "e")
                results.at_most(what, least["macro"], least["sum"], 15)
    return results


def classes(settings: Settings) -> Results:
    """Time from_classes against a pass of np.sum over the array."""
    n, m = (20_000, 5) if settings.quick else (10**6, 10)
    table = Table(
        f"from_classes, {n:,} rows of {m} classes, one core",
        "probabilities: left; time: duration; np.sum: duration; passes: number; gap: .1e",
        notes=["passes: in units of one np.sum over the array."],
    )
    results = Results([table])
    # The spread of the logits of a row, and the distance between those of one class and the next
    for kind, spread, distance in (("flat", 0.5, 0.0), ("usual", 2.0, 0.4), ("sharp", 5.0, 1.0)):
        settings.progress(f"from_classes, {kind}")
        p = np.random.default_rng(0).normal(-distance * np.arange(m), spread, (n, m))
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        gap = decision.from_classes(p).gap
        least = settings.time(ours=partial(decision.from_classes, p), sum=p.sum)
        passes = least["ours"] / least["sum"]
        table.add(kind, least["ours"], least["sum"], passes, gap)
        what = f"from_classes, {n:.0e} x {m} {kind}, passes of np.sum".replace("e+0", "e")
        results.at_most(what, least["ours"], least["sum"], 40)
    return results


def deciders(settings: Settings) -> Results:
    """Time FDecider, average "samples", against from_marginals on the same rows."""
    n = 500 if settings.quick else 5000
    table = Table(
        f"FDecider, {n} validation rows, one core",
        "labels: count; fit: duration; predict, row: duration; "
        "from_marginals, row: duration; ratio: number",
    )
    results = Results([table])
    for m in (20, 100):
        settings.progress(f"FDecider, {m} labels")
        rng = np.random.default_rng(m)
        z = rng.normal(np.log(3.0 / m), 1.0, m) + rng.normal(0.0, 1.5, (2 * n, m))
        p, truth = (1.0 / (1.0 + np.exp(-x)) for x in (1.4 * z - 0.3, z + rng.normal(size=m) / 4))
        Y = (rng.random((n, m)) < truth[:n]).astype(np.int8)
        fit = partial(FDecider().fit, p[:n], Y)
        decider, new = fit(), p[n:]
        least = settings.time(
            fit=fit,
            predict=partial(decider.predict, new),
            from_marginals=partial(decision.from_marginals, new),
        )
        predict, marginal = least["predict"] / len(new), least["from_marginals"] / len(new)
        table.add(m, least["fit"], predict, marginal, predict / marginal)
        what = f"FDecider.predict, {m} labels, times of from_marginals"
        results.at_most(what, predict, marginal, 8)
    return results


def routes(settings: Settings) -> Results:
    """Time all routes from probabilities to labels, one row and 256 rows of 303 labels."""
    m, n = 303, 300 if settings.quick else 3000
    table = Table(
        f"Latencies of decisions, {m} labels, one core",
        "average: left; labels: number; rows: count; from_marginals: duration; predict: duration; "
        "ONNX: duration; PyTorch: duration; ONNX / predict: number",
        notes=[
            "labels: true ones per row. predict: FDecider. ONNX: export_decision in ONNX Runtime. "
            "PyTorch: FDecision.from_decider. All but from_marginals calibrate."
        ],
    )
    rng = np.random.default_rng(0)
    for labels in (2.5, 6.0):
        z = rng.normal(np.log(labels / m) - 1.0, 1.0, m) + rng.normal(size=(n + 256, m))
        p, truth = (1.0 / (1.0 + np.exp(-x)) for x in (1.4 * z - 0.3, z))
        Y = (rng.random(p.shape) < truth).astype(np.int8)
        for average in ("samples", *AVERAGES):
            settings.progress(f"routes, {average}, {labels:g} labels")
            decider = FDecider(average=average).fit(p[:n], Y[:n])
            graphs = _graphs(decider)
            for rows in (1, 256):
                x = np.ascontiguousarray(p[n : n + rows])
                for name, decide in graphs.items():
                    if not np.array_equal(decide(x), decider.predict(x)):
                        raise RuntimeError(f"{name}, {average}: other labels than predict")
                least = settings.time(
                    marginals=partial(decision.from_marginals, x),
                    predict=partial(decider.predict, x),
                    **{name: partial(decide, x) for name, decide in graphs.items()},
                )
                onnx, predict = least.get("onnx"), least["predict"]
                ratio = onnx / predict if onnx else None
                table.add(
                    average,
                    Y.sum() / len(Y),
                    rows,
                    least["marginals"],
                    predict,
                    onnx,
                    least.get("torch"),
                    ratio,
                )
    return Results([table])


def _graphs(decider: FDecider) -> dict[str, Callable[[Floats], Any]]:
    """Return functions that decide by the graph of a decider, by installed libraries."""
    graphs: dict[str, Callable[[Floats], Any]] = {}
    if find_spec("onnx") and find_spec("onnxruntime"):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        model = fgfm.onnx.export_decision(decider, dtype="float64").SerializeToString()
        session = onnxruntime.InferenceSession(model, options)
        graphs["onnx"] = lambda x: session.run(["labels"], {"proba": x})[0]
    if find_spec("torch"):
        import torch

        from fgfm.torch import FDecision

        torch.set_num_threads(1)
        module = FDecision.from_decider(decider)
        graphs["torch"] = lambda x: module(torch.from_numpy(x))[0].numpy()
    return graphs


def factors(settings: Settings) -> Results:
    """Time from_factors against Algorithm 1 and GFM."""
    sizes = (100, 400) if settings.quick else (100, 400, 1000, 10_000)
    table = Table(
        "from_factors: time per row, one core",
        "rows: left; factors: left; m: count; labels: number; ours: duration; "
        "Algorithm 1 + GFM: duration; ratio: ratio",
    )
    results = Results([table])
    if not settings.quick:
        table.notes.append("mixed: 900 factors of one label and 25 of four.")
    for kind in ("sparse", "dense"):
        per_row = []
        shapes = [("in fours", 0, m // 4) for m in sizes]
        if not settings.quick:
            shapes.append(("mixed", 900, 25))
        for name, singletons, fours in shapes:
            m = singletons + 4 * fours
            settings.progress(f"from_factors, {kind}, {name}, m = {m}")
            n = _n_rows(singletons + 16 * fours, 50 if settings.quick else 1000)
            Ps, members = inputs.factor_rows(kind, n, singletons, fours)
            labels, expected_f = decision.from_factors(Ps, members)
            tasks: dict[str, Callable[[], object]] = {
                "ours": partial(decision.from_factors, Ps, members)
            }
            if m <= 1000:
                rows = [([P[r] for P in Ps], members) for r in range(min(n, 50))]
                choice = rivals.algorithm_1_and_gfm(*rows[0])
                _require_agreement(f"{kind}, {name}, m = {m}", expected_f[0], choice.expected_f)
                tasks["rival"] = _cycle_rows(rivals.algorithm_1_and_gfm, rows)
                plain = rivals.algorithm_1_and_gfm(*rows[0], tuned=False)
                _require_agreement(f"{kind}, {name}, m = {m}", expected_f[0], plain.expected_f)
                if m == 400:
                    decide_plainly = partial(rivals.algorithm_1_and_gfm, tuned=False)
                    tasks["plain"] = _cycle_rows(decide_plainly, rows)
            least = settings.time(**tasks)
            ours, rival = least["ours"] / n, least.get("rival")
            faster = rival / ours if rival else None
            table.add(kind, name, m, labels.sum() / n, ours, rival, faster)
            if name == "in fours":
                per_row.append(ours)
                if m == 400:
                    what = f"from_factors, 400 in fours, {kind}"
                    results.at_least(what, ours, least["plain"], 500)
                    results.at_least("  the rival tuned", ours, rival, 500)
        slope = growth_exponent(sizes, per_row)
        table.notes.append(f"Growth exponent in fours, {kind}: {slope:.2f}.")
    return results


def cardinalities(settings: Settings) -> Results:
    """Time from_cardinalities against gfm() of the package example-wise-f1-maximizer."""
    table = Table(
        "from_cardinalities: time per row, one core",
        "rows: left; m = S: count; labels: number; ours: duration; PyPI gfm(): duration; "
        "ratio: ratio",
        notes=["PyPI gfm(): example-wise-f1-maximizer, with precomputed weights."],
    )
    results = Results([table])
    for kind in ("sparse", "dense"):
        for m in (100,) if settings.quick else (100, 1000):
            settings.progress(f"from_cardinalities, {kind}, m = {m}")
            P = inputs.cardinality_rows(kind, _n_rows(m * m, 20 if settings.quick else 200), m)
            n = len(P)
            labels, expected_f = decision.from_cardinalities(P)
            tasks: dict[str, Callable[[], object]] = {
                "ours": partial(decision.from_cardinalities, P)
            }
            gfm = rivals.pypi_gfm(m)
            if gfm is None:
                table.notes = ["PyPI gfm(): example-wise-f1-maximizer is not installed."]
            else:
                s = np.arange(1, m + 1)
                d_0 = 1.0 - (P.sum(axis=1) / s).sum(axis=1)  # (n,)
                chosen = gfm(P[0], d_0[0]).astype(np.int64)
                value = d_0[0]
                if len(chosen):
                    value = 2.0 * (P[0, chosen] / (s + len(chosen))).sum()
                _require_agreement(f"from_cardinalities, {kind}", expected_f[0], value)
                tasks["rival"] = _cycle_rows(gfm, list(zip(P, d_0, strict=True)))
            least = settings.time(**tasks)
            ours, rival = least["ours"] / n, least.get("rival")
            faster = rival / ours if rival else None
            table.add(kind, m, labels.sum() / n, ours, rival, faster)
            if m == 100:
                what = f"from_cardinalities, 100 {kind}"
                results.at_least(what, ours, rival, 60)
    return results


def constraints(settings: Settings) -> Results:
    """Time constrained decisions against unconstrained ones."""
    table = Table(
        "Constraints, from_marginals, m = 100: time per row, one core",
        "constraints: left; changed: number; time: duration; without: duration; ratio: number",
        notes=["changed: share of the rows whose set without constraints is not the decision."],
    )
    n, m = (200 if settings.quick else 10_000), 100
    p = inputs.marginal_rows("sparse", n, m)
    P = cardinality.of_marginals(p[:2])
    free = decision.from_marginals(p).labels
    groups = np.arange(m).reshape(-1, 5).tolist()
    tree = {i: (i - 1) // 3 for i in range(1, m)}
    kinds: dict[str, dict[str, Any]] = {
        "max_labels=3": {"max_labels": 3},
        "two required": {"constraints": decision.Constraints(required=[0, 1])},
        "20 groups": {"constraints": decision.Constraints(groups=groups)},
        "hierarchy": {"constraints": decision.Constraints(parents=tree)},
        "costs": {"constraints": decision.Constraints(costs=np.linspace(0.0, 0.01, m))},
    }
    for what, limits in kinds.items():
        settings.progress(f"constraints, {what}")
        labels, expected_f = decision.from_marginals(p, **limits)
        for row, value in enumerate(decision.from_cardinalities(P, **limits).expected_f):
            _require_agreement(what, expected_f[row], value)
        least = settings.time(
            ours=partial(decision.from_marginals, p, **limits),
            without=partial(decision.from_marginals, p),
        )
        changed = float((labels != free).any(axis=1).mean())
        ours, without = least["ours"] / n, least["without"] / n
        table.add(what, changed, ours, without, ours / without)
    return Results([table])


def threads(settings: Settings) -> Results:
    """Time two threads against one."""
    table = Table(
        "Threads: time per row",
        "what: left; n_jobs=1: duration; n_jobs=2: duration; ratio: ratio",
    )
    if (os.cpu_count() or 1) < 2:
        table.notes = ["Not measured: this machine has one core."]
        return Results([table])
    settings.progress("threads")
    n = 200 if settings.quick else 2000
    p = inputs.marginal_rows("sparse", 5 * n, 1000)
    stored = inputs.sparse_rows(20 * n, 100_000, 50)
    Ps, members = inputs.factor_rows("sparse", n, 0, 100)
    cases: dict[str, tuple[int, Callable[[int], object]]] = {
        "from_marginals, m = 1000, sparse": (
            5 * n,
            lambda n_jobs: decision.from_marginals(p, n_jobs=n_jobs),
        ),
        "from_marginals, CSR, 50 of 100 000 stored": (
            20 * n,
            lambda n_jobs: decision.from_marginals(stored, n_jobs=n_jobs),
        ),
        "from_factors, m = 400 in fours, sparse": (
            n,
            lambda n_jobs: decision.from_factors(Ps, members, n_jobs=n_jobs),
        ),
    }
    for what, (rows, decide) in cases.items():
        tasks = {"one": partial(decide, 1), "two": partial(decide, 2)}
        least = least_times(tasks, seconds=settings.seconds, clock=time.perf_counter)
        one, two = least["one"] / rows, least["two"] / rows
        table.add(what, one, two, one / two)
    return Results([table])


def memory(settings: Settings) -> Results:
    """Measure the peak memory of from_marginals on a large CSR matrix, in a fresh process."""
    n = 2000 if settings.quick else 100_000
    settings.progress("memory")
    proba = inputs.sparse_rows(n, 100_000, 50)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("data", "indices", "indptr"):
            np.save(Path(folder) / f"{name}.npy", getattr(proba, name))
        np.save(Path(folder) / "m.npy", proba.shape[1])
        found = in_child("sparse_memory", folder)
    table = Table(
        "from_marginals on CSR: 100 000 labels, 50 stored per row, a fresh process",
        "n: count; time per row: duration; input: MiB; output: MiB; peak beyond the input: MiB",
        [
            (
                found["rows"],
                found["seconds"] / found["rows"],
                found["input"],
                found["decided"],
                found["extra"],
            )
        ],
    )
    return Results([table])


# Programs whose whole runs are compared: the README's examples, and the imports they need anyway.
_PROGRAMS = {
    "import numpy, scipy.sparse": "import numpy, scipy.sparse",
    "README: probabilities": (
        "import fgfm; fgfm.decision.from_marginals([[0.8, 0.45, 0.4], [0.1, 0.2, 0.05]])"
    ),
    "long rows and P": (
        "import numpy as np, fgfm; p = np.full((1, 2000), 0.3); fgfm.decision.from_marginals(p); "
        "fgfm.decision.from_cardinalities(np.full((1, 3, 2), 0.2))"
    ),
    "import sklearn.datasets": "from sklearn.datasets import make_multilabel_classification",
    "README: classifier": (
        "import fgfm; from sklearn.datasets import make_multilabel_classification; "
        "X, Y = make_multilabel_classification(400, n_classes=5, random_state=1); "
        "model = fgfm.FClassifier(random_state=0).fit(X[:300], Y[:300]); "
        "model.predict(X[300:302]); model.score(X[300:], Y[300:])"
    ),
    "import sklearn.base": "import numpy, scipy, sklearn.base",
    "a saved decider, one row": (
        "import fgfm, numpy as np; fgfm.load('{path}').predict(np.full((1, 20), 0.3))"
    ),
}


def cold_start(settings: Settings) -> Results:
    """Time whole programs in fresh processes, against the imports that they need anyway."""
    table = Table(
        "Cold start: processor time of fresh processes, start of Python included",
        "program: left; time: duration",
    )
    least = dict.fromkeys(_PROGRAMS, float("inf"))
    p = np.random.default_rng(0).random((200, 20))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decider.fgfm"
        fgfm.save(FDecider().fit(p, (p > 0.7).astype(int)), path)
        for _ in range(1 if settings.quick else 7):
            for what, program in _PROGRAMS.items():
                settings.progress(f"cold start, {what}")
                before = os.times()
                code = program.replace("{path}", path.as_posix())
                subprocess.run([sys.executable, "-c", code], check=True)
                after = os.times()
                took = sum(after[2:4]) - sum(before[2:4])  # processor time of children
                least[what] = min(least[what], took)
    table.rows += least.items()
    arrays, _, _, learners, _, base_classes, _ = _PROGRAMS
    results = Results([table])
    for what, base, goal in (
        ("README: probabilities", arrays, 1.5),
        ("long rows and P", arrays, 1.5),
        ("README: classifier", learners, 2.0),
        ("a saved decider, one row", base_classes, 2.0),
    ):
        results.at_most(f"cold start, {what}", least[what], least[base], goal)
    return results


PARTS: Sequence[Callable[[Settings], Results]] = (
    marginals,
    averages,
    classes,
    deciders,
    routes,
    factors,
    cardinalities,
    constraints,
    threads,
    memory,
    cold_start,
)
