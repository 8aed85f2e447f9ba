"""Data and the printed line of the recipes in this folder."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import train_test_split

import fgfm
from fgfm.metrics import best_threshold

AVERAGES = ("samples", "macro", "micro")
GENRES = {
    "comedy": [
        "a clumsy waiter",
        "a practical joke",
        "a talking dog",
        "a disastrous dinner party",
    ],
    "crime": ["a bank robbery", "a corrupt detective", "a hidden corpse", "a ruthless smuggler"],
    "fantasy": ["an ancient dragon", "a forgotten spell", "an elven queen", "a magic sword"],
    "horror": ["a haunted cellar", "a bloody axe", "a demonic doll", "screams in the night"],
    "romance": [
        "a secret love letter",
        "a broken engagement",
        "a first kiss",
        "a jealous fiancee",
    ],
    "space": ["a stranded astronaut", "a distant galaxy", "an alien probe", "a lunar colony"],
    "war": ["a lost battalion", "a trench under fire", "a sunken submarine", "a captured general"],
}
ANYWHERE = ["an old friend", "a long journey", "a terrible mistake", "a small town", "a stranger"]


def table():
    """Return (X, Y) to train on, (X, Y) to validate on, and (X, Y) of new rows: 8 labels."""
    X, Y = make_multilabel_classification(3000, n_classes=8, n_labels=2, random_state=0)
    X, X_rest, Y, Y_rest = train_test_split(X, Y, test_size=1500, random_state=0)
    X_val, X_new, Y_val, Y_new = train_test_split(X_rest, Y_rest, test_size=1000, random_state=0)
    return (X, Y), (X_val, Y_val), (X_new, Y_new)


def films(n=900):
    """Return plots and genres, split as by `table`.

    The first two signs of a genre occur in its films only, the others elsewhere too.
    """
    rng = np.random.default_rng(0)
    Y = (rng.random((n, len(GENRES))) < 0.25).astype(int)
    plots = []
    for labels in Y:
        parts = [str(part) for part in rng.choice(ANYWHERE, size=2, replace=False)]
        for signs, label in zip(GENRES.values(), labels, strict=True):
            if label and rng.random() < 0.4:
                parts.append(str(rng.choice(signs[:2])))
            elif rng.random() < (0.7 if label else 0.2):
                parts.append(str(rng.choice(signs[2:])))
        plots.append(f"A story of {', '.join(rng.permutation(parts))}.")
    first, second = n // 2, 2 * n // 3
    return (
        (plots[:first], Y[:first]),
        (plots[first:second], Y[first:second]),
        (plots[second:], Y[second:]),
    )


def probabilities(model, X):
    """Return the probabilities of the labels, (n, m), of any classifier of scikit-learn."""
    proba = model.predict_proba(X)
    return np.stack(proba, axis=1)[:, :, 1] if isinstance(proba, list) else np.asarray(proba)


def report(name, validation, new, labels, half=0.5):
    """Print the mean F1 of new rows above one half, above a tuned threshold t, and F-optimal.

    `validation`, on which t is tuned, and `new` are pairs of scores and true labels.
    """
    scores, Y = new
    rules = scores > half, scores > best_threshold(*validation), labels
    f1 = [fgfm.f_measure(Y, chosen) for chosen in rules]
    print("{}: F1 {:.2f} above 0.5, {:.2f} above t, {:.2f} F-optimal".format(name, *f1))


def against_thresholds(proba_val, Y_val, proba_new, Y_new):
    """Return, for each average, F1 above 0.5, above t, above t of each label, and of FDecider.

    All but the first are tuned on the validation rows.
    """
    each = [
        best_threshold(proba_val[:, [j]], Y_val[:, [j]] == 1, average="micro")
        for j in range(Y_val.shape[1])
    ]
    scores = []
    for average in AVERAGES:
        t = best_threshold(proba_val, Y_val == 1, average=average)
        labels = fgfm.FDecider(average=average).fit(proba_val, Y_val).predict(proba_new)
        rules = proba_new > 0.5, proba_new > t, proba_new > each, labels
        scores.append([fgfm.f_measure(Y_new, found, average=average) for found in rules])
    return scores


def report_splits(scores):
    """Print means over splits of what `against_thresholds` returned, by name of the problem."""
    print(f"{'':34}> 0.5    > t  > t of each  FDecider")
    for name, found in scores.items():
        for average, (half, t, each, best) in zip(AVERAGES, np.mean(found, axis=0), strict=True):
            print(f"{name:24} {average:8} {half:6.3f} {t:6.3f} {each:12.3f} {best:9.3f}")
