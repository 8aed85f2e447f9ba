"""Plot the F-measures of three rules on the same rows, and the paired differences."""

import matplotlib.pyplot as plt
import numpy as np

import fgfm
from fgfm.metrics import best_threshold, f_difference, f_interval

rng = np.random.default_rng(0)
level = rng.beta(0.8, 2.5, size=(1100, 1))
truth = rng.beta(0.3 + 3.0 * level, 4.0, size=(1100, 12))
Y = rng.random(truth.shape) < truth
Y[np.arange(1100), truth.argmax(axis=1)] |= ~Y.any(axis=1)  # no row without labels
proba = truth**1.4  # a model that is too sure of absent labels
decider = fgfm.FDecider().fit(proba[:500], Y[:500])
t = best_threshold(proba[:500], Y[:500])
p, Y_test = proba[500:], Y[500:]
rules = {"p > 0.2": p > 0.2, f"p > {t:.2f}, tuned": p > t, "FDecider": decider.predict(p) > 0}


def bar(ax, at, low, middle, high, color, text):
    """Draw an interval, its middle and a text beside it."""
    ax.plot([low, high], [at, at], color=color, linewidth=8, alpha=0.35, solid_capstyle="butt")
    ax.plot(middle, at, "o", color=color)
    ax.annotate(text, (high, at), (6, 0), textcoords="offset points", va="center")


figure, axes = plt.subplots(1, 2, figsize=(9.5, 2.6), layout="constrained", sharey=True)
for at, labels in enumerate(rules.values()):
    f, low, high = f_interval(Y_test, labels)
    bar(axes[0], at, low, f, high, "#0072B2", f"{f:.3f}")
    if at < 2:
        found = f_difference(Y_test, rules["FDecider"], labels)
        bar(axes[1], at, found.low, found.difference, found.high, "#D55E00", found.verdict)
axes[0].set(title="F1 of rows, 95 % interval", ylim=(-0.5, 2.5), yticks=range(3))
axes[0].set_yticklabels(list(rules))
axes[1].set(title="FDecider minus this rule, paired")
axes[1].axvline(0.0, color="0.4", linewidth=1)
for ax in axes:
    ax.margins(x=0.2)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.92")
