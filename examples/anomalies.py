"""
Anomaly scores: how many alarms?
================================

An isolation forest is fitted without labels and returns scores of no particular unit: lower is
more anomalous. Where some rows have been looked at, `fgfm.FDecider` learns from them what the
scores are worth, and which rows to raise an alarm for. The rows are the 1797 handwritten digits of
scikit-learn; a digit that was rare in training is an anomaly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest
from sklearn.metrics import f1_score

from fgfm import FDecider

# %%
# Scores of rows that were looked at
# ----------------------------------
# Half of the images of nine digits train the forest, which sees no label. The other half and the
# images of the tenth digit, one in six of these rows, are scored; 150 of them were looked at.

images, digits = load_digits(return_X_y=True)


def scored(anomaly, seed):
    """Return the scores and labels of rows that were looked at, and those of others."""
    order = np.random.default_rng(seed).permutation(len(digits))
    normal = order[digits[order] != anomaly]
    train, rest = np.split(normal, [len(normal) // 2])
    forest = IsolationForest(n_estimators=200, random_state=seed).fit(images[train])
    rows = np.random.default_rng(seed).permutation(
        np.concatenate([rest, np.flatnonzero(digits == anomaly)])
    )
    score, y = -forest.score_samples(images[rows]), (digits[rows] == anomaly).astype(int)
    return score[:150], y[:150], score[150:], y[150:]


score_val, y_val, score, y = scored(anomaly=0, seed=0)
decider = FDecider(scores=True).fit(score_val, y_val)
print(f"scores from {score.min():.2f} to {score.max():.2f}")
print(f"F1 {decider.score(score, y):.2f}, expected {decider.expected_f(score):.2f}")

# %%
# The unit does not matter
# ------------------------
# The same rows get an alarm if the scores are shifted, scaled or taken as ranks.

for name, change in {
    "times 1000, minus 50": lambda s: 1000 * s - 50,
    "cubed": lambda s: s**3,
}.items():
    changed = FDecider(scores=True).fit(change(score_val), y_val)
    print(f"{name:22} F1 {changed.score(change(score), y):.2f}")

# %%
# Beside a tuned threshold
# ------------------------
# Each digit is the anomaly once. A binary problem is a matter of one threshold, and a tuned one is
# as good on average. What the decider adds is the F1 to expect, before the other rows have been
# looked at.

tuned, decided, expected = [], [], []
for anomaly in range(10):
    score_val, y_val, score, y = scored(anomaly, seed=1)
    t = max(score_val, key=lambda t: f1_score(y_val, score_val >= t))
    tuned.append(f1_score(y, score >= t))
    decider = FDecider(scores=True).fit(score_val, y_val)
    decided.append(decider.score(score, y))
    expected.append(float(decider.expected_f(score)))
print(f"mean F1: tuned threshold {np.mean(tuned):.3f}, FDecider {np.mean(decided):.3f}")

figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.6), layout="constrained", sharey=True)
for ax, values, name in zip(
    axes, (tuned, expected), ("F1 of the tuned threshold", "F1 expected"), strict=True
):
    ax.plot([0.2, 0.8], [0.2, 0.8], color="0.7", linewidth=1)
    ax.plot(values, decided, "o", color="#0072B2")
    ax.set(xlabel=name)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set(ylabel="F1 of FDecider")
plt.show()
