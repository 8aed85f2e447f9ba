"""The same probabilities, three decision rules: what does the decision alone change?

Logistic regressions, one per label, are fitted to generated data in which few labels are frequent
and most are rare. Their probabilities on the test rows are turned into label sets by

- ``p > 0.5``, what everybody does;
- the best single threshold, chosen on out-of-fold probabilities of the training rows;
- ``fgfm.decision.from_marginals``, which maximises the expected F-measure of every row.

Run it with ``make demo``; the figure goes to ``outputs/decision_rules.png``.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsRestClassifier

import fgfm

BETAS = (1.0, 2.0, 0.5)
RULES = ("p > 0.5", "best threshold", "F-optimal")
COLOURS = ("#999999", "#E69F00", "#0072B2")  # Okabe and Ito: safe for colour-blind readers
FIGURE = Path(__file__).resolve().parent.parent / "outputs" / "decision_rules.png"

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]  # 0 or 1


class Outcome(NamedTuple):
    """What one rule did on the test rows, for one beta."""

    beta: float
    rule: str
    threshold: float | None
    labels: Labels  # (n, m)
    obtained: Floats  # (n,) F of every row
    expected: Floats | None  # (n,) where the rule knows it
    seconds: float  # per row

    @property
    def mean(self) -> float:
        """The mean F."""
        return float(self.obtained.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean F."""
        return standard_error(self.obtained)


def standard_error(values: Floats) -> float:
    """Give the standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def generate(n: int, m: int, seed: int) -> tuple[Floats, Labels]:
    """Generate features and labels; label i has a frequency that falls with i.

    Hidden causes, which no feature shows, move groups of labels together: the probabilities of a
    model that sees the features only are far from 0 and 1, and the labels are not independent.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    hidden = rng.normal(size=(n, 3))
    logits = 0.55 * X @ rng.normal(size=(20, m)) + 0.5 * hidden @ rng.normal(size=(3, m))
    rank = np.arange(1, m + 1)
    Y = rng.random((n, m)) < expit(logits - 0.5 - 1.5 * np.log(rank))
    return X, Y.astype(np.int8)


def best_threshold(proba: Floats, Y: Labels, beta: float) -> float:
    """Give the threshold with the highest mean F."""
    grid = np.linspace(0.01, 0.99, 99)
    return float(max(grid, key=lambda t: fgfm.f_measure(Y, proba > t, beta=beta)))


def timed(decide: Callable[[], Any], repeats: int = 5) -> tuple[Any, float]:
    """Give a decision, and the least time it took."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        decision = decide()
        times.append(time.perf_counter() - start)
    return decision, min(times)


def compare(proba: Floats, Y: Labels, thresholds: dict[float, float]) -> list[Outcome]:
    """Decide by every rule, for every beta."""
    outcomes = []
    for beta in BETAS:
        for rule in RULES:
            threshold, expected = None, None
            if rule == "F-optimal":
                (labels, expected), seconds = timed(
                    partial(fgfm.decision.from_marginals, proba, beta=beta)
                )
            else:
                threshold = 0.5 if rule == "p > 0.5" else thresholds[beta]
                labels, seconds = timed(partial(np.greater, proba, threshold))
            obtained = fgfm.f_measure(Y, labels, beta=beta, per_row=True)
            outcomes.append(
                Outcome(beta, rule, threshold, labels, obtained, expected, seconds / len(Y))
            )
    return outcomes


def print_table(outcomes: list[Outcome], Y: Labels) -> None:
    """Print what every rule did, and what the best two differ by."""
    line = "{:<5} {:<21} {:>7} {:>6} {:>9} {:>7} {:>6} {:>9}"
    head = ("", "decision rule", "mean F", "+/-", "expected", "labels", "empty", "time")
    print(line.format(*head))
    for o in outcomes:
        cells = (
            f"F{o.beta:g}" if o.rule == RULES[0] else "",
            f"best threshold, {o.threshold:.2f}" if o.rule == RULES[1] else o.rule,
            f"{o.mean:.3f}",
            f"{o.error:.3f}",
            "" if o.expected is None else f"{o.expected.mean():.3f}",
            f"{o.labels.sum(axis=1).mean():.2f}",
            f"{np.mean(~o.labels.any(axis=1)):.0%}",
            f"{1e6 * o.seconds:.2f} us",
        )
        print(line.format(*cells))
    labels, empty = f"{Y.sum(axis=1).mean():.2f}", f"{np.mean(~Y.any(axis=1)):.0%}"
    print(line.format("", "the true label sets", "", "", "", labels, empty, "").rstrip())
    print()
    print("+/- is the standard error; expected is the mean of expected_f; labels and time")
    print("are per row; empty is the share of rows that get no label.")
    print()
    for beta in BETAS:
        _, threshold, optimal = (o for o in outcomes if o.beta == beta)
        gain = optimal.obtained - threshold.obtained
        name = f"F{beta:g}:"
        print(
            f"{name:<5} F-optimal minus best threshold, row by row: "
            f"{gain.mean():+.3f} +/- {standard_error(gain):.3f}"
        )


def draw(outcomes: list[Outcome], path: Path) -> None:
    """Draw the mean F of every rule, and expected against obtained F; write it in one step."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.5, 4.4), layout="constrained", width_ratios=(1.45, 1.0)
    )
    betas = sorted(BETAS)
    for r, (rule, colour) in enumerate(zip(RULES, COLOURS, strict=True)):
        shown = [next(o for o in outcomes if (o.beta, o.rule) == (b, rule)) for b in betas]
        at = np.arange(len(betas)) + 0.27 * (r - 1)
        means = [o.mean for o in shown]
        left.bar(at, means, width=0.25, color=colour, label=rule)
        left.errorbar(at, means, yerr=[o.error for o in shown], fmt="none", ecolor="black",
                      elinewidth=1, capsize=2.5)  # fmt: skip
        for x, o in zip(at, shown, strict=True):
            left.annotate(f"{o.mean:.3f}", (x, o.mean + o.error), (0, 3), ha="center",
                          textcoords="offset points", fontsize=9)  # fmt: skip
    left.set_xticks(range(len(betas)), [f"$F_{{{b:g}}}$" for b in betas], fontsize=12)
    left.set_ylabel("mean over test rows, with standard error")
    left.set_ylim(0.0, 1.22 * max(o.mean for o in outcomes))
    left.set_title("The same probabilities, three decision rules")
    left.legend(ncols=3, loc="upper center", frameon=False)

    optimal = next(o for o in outcomes if (o.beta, o.rule) == (1.0, RULES[2]))
    assert optimal.expected is not None
    bins = np.array_split(np.argsort(optimal.expected, kind="stable"), 10)
    expected = [optimal.expected[rows].mean() for rows in bins]
    obtained = [optimal.obtained[rows].mean() for rows in bins]
    errors = [standard_error(optimal.obtained[rows]) for rows in bins]
    low = min(*expected, *obtained) - 0.08
    high = max(*expected, *obtained) + 0.08
    right.plot([low, high], [low, high], color="black", linewidth=1, linestyle="--",
               label="as expected")  # fmt: skip
    right.errorbar(expected, obtained, yerr=errors, color=COLOURS[2], fmt="o", capsize=2.5,
                   label="tenths of the test rows")  # fmt: skip
    right.set_xlim(low, high)
    right.set_ylim(low, high)
    right.set_aspect("equal")
    right.set_xlabel("expected $F_1$")
    right.set_ylabel("obtained $F_1$")
    right.set_title("F-optimal: does it keep its word?")
    right.legend(loc="upper left", frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)

    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder) / path.name
        figure.savefig(part, dpi=150)
        os.replace(part, path)
    plt.close(figure)


def main() -> None:
    """Fit, decide, print and draw."""
    n, m = 4000, 30
    X, Y = generate(n, m, seed=0)
    half = n // 2
    model = OneVsRestClassifier(LogisticRegression(max_iter=1000))
    out_of_fold = cross_val_predict(model, X[:half], Y[:half], cv=5, method="predict_proba")
    proba = model.fit(X[:half], Y[:half]).predict_proba(X[half:])
    thresholds = {beta: best_threshold(out_of_fold, Y[:half], beta) for beta in BETAS}
    outcomes = compare(proba, Y[half:], thresholds)

    frequencies = np.sort(Y.mean(axis=0))[::-1]
    most, least = f"{frequencies[0]:.0%}", f"{frequencies[-1]:.1%}"
    print(f"{half} rows to train, {n - half} to test; {m} labels, present in {most} to {least}")
    print("of the rows. One logistic regression per label; only the decision differs.")
    print()
    print_table(outcomes, Y[half:])
    print()
    try:
        draw(outcomes, FIGURE)
    except ModuleNotFoundError as error:
        print(f"No figure: {error.name} is not installed (pip install 'fgfm[plot]').")
        return
    print(f"The figure is in {os.path.relpath(FIGURE)}")


if __name__ == "__main__":
    main()
