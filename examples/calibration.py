"""
Calibration of an overconfident learner
=======================================

An F-optimal decision is as good as the probabilities that it is based on. Naive Bayes is the
standard example of a learner whose probabilities are too close to 0 and 1. `fgfm.FClassifier`
calibrates all models on held-out rows; this example compares it with and without calibration.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import GaussianNB

import fgfm
from fgfm.plotting import CalibrationDisplay

# %%
# Naive Bayes counts the evidence of redundant features several times: here each of six causes is
# measured by five features.

rng = np.random.default_rng(0)
n, m = 3000, 8
causes = rng.normal(size=(n, 6))
X = np.repeat(causes, 5, axis=1) + 0.3 * rng.normal(size=(n, 30))
logits = causes @ rng.normal(scale=0.9, size=(6, m)) - np.linspace(0.5, 2.5, m)
Y = (rng.random((n, m)) < 1.0 / (1.0 + np.exp(-logits))).astype(int)
train, test = slice(0, 1500), slice(1500, None)

# %%
# The same learner in three ways: with a threshold; with the F-optimal decision; and calibrated,
# with the F-optimal decision, which is the default (``calibration="auto"``).

raw = fgfm.FClassifier(GaussianNB(), calibration=None, random_state=0)
raw.fit(X[train], Y[train])
calibrated = fgfm.FClassifier(GaussianNB(), random_state=0)
calibrated.fit(X[train], Y[train])

print(f"p > 0.5                {fgfm.f_measure(Y[test], raw.predict_proba(X[test]) > 0.5):.3f}")
print(f"F-optimal              {raw.score(X[test], Y[test]):.3f}")
print(f"F-optimal, calibrated  {calibrated.score(X[test], Y[test]):.3f}")

# %%
# The plot bins the rows by their expected F-measure. A model below the diagonal is overconfident.

figure, axes = plt.subplots(1, 2, figsize=(7, 3.9), layout="constrained", sharey=True)
names = ("not calibrated", "calibrated")
for ax, model, name in zip(axes, (raw, calibrated), names, strict=True):
    display = CalibrationDisplay.from_estimator(model, X[test], Y[test], ax=ax)
    ax.set_title(f"{name}\nobtained - expected = {display.mean_difference_:+.3f}")
plt.show()
