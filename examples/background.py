"""
Text: which type has a parameter? Classes with a background
===========================================================

The documentation of NumPy, SciPy and scikit-learn describes thousands of parameters, each with its
type. A model reads the description and predicts the type: one of six, or something else. Something
else is a background class, like "no relation" between two entities or "none" of the intents: what
counts is the micro F1 of the six types, ``f1_score(y, h, labels=types, average="micro")``.
"""

import importlib
import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from fgfm import FDecider

# %%
# The data
# --------
# The type is what stands between the name of a parameter and the first comma.

MODULES = (
    "numpy numpy.fft numpy.linalg numpy.random scipy.fft scipy.integrate scipy.interpolate "
    "scipy.linalg scipy.ndimage scipy.optimize scipy.signal scipy.sparse scipy.spatial "
    "scipy.stats sklearn.cluster sklearn.datasets sklearn.decomposition sklearn.ensemble "
    "sklearn.linear_model sklearn.manifold sklearn.metrics sklearn.preprocessing sklearn.svm"
)
TYPES = ["array", "bool", "callable", "float", "int", "str"]
NAMES = {"array_like": "array", "array-like": "array", "ndarray": "array", "boolean": "bool"}
PARAMETER = re.compile(r"^(\w+) ?: ?(.+)\n((?:(?:    .*)?\n)+)", re.MULTILINE)
found = {}
for module in map(importlib.import_module, MODULES.split()):
    for name in sorted(module.__all__):
        section = (inspect.getdoc(getattr(module, name)) or "").partition("Parameters\n---")[2]
        section = re.split(r"\n[A-Z][\w ]+\n---", section)[0] + "\n"
        for parameter, kind, text in PARAMETER.findall(section):
            kind = re.split(r"[ ,({]", kind.strip("`{ "))[0].strip("`").lower()
            kind = NAMES.get(kind, kind)
            found[" ".join([parameter, *text.split()])] = kind if kind in TYPES else "other"
texts, y = np.array(list(found), dtype=object), np.array(list(found.values()))
print({kind: int((y == kind).sum()) for kind in [*TYPES, "other"]})

# %%
# Three ways to decide
# --------------------
# A model of 30 % of the parameters, `fgfm.FDecider` from 20 %, and half of them for the test. The
# tuned rule predicts the most probable type where it has more than a probability t, which is
# tuned on the same validation rows.

X, X_rest, y_train, y_rest = train_test_split(texts, y, train_size=0.3, random_state=0)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.7, random_state=0)
model = make_pipeline(
    TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10.0)
).fit(X, y_train)
p_val, p_test = model.predict_proba(X_val), model.predict_proba(X_test)
included = np.isin(model.classes_, TYPES)


def most_probable(p, threshold):
    """Return the most probable type where it is more probable than a threshold."""
    best = np.where(included, p, 0.0).argmax(axis=1)
    labels = model.classes_[best].astype(object)
    labels[p[np.arange(len(p)), best] <= threshold] = "other"
    return labels.astype(str)


def micro_f1(y, labels):
    """Return the micro F1 of the types."""
    return f1_score(y, labels, labels=TYPES, average="micro")


t = max(np.arange(0.05, 0.95, 0.01), key=lambda t: micro_f1(y_val, most_probable(p_val, t)))
decider = FDecider(average="micro", labels=TYPES).fit(p_val, y_val)
rules = {
    "most probable class": model.predict(X_test),
    f"most probable type above t = {t:.2f}": most_probable(p_test, t),
    "FDecider": decider.predict(p_test),
}
for name, labels in rules.items():
    print(f"{name:35s} {micro_f1(y_test, labels):.3f}")
print(f"expected {float(decider.expected_f(p_test)):.3f}")

# %%
# The F1 of any threshold
# -----------------------
# The rule of a threshold on the calibrated probabilities of the types, and where the decider is.

grid = np.linspace(0.05, 0.9, 60)
scores = [micro_f1(y_test, most_probable(p_test, t)) for t in grid]
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(grid, scores, color="0.4", label="threshold on the model's probabilities, test rows")
colours = ["#E69F00", "#0072B2", "#D55E00"]
for (name, labels), colour in zip(rules.items(), colours, strict=True):
    ax.axhline(micro_f1(y_test, labels), color=colour, linestyle="--", label=name)
ax.set(xlabel="threshold", ylabel="micro F1 of the six types", ylim=(min(scores) - 0.01, None))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize=9)
plt.show()
