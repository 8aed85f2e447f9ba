"""Fit a peer to a split and predict, in the process and the environment of the peer.

``python child.py SCRIPT SPLIT RESULT SEED``: SCRIPT is a file beside this one, SPLIT and RESULT
are .npz files. A script offers

    fit(X, Y, seed) -> model
    predict(model, X) -> {"labels": {rule: matrix of 0 and 1}}

with X a float64 array or CSR matrix and Y an int8 array. `predict` may add "expected_f",
{rule: one value for each row}, and "proba", the marginal probabilities, dense or sparse. What a
script imports at its top is not part of the time. Its working folder is a temporary one.

Standard input is a pipe from the process that wants the result, and tells when that ends.

A label that all training rows have, or none, is decided by that: many learners refuse it, so none
is asked.
"""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import sys
import threading
import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse


def _follow() -> None:
    """End this process, and those that it started, when the one that wants it has ended."""
    os.read(0, 1)  # nothing is ever sent
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def main(script: str, split: str, result: str, seed: str) -> None:
    """Run one script."""
    threading.Thread(target=_follow, daemon=True).start()
    warnings.simplefilter("ignore")  # those of the peer, about its own libraries
    random.seed(int(seed))
    # for peers that draw from the global generator
    np.random.seed(int(seed))  # noqa: NPY002
    with np.load(split, allow_pickle=False) as stored:
        parts = dict(stored)
    X_train, X_test = (_matrix(parts, name) for name in ("X_train", "X_test"))
    Y_train = parts["Y_train"]
    peer = _load(script)
    first = Y_train[0]
    varies = (Y_train != first).any(axis=0)
    if not varies.any():
        raise ValueError("no label varies in the training rows: there is nothing to learn")

    start = time.perf_counter()
    model = peer.fit(X_train, np.ascontiguousarray(Y_train[:, varies]), int(seed))
    fitted = time.perf_counter()
    predicted = peer.predict(model, X_test)
    end = time.perf_counter()

    answer: dict[str, Any] = {
        "fit_s": fitted - start,
        "predict_s": end - fitted,
        "peak_mib": _peak_mib(),
    }
    for rule, labels in predicted["labels"].items():
        answer[f"labels/{rule}"] = _widen(_dense(labels), first, varies).astype(np.int8)
    for rule, expected_f in predicted.get("expected_f", {}).items():
        answer[f"expected_f/{rule}"] = expected_f
    if "proba" in predicted:
        answer |= _proba_parts(predicted["proba"], first, varies)
    np.savez(result, **answer)


def _load(script: str) -> Any:
    spec = importlib.util.spec_from_file_location("peer", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _matrix(parts: dict[str, Any], name: str) -> Any:
    if name in parts:
        return parts[name]
    pieces = (parts[f"{name}/{piece}"] for piece in ("data", "indices", "indptr"))
    return sparse.csr_matrix(tuple(pieces), shape=tuple(parts[f"{name}/shape"]))


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def _widen(values: Any, constant: Any, varies: Any) -> Any:
    """Put the columns of the labels that vary between those of the constant ones."""
    whole = np.tile(constant.astype(values.dtype), (values.shape[0], 1))
    whole[:, varies] = values
    return whole


def _proba_parts(proba: Any, constant: Any, varies: Any) -> dict[str, Any]:
    if not sparse.issparse(proba):
        return {"proba": _widen(np.asarray(proba), constant, varies)}
    n, m = proba.shape[0], len(varies)
    place = sparse.csr_matrix(
        (np.ones(varies.sum()), (np.arange(varies.sum()), np.flatnonzero(varies))),
        shape=(varies.sum(), m),
    )
    always = sparse.csr_matrix(np.where(varies, 0.0, constant.astype(float)))
    whole = proba.tocsr() @ place + sparse.csr_matrix(np.ones((n, 1))) @ always
    whole.sort_indices()
    return {
        "proba/data": whole.data,
        "proba/indices": whole.indices,
        "proba/indptr": whole.indptr,
        "proba/shape": np.array(whole.shape),
    }


def _peak_mib() -> float:
    """Give the peak of the memory in use; NaN where the system does not tell."""
    # getrusage on Linux carries over the peak of the process that started this one
    if os.path.exists("/proc/self/status"):
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024.0
    try:
        import resource
    except ImportError:
        return float("nan")
    unit = 2.0**20 if sys.platform == "darwin" else 2.0**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    main(*sys.argv[1:])
