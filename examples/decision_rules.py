"""
Thresholds against F-optimal decisions
======================================

This example compares three decision rules that use the same probabilities.

Logistic regressions, one per label, are fitted to synthetic data in which few labels are frequent
and most are rare. Their probabilities for the test rows are turned into label sets by

- ``p > 0.5``, the usual rule;
- the best single threshold, chosen on out-of-fold probabilities of the training rows;
- `fgfm.decision.from_marginals`, which maximises the expected F-measure of every row.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsRestClassifier

import fgfm

# %%
# Data and model
# --------------
# The frequency of a label decreases with its index. Hidden causes affect groups of labels: given
# the features, probabilities are far from 0 and 1, and the labels are not independent.


def generate(n, m, seed):
    """Draw features and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    hidden = rng.normal(size=(n, 3))
    logits = 0.55 * X @ rng.normal(size=(20, m)) + 0.5 * hidden @ rng.normal(size=(3, m))
    rank = np.arange(1, m + 1)
    Y = rng.random((n, m)) < expit(logits - 0.5 - 1.5 * np.log(rank))
    return X, Y.astype(np.int8)


n, m = 4000, 30
X, Y = generate(n, m, seed=0)
X_train, X_test, Y_train, Y_test = X[: n // 2], X[n // 2 :], Y[: n // 2], Y[n // 2 :]
model = OneVsRestClassifier(LogisticRegression(max_iter=1000))
out_of_fold = cross_val_predict(model, X_train, Y_train, cv=3, method="predict_proba")
proba = model.fit(X_train, Y_train).predict_proba(X_test)

frequencies = np.sort(Y.mean(axis=0))[::-1]
print(f"{m} labels, present in {frequencies[0]:.0%} to {frequencies[-1]:.1%} of the rows")

# %%
# Three rules
# -----------
# The threshold is chosen for each beta; it is lower if recall has more weight. The F-optimal rule
# has no parameter to choose.


def best_threshold(proba, Y, beta):
    """Return the threshold with the highest mean F-measure."""
    grid = np.linspace(0.01, 0.99, 99)
    return max(grid, key=lambda t: fgfm.f_measure(Y, proba > t, beta=beta))


def standard_error(values):
    """Return the standard error of the mean."""
    return values.std(ddof=1) / np.sqrt(len(values))


betas = (0.5, 1.0, 2.0)
rules = ("p > 0.5", "best threshold", "F-optimal")
scores = {}  # F of every test row
print(f"{'':4} {'rule':22} {'mean F':>6} {'+/-':>6} {'labels':>7} {'empty':>6}")
for beta in betas:
    threshold = best_threshold(out_of_fold, Y_train, beta)
    optimal = fgfm.decision.from_marginals(proba, beta=beta)
    decided = dict(zip(rules, (proba > 0.5, proba > threshold, optimal.labels), strict=True))
    for rule, labels in decided.items():
        f = scores[beta, rule] = fgfm.f_measure(Y_test, labels, beta=beta, per_row=True)
        name = f"{rule}, {threshold:.2f}" if rule == "best threshold" else rule
        size, empty = labels.sum(axis=1).mean(), np.mean(~labels.any(axis=1))
        print(f"F{beta:<3g} {name:22} {f.mean():6.3f} {standard_error(f):6.3f}", end="")
        print(f" {size:7.2f} {empty:6.0%}")
    if beta == 1.0:
        expected = optimal.expected_f
print(f"{'':4} {'the true label sets':36} {Y_test.sum(axis=1).mean():7.2f}", end="")
print(f" {np.mean(~Y_test.any(axis=1)):6.0%}")

# %%
# "labels" is the mean size of the label sets, "empty" the share of empty ones. Since the rules are
# compared on the same rows, their differences have smaller standard errors than the means:

for beta in betas:
    gain = scores[beta, "F-optimal"] - scores[beta, "best threshold"]
    print(f"F{beta:g}: F-optimal minus best threshold ", end="")
    print(f"{gain.mean():+.3f} +/- {standard_error(gain):.3f}")

# %%
# The F-optimal rule also returns its expected score. On the right the test rows are binned by the
# expected F-measure: the dots are near the diagonal, although the labels are modelled as
# independent.

colours = ("#999999", "#E69F00", "#0072B2")  # Okabe and Ito: safe for colour-blind readers
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10.5, 4.4), layout="constrained", width_ratios=(1.45, 1.0)
)
for r, (rule, colour) in enumerate(zip(rules, colours, strict=True)):
    at = np.arange(len(betas)) + 0.27 * (r - 1)
    means = [scores[beta, rule].mean() for beta in betas]
    errors = [standard_error(scores[beta, rule]) for beta in betas]
    left.bar(at, means, width=0.25, color=colour, label=rule)
    left.errorbar(at, means, yerr=errors, fmt="none", ecolor="black", capsize=2.5)
    for x, mean, error in zip(at, means, errors, strict=True):
        left.annotate(
            f"{mean:.3f}",
            (x, mean + error),
            (0, 3),
            ha="center",
            textcoords="offset points",
            fontsize=9,
        )
left.set_xticks(range(len(betas)), [f"$F_{{{beta:g}}}$" for beta in betas], fontsize=12)
left.set_ylabel("mean over test rows, with standard error")
left.set_ylim(0.0, 1.22 * max(f.mean() for f in scores.values()))
left.set_title("The same probabilities, three decision rules")
left.legend(ncols=3, loc="upper center", frameon=False)

obtained = scores[1.0, "F-optimal"]
bins = np.array_split(np.argsort(expected, kind="stable"), 10)
x = [expected[rows].mean() for rows in bins]
y = [obtained[rows].mean() for rows in bins]
low, high = min(*x, *y) - 0.08, max(*x, *y) + 0.08
right.plot([low, high], [low, high], "k--", linewidth=1, label="as expected")
right.errorbar(
    x,
    y,
    yerr=[standard_error(obtained[rows]) for rows in bins],
    color=colours[2],
    fmt="o",
    capsize=2.5,
    label="tenths of the test rows",
)
right.set(xlim=(low, high), ylim=(low, high), xlabel="expected $F_1$", ylabel="obtained $F_1$")
right.set_aspect("equal")
right.set_title("F-optimal: obtained against expected")
right.legend(loc="upper left", frameon=False)
plt.show()
