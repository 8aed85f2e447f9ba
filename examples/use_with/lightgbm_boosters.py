"""LightGBM as the base learner of the classifier."""

# /// script
# dependencies = ["fgfm", "lightgbm", "pandas"]
# ///

from shared import report, table

import fgfm

(X, Y), (X_val, Y_val), (X_new, Y_new) = table()
# %%
from lightgbm import LGBMClassifier

booster = LGBMClassifier(n_estimators=60, num_leaves=8, verbose=-1, n_jobs=1)
model = fgfm.FClassifier(booster, cv=3, random_state=0).fit(X, Y)
labels, expected_f = model.decide(X_new)
# %%
proba_val, proba = model.predict_proba(X_val), model.predict_proba(X_new)
report("LightGBM", (proba_val, Y_val), (proba, Y_new), labels)
