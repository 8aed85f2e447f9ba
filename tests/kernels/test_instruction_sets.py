"""The compiled modules give the same bits for all instruction sets."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fgfm._kernels import _native, native

# Prints a digest of many results; with the argument "baseline" those of the module that every
# processor can run.
PROGRAM = """
import hashlib, sys, warnings
if sys.argv[1] == "baseline":
    import fgfm._kernels._native
    sys.modules["fgfm._kernels._native_v3"] = fgfm._kernels._native
    del sys.modules["fgfm._kernels"]
import numpy as np
from scipy import sparse
import fgfm._kernels
from fgfm import FDecider, StackClassifier, cardinality, decision, metrics
from fgfm.decision import Constraints
from fgfm.ridge import RidgeLogistic

assert (fgfm._kernels.native.__name__ == "fgfm._kernels._native") == (sys.argv[1] == "baseline")
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)


def show(name, *arrays):
    digest = hashlib.sha256()
    for array in arrays:
        array = array.toarray() if sparse.issparse(array) else np.asarray(array)
        digest.update(np.ascontiguousarray(array).tobytes())
    print(name, digest.hexdigest())


for n, m in [(200, 3), (100, 20), (60, 128), (50, 129), (20, 1000), (2, 20_000), (9000, 8)]:
    for power in (1, 4, 40):
        p = rng.random((n, m)) ** power
        for dtype in (np.float64, np.float32):
            for options in ({}, {"beta": 2.0, "nonempty": True}, {"measure": "jaccard"}):
                for rows in (p.astype(dtype), sparse.csr_array(p.astype(dtype))):
                    show(f"{n, m, dtype, options}", *decision.from_marginals(rows, **options))
        for average in ("macro", "micro"):
            show(f"{n, m, power, average}", *decision.from_marginals(p, average=average))
        floors = {"min_precision": 0.4, "min_recall": 0.3}
        show(f"{n, m, power, floors}", *decision.from_marginals(p, **floors))
        limits = {"min_labels": 1, "max_labels": 2}
        show(f"{n, m, power, limits}", *decision.from_marginals(p, average="macro", **limits))
    show("missed", *decision.from_marginals(p, missed=rng.dirichlet(np.ones(3), n)))
for m in (8, 40, 130):
    p = rng.random((60, m)) ** 3
    kinds = {
        "required": Constraints(required=[m - 1]),
        "groups": Constraints(groups=np.arange(m - m % 4).reshape(-1, 4).tolist()),
        "parents": Constraints(parents={i: (i - 1) // 3 for i in range(1, m)}),
        "costs": Constraints(required=[0], costs=np.linspace(0.0, 0.1, m)),
    }
    for kind, constraints in kinds.items():
        limits = {"min_labels": 2, "constraints": constraints, "beta": 2.0}
        show(f"{kind, m}", *decision.from_marginals(p, **limits))
for m in (2, 7, 30):
    p, d = rng.random((40, m)), rng.dirichlet(np.ones(m + 1), 40)
    for method in ("tilt", "condition"):
        P = cardinality.of_marginals(p, d, method=method)
        show(f"{method, m}", P, *decision.from_cardinalities(P, distribution=d))
    parts = [cardinality.of_marginals(p[:, i]) for i in (slice(m // 2), slice(m // 2, m))]
    members = [range(m // 2), range(m // 2, m)]
    show(f"factors {m}", *decision.from_factors(parts, members))
    y = (rng.random(p.shape) < p).astype(int)
    show(f"samples {m}", *decision.from_samples(y[None]))
    for options, missed in (({}, np.arange(40) % 3), ({"min_recall": 0.5}, None)):
        decider = FDecider(**options).fit(p, y, missed=missed)
        show(f"decider {m}", *decider.decide(p), decider.predict_proba(p))
show("bounds", [metrics.mean_lower_bound(rng.beta(60, 20, n)) for n in (5, 50, 2000)])
for X in (rng.normal(size=(150, 6)), sparse.random_array((300, 400), density=0.05, rng=rng)):
    Y = (X @ rng.normal(size=(X.shape[1], 4)) > 0.5).astype(int)
    for y in (Y[:, 0], np.minimum(Y.sum(axis=1), 2)):
        model = RidgeLogistic(random_state=0).fit(X, y)
        show("ridge", model.coef_, model.cv_losses_)
X, Y = rng.normal(size=(150, 6)), rng.integers(0, 2, (150, 4))
show("learner", StackClassifier(random_state=0).fit(X, Y).oob_decision_function_)
"""


@pytest.mark.skipif(native is _native, reason="this machine runs the baseline only")
def test_instruction_sets_give_the_same_bits():
    results = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, name], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for name in ("baseline", "best")
    ]
    assert len(results[0]) > 300
    assert results[0] == results[1]
