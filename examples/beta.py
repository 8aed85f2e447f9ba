"""
The effect of beta
==================

Beta is the weight of recall relative to precision. It is used by the decision only: one fitted
model serves every beta.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_multilabel_classification

import fgfm

X, Y = make_multilabel_classification(
    2000, n_features=20, n_classes=12, n_labels=4, random_state=0
)
model = fgfm.FClassifier(random_state=0).fit(X[:1000], Y[:1000])
X_test, Y_test = X[1000:], Y[1000:]

# %%
# For beta near 0 the F-measure of a row is its precision, for a large beta its recall. Larger
# values of beta lead to larger sets:

betas = 2.0 ** np.arange(-3, 3.5, 0.5)
sizes, precision, recall, expected = [], [], [], []
for beta in betas:
    labels, expected_f = model.set_params(beta=beta).decide(X_test)
    hits = (labels * Y_test).sum(axis=1)
    sizes.append(labels.sum(axis=1).mean())
    precision.append((hits / np.maximum(labels.sum(axis=1), 1)).mean())
    recall.append((hits / np.maximum(Y_test.sum(axis=1), 1)).mean())
    expected.append(expected_f.mean())
for beta in (0.125, 1.0, 8.0):
    at = list(betas).index(beta)
    print(
        f"beta {beta:5g}: {sizes[at]:.2f} labels, precision {precision[at]:.2f}, "
        f"recall {recall[at]:.2f}"
    )

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
left.plot(betas, precision, marker="o", label="precision")
left.plot(betas, recall, marker="s", label="recall")
left.plot(betas, expected, color="0.4", linestyle="--", label=r"expected $F_\beta$")
left.set_xscale("log", base=2)
left.set(xlabel=r"$\beta$", ylabel="mean over test rows", ylim=(0, 1))
left.xaxis.set_major_formatter("{x:g}")
left.legend()
right.plot(betas, sizes, marker="o", color="C2")
right.axhline(Y_test.sum(axis=1).mean(), color="0.4", linestyle="--", label="true sets")
right.set_xscale("log", base=2)
right.xaxis.set_major_formatter("{x:g}")
right.set(xlabel=r"$\beta$", ylabel="labels per row")
right.legend()
plt.show()

# %%
# One row
# -------
# The same probabilities with three values of beta: the best size increases.

proba = model.predict_proba(X_test)[1]
P = fgfm.cardinality.of_marginals(proba[None])[0]  # (label, number of labels)
sizes = np.arange(1, len(P) + 1)
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
for beta in (0.5, 1.0, 2.0):
    Delta = P @ ((1 + beta**2) / np.add.outer(beta**2 * sizes, sizes))  # (label, size of the set)
    value = np.diagonal(np.cumsum(-np.sort(-Delta, axis=0), axis=0))  # best sets
    line = ax.plot(sizes, value, marker=".", label=rf"$\beta$ = {beta:g}")[0]
    ax.plot(sizes[value.argmax()], value.max(), "o", color=line.get_color(), markersize=9)
ax.set(xlabel="labels in the set", ylabel=r"expected $F_\beta$ of the best set", ylim=(0, 1))
ax.legend()
plt.show()
