"""Learners and counters that are imported by the workers of a cluster."""

from __future__ import annotations

from collections import Counter

import numpy as np
from sklearn.naive_bayes import GaussianNB

from fgfm._utils.parallel import Shared
from fgfm.ridge import fit_ridge_logistic

SEEN = []  # every X fitted in this process; kept, so that no id is used again
LOADED = []  # the class of each shared object unpickled in this process


class Recording(GaussianNB):
    """Records the features of each fit, in the process of the fit."""

    def fit(self, X, y, sample_weight=None):
        SEEN.append(X)
        return super().fit(X, y, sample_weight)


def reset():
    """Reset the counters, and count the shared objects that are unpickled from now on."""
    SEEN.clear()
    LOADED.clear()

    def count(self, state):
        LOADED.append(type(self).__name__)
        vars(self).update(state)

    Shared.__setstate__ = count


def count_features():
    """Return the number of different X fitted in this process, and the number of fits."""
    return len({id(x) for x in SEEN}), len(SEEN)


def count_loads():
    """Return the number of objects of each shared class unpickled in this process."""
    return dict(Counter(LOADED))


def import_and_compile():
    """Import modules and compile kernels, so that tests do not wait for it."""
    X = np.arange(12.0).reshape(6, 2) ** 2 % 7
    fit_ridge_logistic(X, [np.arange(6) % 2], random_state=0)
