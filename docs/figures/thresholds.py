"""Plot the threshold implied by the optimal decision of each row."""

import matplotlib.pyplot as plt
import numpy as np

import fgfm

rng = np.random.default_rng(0)
level = rng.beta(0.8, 2.5, size=(1500, 1))
proba = rng.beta(0.6 + 3.0 * level, 4.0, size=(1500, 20))
labels, _ = fgfm.decision.from_marginals(proba, nonempty=True)
last = np.where(labels == 1, proba, 1.0).min(axis=1)
first_out = np.where(labels == 0, proba, 0.0).max(axis=1)

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
points = ax.scatter(
    proba.sum(axis=1), (last + first_out) / 2.0, c=labels.sum(axis=1), s=9, cmap="viridis"
)
ax.axhline(0.5, color="C3", linestyle="--", linewidth=1.2)
ax.text(0.99, 0.51, "0.5", color="C3", transform=ax.get_yaxis_transform(), ha="right")
ax.set(xlabel="expected number of labels", ylabel="threshold of the row", ylim=(0, 0.65))
figure.colorbar(points, label="labels chosen")
