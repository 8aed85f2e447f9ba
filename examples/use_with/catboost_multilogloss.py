"""CatBoost with the loss MultiLogloss."""

# /// script
# dependencies = ["fgfm", "catboost"]
# ///

from shared import report, table

import fgfm

(X, Y), (X_val, Y_val), (X_new, Y_new) = table()
# %%
from catboost import CatBoostClassifier

booster = CatBoostClassifier(
    loss_function="MultiLogloss",
    iterations=150,
    depth=4,
    random_seed=0,
    verbose=False,
    allow_writing_files=False,
)
booster.fit(X, Y)
proba_val = booster.predict_proba(X_val)
decider = fgfm.FDecider().fit(proba_val, Y_val)
proba = booster.predict_proba(X_new)  # (n, m)
labels, expected_f = decider.decide(proba)
# %%
report("CatBoost", (proba_val, Y_val), (proba, Y_new), labels)
