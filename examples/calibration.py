"""
Calibration: a learner that promises too much
=============================================

An F-optimal decision is as good as the probabilities it rests on. Naive Bayes is the standard
example of a learner whose probabilities are too close to 0 and 1. `fgfm.FGFMClassifier` calibrates
such learners on rows that they did not see; this example turns that off to show what it mends.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import GaussianNB

import fgfm
from fgfm.plotting import CalibrationDisplay

# %%
# Features that repeat each other are what naive Bayes counts twice: each of six causes is seen by
# five features.

rng = np.random.default_rng(0)
n, m = 3000, 8
causes = rng.normal(size=(n, 6))
X = np.repeat(causes, 5, axis=1) + 0.3 * rng.normal(size=(n, 30))
logits = causes @ rng.normal(scale=0.9, size=(6, m)) - np.linspace(0.5, 2.5, m)
Y = (rng.random((n, m)) < 1.0 / (1.0 + np.exp(-logits))).astype(int)
train, test = slice(0, 1500), slice(1500, None)

# %%
# The same learner three times: as it is, with a threshold; as it is, with the F-optimal decision;
# and calibrated, which is what ``calibration="auto"`` does.

raw = fgfm.FGFMClassifier(GaussianNB(), factors="independent", calibration=None)
raw.fit(X[train], Y[train])
mended = fgfm.FGFMClassifier(GaussianNB(), factors="independent", random_state=0)
mended.fit(X[train], Y[train])

print(f"needs calibration: {fgfm.estimation.needs_calibration(GaussianNB())}")
print(f"p > 0.5            {fgfm.f_measure(Y[test], raw.predict_proba(X[test]) > 0.5):.3f}")
print(f"F-optimal, raw     {raw.score(X[test], Y[test]):.3f}")
print(f"F-optimal, mended  {mended.score(X[test], Y[test]):.3f}")

# %%
# The picture puts rows into bins by what was expected. Below the line a model promises more than
# it keeps.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", sharey=True)
for ax, model, name in zip(axes, (raw, mended), ("as it is", "calibrated"), strict=True):
    display = CalibrationDisplay.from_estimator(model, X[test], Y[test], ax=ax)
    ax.set_title(f"naive Bayes, {name}: obtained - expected = {display.mean_difference_:+.3f}")
plt.show()

# %%
# Which learners are calibrated by themselves
# -------------------------------------------
# Boosting, trees and forests, support vector machines and naive Bayes are; logistic regression and
# neural networks are not. ``calibration="isotonic"`` or ``"sigmoid"`` asks for it in any case.
