"""spaCy's textcat_multilabel."""

# /// script
# dependencies = ["fgfm", "spacy", "pandas"]
# ///

import random

import pandas as pd
import spacy
from shared import GENRES, films, report
from spacy.training import Example

import fgfm

spacy.util.fix_random_seed(0)
(texts, Y), (val_texts, Y_val), (new_texts, Y_new) = films()
nlp = spacy.blank("en")
nlp.add_pipe("textcat_multilabel")
examples = [
    Example.from_dict(nlp.make_doc(text), {"cats": dict(zip(GENRES, map(float, y), strict=True))})
    for text, y in zip(texts, Y, strict=True)
]
nlp.initialize(lambda: examples)
for _ in range(8):
    random.shuffle(examples)
    for batch in spacy.util.minibatch(examples, 32):
        nlp.update(batch)


# %%
def probabilities(texts):
    """Return a data frame with one column per label."""
    return pd.DataFrame([doc.cats for doc in nlp.pipe(texts)])


truth = pd.DataFrame(Y_val, columns=list(GENRES))
val_proba, proba = probabilities(val_texts), probabilities(new_texts)
decider = fgfm.FDecider().fit(val_proba, truth[val_proba.columns])
labels, expected_f = decider.decide(proba)  # a frame with the labels' names
# %%
genres = list(GENRES)
validation, new = (val_proba[genres].to_numpy(), Y_val), (proba[genres].to_numpy(), Y_new)
report("spaCy", validation, new, labels[genres].to_numpy())
