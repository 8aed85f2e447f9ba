"""napkinXC for very many labels: the probabilities of the top labels as a sparse matrix."""

# /// script
# dependencies = ["fgfm", "napkinxc"]
# ///

import numpy as np
from scipy import sparse
from shared import report

import fgfm

rng = np.random.default_rng(0)
n, m, n_words = 3000, 1000, 3000
frequency = np.arange(1, m + 1) ** -0.7
words = rng.integers(n_words, size=(m, 3))  # three of each label
Y, X = sparse.lil_array((n, m), dtype=np.float32), sparse.lil_array((n, n_words))
for row in range(n):
    labels = rng.choice(m, size=1 + rng.poisson(2), replace=False, p=frequency / frequency.sum())
    seen = words[labels][rng.random((len(labels), 3)) < 0.4]
    Y[row, labels] = 1
    X[row, seen] = 1.0
X, Y = sparse.csr_matrix(X), sparse.csr_matrix(Y)


# %%
from napkinxc.models import PLT


def top_probabilities(X):
    """Return the 20 largest probabilities of each row, as CSR."""
    top = tree.predict_proba(X, top_k=20)  # lists of pairs (label, probability)
    start = np.cumsum([0] + [len(pairs) for pairs in top])
    label, proba = np.array([pair for pairs in top for pair in pairs]).T
    entries = proba, label.astype(int), start
    return sparse.csr_array(entries, shape=(len(top), m))


tree = PLT("tree", seed=0)
tree.fit(X[:1500], Y[:1500])
proba_val, Y_val = top_probabilities(X[1500:2000]), Y[1500:2000]
decider = fgfm.FDecider().fit(proba_val, Y_val)
proba = top_probabilities(X[2000:])
labels, expected_f = decider.decide(proba)  # labels are CSR too
# %%
report("napkinXC", (proba_val, Y_val), (proba, Y[2000:]), labels)
