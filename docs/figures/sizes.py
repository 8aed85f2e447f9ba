"""Plot the expected F of the best set of each size, and the bound that ends the search."""

import matplotlib.pyplot as plt
import numpy as np

from fgfm import cardinality

rng = np.random.default_rng(0)
P = cardinality.of_marginals(rng.beta(0.05, 2.0, size=(1, 1000)))[0]
k = np.arange(1, len(P) + 1)
Delta = P @ (2.0 / np.add.outer(np.arange(1, P.shape[1] + 1), k))  # (label, k)
values = np.diagonal(np.cumsum(-np.sort(-Delta, axis=0), axis=0))
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.plot(k, values, label="best set of k labels")
ax.plot(k, Delta.sum(axis=0), color="0.4", linestyle="--", label="bound T(k)")
ax.set(xlabel="k", ylabel="expected F1", xlim=(0, 120), ylim=(0, 1))
ax.legend()
