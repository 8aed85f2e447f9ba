"""
Images: which digits are in the picture, and when not to answer
===============================================================

The 1797 handwritten digits of scikit-learn are real; a row here is a picture of one to three of
them, drawn over each other, and its labels are the digits in it. `fgfm.FDecider` decides which
digits there are, and finds which pictures to leave to a person so that the mean F-measure of the
others is at least a target, with a confidence of 95 %.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

from fgfm import FDecider, f_measure
from fgfm.metrics import best_threshold

# %%
# The data
# --------
# Each part of the data is made of images of its own. But for training, no image occurs twice, so
# that rows are independent, which the guarantee requires.

images, digits = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
shuffled = rng.permutation(len(images))


def overlay(chosen):
    """Draw images over each other, one to three at a time."""
    ends = np.cumsum(rng.integers(1, 4, size=len(chosen)))
    groups = np.split(chosen, ends[ends < len(chosen)])
    X = np.array([images[group].max(axis=0) for group in groups])
    Y = np.array([np.isin(np.arange(10), digits[group]) for group in groups]).astype(int)
    return X, Y


X_train, Y_train = overlay(rng.choice(shuffled[:500], size=8000))
X_val, Y_val = overlay(shuffled[500:800])
X_bound, Y_bound = overlay(shuffled[800:1300])
X_test, Y_test = overlay(shuffled[1300:])

figure, axes = plt.subplots(1, 5, figsize=(9, 2.2), layout="constrained")
for ax, x, y in zip(axes, X_test, Y_test, strict=False):
    ax.imshow(x.reshape(8, 8), cmap="gray_r")
    ax.set_title(" ".join(map(str, np.flatnonzero(y))), fontsize=14)
    ax.axis("off")
plt.show()

# %%
# The decision
# ------------
# The threshold and the decider learn from the same validation pictures.

forest = ExtraTreesClassifier(100, min_samples_leaf=2, random_state=0).fit(X_train, Y_train)
proba_val, proba_bound, proba = (
    np.column_stack([p[:, 1] for p in forest.predict_proba(X)]) for X in (X_val, X_bound, X_test)
)
decider = FDecider().fit(proba_val, Y_val)
labels, expected_f = decider.decide(proba)
f = f_measure(Y_test, labels, per_row=True)
threshold = best_threshold(proba_val, Y_val == 1)
print(f"{len(X_val)} validation pictures, {len(X_test)} test pictures")
print(f"p > 0.5         {f_measure(Y_test, proba > 0.5):.3f}")
print(f"p > {threshold:.2f}, tuned {f_measure(Y_test, proba > threshold):.3f}")
print(f"FDecider        {f.mean():.3f}")

# %%
# Which pictures to answer
# ------------------------
# A third set of pictures, which neither the forest nor the decider has seen, bounds the mean
# F-measure of new pictures, and finds the least `expected_f` to answer at.

target = 0.9
least, answered, _ = decider.select(proba_bound, Y_bound, target)
chosen = expected_f >= least
bound = decider.lower_bound(proba_bound, Y_bound)
print(f"all pictures: at least {bound:.3f} with 95 % confidence")
print(f"target {target}: answer if the expected F is at least {least:.3f}")
print(f"test pictures: {chosen.mean():.0%} answered, mean F {f[chosen].mean():.3f}")

# %%
order = np.argsort(-expected_f)
count = np.arange(1, len(order) + 1)
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.plot(count[15:] / len(f), (np.cumsum(f[order]) / count)[15:], linewidth=2.5)
ax.axhline(target, color="#D55E00", linestyle="--", linewidth=2)
ax.plot(chosen.mean(), f[chosen].mean(), "o", color="#D55E00", markersize=10)
ax.annotate(
    f"target {target}: {chosen.mean():.0%} answered",
    (chosen.mean(), f[chosen].mean()),
    xytext=(8, 8),
    textcoords="offset points",
    fontsize=12,
)
ax.set_xlabel("share of test pictures that are answered", fontsize=12)
ax.set_ylabel("mean F-measure of these", fontsize=12)
ax.set(xlim=(0, 1), ylim=(0.7, 1), title="Images: answer where it is worth it")
plt.show()

# %%
# The guarantee rests on one assumption: new pictures come from the same distribution. It is about
# the mean over answered pictures, not about each of them. The forest need not be calibrated: a bad
# order of pictures costs answers, not the guarantee.
