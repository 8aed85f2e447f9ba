"""Run the script of a package on a split, in the package's own environment.

``python run_peer.py SCRIPT SPLIT RESULT SEED``: SCRIPT is a file beside this one, SPLIT and RESULT
are .npz files. A script defines

    fit(X, Y, seed) -> model
    predict(model, X) -> {"labels": {rule: matrix of 0 and 1}}

with X a float64 array or CSR matrix and Y an int8 array. `predict` may add "expected_f",
{rule: one value per row}, and "proba", the marginal probabilities, dense or sparse. Imports at the
top of a script are not timed. The working folder is temporary.

Standard input is a pipe from the parent process, which is closed when the parent ends.

Labels that are constant in the training rows are removed, because many learners cannot fit them,
and predicted by their constant.
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


def _exit_with_parent() -> None:
    """Kill this process, and those that it started, when the parent has ended."""
    os.read(0, 1)  # nothing is ever sent: it returns when the pipe is closed
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def main(script: str, split: str, result: str, seed: str) -> None:
    """Run one script."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    warnings.simplefilter("ignore")  # of the package, about its own libraries
    random.seed(int(seed))
    # for packages that use the global generator
    np.random.seed(int(seed))  # noqa: NPY002
    with np.load(split, allow_pickle=False) as stored:
        parts = dict(stored)
    X_train, X_test = (_matrix(parts, name) for name in ("X_train", "X_test"))
    Y_train = parts["Y_train"]
    peer = _load(script)
    first = Y_train[0]
    varies = (Y_train != first).any(axis=0)
    if not varies.any():
        raise ValueError("all labels are constant in the training rows: there is nothing to learn")

    start = time.perf_counter()
    model = peer.fit(X_train, np.ascontiguousarray(Y_train[:, varies]), int(seed))
    fitted = time.perf_counter()
    predicted = peer.predict(model, X_test)
    end = time.perf_counter()

    output: dict[str, Any] = {
        "fit_s": fitted - start,
        "predict_s": end - fitted,
        "peak_mib": _peak_mib(),
    }
    for rule, labels in predicted["labels"].items():
        output[f"labels/{rule}"] = _insert_constant(_dense(labels), first, varies).astype(np.int8)
    for rule, expected_f in predicted.get("expected_f", {}).items():
        output[f"expected_f/{rule}"] = expected_f
    if "proba" in predicted:
        output |= _proba_parts(predicted["proba"], first, varies)
    np.savez(result, **output)


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


def _insert_constant(values: Any, constant: Any, varies: Any) -> Any:
    """Insert the columns of constant labels between those that vary."""
    whole = np.tile(constant.astype(values.dtype), (values.shape[0], 1))
    whole[:, varies] = values
    return whole


def _proba_parts(proba: Any, constant: Any, varies: Any) -> dict[str, Any]:
    if not sparse.issparse(proba):
        return {"proba": _insert_constant(np.asarray(proba), constant, varies)}
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
    """Return the peak memory of this process in MiB; NaN if it is unknown."""
    # on Linux getrusage reports the peak of the parent process if that is higher
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
