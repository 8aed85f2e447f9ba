"""skops: a saved model with its model card."""

# /// script
# dependencies = ["fgfm[store]", "skops"]
# ///

from shared import report, table

import fgfm

(X, Y), (X_val, Y_val), (X_new, Y_new) = table()
model = fgfm.FClassifier(random_state=0).fit(X, Y)
# %%
from skops.card import Card

fgfm.save(model, "model.fgfm")  # fgfm.load reads it without running code
card = Card(model)
card.add(**{"Model description": "Label sets of largest expected F1."})
card.add_metrics(
    f1=round(model.score(X_new, Y_new), 3),
    expected_f1=round(float(model.expected_f(X_new).mean()), 3),
)
how = "`fgfm.load('model.fgfm').predict(X)`"
card.add(**{"How to Get Started with the Model": how})
card.save("README.md")
# %%
proba_val, proba = model.predict_proba(X_val), model.predict_proba(X_new)
report("skops", (proba_val, Y_val), (proba, Y_new), fgfm.load("model.fgfm").predict(X_new))
