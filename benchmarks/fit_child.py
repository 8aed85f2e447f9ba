"""Fit and predict once, in a separate process; print time and memory as one line of JSON.

``python fit_child.py METHOD FILE SECONDS``: FILE is an .npz with the split, SECONDS the time limit
of the fit, after which the total is extrapolated from the number of models fitted. The script runs
under any scikit-learn from 1.2 on: one rival needs an old version, in an environment of its own.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

PENALTIES = 10.0 ** np.arange(-4, 4)


class OutOfTimeError(Exception):
    """The fit has exceeded its time limit."""


class Counted(LogisticRegression):
    """Logistic regression that counts its fits and enforces the time limit."""

    done = 0
    end = float("inf")

    def fit(self, X, y, sample_weight=None):
        """Fit, or raise after the time limit."""
        if time.process_time() > Counted.end:
            raise OutOfTimeError
        super().fit(X, y, sample_weight)
        Counted.done += 1
        return self


def read(path):
    """Return X and Y of the training rows, X and Y of the test rows."""
    with np.load(path) as stored:
        parts = {name: stored[name] for name in stored.files}
    features = []
    for part in ("train", "test"):
        if f"X_{part}" in parts:
            features.append(parts[f"X_{part}"])
        else:
            pieces = (parts[f"{piece}_{part}"] for piece in ("data", "indices", "indptr"))
            features.append(sparse.csr_matrix(tuple(pieces), shape=tuple(parts[f"shape_{part}"])))
    return features[0], parts["Y_train"], features[1], parts["Y_test"]


class Loop:
    """One LogisticRegressionCV per label."""

    def __init__(self, end):
        self.end = end
        self.models = []

    def fit(self, X, Y):
        """Fit label by label."""
        for y in Y.T:
            if time.process_time() > self.end:
                raise OutOfTimeError
            model = None
            if 0 < y.sum() < len(y):
                model = LogisticRegressionCV(
                    Cs=0.5 / PENALTIES, cv=3, scoring="neg_log_loss", max_iter=1000
                ).fit(X, y)
            self.models.append((model, int(y[0])))
        return self

    def predict(self, X):
        """Predict the labels with p > 0.5."""
        n = X.shape[0]
        columns = [m.predict(X) if m is not None else np.full(n, c) for m, c in self.models]
        return np.stack(columns, axis=1)


def peak():
    """Return the peak memory of this process, in bytes."""
    try:
        with open("/proc/self/status") as file:  # getrusage may include the parent's peak
            return 1024 * next(int(x.split()[1]) for x in file if x.startswith("VmHWM:"))
    except OSError:
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Search:
    """The search for label factors, without decisions."""

    def fit(self, X, Y):
        """Find the factors."""
        from fgfm import ILFCompo

        self.factors_ = ILFCompo("gcm", random_state=0).fit(X, Y).factors_
        return self


def main(method, path, seconds):
    """Run one method and print its measurements."""
    warnings.simplefilter("ignore")
    X, Y, X_test, Y_test = read(path)
    start = time.process_time()
    end = start + float(seconds)
    if method == "LogisticRegressionCV":
        model = Loop(end)
        total = Y.shape[1]
    elif method == "f1-maximizer":
        from example_wise_f1_maximizer import ExampleWiseF1Maximizer

        Counted.end = end
        model = ExampleWiseF1Maximizer(estimator=Counted(C=1.0, max_iter=1000))
        total = Y.shape[1] ** 2 + 1
    else:
        from fgfm import FGFMClassifier

        # loads the compiled kernels, which are compiled once per machine
        for factors in ("single", "independent", "ilf"):
            few = FGFMClassifier("ridge", factors=factors, random_state=0)
            few.fit(X[:40], Y[:40, :20]).predict(X[:5])
        if method == "ILFCompo":
            model = Search()
        else:
            model = FGFMClassifier("ridge", factors=method, random_state=0)
        total = 0
        start = time.process_time()
    before = peak()
    found = {"extrapolated": False, "predict": None, "f1": None}
    try:
        model.fit(X, Y)
        found["fit"] = time.process_time() - start
        if hasattr(model, "factors_"):
            found["factors"] = len(model.factors_)
            found["largest"] = max(map(len, model.factors_))
        start = time.process_time()
        predicted = Y_test if method == "ILFCompo" else model.predict(X_test)
        found["predict"] = time.process_time() - start
        predicted = predicted.toarray() if sparse.issparse(predicted) else np.asarray(predicted)
        both = (predicted * Y_test).sum(axis=1)
        size = predicted.sum(axis=1) + Y_test.sum(axis=1)
        found["f1"] = float(np.where(size > 0, 2.0 * both / np.maximum(size, 1), 1.0).mean())
    except OutOfTimeError:
        done = len(model.models) if isinstance(model, Loop) else Counted.done
        found["fit"] = (time.process_time() - start) * total / max(1, done)
        found["extrapolated"] = True
    found["peak"] = peak()
    found["memory"] = found["peak"] - before
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
