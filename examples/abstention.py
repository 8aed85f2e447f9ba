"""
Abstention with a guarantee
===========================

A model need not answer every row. This example finds, with a validation set, which rows to answer
so that their mean F-measure is at least a target, with a confidence of 95 %; and a bound on the
mean F-measure if all rows are answered. Both hold for any model and any number of rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

import fgfm
from fgfm.metrics import abstention_threshold, mean_lower_bound

# %%
# Handwritten digits on top of each other
# ---------------------------------------
# The 1797 handwritten digits of scikit-learn have one label each. A row of our data is a picture
# of one to three of them, drawn over each other; its labels are the digits in it. Each part of the
# data is made of images of its own. In the validation and test parts no image occurs twice, so
# that rows are independent, which the guarantee requires.

images, digits = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
shuffled = rng.permutation(len(images))
parts = {
    "train": rng.choice(shuffled[:500], size=8000),
    "validation": shuffled[500:1150],
    "test": shuffled[1150:],
}


def overlay(chosen):
    """Draw images over each other, one to three at a time."""
    ends = np.cumsum(rng.integers(1, 4, size=len(chosen)))
    groups = np.split(chosen, ends[ends < len(chosen)])
    X = np.array([images[group].max(axis=0) for group in groups])
    Y = np.array([np.isin(np.arange(10), digits[group]) for group in groups]).astype(int)
    return X, Y


data = {name: overlay(chosen) for name, chosen in parts.items()}
for name, (X, Y) in data.items():
    print(f"{name:10s} {len(X)} pictures, {Y.sum(axis=1).mean():.2f} digits each")

# %%
# Decisions
# ---------
# A forest predicts the probability of each digit. `fgfm.decision.from_marginals` returns the
# F-optimal sets and the expected F-measure of each row, which orders the rows from certain to
# uncertain.

forest = ExtraTreesClassifier(100, min_samples_leaf=2, random_state=0).fit(*data["train"])


def decide(X, Y):
    """Return the expected and the obtained F-measure of each row."""
    proba = np.column_stack([p[:, 1] for p in forest.predict_proba(X)])
    labels, expected_f = fgfm.decision.from_marginals(proba, nonempty=True)
    return expected_f, fgfm.f_measure(Y, labels, per_row=True)


expected_f, f = decide(*data["validation"])
new_expected_f, new_f = decide(*data["test"])

# %%
# A bound on the mean
# -------------------
# The mean over the validation rows is an estimate. With a confidence of 95 %, the mean over new
# rows is at least the bound.

bound = mean_lower_bound(f)
print(f"mean F of {len(f)} validation rows {f.mean():.3f}, bound {bound:.3f}")
print(f"mean F of {len(new_f)} new rows        {new_f.mean():.3f}")

# %%
# Which rows to answer
# --------------------
# For a higher target, rows below a threshold on the expected F-measure are left to a person.

target = 0.85
threshold, answered, mean_f = abstention_threshold(expected_f, f, target)
chosen = new_expected_f >= threshold
print(f"answer if the expected F is at least {threshold:.3f}")
print(f"validation rows: {answered:.0%} answered, mean F {mean_f:.3f}")
print(f"new rows:        {chosen.mean():.0%} answered, mean F {new_f[chosen].mean():.3f}")

# %%
# Every target has its threshold. The distance between the two lines is the price of the guarantee,
# which decreases with the number of validation rows. The guarantee holds for one target that is
# chosen beforehand, not for one that is read off this figure.

order = np.argsort(-new_expected_f)
share = np.arange(1, len(order) + 1) / len(order)
mean = np.cumsum(new_f[order]) / np.arange(1, len(order) + 1)

targets = np.arange(bound, 0.99, 0.005)
thresholds = np.array([abstention_threshold(expected_f, f, t).threshold for t in targets])
answers = np.array([(new_expected_f >= s).mean() for s in thresholds])
some = np.isfinite(thresholds)

figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
ax.plot(share[20:], mean[20:], color="C0", label="obtained by new rows")
ax.plot(answers[some], targets[some], color="C1", label="guaranteed (95 %)")
ax.plot(1.0, bound, "o", color="C1", clip_on=False, zorder=3, label="bound if all are answered")
ax.plot(chosen.mean(), new_f[chosen].mean(), "o", color="C0")
ax.plot(chosen.mean(), target, "s", color="C1")
ax.annotate(
    f"target {target}: {chosen.mean():.0%} answered,\nmean F {new_f[chosen].mean():.2f}",
    (chosen.mean(), target),
    xytext=(-12, -30),
    textcoords="offset points",
    ha="right",
)
ax.set(xlabel="share of new rows that are answered", ylabel="mean F-measure of these rows")
ax.set(xlim=(0, 1), ylim=(0.7, 1))
ax.legend(loc="lower left")
plt.show()

# %%
# What it rests on
# ----------------
# New rows come from the same distribution as the validation rows, and the model was not fitted to
# these. The guarantee is about the mean over new answered rows, not about each of them. The forest
# need not be calibrated: a bad order of rows costs answers, not the guarantee.
