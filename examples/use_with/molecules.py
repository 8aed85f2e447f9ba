"""Molecules: which opioid receptors a compound binds to, from the letters of its SMILES."""

# /// script
# dependencies = [
#     "fgfm[data]",
#     "MoleculeACE",  # without its own dependencies: pip install --no-deps MoleculeACE
# ]
# ///

from importlib.metadata import distribution

import numpy as np
import pandas as pd
from shared import against_thresholds, report_splits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

# The compounds whose affinity to all three receptors was measured; a label is a Ki below 10 nM.
RECEPTORS = {"mu": "CHEMBL233", "delta": "CHEMBL236", "kappa": "CHEMBL237"}
folder = distribution("MoleculeACE").locate_file("MoleculeACE/Data/benchmark_data")
affinity = pd.concat(
    {
        name: pd.read_csv(f"{folder}/{target}_Ki.csv", index_col="smiles")["exp_mean [nM]"]
        for name, target in RECEPTORS.items()
    },
    axis=1,
    join="inner",
)
X, Y = affinity.index.to_numpy(), (affinity < 10.0).to_numpy().astype(int)

words = {"analyzer": "char", "lowercase": False}
counts = CountVectorizer(ngram_range=(1, 4), min_df=5, **words)
weights = TfidfVectorizer(ngram_range=(1, 5), sublinear_tf=True, **words)
models = {
    "logistic": make_pipeline(weights, OneVsRestClassifier(LogisticRegression(C=10.0))),
    "forest": make_pipeline(counts, OneVsRestClassifier(RandomForestClassifier(random_state=0))),
}
scores = {}
# %%
for seed in range(5):
    order = np.random.default_rng(seed).permutation(len(X))
    train, val, new = np.split(order, [len(X) // 2, 3 * len(X) // 4])
    for name, model in models.items():
        model.fit(X[train], Y[train])
        proba_val, proba_new = model.predict_proba(X[val]), model.predict_proba(X[new])
        found = against_thresholds(proba_val, Y[val], proba_new, Y[new])
        scores.setdefault(name, []).append(found)
# %%
report_splits(scores)
