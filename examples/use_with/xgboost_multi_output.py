"""XGBoost with trees that predict all labels."""

# /// script
# dependencies = ["fgfm", "xgboost"]
# ///

from shared import report, table

import fgfm

(X, Y), (X_val, Y_val), (X_new, Y_new) = table()
# %%
from xgboost import XGBClassifier

booster = XGBClassifier(
    multi_strategy="multi_output_tree",
    n_estimators=60,
    max_depth=4,
    learning_rate=0.15,
)
booster.fit(X, Y)
decider = fgfm.FDecider().fit(booster.predict_proba(X_val), Y_val)
proba = booster.predict_proba(X_new)  # (n, m)
labels, expected_f = decider.decide(proba)
# %%
report("XGBoost", Y_new, proba > 0.5, labels)
