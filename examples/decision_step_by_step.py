"""
A decision, step by step
========================

A model predicts the probabilities of eight labels of a film. Which labels should be predicted if
the prediction is scored by F1? This example computes the decision by hand, and compares it with
`fgfm.decision.from_marginals`.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np

import fgfm
from fgfm.plotting import DecisionDisplay

names = ["drama", "romance", "comedy", "crime", "war", "history", "music", "western"]
proba = np.array([[0.81, 0.46, 0.42, 0.35, 0.14, 0.10, 0.04, 0.01]])

# %%
# The expected F1 of a label set
# ------------------------------
# The F1 of a prediction depends on the true labels in two ways: which of the chosen labels are
# true, and how many labels are true in total. The matrix P contains what is needed, the
# probability that label i is true *and* that s labels are true.

P = fgfm.cardinality.of_marginals(proba)[0]  # (m, S); here the labels are independent
print(P.shape)
print("p(drama and 2 labels in all) =", P[0, 1].round(3))

# %%
# If k labels are chosen, and label i is one of them, it contributes
# :math:`\Delta_{ik} = \sum_s 2 p_{is} / (s + k)` to the expected F1. For each k the best set holds
# the k labels with the largest contributions.

m, S = P.shape
s = np.arange(1, S + 1)
k = np.arange(1, m + 1)
Delta = P @ (2.0 / np.add.outer(s, k))  # (label, k)

values = [np.sort(Delta[:, size - 1])[::-1][:size].sum() for size in k]
for size, value in zip(k, values, strict=True):
    best = np.argsort(-Delta[:, size - 1])[:size]
    print(f"{size}  {value:.4f}  {', '.join(names[i] for i in sorted(best))}")

# %%
# The largest value is the decision. The empty set is a candidate as well: it scores 1 if no label
# is true, so that its value is the probability of this event.

decision = fgfm.decision.from_marginals(proba)
labels, expected_f = decision
print("decision:", [names[i] for i in np.flatnonzero(labels[0])])
print("expected F1:", expected_f[0].round(4), "by hand:", max(values).round(4))
print("empty set:", np.prod(1.0 - proba).round(4))
assert np.isclose(expected_f[0], max(values))

# %%
# Only drama is above 0.5. By itself it has a smaller expected F1 than the four labels together: a
# second label that is true in 46 of 100 cases costs little precision if it is false, and adds
# recall if it is true.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
DecisionDisplay.from_decision(proba, decision, label_names=names, ax=left)
right.plot(k, values, marker="o")
right.set(xlabel="labels in the set", ylabel="expected F1 of the best set", ylim=(0, None))
plt.show()

# %%
# Many labels
# -----------
# With a thousand labels, not all sizes have to be compared. The bound
# :math:`T(k) = \sum_i \Delta_{ik}`, the dashed line, decreases with k: once it is below the best
# value found, no larger set can be better. Other bounds exclude most of the remaining sizes (see
# "How it works").

rng = np.random.default_rng(0)
many = rng.beta(0.05, 2.0, size=(1, 1000))
P = fgfm.cardinality.of_marginals(many)[0]
k = np.arange(1, len(P) + 1)
Delta = P @ (2.0 / np.add.outer(np.arange(1, P.shape[1] + 1), k))
values = np.diagonal(np.cumsum(-np.sort(-Delta, axis=0), axis=0))

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.plot(k, values, label="best set of k labels")
ax.plot(k, Delta.sum(axis=0), color="0.4", linestyle="--", label="bound T(k)")
ax.set(xlabel="k", ylabel="expected F1", xlim=(0, 120), ylim=(0, 1))
ax.legend()
print("expected labels:", many.sum().round(1), "chosen labels:", 1 + values.argmax())
plt.show()
