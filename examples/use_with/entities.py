"""Entities: candidate spans with scores, of GLiNER, spaCy's spancat or a CRF."""

# /// script
# dependencies = ["fgfm"]
# ///

import numpy as np

import fgfm
from fgfm.metrics import best_threshold

# Simulated candidates in the place of a model's: document, first and last token, score, truth.
# With GLiNER: model.predict_entities(text, labels, threshold=0.01); with spaCy: doc.spans["sc"]
# and its attrs["scores"]; with a CRF: the marginal probabilities of spans.
rng = np.random.default_rng(0)
n = 20_000
document = np.sort(rng.integers(0, 2000, n))
first = rng.integers(0, 60, n)
last = first + rng.geometric(0.6, n)
truth = rng.beta(0.15, 0.6, n)
is_entity = rng.random(n) < truth
score = truth**0.4  # a model that is too sure


def without_overlap(document, first, last, score):
    """Return the spans that no better span of the same document overlaps."""
    kept = []
    for k in np.argsort(-score):
        same = [j for j in kept if document[j] == document[k]]
        if all(last[k] < first[j] or first[k] > last[j] for j in same):
            kept.append(k)
    return np.array(kept)


# %%
validation, new = document < 500, document >= 1800
decider = fgfm.FDecider(average="micro").fit(score[validation], is_entity[validation])
spans = np.flatnonzero(new)[decider.predict(score[new]) == 1]
spans = spans[without_overlap(document[spans], first[spans], last[spans], score[spans])]
# %%
t = best_threshold(score[validation], is_entity[validation].astype(int), average="binary")
f1 = []
for chosen in (new & (score > 0.5), new & (score > t), spans):
    kept = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
    kept = kept[without_overlap(document[kept], first[kept], last[kept], score[kept])]
    entities = np.isin(np.flatnonzero(new), kept).astype(int)
    f1.append(fgfm.f_measure(is_entity[new].astype(int), entities))
print("F1 {:.2f} above 0.5, {:.2f} above t, {:.2f} F-optimal".format(*f1))
