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
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import fgfm

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

scores = []
# %%
letters = CountVectorizer(analyzer="char", ngram_range=(1, 4), lowercase=False, min_df=5)
model = make_pipeline(letters, RandomForestClassifier(100, random_state=0))
for seed in range(5):
    order = np.random.default_rng(seed).permutation(len(X))
    train, val, new = np.split(order, [len(X) // 2, 3 * len(X) // 4])
    model.fit(X[train], Y[train])
    proba_val, proba_new = model.predict_proba(X[val]), model.predict_proba(X[new])
    decider = fgfm.FDecider().fit(proba_val, Y[val])
    labels = decider.predict(proba_new)
    # %%
    columns = [np.column_stack([p[:, 1] for p in found]) for found in (proba_val, proba_new)]
    scores.append(against_thresholds(columns[0], Y[val], columns[1], Y[new], labels))
report_splits("opioids", scores)
