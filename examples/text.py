"""
Text: which parameters does a function take?
============================================

The documentation of NumPy, SciPy and scikit-learn is real text with real labels: about 2000
descriptions of functions, each with a list of parameters. A model reads the description, without
the list, and predicts which of the 20 most frequent parameters there are.
"""

import importlib
import inspect
import re
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from fgfm import FDecider, f_measure
from fgfm.metrics import best_threshold

# %%
# The data
# --------

MODULES = (
    "numpy numpy.fft numpy.linalg numpy.ma numpy.random scipy.fft scipy.integrate scipy.linalg "
    "scipy.interpolate scipy.ndimage scipy.optimize scipy.signal scipy.sparse scipy.spatial "
    "scipy.sparse.linalg scipy.special scipy.stats sklearn.cluster sklearn.covariance "
    "sklearn.datasets sklearn.decomposition sklearn.ensemble sklearn.feature_selection "
    "sklearn.linear_model sklearn.manifold sklearn.metrics sklearn.neighbors sklearn.svm"
)
texts, parameters = {}, {}
for module in map(importlib.import_module, MODULES.split()):
    for name in sorted(module.__all__):
        text = inspect.getdoc(getattr(module, name)) or ""
        description, heading, rest = text.partition("\nParameters\n---")
        if heading and name not in texts:
            listed = re.split(r"\n[A-Z][\w ]+\n---", rest)[0]  # up to the next heading
            texts[name] = re.sub(r"^\w+\(.*\)$", "", description, flags=re.MULTILINE)
            parameters[name] = set(re.findall(r"^\*{0,2}(\w+)(?:, \w+)* ?:", listed, re.MULTILINE))

counts = Counter(parameter for listed in parameters.values() for parameter in listed)
labels = sorted(counts, key=lambda parameter: (-counts[parameter], parameter))[:20]
X = np.array([f"{name} {text}" for name, text in texts.items()], dtype=object)
Y = np.array([[label in listed for label in labels] for listed in parameters.values()], dtype=int)
print(f"{len(X)} functions, {Y.sum(axis=1).mean():.1f} of the 20 parameters each")
print(*labels[:12], "...")

# %%
# A model, and three ways to decide
# ---------------------------------
# Logistic regressions of words and pairs of words are fitted to 40 % of the functions. The
# threshold and `fgfm.FDecider` learn from the same validation functions, 24 %; the rest is for the
# test.

X_train, X_rest, Y_train, Y_rest = train_test_split(X, Y, test_size=0.6, random_state=0)
X_val, X_test, Y_val, Y_test = train_test_split(X_rest, Y_rest, test_size=0.6, random_state=0)
words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2))
model = make_pipeline(words, OneVsRestClassifier(LogisticRegression(C=10.0)))
model.fit(X_train, Y_train)
proba_val, proba = model.predict_proba(X_val), model.predict_proba(X_test)

decider = FDecider().fit(proba_val, Y_val)
threshold = best_threshold(proba_val, Y_val == 1)
decided = {
    "p > 0.5": proba > 0.5,
    f"p > {threshold:.2f}, tuned": proba > threshold,
    "FDecider": decider.predict(proba),
}
scores = {rule: f_measure(Y_test, found, per_row=True) for rule, found in decided.items()}
for rule, f in scores.items():
    size = decided[rule].sum(axis=1).mean()
    print(f"{rule:15} mean F1 {f.mean():.3f}, {size:.2f} parameters per function")
gain = scores["FDecider"] - list(scores.values())[1]
error = gain.std(ddof=1) / np.sqrt(len(gain))
print(f"FDecider minus tuned threshold: {gain.mean():+.3f} +/- {error:.3f}")

# %%
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
colours = ["#999999", "#0072B2", "#D55E00"]
bars = ax.barh(list(scores), [f.mean() for f in scores.values()], color=colours)
ax.bar_label(bars, fmt="%.3f", padding=4, fontsize=13)
ax.tick_params(labelsize=13)
ax.set(xlim=(0, 0.8), title="Text: mean F1 of test functions")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# One function
# ------------
# The expected F-measure says how certain each answer is.

certain = np.where(decided["FDecider"].sum(axis=1) == 3, decider.decide(proba).expected_f, 0.0)
row = int(np.argsort(certain)[-40])
chosen = decider.decide(proba[[row]])
print(" ".join(X_test[row].split())[:90])
print("decided:", [labels[i] for i in np.flatnonzero(chosen.labels[0])])
print("true:   ", [labels[i] for i in np.flatnonzero(Y_test[row])])
print(f"expected F1 {chosen.expected_f[0]:.2f}")
