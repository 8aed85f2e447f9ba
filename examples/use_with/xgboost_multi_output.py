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
proba_val = booster.predict_proba(X_val)
decider = fgfm.FDecider().fit(proba_val, Y_val)
proba = booster.predict_proba(X_new)  # (n, m)
labels, expected_f = decider.decide(proba)
# %%
report("XGBoost", (proba_val, Y_val), (proba, Y_new), labels)
