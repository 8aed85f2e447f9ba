"""
Boosters and neural networks
============================

There are two ways to use your own model. A model of a single target, such as gradient boosting, is
passed to `fgfm.FGFMClassifier` as its base learner. A model that predicts the probabilities of all
labels at once, such as a neural network, stays as it is: its output is passed to
`fgfm.decision.from_marginals`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fgfm

# %%
# The labels depend on products of features, which no linear model can express.

rng = np.random.default_rng(1)
n, m = 2400, 6
X = rng.normal(size=(n, 6))
products = X[:, :5] * X[:, 1:]
logits = 1.6 * products @ rng.normal(size=(5, m)) + 0.8 * X @ rng.normal(size=(6, m)) - 1.0
Y = (rng.random((n, m)) < 1.0 / (1.0 + np.exp(-logits))).astype(int)
X_train, X_test, Y_train, Y_test = X[:1600], X[1600:], Y[:1600], Y[1600:]

# %%
# Gradient boosting as base learner
# ---------------------------------
# One model is fitted per label, and calibrated on held-out rows. LightGBM's ``LGBMClassifier`` and
# XGBoost's ``XGBClassifier`` can be used in the same way, as any classifier with ``fit`` and
# ``predict_proba``.

booster = HistGradientBoostingClassifier(max_iter=40, learning_rate=0.1, max_leaf_nodes=8)
boosted = fgfm.FGFMClassifier(booster, factors="independent", cv=3, random_state=0)
boosted.fit(X_train, Y_train)
linear = fgfm.FGFMClassifier(LogisticRegression(), factors="independent").fit(X_train, Y_train)

# %%
# A neural network
# ----------------
# The network has one output per label, and only its probabilities are needed. For a PyTorch model
# they are ``sigmoid(logits).cpu().numpy()``.

network = make_pipeline(
    StandardScaler(),
    MLPClassifier((32,), alpha=0.1, early_stopping=True, max_iter=300, random_state=0),
)
network.fit(X_train, Y_train)
proba = network.predict_proba(X_test)  # (n, m)
decided = fgfm.decision.from_marginals(proba)

# %%
# The gain of the decision
# ------------------------
scores = {}
for name, model in {"logistic": linear, "booster": boosted}.items():
    cut = model.predict_proba(X_test) > 0.5
    scores[name] = fgfm.f_measure(Y_test, cut), model.score(X_test, Y_test)
scores["network"] = fgfm.f_measure(Y_test, proba > 0.5), fgfm.f_measure(Y_test, decided.labels)
for name, (cut, optimal) in scores.items():
    print(f"{name:9} p > 0.5 {cut:.3f}   F-optimal {optimal:.3f}")

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
at = np.arange(len(scores))
for r, (rule, colour) in enumerate({"p > 0.5": "#999999", "F-optimal": "#0072B2"}.items()):
    values = [pair[r] for pair in scores.values()]
    bars = ax.bar(at + 0.36 * (r - 0.5), values, width=0.34, color=colour, label=rule)
    ax.bar_label(bars, fmt="%.3f", fontsize=9, padding=2)
ax.set_xticks(at, list(scores))
ax.set(ylabel="mean F1 on the test rows", ylim=(0, 1.2 * max(map(max, scores.values()))))
ax.legend(ncols=2, loc="upper center", frameon=False)
plt.show()
